"""The models of one worker."""

from __future__ import annotations

from cogrid.engine.api import EngineError, Fault, Listed
from cogrid.model.limits import Limits
from cogrid.model.worker import OfferState
from cogrid.worker.offers import Offers

CUT = EngineError(Fault.CUT, "broke off")
AWAY = EngineError(Fault.UNREACHABLE, "refused")


class World:
    """Offers with a clock that a test moves; ``told`` counts changes."""

    def __init__(self, *wanted: str) -> None:
        self.now_s = 100.0
        self.told = 0
        self.offers = Offers(Limits(), wanted, self._changed, lambda: self.now_s)

    def _changed(self) -> None:
        self.told += 1

    def lists(self, *models: Listed | str) -> None:
        self.offers.listed(tuple(Listed(m) if isinstance(m, str) else m for m in models))

    def probe_all(self, error: EngineError | None = None) -> list[str]:
        due = [model.name for model in self.offers.due()]
        for name in due:
            self.offers.probed(name, error)
        return due

    @property
    def states(self) -> dict[str, OfferState]:
        return {offer.name: offer.state for offer, _ in self.offers.all()}


def test_what_is_loaded_is_probed_first() -> None:
    world = World()
    world.lists("a", Listed("b", loaded=True), "c")
    assert [model.name for model in world.offers.due()] == ["b", "a", "c"]
    assert world.offers.served() == ()


def test_a_model_is_served_from_its_probe_on() -> None:
    world = World()
    world.lists("a", "b")
    world.offers.probed("a", None)
    assert world.states == {"a": OfferState.OK, "b": OfferState.PROBING}
    assert world.offers.served() == (("a", True),)
    assert world.offers.serves("a")
    assert not world.offers.serves("b")
    assert not world.offers.serves("never heard of")


def test_a_model_that_fails_its_probe_is_tried_again_later() -> None:
    world = World()
    world.lists("a")
    world.probe_all(EngineError(Fault.SERVER, "out of memory"))
    (offer, since_s), *_ = world.offers.all()
    assert (offer.state, offer.reason, since_s) == (OfferState.FAILED, "out of memory", 100.0)
    assert (world.offers.due(), world.offers.next_due_s()) == ((), 110.0)
    world.now_s = 110.0
    assert world.probe_all() == ["a"]
    assert world.states == {"a": OfferState.OK}


def test_what_is_wanted_and_not_there_is_missing_by_name() -> None:
    world = World("a", "b")
    world.lists("a", "other")
    assert world.states == {"a": OfferState.PROBING, "b": OfferState.MISSING}
    world.lists("a", "b")
    assert world.states["b"] is OfferState.PROBING


def test_a_model_that_is_pulled_later_is_noticed_and_one_that_goes_is_missed() -> None:
    world = World()
    world.lists("a")
    world.probe_all()
    world.lists("a", "b")
    assert world.probe_all() == ["b"]
    world.now_s = 130.0
    world.lists("b")
    assert world.states == {"a": OfferState.MISSING, "b": OfferState.OK}
    assert {offer.name: at_s for offer, at_s in world.offers.all()}["a"] == 130.0


def test_three_faults_quarantine_a_model_and_no_other() -> None:
    world = World()
    world.lists("a", "b")
    world.probe_all()
    told = world.told
    for _ in range(3):
        world.offers.failed("a", CUT)
    assert world.states == {"a": OfferState.QUARANTINED, "b": OfferState.OK}
    assert world.told == told + 1
    world.now_s += 10
    assert world.probe_all(CUT) == ["a"]
    assert world.states["a"] is OfferState.QUARANTINED
    assert world.offers.next_due_s() == 110 + 20


def test_what_the_request_was_to_blame_for_does_not_count() -> None:
    world = World()
    world.lists("a")
    world.probe_all()
    for _ in range(5):
        world.offers.failed("a", EngineError(Fault.REFUSED, "too long"))
    assert world.states == {"a": OfferState.OK}


def test_a_model_that_the_engine_denies_is_missing_at_once() -> None:
    world = World()
    world.lists("a")
    world.probe_all()
    world.offers.failed("a", EngineError(Fault.MISSING, "not found"))
    assert world.states == {"a": OfferState.MISSING}


def test_an_engine_that_is_away_quarantines_all_and_is_probed_when_it_is_back() -> None:
    world = World()
    world.lists("a", "b")
    world.probe_all()
    for _ in range(3):
        world.offers.engine_away(AWAY)
    assert set(world.states.values()) == {OfferState.QUARANTINED}
    assert world.offers.due() == ()
    world.lists("a", "b")
    assert world.probe_all() == ["a", "b"]


def test_a_model_is_surely_loaded_until_another_ran() -> None:
    world = World()
    world.lists(Listed("a", loaded=True), "b")
    world.probe_all()
    world.lists(Listed("a", loaded=True), "b")
    assert world.offers.surely_loaded("a")
    world.offers.started("a")
    assert world.offers.surely_loaded("a")
    world.offers.started("b")
    assert not world.offers.surely_loaded("a")
    world.offers.good("b")
    assert world.offers.served() == (("a", True), ("b", True))
    assert not world.offers.surely_loaded("b")
    world.lists("a", Listed("b", loaded=True))
    assert world.offers.surely_loaded("b")
    assert not world.offers.surely_loaded("a")


def test_it_is_told_that_a_model_was_loaded_or_dropped() -> None:
    """Redis, and who lists models from there, would else show for ever what the probe left."""
    world = World()
    world.lists("a")
    world.probe_all()
    told = world.told
    world.lists(Listed("a", loaded=True))
    assert world.told == told, "nothing is new"
    world.lists(Listed("a", loaded=False))
    assert world.told == told + 1
    world.offers.good("a")
    world.offers.good("a")
    assert world.told == told + 2
    assert [offer.loaded for offer, _ in world.offers.all()] == [True]
