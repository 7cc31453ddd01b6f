"""From the configuration to the server it means."""

from __future__ import annotations

import os
from urllib.parse import quote

from cogrid.config import Config, state_dir
from cogrid.store.address import Address, parse_address
from cogrid.store.client import Store
from cogrid.store.embedded import Places

DEFAULT_URL = "redis://127.0.0.1:6379/0"


def address_of(config: Config) -> Address:
    """The server that is configured; else the one that ``cogrid up`` runs for this user; else the
    usual port of this machine. UsageError says what is wrong with a URL."""
    redis = config.redis
    url = redis.url or embedded_url(config) or DEFAULT_URL
    return parse_address(url, redis.username, redis.password, redis.ca_file or None)


def open_store(config: Config) -> Store:
    """A sync store, connected when it is first used."""
    return Store.connect(address_of(config), config.redis.prefix)


def embedded_url(config: Config) -> str:
    """The socket of the server that ``cogrid up`` brought with it, "" where there is none."""
    places = Places(state_dir(config, os.environ) / "valkey")
    if not places.socket.exists():
        return ""
    password = places.password.read_text().strip() if places.password.exists() else ""
    user = f"default:{quote(password, safe='')}@" if password else ""
    return f"unix://{user}{quote(str(places.socket))}"
