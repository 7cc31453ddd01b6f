"""The configuration as it counts here: each value with its source, and a file to begin with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cogrid.config import Effective
from cogrid.config.example import example
from cogrid.config.keys import SECRET, SECTIONS
from cogrid.errors import CogridError, ConflictError

DEFAULT = "default"
HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class Setting:
    """source: ``cogrid.toml:4``, a variable, ``command line`` or ``default``. A secret's value is
    ``***``, that of a URL without its password."""

    key: str
    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class Settings:
    """file: the one that was read, null where there is none. time_scale: by which durations are
    multiplied already; 1 but in tests. domains: the names of the rules, in order. hosts: the
    addresses of the machines."""

    file: str | None
    time_scale: float
    settings: tuple[Setting, ...]
    domains: tuple[str, ...]
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """file: the one that was read, null where there is none. problems: everything that is wrong,
    each with its place and key."""

    file: str | None
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """file: the one that was written."""

    file: str


def settings(found: Effective) -> Settings:
    """Every key with its value and its source."""
    config = found.config
    rows = tuple(
        Setting(f"{section}.{each.name}", _shown(section, each.name, config), source)
        for section, kind in SECTIONS.items()
        for each in fields(kind)
        if each.name != "domains"
        for source in (found.sources.get(f"{section}.{each.name}", DEFAULT),)
    )
    names = tuple(rule.name for rule in config.routing.domains)
    addresses = tuple(host.address for host in config.hosts)
    return Settings(config.file or None, config.time_scale, rows, names, addresses)


def user_file(env: Mapping[str, str]) -> Path:
    """Where a user's own configuration stands."""
    home = env.get("XDG_CONFIG_HOME") or f"{env.get('HOME', '')}/.config"
    return Path(home) / "cogrid" / "cogrid.toml"


def write_example(path: Path) -> Written:
    """Write the example file, readable by its owner only since it may come to hold a password.
    ConflictError where there is one: nothing is ever overwritten."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise ConflictError(
            f"{path} is there already; nothing was written", "name another file, or move it away"
        ) from error
    except OSError as error:
        raise CogridError(f"{path} cannot be written: {error.strerror}") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(example())
    return Written(str(path))


def _shown(section: str, name: str, config: Any) -> Any:
    key, value = f"{section}.{name}", getattr(getattr(config, section), name)
    if key not in SECRET or not value:
        return value
    return without_password(value) if key == "redis.url" else HIDDEN


def without_password(url: str) -> str:
    """The URL with ``***`` where its password stands."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    _, at, place = parts.netloc.rpartition("@")
    if not at or parts.password is None:
        return url
    return parts._replace(netloc=f"{parts.username or ''}:{HIDDEN}@{place}").geturl()
