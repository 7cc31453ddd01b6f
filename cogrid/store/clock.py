"""What time it is for Redis."""

from __future__ import annotations

from cogrid.store.reading import Reading, certain


def read_clock() -> Reading[int]:
    """Redis' own clock, in ms."""
    (reply,) = yield [("TIME",)]
    seconds, micros = certain(reply)
    return int(seconds) * 1000 + int(micros) // 1000
