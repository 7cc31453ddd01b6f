"""From a request to a queue, with reasons."""

from __future__ import annotations

from typing import Any

import pytest

from cogrid.model.limits import Limits
from cogrid.model.names import Token
from cogrid.model.snapshot import Snapshot
from cogrid.model.task import Band, Kind
from cogrid.model.worker import OfferState, WorkerState
from cogrid.rules.domain import Domain, Prompt
from cogrid.rules.grid import Grid
from cogrid.rules.route import Ask, NoRoute, NoRouteKind, Route, Routing, route
from tests.build import NOW_MS, a_queue, a_snapshot, a_worker, an_offer

LIMITS = Limits()
GPU: dict[str, Any] = {"pool": "gpu", "supports": ("gpu_inference",)}
FULL: dict[str, Any] = {"revoked": (Token("x:1:0"),), "revoked_at_ms": NOW_MS}
PLAIN = Routing()


def routed(
    snapshot: Snapshot, model: str = "gemma3:1b", routing: Routing = PLAIN, **ask: Any
) -> Route:
    found = route(Ask(model, **ask), snapshot, routing, LIMITS)
    assert isinstance(found, Route), found
    return found


def refused(
    snapshot: Snapshot, model: str = "gemma3:1b", routing: Routing = PLAIN, **ask: Any
) -> NoRoute:
    found = route(Ask(model, **ask), snapshot, routing, LIMITS)
    assert isinstance(found, NoRoute), found
    return found


BOTH = a_snapshot(a_worker("esxi"), a_worker("ai-core", **GPU))


class TestPool:
    def test_the_preferred_pool_with_a_free_slot(self) -> None:
        found = routed(BOTH)
        assert found.queue == found.shared_queue == "tasks:gpu:shared:gemma3:1b"
        assert (found.pool, found.candidates) == ("gpu", ("ai-core",))
        assert found.expected_wait_s == 0
        assert found.reasons == (
            "domain general: no rule is configured",
            "model gemma3:1b: as asked",
            "homes: esxi (cpu, 1 of 1 free), ai-core (gpu, 1 of 1 free)",
            "pool gpu: free slot on ai-core",
            "queue tasks:gpu:shared:gemma3:1b: whoever is free takes it",
        )

    def test_the_configuration_says_which_is_preferred(self) -> None:
        assert routed(BOTH, routing=Routing(pools=("cpu",))).pool == "cpu"
        assert routed(BOTH, routing=Routing(pools=())).pool == "cpu"

    def test_another_pool_when_the_preferred_one_is_full(self) -> None:
        snapshot = a_snapshot(a_worker("esxi"), a_worker("ai-core", **GPU, **FULL))
        assert routed(snapshot).queue == "tasks:cpu:shared:gemma3:1b"

    def test_a_slot_that_a_waiting_task_will_take_is_not_free(self) -> None:
        snapshot = a_snapshot(*BOTH.workers, queues=(a_queue("tasks:gpu:shared:gemma3:1b"),))
        assert routed(snapshot).pool == "cpu"

    def test_the_shortest_wait_when_all_are_full(self) -> None:
        queues = (
            a_queue("tasks:gpu:shared:gemma3:1b", 9, gap_s=1.0),
            a_queue("tasks:cpu:shared:gemma3:1b", 2, gap_s=4.0),
        )
        full = (a_worker("esxi", **FULL), a_worker("ai-core", **GPU, **FULL))
        found = routed(a_snapshot(*full, queues=queues))
        assert (found.pool, found.expected_wait_s) == ("gpu", 10.0)
        slower = (queues[0], a_queue("tasks:cpu:shared:gemma3:1b", 2, gap_s=3.0))
        found = routed(a_snapshot(*full, queues=slower))
        assert (found.pool, found.expected_wait_s) == ("cpu", 9.0)

    def test_where_no_rate_was_measured_slots_and_depth_decide(self) -> None:
        four = {**FULL, "slots": 4, "revoked": tuple(Token(f"x:1:{i}") for i in range(4))}
        snapshot = a_snapshot(
            a_worker("esxi", **four),
            a_worker("ai-core", **GPU, **FULL),
            queues=(a_queue("tasks:cpu:shared:gemma3:1b"), a_queue("tasks:gpu:shared:gemma3:1b")),
        )
        found = routed(snapshot)
        assert (found.pool, found.expected_wait_s) == ("cpu", 0.0)

    def test_a_pool_whose_homes_only_start_comes_last(self) -> None:
        snapshot = a_snapshot(
            a_worker("esxi", **FULL), a_worker("ai-core", **GPU, state=WorkerState.STARTING)
        )
        assert routed(snapshot).pool == "cpu"
        alone = a_snapshot(a_worker("esxi", state=WorkerState.STARTING))
        assert routed(alone).queue == "tasks:cpu:shared:gemma3:1b"

    def test_a_closed_pool_takes_only_what_names_its_worker(self) -> None:
        closed = Routing(closed=("gpu",))
        assert routed(BOTH, routing=closed).pool == "cpu"
        assert routed(BOTH, routing=closed, affinity="ai-core").pool == "cpu"
        named = routed(BOTH, routing=closed, worker="ai-core")
        assert named.queue == "tasks:gpu:ai-core"
        assert named.shared_queue == "tasks:cpu:shared:gemma3:1b"
        only = a_snapshot(a_worker("ai-core", **GPU))
        why = refused(only, routing=closed)
        assert why.kind is NoRouteKind.NO_HOME
        assert "closed pool (gpu)" in why.message

    def test_another_users_backlog_counts_as_one_turn(self) -> None:
        queue = a_queue("tasks:cpu:shared:gemma3:1b", 100, gap_s=2.0, waiting={(0, "bob"): 100})
        snapshot = a_snapshot(a_worker(**FULL), queues=(queue,))
        assert routed(snapshot, user="ada").expected_wait_s == 4.0
        assert routed(snapshot, user="bob").expected_wait_s == 202.0


class TestOwnQueue:
    def test_a_worker_asked_for_by_name(self) -> None:
        found = routed(BOTH, worker="esxi")
        assert found.queue == "tasks:cpu:esxi"
        assert found.shared_queue == "tasks:gpu:shared:gemma3:1b"
        assert (found.pool, found.candidates) == ("cpu", ("esxi",))
        assert found.reasons[-2:] == ("worker esxi: asked for by name", "queue tasks:cpu:esxi")

    def test_the_incident_a_worker_that_has_not_polled_yet_is_ready(self) -> None:
        fresh = a_worker("esxi", polled_at_ms=0, freed_at_ms=NOW_MS - 1_000)
        assert routed(a_snapshot(fresh), worker="esxi").queue == "tasks:cpu:esxi"

    @pytest.mark.parametrize(
        ("fields", "why"),
        [
            ({"lease_until_ms": NOW_MS - 1}, "dead"),
            ({"polled_at_ms": NOW_MS - 17_200}, "ghost: slot free, no claim for 17.2 s"),
            (
                {"state": WorkerState.STARTING},
                "it is starting, and its gemma3:1b cannot do this now",
            ),
            ({"state": WorkerState.DRAINING}, "draining"),
            ({"offers": (an_offer("other"),)}, "does not have the model"),
        ],
    )
    def test_one_that_cannot_serve_sends_it_to_the_shared_queue(
        self, fields: dict[str, Any], why: str
    ) -> None:
        snapshot = a_snapshot(a_worker("esxi", **fields), a_worker("ai-core", **GPU))
        found = routed(snapshot, worker="esxi")
        assert found.queue == "tasks:gpu:shared:gemma3:1b"
        assert f"worker esxi was asked for: {why}" in found.reasons

    def test_one_that_nobody_knows(self) -> None:
        """Sent elsewhere in silence, a slip of the pen would never be noticed."""
        why = refused(BOTH, worker="esx")
        assert why.kind is NoRouteKind.UNKNOWN_WORKER
        assert (why.message, why.near) == ("worker 'esx' is not known to this grid", ("esxi",))

    def test_affinity(self) -> None:
        assert routed(BOTH, affinity="esxi").queue == "tasks:cpu:esxi"
        assert routed(BOTH, affinity="nas").queue == "tasks:gpu:shared:gemma3:1b"

    def test_affinity_yields_when_its_worker_is_full_and_another_free(self) -> None:
        snapshot = a_snapshot(a_worker("esxi", **FULL), a_worker("ai-core", **GPU))
        assert routed(snapshot, affinity="esxi").queue == "tasks:gpu:shared:gemma3:1b"
        full = a_snapshot(a_worker("esxi", **FULL), a_worker("ai-core", **GPU, **FULL))
        assert routed(full, affinity="esxi").queue == "tasks:cpu:esxi"

    def test_the_wait_in_an_own_queue(self) -> None:
        queue = a_queue("tasks:cpu:esxi", 2, gap_s=5.0)
        snapshot = a_snapshot(a_worker("esxi", **FULL), queues=(queue,))
        assert routed(snapshot, worker="esxi").expected_wait_s == 15.0
        free = a_snapshot(a_worker("esxi", slots=3), queues=(queue,))
        assert routed(free, worker="esxi").expected_wait_s == 0.0


class TestNeeds:
    SEES = an_offer(supports=("chat", "vision"))

    def test_images_exclude_who_cannot_see(self) -> None:
        snapshot = a_snapshot(a_worker("esxi", self.SEES), a_worker("ai-core", **GPU))
        found = routed(snapshot, prompt=Prompt(images=True))
        assert found.queue == "tasks:cpu:shared:gemma3:1b"
        assert routed(snapshot, needs=("vision",)).pool == "cpu"
        blind = refused(BOTH, prompt=Prompt(images=True))
        assert blind.kind is NoRouteKind.BAD_REQUEST
        assert blind.message == "model 'gemma3:1b' cannot see images"

    def test_a_pool_of_which_only_some_can_see_is_not_left_to_chance(self) -> None:
        snapshot = a_snapshot(a_worker("esxi", self.SEES), a_worker("nas"))
        found = routed(snapshot, prompt=Prompt(images=True))
        assert found.queue == "tasks:cpu:esxi"
        assert "worker esxi: others of pool cpu cannot do this" in found.reasons
        assert routed(snapshot).queue == "tasks:cpu:shared:gemma3:1b"

    def test_embeddings_need_a_model_that_makes_them(self) -> None:
        embeds = a_snapshot(a_worker("esxi", an_offer("bge", supports=("embed",)), "gemma3:1b"))
        assert routed(embeds, "bge", kind=Kind.EMBED).model == "bge"
        assert refused(embeds, kind=Kind.EMBED).message == (
            "model 'gemma3:1b' cannot make embeddings"
        )
        assert refused(embeds, "bge").message == (
            "model 'bge' cannot chat, it only makes embeddings"
        )

    def test_tools_are_a_preference(self) -> None:
        tools = an_offer(supports=("chat", "tools"))
        snapshot = a_snapshot(a_worker("esxi", tools), a_worker("ai-core", **GPU))
        assert routed(snapshot, needs=("tools",)).pool == "cpu"
        found = routed(BOTH, needs=("tools", "thinking"))
        assert found.pool == "gpu"
        assert "no home of gemma3:1b does tools and thinking: sent all the same" in found.reasons


class TestModel:
    CODE = Domain("code", words=("python",), models=("coder:7b", "gemma3:1b"))
    GENERAL = Domain("general", models=("llama3.2:1b",))

    @pytest.mark.parametrize("name", ["auto", ""])
    def test_auto_takes_the_first_of_the_domain_that_has_a_home(self, name: str) -> None:
        routing = Routing(domains=(self.CODE, self.GENERAL))
        found = routed(BOTH, name, routing, prompt=Prompt("python?"))
        assert (found.domain, found.model) == ("code", "gemma3:1b")
        assert found.reasons[:2] == (
            "domain code: word python",
            "model gemma3:1b: the first of domain code that has a home",
        )

    def test_auto_falls_back_to_general(self) -> None:
        snapshot = a_snapshot(a_worker("esxi", "llama3.2:1b"))
        routing = Routing(domains=(self.CODE, self.GENERAL))
        found = routed(snapshot, "auto", routing, prompt=Prompt("python?"))
        assert (found.domain, found.model) == ("code", "llama3.2:1b")

    def test_auto_with_lists_of_which_nothing_lives(self) -> None:
        routing = Routing(domains=(self.CODE, self.GENERAL))
        why = refused(a_snapshot(a_worker("esxi", "other")), "auto", routing)
        assert why.kind is NoRouteKind.NO_HOME
        assert why.message == "no model of domain 'general' has a home now (llama3.2:1b)"

    def test_auto_without_a_list_takes_what_is_loaded_then_what_is_everywhere(self) -> None:
        everywhere = a_snapshot(a_worker("a", "x", "y"), a_worker("b", "y"))
        assert routed(everywhere, "auto").model == "y"
        loaded = a_snapshot(a_worker("a", an_offer("x", loaded=True), "y"), a_worker("b", "y"))
        assert routed(loaded, "auto").model == "x"
        assert refused(a_snapshot(), "auto").message == "no worker serves any model now"
        assert refused(loaded, "auto", kind=Kind.EMBED).message == (
            "no model that has a home can make embeddings"
        )

    def test_auto_passes_over_a_model_that_cannot_see(self) -> None:
        sees = an_offer("llava", supports=("chat", "vision"))
        rule = Domain("general", models=("gemma3:1b", "llava"))
        snapshot = a_snapshot(a_worker("esxi", "gemma3:1b", sees))
        found = routed(snapshot, "auto", Routing(domains=(rule,)), prompt=Prompt(images=True))
        assert found.model == "llava"

    def test_a_named_model_carries_its_domain_too(self) -> None:
        routing = Routing(domains=(self.CODE,))
        assert routed(BOTH, routing=routing, prompt=Prompt("python?")).domain == "code"
        why = refused(BOTH, "nope", routing, prompt=Prompt("python?"))
        assert why.domain == "code"

    def test_a_model_that_nobody_has_ever_had(self) -> None:
        why = refused(BOTH, "Gema3:1b")
        assert why.kind is NoRouteKind.UNKNOWN_MODEL
        assert why.near == ("gemma3:1b",)
        assert why.message == "model 'Gema3:1b' is not known to this grid"

    @pytest.mark.parametrize(
        ("name", "shown"), [("a\x1b[31m\n", r"a\x1b[31m\n"), ("../x", "../x"), ("x:body", "x:body")]
    )
    def test_odd_names_are_shown_harmlessly(self, name: str, shown: str) -> None:
        why = refused(BOTH, name)
        assert why.message == f"model '{shown}' is not known to this grid"

    def test_an_endless_name_is_refused_at_once(self) -> None:
        why = refused(BOTH, "x" * 8_000_000)
        assert why.kind is NoRouteKind.BAD_REQUEST
        assert len(why.message) < 100

    def test_a_model_without_a_home_says_what_became_of_its_workers(self) -> None:
        failed = an_offer(state=OfferState.FAILED, reason="out of memory")
        snapshot = a_snapshot(a_worker("esxi", lease_until_ms=None), a_worker("ai-core", failed))
        why = refused(snapshot)
        assert why.kind is NoRouteKind.NO_HOME
        assert why.message == (
            "no worker can serve model 'gemma3:1b' now"
            " (esxi: dead; ai-core: model failed: out of memory)"
        )
        assert why.reasons[-1] == "ai-core: model failed: out of memory"

    def test_a_model_that_was_at_home_once(self) -> None:
        snapshot = a_snapshot(model_homes={"gemma3:1b": NOW_MS - 60_000})
        assert refused(snapshot).kind is NoRouteKind.NO_HOME


def test_the_band_goes_through() -> None:
    assert routed(BOTH, band=Band.BATCH).band is Band.BATCH


def test_a_grid_gives_the_same_as_its_snapshot() -> None:
    ask = Ask("gemma3:1b", worker="esxi")
    grid = Grid.of(BOTH, LIMITS)
    assert route(ask, grid, PLAIN, LIMITS) == route(ask, BOTH, PLAIN, LIMITS)
