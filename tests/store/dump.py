"""Everything that stands in a server, read in one command, as Python values that compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import redis

from tests.store.variants import CLOCK_KEY

_READ = """
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key)
  kind = type(kind) == 'table' and kind.ok or kind
  local content = {}
  if kind == 'hash' then content = redis.call('HGETALL', key)
  elseif kind == 'zset' then content = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'set' then content = redis.call('SMEMBERS', key)
  elseif kind == 'stream' then content = redis.call('XRANGE', key, '-', '+')
  elseif kind == 'list' then content = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'string' then content = redis.call('GET', key) end
  found[#found + 1] = {key, kind, redis.call('PTTL', key), content}
end
return found
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One stream entry: its id and its fields."""

    id: str
    fields: dict[str, str]

    @property
    def run(self) -> int:
        return int(self.id.partition("-")[0])

    @property
    def n(self) -> int:
        return int(self.id.partition("-")[2])


@dataclass(frozen=True, slots=True)
class Key:
    """One key. ttl_ms: -1 where it never ends. value: dict (hash), dict of floats (zset), frozenset
    (set), tuple of Entry (stream), tuple (list), str (string)."""

    kind: str
    ttl_ms: int
    value: Any


Dump = dict[str, Key]


def dump(client: redis.Redis, prefix: str = "") -> Dump:
    """Every key under the prefix by its name without it; the test's own clock is left out."""
    found: Dump = {}
    for name, kind, ttl_ms, content in client.eval(_READ, 0):
        key, kind = _text(name), _text(kind)
        if key.startswith(prefix) and key != CLOCK_KEY:
            found[key.removeprefix(prefix)] = Key(kind, int(ttl_ms), _value(kind, content))
    return found


def _value(kind: str, content: Any) -> Any:
    if kind == "string":
        return _text(content)
    if kind == "stream":
        return tuple(Entry(_text(entry), _pairs(flat)) for entry, flat in content)
    if kind == "hash":
        return _pairs(content)
    if kind == "zset":
        return {member: float(score) for member, score in _pairs(content).items()}
    items = (_text(item) for item in content)
    return frozenset(items) if kind == "set" else tuple(items)


def _pairs(flat: list[bytes]) -> dict[str, str]:
    return {_text(flat[i]): _text(flat[i + 1]) for i in range(0, len(flat), 2)}


def _text(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def task_ids(state: Dump) -> tuple[str, ...]:
    """Ids of every task that has a hash."""
    heads = (key for key in state if key.startswith("task:") and key.count(":") == 1)
    return tuple(key.removeprefix("task:") for key in heads)


def value(state: Dump, key: str, absent: Any) -> Any:
    """What stands under the key."""
    return state[key].value if key in state else absent
