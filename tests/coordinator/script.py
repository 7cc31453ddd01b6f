"""A worker whose every step a test takes by itself: it uses the store and nothing else."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

from cogrid.model.chat import Delta, Usage, decode_request, encode_delta, encode_usage
from cogrid.model.chat import Request as ChatRequest
from cogrid.model.names import TaskId, WorkerId, own_queue, shared_queue
from cogrid.model.worker import Offer, WorkerState
from cogrid.store.async_client import AsyncStore
from cogrid.store.tasks import Claim, Finished, Handed, Outcome, append, claim, finish
from cogrid.store.workers import Life, Who, hello, renew
from tests.wait import POLL_S

ALLOWED_MS = 60_000
LEASE_MS = 60_000
USAGE = Usage(
    prompt_tokens=3, completion_tokens=2, load_s=0.5, prompt_s=0.25, eval_s=1.0, total_s=2.0
)


class ScriptedWorker:
    """Registered by ``register``; its lease lasts a minute, which is longer than a test."""

    def __init__(
        self, store: AsyncStore, worker_id: str = "esxi", *offers: Offer, pool: str = "cpu",
        slots: int = 4,
    ) -> None:  # fmt: skip
        self.id = WorkerId(worker_id)
        self.offers = offers or (Offer("gemma3:1b", supports=("chat", "tools")),)
        self.pool = pool
        self.slots = slots
        self.instance = f"{worker_id}-1"
        self._store = store
        self._k = itertools.count(1)
        self._n: dict[TaskId, int] = {}

    async def register(self, state: WorkerState = WorkerState.READY) -> None:
        """Say hello and become ready."""
        who = Who(
            self.id, self.instance, f"lock-{self.id}", self.id, self.pool, self.slots, "0.1.0",
            "ollama 0.9.3 http://127.0.0.1:11434",
        )  # fmt: skip
        await self._store.do(hello(self._store.keys, who, LEASE_MS))
        await self.renew(state)

    async def renew(self, state: WorkerState = WorkerState.READY) -> None:
        """Renew in this state."""
        life = Life(state, self.offers, ("cpu_inference",), self.slots, 0, 0, (), LEASE_MS)
        call = renew(self._store.keys, self.id, self.instance, f"lock-{self.id}", life)
        await self._store.do(call)

    async def take(self, within_s: float = 5.0) -> Handed:
        """Claim one task, as soon as there is one."""
        deadline = time.monotonic() + within_s
        while not (taken := await self.claim()):
            assert time.monotonic() < deadline, f"no task for {self.id} within {within_s:g} s"
            await asyncio.sleep(POLL_S)
        return taken[0]

    async def claim(self) -> tuple[Handed, ...]:
        """One claim of one slot."""
        queues = [(str(own_queue(self.pool, self.id)), True)]
        queues += [(str(shared_queue(self.pool, offer.name)), True) for offer in self.offers]
        asked = Claim(self.id, self.instance, next(self._k), 1, tuple(queues), ALLOWED_MS)
        claimed = await self._store.do(claim(self._store.keys, asked))
        assert claimed.status == "ok", claimed.status
        for task in claimed.tasks:
            self._n[task.id] = 0
        return claimed.tasks

    async def say(self, task: Handed, *pieces: str | Delta) -> str:
        """Append pieces of an answer; ``ok``, or ``lost``."""
        data = tuple(
            encode_delta(piece if isinstance(piece, Delta) else Delta(piece)) for piece in pieces
        )
        first = self._n[task.id] + 1
        call = append(self._store.keys, task.id, task.token, first, data, ALLOWED_MS)
        appended = await self._store.do(call)
        self._n[task.id] += len(pieces)
        return appended.status

    async def done(self, task: Handed, reason: str = "stop", usage: Usage = USAGE) -> Finished:
        """End the run well."""
        return await self._finish(
            task, Outcome("done", finish_reason=reason, usage=encode_usage(usage))
        )

    async def fail(
        self, task: Handed, message: str, code: str = "engine_error", **more: Any
    ) -> Finished:
        """End the run badly."""
        return await self._finish(task, Outcome("failed", message=message, code=code, **more))

    async def hand_back(self, task: Handed) -> Finished:
        """Give the run back unharmed."""
        return await self._finish(task, Outcome("back", message="esxi was stopped"))

    async def answer(self, *pieces: str | Delta, reason: str = "stop") -> ChatRequest:
        """Take one task and answer it whole; what was asked."""
        task = await self.take()
        await self.say(task, *pieces)
        await self.done(task, reason)
        return decode_request(task.body)

    async def serve(self, *pieces: str | Delta) -> None:
        """Answer everything, until cancelled."""
        while True:
            await self.answer(*pieces)
            await asyncio.sleep(0)

    async def _finish(self, task: Handed, outcome: Outcome) -> Finished:
        call = finish(self._store.keys, self.id, task.id, task.token, outcome)
        return await self._store.do(call)
