"""Lines of a machine's journal, as ``journalctl --output json`` prints them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

FIELDS = "MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_SYSTEMD_UNIT,_SYSTEMD_USER_UNIT,UNIT,USER_UNIT"
"""What is asked for beside the time, which always comes."""
LATEST_US = 253_402_300_800_000_000
"""The year 10000, which no date can say."""
WARNING = 4
"""syslog(3)'s number of a warning; worse ones are lower."""


@dataclass(frozen=True, slots=True)
class JournalLine:
    """at_us: µs since 1970 by that machine's clock. unit: whose line it is, also where systemd says
    it about that unit. by: what said it, such as cogrid or systemd. priority: 0 (worst) to 7, as in
    syslog(3). cursor: the entry's own place, to go on after it."""

    at_us: int
    unit: str
    text: str
    priority: int = 6
    cursor: str = ""
    by: str = ""


def journal_line(text: str) -> JournalLine | None:
    """None for what is no entry, such as a torn one."""
    try:
        entry = msgspec.json.decode(text, type=dict[str, Any])
        at_us = int(entry["__REALTIME_TIMESTAMP"])
        priority = int(entry.get("PRIORITY", 6))
    except (msgspec.DecodeError, KeyError, ValueError, TypeError):
        return None
    if not 0 <= at_us < LATEST_US:
        return None
    cursor = str(entry.get("__CURSOR", ""))
    by = str(entry.get("SYSLOG_IDENTIFIER", ""))
    return JournalLine(at_us, _unit(entry), _message(entry.get("MESSAGE")), priority, cursor, by)


def _unit(entry: dict[str, Any]) -> str:
    """systemd's own lines about a unit carry its name in another field than the unit's lines."""
    names = (entry.get(name) for name in ("UNIT", "USER_UNIT", "_SYSTEMD_USER_UNIT"))
    return str(next((name for name in names if name), entry.get("_SYSTEMD_UNIT", "")))


def _message(message: Any) -> str:
    """A message that is no text comes as a list of its bytes."""
    if isinstance(message, list):
        return bytes(b for b in message if isinstance(b, int) and 0 <= b < 256).decode(
            errors="replace"
        )
    return "" if message is None else str(message)
