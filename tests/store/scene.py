"""A world with a history: real time beside the server's clock, and what workers really did, so that
a reaper's acts can be judged by the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import redis

from cogrid.model.names import queue_worker, token_instance
from cogrid.store.passes import Acted
from cogrid.store.script import Call, Scripts
from tests.store.checker import Grid, faults
from tests.store.variants import clocked
from tests.store.world import LIMITS, World

FOREVER = 3_600_000_000


@dataclass(slots=True)
class Deeds:
    """When a process last got through to the server with a renewal, a claim, a freed slot; in
    elapsed ms, which no clock step changes."""

    worker: str
    renewed_ms: int = -FOREVER
    polled_ms: int = -FOREVER
    freed_ms: int = -FOREVER


@dataclass(slots=True)
class Truth:
    """deeds: by instance. models: what a worker's name serves. struck: names whose hash somebody
    has deleted; forgotten: those that an operator struck off."""

    deeds: dict[str, Deeds] = field(default_factory=dict)
    models: dict[str, tuple[str, ...]] = field(default_factory=dict)
    struck: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)


class Scene(World):
    """elapsed_ms: real time. unarmed: queues whose marker was popped and that no pass has tended
    since. mended: a server's fault is part of the scene, so repairs are. judging: workers are the
    scene's own, so the truth about them is known."""

    def __init__(self, client: redis.Redis, scripts: Scripts = clocked) -> None:
        super().__init__(client, scripts)
        self.elapsed_ms = 0
        self.unarmed: set[str] = set()
        self.truth = Truth()
        self.mended = False
        self.judging = True

    def tick(self, ms: int) -> None:
        super().tick(ms)
        if ms:
            self.elapsed_ms += ms

    def step(self, ms: int) -> None:
        """The server's clock jumps; no time passes."""
        super().tick(ms)

    def check(self) -> None:
        """Every invariant holds."""
        grid = Grid(self.dump(), self.now_ms, self.mended, frozenset(self.unarmed))
        found = faults(grid)
        assert not found, "\n".join(found)

    def hash_of(self, task: str) -> dict[str, str]:
        """A task's state and no more."""
        state = self.client.hget(self.keys.task(task), "state")
        return {"state": state.decode()} if isinstance(state, bytes) else {}

    def judge(self, call: Call[Any], got: Acted) -> None:
        """What the reaper took from a worker was not a healthy worker's."""
        if not self.judging:
            return
        if call.name == "reap" and got.reason == "dead_worker":
            self._was_dead(self.truth.deeds[token_instance(str(call.args[2]))])
        if call.name == "move" and got.reason == "ghost_pending":
            self._was_a_ghost(str(queue_worker(str(call.args[2]))))
        if call.name == "move" and got.reason == "dead_worker":
            owner = str(queue_worker(str(call.args[2])))
            if owner not in self.truth.struck:
                for deeds in self._of(owner):
                    self._was_dead(deeds)

    def _of(self, worker: str) -> list[Deeds]:
        return [deeds for deeds in self.truth.deeds.values() if deeds.worker == worker]

    def _was_dead(self, deeds: Deeds) -> None:
        silent_ms = self.elapsed_ms - deeds.renewed_ms
        assert silent_ms >= LIMITS.lease_s * 1000 or deeds.worker in self.truth.forgotten, (
            f"{deeds.worker} was called dead {silent_ms} ms after its last renewal"
        )

    def _was_a_ghost(self, worker: str) -> None:
        last_ms = max(max(d.polled_ms, d.freed_ms) for d in self._of(worker))
        idle_ms = self.elapsed_ms - last_ms
        assert idle_ms > LIMITS.ghost_after_s * 1000, (
            f"{worker} was called a ghost {idle_ms} ms after its last claim or freed slot"
        )
