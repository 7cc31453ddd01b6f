"""The models of one worker: which it has, how each fares, and what may be claimed for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from cogrid.engine.api import EngineError, Fault, Listed
from cogrid.model.limits import Limits
from cogrid.model.worker import Offer, OfferState
from cogrid.worker.breaker import Breaker
from cogrid.worker.pulled import Pulled

AT_FAULT = frozenset({Fault.UNREACHABLE, Fault.CUT, Fault.SERVER, Fault.BUSY, Fault.SILENT})
"""What counts against a model here. A request that any engine would refuse does not."""


class _Model:
    __slots__ = ("breaker", "listed", "reason", "since_s", "state")

    def __init__(self, listed: Listed, state: OfferState, now_s: float, limits: Limits) -> None:
        self.listed = listed
        self.state = state
        self.since_s = now_s
        self.reason = ""
        self.breaker = Breaker(limits)

    def offer(self) -> Offer:
        listed = self.listed
        return Offer(
            name=listed.name,
            state=self.state,
            loaded=listed.loaded,
            supports=listed.supports,
            digest=listed.digest,
            size_bytes=listed.size_bytes,
            vram_bytes=listed.vram_bytes,
            context=listed.context,
            reason=self.reason,
        )


class Offers:
    """One state a model, told by listings of the engine, probes, and runs.

    wanted: the models to be offered, () for all that the engine has; one that it does not have is
    offered as missing, so that the gap has a name. pulled: those that were pulled since, which are
    offered beside them. changed: called when an offer has changed,
    be it only that its model is in memory now.
    """

    def __init__(
        self,
        limits: Limits,
        wanted: tuple[str, ...],
        changed: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        pulled: Pulled | None = None,
    ) -> None:
        self.changed = changed
        self._limits = limits
        self._pulled = pulled or Pulled()
        self._wanted = wanted
        self._clock = clock
        self._models: dict[str, _Model] = {}
        self._started: set[str] = set()
        self._asked: set[str] = set()
        self._away = False

    # What the engine says.

    def listed(self, found: tuple[Listed, ...]) -> None:
        """A listing: models come, go, and are loaded or not."""
        now_s = self._clock()
        self._started.clear()
        names = {listed.name: listed for listed in found}
        more = (name for name in self._pulled.models if name in names)
        offered = tuple(dict.fromkeys((*self._wanted, *more))) if self._wanted else tuple(names)
        before = self._offered()
        for name in offered:
            self._see(name, names.get(name), now_s)
        for name in self._models.keys() - set(offered):
            if self._wanted or self._models[name].state is not OfferState.MISSING:
                self._see(name, None, now_s)
            else:
                # Nobody asked for it by name: said once, and no longer missed.
                del self._models[name]
        if self._away:
            self._away = False
            for model in self._models.values():
                model.breaker.hurry(now_s)
        self._tell(before)

    def _see(self, name: str, listed: Listed | None, now_s: float) -> None:
        model = self._models.get(name)
        if model is None:
            model = _Model(listed or Listed(name), OfferState.PROBING, now_s, self._limits)
            self._models[name] = model
        if listed is None:
            self._set(model, OfferState.MISSING, "the engine does not have it")
            return
        model.listed = listed
        if model.state is OfferState.MISSING:
            self._set(model, OfferState.PROBING)

    def engine_away(self, error: EngineError) -> None:
        """It did not list its models: one more fault of each."""
        self._away = True
        for name in tuple(self._models):
            self.failed(name, error)

    # What an operator wants.

    def want(self, name: str) -> None:
        """It was pulled: it is offered and probed, or probed again where it was there before."""
        if self._wanted:
            self._pulled.add(name)
        self.again(name)

    def unwant(self, name: str) -> None:
        """It was removed. One that the configuration names is missed from now on."""
        self._pulled.drop(name)
        before = self._offered()
        if name not in self._wanted:
            self._models.pop(name, None)
        self._tell(before)

    def again(self, name: str) -> None:
        """It is due for a probe, whatever it waits for."""
        model = self._models.get(name)
        if model is not None and model.state is not OfferState.MISSING:
            self._asked.add(name)

    def offer(self, name: str) -> Offer | None:
        """What is offered of it."""
        model = self._models.get(name)
        return model.offer() if model else None

    # What probes say.

    def due(self) -> tuple[Listed, ...]:
        """Models to probe now; loaded ones first, they cost least."""
        now_s = self._clock()
        due = [model.listed for model in self._models.values() if self._is_due(model, now_s)]
        return tuple(sorted(due, key=lambda listed: not listed.loaded))

    def _is_due(self, model: _Model, now_s: float) -> bool:
        if model.state is OfferState.PROBING or model.listed.name in self._asked:
            return True
        until_s = model.breaker.until_s
        waits = model.state in (OfferState.FAILED, OfferState.QUARANTINED)
        return waits and until_s is not None and until_s <= now_s

    def next_due_s(self) -> float | None:
        """When the next probe is due (monotonic); None: none is."""
        waits = (OfferState.FAILED, OfferState.QUARANTINED)
        times = [m.breaker.until_s for m in self._models.values() if m.state in waits]
        return min((at_s for at_s in times if at_s is not None), default=None)

    def probed(self, name: str, error: EngineError | None) -> None:
        """A probe has ended."""
        self._asked.discard(name)
        model = self._models.get(name)
        if model is None:
            return  # removed while it was probed
        before = self._offered()
        if error is None:
            model.breaker.passed()
            self._set(model, OfferState.OK)
            model.listed = replace(model.listed, loaded=True)
        else:
            model.breaker.trip(self._clock())
            quarantined = model.state is OfferState.QUARANTINED
            state = OfferState.QUARANTINED if quarantined else OfferState.FAILED
            self._set(model, state, error.message)
        self._tell(before)

    # What runs say.

    def started(self, name: str) -> None:
        """A run begins; it may push another model out of memory."""
        self._started.add(name)

    def good(self, name: str) -> None:
        """A run went well."""
        model = self._models.get(name)
        if model is not None:
            model.breaker.good()
            if not model.listed.loaded:
                model.listed = replace(model.listed, loaded=True)
                self.changed()

    def failed(self, name: str, error: EngineError) -> None:
        """A run failed by this."""
        model = self._models.get(name)
        if model is None or model.state is not OfferState.OK:
            return
        before = self._offered()
        if error.fault is Fault.MISSING:
            self._set(model, OfferState.MISSING, error.message)
        elif error.fault in AT_FAULT and model.breaker.fault(self._clock()):
            self._set(model, OfferState.QUARANTINED, error.message)
        self._tell(before)

    # What others ask.

    def serves(self, name: str) -> bool:
        """True while runs of this model may start here."""
        model = self._models.get(name)
        return model is not None and model.state is OfferState.OK

    def surely_loaded(self, name: str) -> bool:
        """True when the last listing saw it in memory and nothing has run since that could have
        pushed it out."""
        model = self._models.get(name)
        return model is not None and model.listed.loaded and self._started <= {name}

    def served(self) -> tuple[tuple[str, bool], ...]:
        """(model, loaded) for all that runs may start of."""
        return tuple(
            (name, model.listed.loaded)
            for name, model in self._models.items()
            if model.state is OfferState.OK
        )

    def all(self) -> tuple[tuple[Offer, float], ...]:
        """Every model with when its state began (monotonic)."""
        return tuple((model.offer(), model.since_s) for model in self._models.values())

    def _set(self, model: _Model, state: OfferState, reason: str = "") -> None:
        if model.state is not state:
            model.state = state
            model.since_s = self._clock()
        model.reason = reason

    def _offered(self) -> tuple[Offer, ...]:
        return tuple(model.offer() for model in self._models.values())

    def _tell(self, before: tuple[Offer, ...]) -> None:
        if self._offered() != before:
            self.changed()
