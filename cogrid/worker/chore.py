"""What an operator asked of this worker: a run beside the slots, whose text is its progress."""

from __future__ import annotations

import time
from contextlib import aclosing
from math import inf

import msgspec

from cogrid.engine.api import Done, EngineError, Fault
from cogrid.engine.library import Progress, library
from cogrid.model.chat import Code, Delta
from cogrid.model.names import normal_model
from cogrid.model.task import Kind
from cogrid.model.worker import OfferState
from cogrid.store.tasks import Handed, Outcome
from cogrid.worker.run import Bench, Run, Stop

TELL_S = 0.5
"""Between two pieces of progress."""

_json = msgspec.json.Encoder()


class Chore(Run):
    """Ends in the same ways as every run: done, failed, lost, handed back. Nothing it meets counts
    against its model."""

    __slots__ = ("_got", "_told_s")

    def __init__(self, handed: Handed, bench: Bench) -> None:
        super().__init__(handed, bench)
        self._total_s = inf
        self._got = (-1, "")
        self._told_s = 0.0
        self.pulse.slot = False

    def _first_s(self) -> float:
        return super()._first_s() if self.handed.kind is Kind.WARM else self._stall_s

    @property
    def _stall_s(self) -> float:
        """Ollama itself tries a stalled part again after half of the default."""
        return self._bench.limits.pull_stall_s

    async def _answer(self) -> Outcome:
        if self._stop is not None:
            return self._stopped(self._stop)
        work = {Kind.PULL: self._pull, Kind.REMOVE: self._remove, Kind.WARM: self._warm}
        try:
            await work[self.handed.kind]()
        except EngineError as error:
            return self._failed(error)
        return Outcome("done", finish_reason=Done().finish_reason)

    async def _pull(self) -> None:
        bench, model = self._bench, self.handed.model
        async with aclosing(library(bench.engine).pull(model)) as steps:
            async for step in steps:
                self._tell(step)
        bench.offers.want(normal_model(model))
        await self._look("checking")

    async def _warm(self) -> None:
        """Asks the model for a token, which loads it."""
        self._bench.offers.again(normal_model(self.handed.model))
        await self._look("loading")

    async def _look(self, status: str) -> None:
        """Has the model probed, as every model is before it is offered."""
        bench, model = self._bench, normal_model(self.handed.model)
        self._patient()
        self._say(Progress(status))
        await bench.look()
        offer = bench.offers.offer(model)
        if offer is None or offer.state is not OfferState.OK:
            why = offer.reason if offer and offer.reason else "the engine does not list it"
            raise EngineError(Fault.SERVER, f"it does not work there: {why}")

    async def _remove(self) -> None:
        bench, model = self._bench, self.handed.model
        await library(bench.engine).remove(model)
        bench.offers.unwant(normal_model(model))
        await bench.look()

    def _tell(self, step: Progress) -> None:
        """Only what is new is progress: an engine that says the same again has stalled."""
        now_s = time.monotonic()
        got = (step.completed_bytes, step.status)
        if got == self._got:
            return
        other = step.status.partition(" ")[0] != self._got[1].partition(" ")[0]
        self._got = got
        self.pulse.at_s = now_s
        if other or now_s - self._told_s >= TELL_S:
            self._told_s = now_s
            self._say(step)

    def _say(self, step: Progress) -> None:
        told: dict[str, object] = {"status": step.status}
        if step.total_bytes:
            told |= {"completed": step.completed_bytes, "total": step.total_bytes}
        allowed_s = self.pulse.allowed_s
        self._take(Delta(content=_json.encode(told).decode() + "\n"))
        self.pulse.allowed_s = allowed_s

    def _patient(self) -> None:
        """What comes now says nothing until it is over; probes have a limit of their own."""
        limits = self._bench.limits
        first_s = self._bench.speeds.first_s(self.handed.model, False, 1, limits)
        self.pulse.at_s = time.monotonic()
        self.pulse.allowed_s = first_s + self._stall_s

    def _stopped(self, why: Stop) -> Outcome:
        if why is not Stop.SILENT:
            return super()._stopped(why)
        message = (
            f"the {self.handed.kind} of {self.handed.model} on {self._bench.worker} has not got on "
            f"for {self.pulse.allowed_s:.0f} s"
        )
        return self._failure(message, Code.TIMEOUT, retry=False)
