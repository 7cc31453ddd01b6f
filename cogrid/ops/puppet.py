"""A worker without an engine, which says to the grid whatever a drill wants it to say."""

from __future__ import annotations

import secrets

from cogrid import __version__
from cogrid.errors import ConflictError
from cogrid.model.limits import Limits
from cogrid.model.names import Queue, WorkerId, own_queue, shared_queue
from cogrid.model.worker import Offer, WorkerState
from cogrid.store.client import Store
from cogrid.store.tasks import Claim, Handed, Outcome, claim, finish
from cogrid.store.workers import Held, Life, Who, forget, hello, renew


class Puppet:
    """Takes the name ``worker`` in a pool and with a model of its own. runs: what it holds."""

    def __init__(self, store: Store, limits: Limits, worker: str, pool: str, host: str) -> None:
        self.id = WorkerId(worker)
        self.model = pool
        self.runs: list[Handed] = []
        self._store = store
        self._limits = limits
        self._who = Who(
            self.id, secrets.token_hex(8), secrets.token_hex(8), host, pool, 1, __version__, "drill"
        )
        self._k = 0

    @property
    def queue(self) -> Queue:
        """Its own queue."""
        return own_queue(self._who.pool, self.id)

    @property
    def shared(self) -> Queue:
        """The queue that it shares with the others of its pool."""
        return shared_queue(self._who.pool, self.model)

    def appear(self) -> None:
        """Say hello and be ready."""
        said = self._store.do(hello(self._store.keys, self._who, self._lease_ms))
        if said.status != "ok":
            raise ConflictError(f"somebody has the name {self.id}", "try again")
        self.renew()

    def renew(self, silent_s: float = 0.0, allowed_s: float = 0.0) -> None:
        """Renew the lease, and say of each run that it was silent for silent_s of allowed_s."""
        held = tuple(
            Held(run.id, run.token, round(silent_s * 1000), round(allowed_s * 1000))
            for run in self.runs
        )
        life = Life(
            WorkerState.READY, (Offer(self.model),), ("cpu_inference",), 1, 0, self._k, held,
            self._lease_ms,
        )  # fmt: skip
        who = self._who
        self._store.do(renew(self._store.keys, who.worker, who.instance, who.lock, life))

    def claim(self, allowed_s: float) -> Handed | None:
        """Ask for work, from both queues; the task that it was given. allowed_s: how long its run
        may be silent."""
        self._k += 1
        asked = Claim(
            self.id, self._who.instance, self._k, 1 - len(self.runs),
            ((self.queue, True), (self.shared, True)), round(allowed_s * 1000),
        )  # fmt: skip
        taken = self._store.do(claim(self._store.keys, asked)).tasks
        self.runs += taken
        return taken[0] if taken else None

    def finish(self) -> None:
        """Everything that it runs is done."""
        for run in self.runs:
            done = Outcome("done", finish_reason="stop")
            self._store.do(finish(self._store.keys, self.id, run.id, run.token, done))
        self.runs.clear()

    def vanish(self) -> None:
        """Strike it off, whatever it holds."""
        self._store.do(forget(self._store.keys, self.id, True, "cogrid drill"))

    @property
    def _lease_ms(self) -> int:
        return round(self._limits.lease_s * 1000)
