"""What the grid knows of a worker that is installed, and what it is told."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from cogrid.errors import CogridError, ConflictError, NotFoundError
from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import WorkerState
from cogrid.ops import drain as draining
from cogrid.ops.forget import forget, plan_forget
from cogrid.ops.install.given import Seen
from cogrid.rules.counted import counted
from cogrid.rules.health import is_dead
from cogrid.store.administration import note
from cogrid.store.client import Store
from cogrid.store.snapshot import read_snapshot

LONGER_S = 60.0
"""A drain ends by itself so much after the wait for it, should this side be gone by then."""
LOOK_S = 0.25


class Grid:
    """A store of its own for each thread. Close it."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self.limits = limits
        self._store = store

    def __enter__(self) -> Grid:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def snapshot(self) -> Snapshot:
        """The grid now."""
        return self._store.read(read_snapshot(self._store.keys, info=False))

    def seen(self, worker_id: str) -> Seen:
        """The worker of that name."""
        now = self.snapshot()
        worker = now.worker(worker_id)
        if worker is None or is_dead(worker, now.taken_at_ms):
            return Seen()
        silent_ms = now.taken_at_ms - worker.polled_at_ms
        polls = silent_ms <= self.limits.ghost_after_s * 1000
        return Seen(True, worker.host, polls, len(worker.tasks), worker.instance)

    def knows(self, worker_id: str) -> bool:
        """Whether it has a worker of that name, alive or not."""
        found = self._store.read(read_snapshot(self._store.keys, info=False, stray=True))
        return found.worker(worker_id) is not None

    def drained(
        self, worker_id: str, still: Callable[[], None], clock: Callable[[], float] = time.monotonic
    ) -> bool:
        """Have it take no more, and wait until it runs nothing. False where an operator had told
        it so already: then it goes on draining. still: called at each look. CogridError where it is
        at work for longer than a worker has for its own end."""
        limit_s = self.limits.drain_timeout_s
        end_s = clock() + limit_s
        worker = self.snapshot().worker(worker_id)
        if worker is None:
            return False
        ours = worker.wish.state != draining.DRAIN
        try:
            if ours:
                draining.drain(self._store, worker_id, limit_s + LONGER_S)
            for step in draining.drained(self._store, self.limits, worker_id):
                still()
                if not step.over and clock() > end_s:
                    raise CogridError(
                        f"{worker_id} still runs {counted(step.runs, 'task')} after {limit_s:g} s",
                        "try again when it has less to do, or set limits.drain_timeout_s",
                    )
        except BaseException:
            if ours:
                self.resume(worker_id)
            raise
        return ours

    def resume(self, worker_id: str) -> None:
        """Have it take work again, where it was told not to."""
        worker = self.snapshot().worker(worker_id)
        if worker and worker.wish.state == draining.DRAIN:
            with suppress(NotFoundError):  # gone meanwhile, and its wish with it
                draining.resume(self._store, worker_id)

    def strike_off(
        self,
        worker_id: str,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Its process has ended, so its lease runs out; then its name goes too, and whatever waits
        for it moves."""
        end_s = clock() + 2 * self.limits.lease_s
        while True:
            try:
                plan = plan_forget(self._store, self.limits, worker_id, force=False)
                break
            except NotFoundError:
                return
            except ConflictError:
                if clock() > end_s:
                    raise
                sleep(LOOK_S)
        for left in forget(self._store, self.limits, plan, force=False, sleep=sleep):
            if left.over or clock() > end_s:
                return

    def tell(self, what: str, worker_id: str = "") -> None:
        """Leave an event."""
        self._store.do(note(self._store.keys, what, worker=worker_id))

    def polls(self, worker_id: str, since_ms: int, before: str) -> bool:
        """Whether another process of that name than before has asked for work since then (Redis
        ms)."""
        worker = self.snapshot().worker(worker_id)
        return (
            worker is not None
            and worker.instance != before
            and worker.polled_at_ms > since_ms
            and worker.state is not WorkerState.AWAY
        )

    def passes(self, since_ms: int) -> bool:
        """Whether a reaper has begun a pass since then (Redis ms)."""
        return self.snapshot().reaper.last_pass_ms > since_ms

    def now_ms(self) -> int:
        """Redis' clock."""
        return self.snapshot().taken_at_ms
