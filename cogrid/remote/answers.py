"""What a person at a terminal may be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Asked:
    """A person at a terminal. Each call asks for one thing and returns None when refused.

    The calls come from several threads at once; whoever builds this lets one question be asked at a
    time, and remembers an answer where the same is asked for many hosts. The bool says that the
    answer before was wrong.

    password: for ``user@host:port``. passphrase: for a key file. sudo: for ``user@host:port``.
    new_key: whether a host, never seen before, is the one that shows this fingerprint.
    """

    password: Callable[[str, bool], str | None] = field(repr=False)
    passphrase: Callable[[Path, bool], str | None] = field(repr=False)
    sudo: Callable[[str, bool], str | None] = field(repr=False)
    new_key: Callable[[str, str], bool] = field(repr=False, default=lambda _host, _print: False)
