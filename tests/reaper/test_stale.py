"""A pass acts on what it read: what has changed since costs a move in vain at most."""

from __future__ import annotations

from typing import Any

from cogrid.reaper.acting import carry_out
from cogrid.rules.act import Act, Move
from cogrid.rules.plan import plan
from cogrid.store.seen import read_seen, read_server
from tests.reaper.stage import MODEL, Stage, held

CPU, GPU = f"tasks:cpu:shared:{MODEL}", f"tasks:gpu:shared:{MODEL}"


def planned(stage: Stage) -> tuple[Act, ...]:
    """What a pass would do that reads now."""
    return plan(
        stage.store.read(read_seen(stage.store.keys, stage.routing, stage.limits)),
        stage.routing,
        stage.limits,
    )


def done(stage: Stage, acts: tuple[Act, ...]) -> list[Any]:
    """Its moves, when it gets to act; the status of each."""
    server = stage.store.read(read_server())
    outcomes = carry_out(acts, stage.store, server.run_id, stage.limits)
    return [outcome.status for act, outcome in outcomes if isinstance(act, Move)]


def full_beside_free(stage: Stage) -> Any:
    """esxi is full and one more task waits there, for longer than it must; ai-core is free."""
    stage.settle()
    stage.worker("esxi")
    stage.submit("r1")
    (run,) = stage.claim("esxi", CPU)
    stage.worker("ai-core", pool="gpu")
    stage.submit("t1", "tasks:cpu:esxi")
    stage.let_pass(3)
    stage.renew("esxi", held=(held(run),))
    stage.renew("ai-core")
    stage.poll("ai-core")
    return run


def test_a_slot_that_was_taken_meanwhile_costs_a_move(stage: Stage) -> None:
    run = full_beside_free(stage)
    acts = planned(stage)
    stage.submit("t2", GPU)
    (other,) = stage.claim("ai-core", GPU)
    assert other.id == "t2"
    assert done(stage, acts) == ["ok"]
    assert stage.task("t1")["queue"] == GPU, "it waits there, as it did here"
    assert stage.finish("esxi", run).status == "ok"
    stage.poll("esxi")
    stage.let_pass(0.5)
    assert [line.task for line in stage.sweep().lines] == ["t1"], "its wait counts from the submit"
    (back,) = stage.claim("esxi", "tasks:cpu:esxi", CPU)
    assert (back.id, back.attempts, back.recoveries) == ("t1", 0, 0)


def test_two_reapers_that_read_the_same_move_it_once(stage: Stage) -> None:
    full_beside_free(stage)
    first, second = planned(stage), planned(stage)
    assert [done(stage, first), done(stage, second)] == [["ok"], ["moved_on"]]
    assert stage.edges("moved") == ["t1"]


def test_what_was_claimed_meanwhile_is_left_alone(stage: Stage) -> None:
    run = full_beside_free(stage)
    acts = planned(stage)
    stage.finish("esxi", run)
    (taken,) = stage.claim("esxi", "tasks:cpu:esxi", CPU)
    assert taken.id == "t1"
    assert done(stage, acts) == ["moved_on"]
    assert stage.task("t1")["state"] == "running"
