"""The ``[[host]]`` tables: the machines that ``--all`` means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from cogrid.config.check import wrong
from cogrid.config.file import Read
from cogrid.config.keys import WrongValueError, typed
from cogrid.config.near import unknown
from cogrid.model.host import Host, Role, Scope
from cogrid.model.names import normal_model

_KINDS = {each.name: str(each.type) for each in fields(Host)}
_AS_WORKER = ("id", "pool", "engine", "slots")
"""Keys that mean what they mean in ``[worker]``."""
_WORDS = {"role": tuple(Role), "scope": tuple(Scope)}


def read_hosts(read: Read) -> tuple[tuple[Host, ...], tuple[str, ...]]:
    """The hosts, in order, and everything that is wrong with them."""
    tables = read.tables.get("host", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        return (), (f"{read.source('host')}: host: write each machine as a table [[host]]",)
    hosts: list[Host] = []
    problems: list[str] = []
    for number, table in enumerate(tables):
        wrong_keys = tuple(_wrong(table, {(host.address, host.role) for host in hosts}))
        problems += [
            f"{read.source(f'host#{number}.{key}', f'host#{number}')}: host.{key}: {what}"
            for key, what in wrong_keys
        ]
        if not wrong_keys:
            hosts.append(_host(table))
    return tuple(hosts), tuple(problems)


def _host(table: dict[str, Any]) -> Host:
    models = tuple(normal_model(model) for model in table.get("models", ()))
    return Host(**{**table, "models": models})


def _wrong(table: dict[str, Any], taken: set[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """Pairs of a key and what is right."""
    for key, value in table.items():
        if what := _wrong_value(key, value):
            yield key, what
    address, role = table.get("address"), table.get("role", Role.WORKER)
    if address is None:
        yield "address", "is missing: every host has one"
    elif isinstance(role, str) and (address, role) in taken:
        yield "address", f"{address!r} stands above with the same role"


def _wrong_value(key: str, value: object) -> str:
    if key not in _KINDS:
        return unknown(key, _KINDS)
    try:
        right = typed(_KINDS[key], value)
    except WrongValueError as error:
        return str(error)
    if key in _AS_WORKER:
        return wrong(f"worker.{key}", right)
    if key in _WORDS and right not in _WORDS[key]:
        return f"write {' or '.join(_WORDS[key])}"
    if key == "address":
        return wrong_address(str(right))
    return ""


def wrong_address(text: str) -> str:
    """What is right instead, "" where it can be an address. Whether there is such a host, and how
    it is reached, the SSH configuration decides."""
    if text and text.isprintable() and not text.startswith("-") and not set(text) & set(" \"'"):
        return ""
    return "write HOST, USER@HOST:PORT or an alias of the SSH configuration"
