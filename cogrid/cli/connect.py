"""From the configuration to the server it means."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from cogrid.config import Client, Config, state_dir
from cogrid.errors import UsageError
from cogrid.store.address import Address, parse_address
from cogrid.store.client import Store
from cogrid.store.embedded_files import Places

UP_URL = "coordinator_url"
UP_KEY = "api_key"
"""Files in the state directory in which ``cogrid up`` says where its coordinator is."""
DEFAULT_URL = "redis://127.0.0.1:6379/0"


def address_of(config: Config) -> Address:
    """The server that is configured; else the one that ``cogrid up`` runs for this user; else the
    usual port of this machine. UsageError says what is wrong with a URL."""
    redis = config.redis
    url = redis.url or embedded_url(config) or DEFAULT_URL
    return parse_address(url, redis.username, redis.password, redis.ca_file or None)


def address_for_hosts(config: Config) -> Address:
    """The same server under an address that other machines can use, with its password. UsageError
    with the cure where there is none: on a host it would mean the host itself."""
    redis = config.redis
    url = redis.url or _opened_url(config)
    address = (
        parse_address(url, redis.username, redis.password, redis.ca_file or None) if url else None
    )
    if address is None or address.is_local:
        shown = address.shown if address else "the server that is used here"
        raise UsageError(
            f"{shown} is for this machine only: on a host it would mean the host itself",
            "open it with cogrid up --listen ADDRESS, or name an address that hosts can reach:"
            " --redis redis://ADDRESS:PORT",
        )
    return address


def _opened_url(config: Config) -> str:
    """Of the server that ``cogrid up --listen`` runs for this user, "" where it is not open."""
    from cogrid.cli.own_address import name_for_others
    from cogrid.store.embedded import Embedded

    server = Embedded.running_in(state_dir(config, os.environ))
    if server is None or server.address is None:
        return ""
    return server.network_url(name_for_others(server.address.host))


def open_store(config: Config) -> Store:
    """A sync store, connected when it is first used."""
    return Store.connect(address_of(config), config.redis.prefix)


def open_view(config: Config) -> Store:
    """The same for a command that only looks: what its user may not read is left out and named."""
    return Store.connect(address_of(config), config.redis.prefix, look=True)


def coordinator_of(config: Config) -> tuple[str, str]:
    """The coordinator's URL and the API key for it: as configured, else of the grid that
    ``cogrid up`` runs for this user."""
    client, home = config.client, state_dir(config, os.environ)
    if client == Client() and (home / UP_URL).exists():
        return _line(home / UP_URL), _line(home / UP_KEY)
    return client.url, client.api_key


def _line(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def embedded_url(config: Config) -> str:
    """The socket of the server that ``cogrid up`` brought with it, "" where there is none."""
    places = Places(state_dir(config, os.environ) / "valkey")
    if not places.socket.exists():
        return ""
    password = _line(places.password)
    user = f"default:{quote(password, safe='')}@" if password else ""
    return f"unix://{user}{quote(str(places.socket))}"
