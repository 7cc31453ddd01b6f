"""A task's log: entries of ``task:<id>:out`` as values."""

from __future__ import annotations

from typing import Any

from cogrid.model.chat import Claimed, End, Entry, Item, Moved, Reset, decode_delta, decode_usage
from cogrid.model.task import State
from cogrid.store.script import text

START = "0-0"
"""Before every entry."""


def entry(raw: Any) -> Entry:
    """One XRANGE element (id, flat list of fields)."""
    entry_id, flat = raw
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    return Entry(text(entry_id), _item(fields))


def _item(fields: dict[bytes, bytes]) -> Item:
    kind = fields[b"kind"]
    if kind == b"text":
        return decode_delta(fields[b"data"])
    if kind == b"claimed":
        return Claimed(text(fields[b"worker"]), text(fields[b"queue"]))
    if kind == b"end":
        return End(
            State(text(fields[b"state"])),
            text(fields[b"finish_reason"]),
            decode_usage(fields[b"usage"]),
            text(fields[b"message"]),
            text(fields[b"code"]),
            text(fields[b"worker"]),
        )
    place = Reset if kind == b"reset" else Moved
    return place(text(fields[b"worker"]), text(fields[b"reason"]), text(fields[b"queue"]))


def after(entry_id: str) -> str:
    """The exclusive start of a range behind that entry."""
    return f"({entry_id}" if entry_id != START else "-"


def order(entry_id: str) -> tuple[int, int]:
    """An id as something that compares."""
    run, _, n = entry_id.partition("-")
    return int(run), int(n or 0)
