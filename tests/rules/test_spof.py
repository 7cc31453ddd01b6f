"""Models that one death would take."""

from __future__ import annotations

from typing import Any

from cogrid.model.finding import Finding
from cogrid.model.limits import Limits
from cogrid.model.names import DEMO_MODEL
from cogrid.model.snapshot import Snapshot
from cogrid.model.task import State
from cogrid.model.worker import OfferState
from cogrid.rules.spof import single_points
from tests.build import NOW_MS, a_queue, a_snapshot, a_task, a_worker, an_offer

LIMITS = Limits()
GPU: dict[str, Any] = {"pool": "gpu", "supports": ("gpu_inference",)}


def only(snapshot: Snapshot, model: str | None = None) -> Finding:
    found = single_points(snapshot, LIMITS, model)
    assert len(found) == 1, found
    return found[0]


def test_two_capable_workers_on_two_hosts_are_enough() -> None:
    assert single_points(a_snapshot(a_worker("esxi"), a_worker("ai-core")), LIMITS) == ()


def test_the_incident_one_worker_alone() -> None:
    snapshot = a_snapshot(
        a_worker("esxi", "gemma3:1b"),
        a_worker("ai-core", "llama3.2:1b", engine="ollama 0.9.3", **GPU),
        a_worker("nas", "llama3.2:1b"),
        queues=(a_queue("tasks:cpu:esxi", 2), a_queue("tasks:cpu:shared:gemma3:1b", 3)),
        tasks=(
            a_task("t1", queue="tasks:cpu:esxi"),
            a_task("t2", state=State.RUNNING),
            a_task("t3", state=State.DONE),
            a_task("t4", model="llama3.2:1b", queue="tasks:cpu:esxi"),
        ),
    )
    found = only(snapshot)
    assert (found.kind, found.subject) == ("single_worker", "gemma3:1b")
    assert found.evidence == "worker esxi, host esxi; 4 queued; 1 running"
    assert found.mend == "cogrid spof --fix --model gemma3:1b"
    assert found.at_risk == ("t1", "t2")


def test_the_cure_names_the_command_on_another_host() -> None:
    engine = {"engine": "ollama 0.9.3"}
    others = (
        a_worker("ai-core", "x", **engine),
        a_worker("nas", "x", slots=2, host="nas.lan", **engine),
    )
    found = only(a_snapshot(a_worker("esxi"), *others))
    assert found.what == "only esxi can serve gemma3:1b; run `ollama pull gemma3:1b` on nas.lan"
    other = a_worker("ai-core", "x", engine="llama.cpp b5000"), a_worker("nas", "x", host="esxi")
    found = only(a_snapshot(a_worker("esxi"), *other), "gemma3:1b")
    assert found.what.endswith("; add it to the engine of ai-core on ai-core")
    found = only(a_snapshot(a_worker("esxi")))
    assert found.what.endswith("; add a worker on another machine that has it")


def test_the_built_in_model_is_not_pulled_and_its_engine_gets_no_other() -> None:
    demo = a_worker("demo-1", DEMO_MODEL, engine="demo 0.1.0")
    grid = a_snapshot(demo, a_worker("nu1", engine="ollama 0.9.3"))
    found = only(grid, DEMO_MODEL)
    assert found.what == (
        f"only demo-1 can serve {DEMO_MODEL}; it is built in: run "
        "`cogrid worker run --engine demo` on another machine"
    )
    assert found.mend == ""
    assert only(a_snapshot(), DEMO_MODEL).what.endswith("--engine demo` on any machine")
    assert only(grid, "gemma3:1b").what.endswith("; add a worker on another machine that has it")


def test_quarantine_makes_the_other_one_alone() -> None:
    resting = an_offer(state=OfferState.QUARANTINED, since_ms=NOW_MS - 1_000)
    found = only(a_snapshot(a_worker("esxi"), a_worker("ai-core", resting)))
    assert found.kind == "single_worker"
    assert found.evidence == "worker esxi, host esxi; ai-core: model in quarantine; 0 queued"


def test_two_workers_on_one_host_die_together() -> None:
    found = only(a_snapshot(a_worker("a", host="box"), a_worker("b", host="box")))
    assert found.kind == "single_host"
    assert found.what.startswith("all workers that can serve gemma3:1b (a, b) are on one host")
    assert single_points(a_snapshot(a_worker("a", host=""), a_worker("b", host="")), LIMITS) == ()


def test_a_model_that_lost_its_last_home() -> None:
    snapshot = a_snapshot(
        a_worker("esxi", lease_until_ms=NOW_MS - 1),
        model_homes={"gemma3:1b": NOW_MS - 35_000},
        queues=(a_queue("tasks:cpu:shared:gemma3:1b"),),
    )
    found = only(snapshot)
    assert found.kind == "no_home"
    assert found.evidence == "esxi: dead; last home 35 s ago; 1 queued"


def test_a_model_that_left_with_its_machine_may_be_forgotten() -> None:
    known = {"gone:7b": NOW_MS - 35_000}
    found = only(a_snapshot(model_homes=known))
    assert found.mend == "cogrid model forget gone:7b"
    assert found.what == (
        "no worker can serve gone:7b; add a worker on another machine that has it; "
        "where nobody wants it any more: cogrid model forget gone:7b"
    )
    spare = a_worker("nas", "x", engine="ollama 0.9.3")
    beside = only(a_snapshot(spare, model_homes=known), "gone:7b")
    assert beside.mend == "cogrid spof --fix --model gone:7b"
    assert beside.what.endswith(
        "on nas; where nobody wants it any more: cogrid model forget gone:7b"
    )


def test_one_that_somebody_asks_for_or_had_may_not() -> None:
    known = {"gone:7b": NOW_MS - 35_000}
    queue = (a_queue("tasks:cpu:shared:gone:7b"),)
    dead = a_worker("old", "gone:7b", lease_until_ms=NOW_MS - 1)
    for snapshot in (
        a_snapshot(queues=queue, model_homes=known),
        a_snapshot(dead, model_homes=known),
    ):
        found = only(snapshot)
        assert "forget" not in found.what + found.mend


def test_a_model_that_is_only_waited_for() -> None:
    assert only(a_snapshot(tasks=(a_task(model="lost"),))).subject == "lost"
    assert only(a_snapshot(queues=(a_queue("tasks:cpu:shared:lost"),))).subject == "lost"
    assert single_points(a_snapshot(tasks=(a_task(state=State.FAILED),)), LIMITS) == ()


def test_one_model_only_and_worst_first() -> None:
    snapshot = a_snapshot(
        a_worker("a", "one", "both", host="box"),
        a_worker("b", "both", host="box"),
        model_homes={"z": NOW_MS - 1_000},
    )
    found = single_points(snapshot, LIMITS)
    assert [(f.kind, f.subject) for f in found] == [
        ("no_home", "z"),
        ("single_worker", "one"),
        ("single_host", "both"),
    ]
    assert only(snapshot, "one") == found[1]
    assert only(snapshot, "never heard of").kind == "no_home"


def test_names_are_quoted_for_the_shell() -> None:
    spare = a_worker("ai-core", "x", engine="ollama")
    found = only(a_snapshot(a_worker("esxi", "my model; rm"), spare), "my model; rm")
    assert found.mend == "cogrid spof --fix --model 'my model; rm'"
