"""What stands in Redis, as a file: written down from one grid, put into another one later."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

Record = dict[str, Any]
"""now_ms, and the keys: name -> [type, what it holds as JSON]; a stream is a list of [id, fields]
in their order."""

READS: dict[str, Callable[[Any, str], Any]] = {
    "string": lambda redis, key: redis.get(key),
    "hash": lambda redis, key: redis.hgetall(key),
    "set": lambda redis, key: sorted(redis.smembers(key)),
    "zset": lambda redis, key: redis.zrange(key, 0, -1, withscores=True),
    "stream": lambda redis, key: [[str(n), fields] for n, fields in redis.xrange(key)],
}
WRITES: dict[str, Callable[[Any, str, Any], Any]] = {
    "string": lambda redis, key, held: redis.set(key, held),
    "hash": lambda redis, key, held: redis.hset(key, mapping=held),
    "set": lambda redis, key, held: redis.sadd(key, *held),
    "zset": lambda redis, key, held: redis.zadd(key, dict(held)),
    "stream": lambda redis, key, held: [redis.xadd(key, fields, n) for n, fields in held],
}
TIME = re.compile(r"(?<![0-9])1[0-9]{12}(?![0-9])")
"""A time in ms; nothing else in Redis has thirteen digits."""


def dump(redis: Any, now_ms: int) -> Record:
    """Everything that it holds."""
    names = sorted(redis.scan_iter())
    kinds = {name: redis.type(name) for name in names}
    keys = {name: [kind, READS[kind](redis, name)] for name, kind in kinds.items()}
    return {"now_ms": now_ms, "keys": keys}


def load(redis: Any, told: Record, now_ms: int) -> None:
    """Put it there as if it had been written just now."""
    for name, (kind, held) in moved(told["keys"], now_ms - told["now_ms"]).items():
        WRITES[kind](redis, name, held)


def moved(told: Any, by_ms: int) -> Any:
    """Every time in it, that much later."""
    if isinstance(told, dict):
        return {moved(key, by_ms): moved(value, by_ms) for key, value in told.items()}
    if isinstance(told, list):
        return [moved(value, by_ms) for value in told]
    if isinstance(told, str):
        return TIME.sub(lambda found: str(int(found.group()) + by_ms), told)
    if isinstance(told, float) and told > 1e12:
        return told + by_ms
    return told


def names(told: Record) -> set[str]:
    """The kinds of keys with their types, and the fields of each: what later versions must keep."""
    return set(_names(told["keys"]))


def _names(keys: dict[str, Any]) -> Iterator[str]:
    for name, (kind, held) in keys.items():
        general = f"{kind} {_kind_of(name)}"
        yield general
        entries = [fields for _, fields in held] if kind == "stream" else [held]
        if kind in ("hash", "stream"):
            yield from (f"{general} {field}" for fields in entries for field in fields)


def _kind_of(name: str) -> str:
    """``task:1f…`` -> ``task:*``; ``tasks:cpu:esxi`` -> ``tasks:*``; ``grid:totals`` as it is."""
    first, *rest = name.split(":")
    if first == "grid":
        return name
    return ":".join((first, "*", *(() if first in ("tasks", "rate") else rest[1:])))
