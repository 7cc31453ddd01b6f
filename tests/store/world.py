"""One server under a clock that the test sets: seed it, call a transition, see what changed."""

from __future__ import annotations

from typing import Any, TypeVar

import redis

from cogrid.model.limits import Limits
from cogrid.store.client import Store
from cogrid.store.keys import Keys
from cogrid.store.script import Call, Scripts
from tests.build import NOW_MS
from tests.store.dump import Dump, Entry, Key, dump
from tests.store.seed import Seed
from tests.store.variants import CLOCK_KEY, clocked

T = TypeVar("T")
LIMITS = Limits()
RUN_ID = "server-run-1"
REPLICATION_ID = "replication-1"
KEEP = "keep"


class World:
    """A store on a server whose clock says ``NOW_MS`` until the test moves it.

    ``changes()`` is the difference between the whole state after the last ``seed`` or ``mark``
    and the whole state now, so that one comparison says what a call did and that it did no more.
    """

    def __init__(self, client: redis.Redis, scripts: Scripts = clocked, prefix: str = "") -> None:
        self.client = client
        self.keys = Keys(prefix)
        self.store = self.with_scripts(scripts)
        self._now_ms = NOW_MS
        self._before: Dump = {}
        self.tick(0)

    def with_scripts(self, scripts: Scripts) -> Store:
        """Another store on the same server."""
        twin = redis.Redis(connection_pool=self.client.connection_pool)
        return Store(twin, self.keys, "redis://test", scripts)

    @property
    def now_ms(self) -> int:
        return self._now_ms

    def tick(self, ms: int) -> None:
        """Moves the server's clock on (or back)."""
        self._now_ms += ms
        self.client.set(CLOCK_KEY, self._now_ms)

    def seed(self, *seeds: Seed) -> None:
        """Writes keys as they would stand in Redis; what stands now is what changes() compares
        with."""
        for one in seeds:
            one(self.client, self.keys)
        self.mark()

    def mark(self) -> None:
        """From here on changes count."""
        self._before = self.dump()

    def do(self, call: Call[T]) -> T:
        """Runs a transition."""
        return self.store.do(call)

    def dump(self) -> Dump:
        return dump(self.client, self.keys.prefix)

    def hash(self, key: str) -> dict[str, str]:
        """A hash as it stands."""
        found = self.dump().get(key)
        return dict(found.value) if found else {}

    def changes(self) -> dict[str, Any]:
        """What is other than before, by key:

        a key that went: None. hash, zset: the members that are other (None: gone); a score as int.
        set: names with + or -. stream: new entries, as (id, fields); of ``grid:events``, whose ids
        and times are the clock's, (edge, task, worker, token, reason). string: the text.
        ``<key> ttl``: seconds, where a TTL appeared or is other; None where it went.
        """
        after = self.dump()
        found: dict[str, Any] = {}
        for name in sorted({*self._before, *after}):
            old, new = self._before.get(name), after.get(name)
            if new is None:
                found[name] = None
                continue
            other = self._other(name, old, new)
            if other:
                found[name] = other
            if _seconds(old) != _seconds(new):
                found[f"{name} ttl"] = _seconds(new)
        return found

    def _other(self, name: str, old: Key | None, new: Key) -> Any:
        if new.kind in ("hash", "zset"):
            before = old.value if old else {}
            names = sorted({*before, *new.value})
            pairs = {n: new.value.get(n) for n in names if before.get(n) != new.value.get(n)}
            return {n: _whole(v) for n, v in pairs.items()}
        if new.kind == "set":
            before_set = old.value if old else frozenset()
            gone = {f"-{member}" for member in before_set - new.value}
            return gone | {f"+{member}" for member in new.value - before_set}
        if new.kind == "stream":
            seen = {entry.id for entry in (old.value if old else ())}
            fresh = [entry for entry in new.value if entry.id not in seen]
            return [self._event(e) if name == "grid:events" else (e.id, e.fields) for e in fresh]
        return new.value if old is None or old.value != new.value else None

    def _event(self, entry: Entry) -> tuple[str, ...]:
        told = entry.fields
        assert told["at_ms"] == str(self._now_ms)
        return tuple(told[name] for name in ("edge", "task", "worker", "token", "reason"))


def _seconds(key: Key | None) -> int | None:
    """TTLs that differ by less than what a test takes are the same."""
    return None if key is None or key.ttl_ms < 0 else round((key.ttl_ms + 400) / 1000)


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
