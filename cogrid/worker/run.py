"""One run of one task: the engine's stream in, its log in Redis out, and exactly one end."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from enum import StrEnum
from typing import Protocol

import msgspec

from cogrid.engine.api import Done, Engine, EngineError, Fault
from cogrid.model.chat import Code, Delta, Request, Usage, decode_request, encode_usage
from cogrid.model.limits import Limits
from cogrid.rules.retry import backoff_s
from cogrid.store.refusal import StoreError
from cogrid.store.tasks import Handed, Outcome
from cogrid.worker.deadlines import Speeds, prompt_tokens
from cogrid.worker.desk import Desk
from cogrid.worker.held import Pulse
from cogrid.worker.offers import Offers
from cogrid.worker.text import Text

log = logging.getLogger(__name__)

UNSTREAMED_S = 0.25
"""Text that nobody reads before its end is collected for so long; a short answer then needs no
other call than its finish."""


class Stop(StrEnum):
    """Why a run ends before its engine does."""

    LOST = "lost"
    SILENT = "silent"
    TOTAL = "total"
    UNTOLD = "untold"
    BACK = "back"


class Bench(Protocol):
    """What every run of a worker shares."""

    worker: str
    engine: Engine
    desk: Desk
    offers: Offers
    speeds: Speeds
    limits: Limits
    look: Callable[[], Awaitable[None]]

    def ended(self, run: Run) -> None:
        """A run has let go of its slot."""


class Run:
    """Text goes out adaptively: a batch when the last one has come back; nothing waits for a
    timer, and a fast engine makes large batches by itself."""

    __slots__ = (
        "_bench",
        "_entered",
        "_finishing",
        "_loop",
        "_request",
        "_stop",
        "_task",
        "_text",
        "_timer",
        "_total_s",
        "_writer",
        "handed",
        "pulse",
        "started_s",
    )

    def __init__(self, handed: Handed, bench: Bench) -> None:
        self.handed = handed
        self.started_s = time.monotonic()
        self._bench = bench
        self._loop = asyncio.get_running_loop()
        self._text = Text()
        self._stop: Stop | None = None
        self._entered = False
        self._finishing = False
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.Handle | None = None
        self._writer: asyncio.Task[None] | None = None
        self._request = _request(handed)
        self._total_s = bench.limits.total_s
        self.pulse = Pulse(handed.id, handed.token, self.started_s, self._first_s())

    def start(self) -> asyncio.Task[None]:
        """Begin."""
        self._task = self._loop.create_task(self._go())
        return self._task

    def stop(self, why: Stop) -> None:
        """End it now, closing the engine's connection. Without effect on a run that is just telling
        its end: Redis decides about that one."""
        if self._finishing or self._stop is not None:
            return
        self._stop = why
        # A task that was never entered would be cancelled without a word; it looks at _stop first.
        if self._task is not None and self._entered:
            self._task.cancel()

    def check(self, now_s: float) -> None:
        """Silent for too long, or running for too long?"""
        if self._finishing:
            return
        if now_s - self.pulse.at_s > self.pulse.allowed_s:
            self.stop(Stop.SILENT)
        elif now_s - self.started_s > self._total_s:
            self.stop(Stop.TOTAL)

    def _first_s(self) -> float:
        """How long until the first token."""
        bench, handed = self._bench, self.handed
        tokens = prompt_tokens(self._request, len(handed.body)) if self._request else 0
        loaded = bench.offers.surely_loaded(handed.model)
        return bench.speeds.first_s(handed.model, loaded, tokens, bench.limits)

    async def _go(self) -> None:
        self._entered = True
        try:
            outcome = await self._outcome()
            # No await between here and there: from now on nobody interrupts.
            self._finishing = True
            await self._close(outcome)
        except StoreError as error:
            log.error(
                "[run] task=%s is over and Redis refuses to hear it: %s (%s); the reaper takes it "
                "back when it has been silent for too long",
                self.handed.id, error.message, error.hint,
            )  # fmt: skip
        finally:
            self._drop_writer()
            self._bench.ended(self)

    async def _outcome(self) -> Outcome:
        try:
            return await self._answer()
        except asyncio.CancelledError:
            if self._stop is None:
                raise
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            return self._stopped(self._stop)
        except EngineError as error:
            self._bench.offers.failed(self.handed.model, error)
            return self._failed(error)
        except Exception as error:
            log.exception("task=%s: a bug in cogrid", self.handed.id)
            return self._failed(EngineError(Fault.SERVER, f"a bug in cogrid: {error!r}"))

    async def _answer(self) -> Outcome:
        if self._stop is not None:
            return self._stopped(self._stop)
        bench, model = self._bench, self.handed.model
        if self._request is None:
            raise EngineError(Fault.REFUSED, "the request in the queue cannot be read")
        if not bench.offers.serves(model):
            # Only its own queue brings such a task; the shared one of its model waits for others.
            return Outcome("back", message=f"{model} does not run on {bench.worker} now")
        bench.offers.started(model)
        async with aclosing(bench.engine.stream(self._request)) as stream:
            async for item in stream:
                if isinstance(item, Done):
                    return self._done(item)
                self._take(item)
        raise EngineError(Fault.CUT, f"{bench.engine.kind} ended the answer without an end")

    def _take(self, delta: Delta) -> None:
        self.pulse.at_s = time.monotonic()
        self.pulse.allowed_s = self._bench.limits.idle_s
        self._text.add(delta)
        if self._timer is None and self._writer is None:
            # The rest of what the engine sent in one piece is taken first.
            if self.handed.streamed:
                self._timer = self._loop.call_soon(self._write_soon)
            else:
                self._timer = self._loop.call_later(UNSTREAMED_S, self._write_soon)

    def _write_soon(self) -> None:
        self._timer = None
        self._writer = self._loop.create_task(self._write())

    async def _write(self) -> None:
        try:
            while self._text.waiting and not self._finishing:
                n, pieces = self._text.batch()
                try:
                    ours = await self._append(n, pieces)
                except StoreError:
                    self.stop(Stop.UNTOLD)
                    return
                if not ours:
                    self.stop(Stop.LOST)
                    return
                if not self.handed.streamed:
                    return
        finally:
            self._writer = None

    async def _append(self, n: int, pieces: tuple[bytes, ...]) -> bool:
        """False where the run is no longer this worker's."""
        limits = self._bench.limits
        reply = await self._bench.desk.append(
            self.handed.id, self.handed.token, n, pieces, limits.idle_s + limits.tick_s
        )
        self._text.reached(reply.n)
        return reply.status != "lost"

    def _done(self, done: Done) -> Outcome:
        bench, model = self._bench, self.handed.model
        bench.speeds.saw(model, done.usage)
        bench.offers.good(model)
        return Outcome(
            "done", finish_reason=done.finish_reason, usage=encode_usage(self._usage(done.usage))
        )

    def _usage(self, usage: Usage) -> Usage:
        """The engine's figures, with our own total where it has none."""
        return usage if usage.total_s else replace(usage, total_s=time.monotonic() - self.started_s)

    def _so_far(self) -> bytes:
        """What a run that does not end by itself has cost; a delta is at least one token."""
        return encode_usage(self._usage(Usage(completion_tokens=self._text.deltas)))

    def _stopped(self, why: Stop) -> Outcome:
        bench, model = self._bench, self.handed.model
        if why is Stop.LOST:
            return Outcome("lost", usage=self._so_far())
        if why is Stop.BACK:
            message = f"worker {bench.worker} was stopped while it ran {model}"
            return Outcome("back", usage=self._so_far(), message=message)
        if why is Stop.UNTOLD:
            message = f"Redis refuses the text of {bench.worker}, whose log has the cause"
            return self._failure(message, Code.ENGINE_ERROR, retry=True)
        if why is Stop.TOTAL:
            message = f"{model} on {bench.worker} took longer than {self._total_s:g} s in all"
            return self._failure(message, Code.TIMEOUT, retry=False)
        what = "since its last token" if self._text.deltas else "and no first token came"
        error = EngineError(Fault.SILENT, f"silent for {self.pulse.allowed_s:.0f} s, {what}")
        bench.offers.failed(model, error)
        return self._failed(error)

    def _failed(self, error: EngineError) -> Outcome:
        refused = error.fault is Fault.REFUSED
        message = f"{self.handed.model} on {self._bench.worker}: {error.message}"
        code = Code.ENGINE_REFUSED if refused else Code.ENGINE_ERROR
        return self._failure(message, code, retry=error.retryable)

    def _failure(self, message: str, code: Code, retry: bool) -> Outcome:
        log.warning("[run] task=%s failed: %s", self.handed.id, message)
        wait_s = backoff_s(self.handed.attempts + 1, self._bench.limits, random.uniform(-1, 1))
        return Outcome(
            "failed",
            usage=self._so_far(),
            message=message,
            code=code,
            retry=retry,
            backoff_ms=round(wait_s * 1000),
        )

    async def _close(self, outcome: Outcome) -> None:
        """Tells the end, once the text that is on the way has arrived."""
        self.pulse.at_s = time.monotonic()
        if self._timer is not None:
            self._timer.cancel()
        if self._writer is not None:
            if outcome.what == "lost":
                self._writer.cancel()
            await asyncio.wait((self._writer,))
        while True:
            whole = await self._with_text(outcome) if outcome.what == "done" else outcome
            reply = await self._bench.desk.finish(self.pulse, whole)
            if reply.status != "gap":
                return
            self._text.reached(reply.n)

    async def _with_text(self, outcome: Outcome) -> Outcome:
        """The outcome with the last piece; those before it are sent. Redis then knows how many
        there were, and says so if it has lost some."""
        while True:
            n, pieces = self._text.batch()
            if not pieces:
                return replace(outcome, n=n - 1)
            if len(pieces) == 1:
                return replace(outcome, n=n, data=pieces[0])
            if not await self._append(n, pieces[:-1]):
                return Outcome("lost", usage=outcome.usage)

    def _drop_writer(self) -> None:
        """At a shutdown that waits for nobody."""
        if self._writer is not None:
            self._writer.cancel()


def _request(handed: Handed) -> Request | None:
    """None where the body is no request, or gone."""
    try:
        return decode_request(handed.body)
    except msgspec.MsgspecError:
        return None
