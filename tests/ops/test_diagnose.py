"""What diagnose finds on a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cogrid.model.names import WorkerId
from cogrid.model.worker import Offer, OfferState
from cogrid.ops.diagnose import About, Diagnosis, diagnose
from cogrid.store.workers import Who, hello
from tests.mends import assert_is_a_command
from tests.reaper.stage import MODEL, Stage, held
from tests.servers import Server

SHARED = f"tasks:cpu:shared:{MODEL}"


@pytest.fixture
def stage(server: Server) -> Iterator[Stage]:
    made = Stage(server)
    made.settle()
    yield made
    made.close()


def look(stage: Stage, about: About, sleep: Callable[[float], None] | None = None) -> Diagnosis:
    found = diagnose(stage.store, stage.limits, about, sleep or (lambda _: None))
    for finding in found.findings:
        if finding.mend:
            assert_is_a_command(finding.mend)
    return found


def kinds(stage: Stage, about: About) -> list[tuple[str, str]]:
    return [(each.kind, each.subject) for each in look(stage, about).findings]


def test_a_grid_that_is_well(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("t1")
    stage.claim("esxi", SHARED)
    stage.submit("t2")
    assert look(stage, About.ALL) == Diagnosis(())


def test_the_incident_in_all_its_aspects(stage: Stage) -> None:
    stage.hello("esxi")
    stage.renew("esxi")
    stage.submit("cb305e3a", "tasks:cpu:esxi")
    stage.let_pass(17)
    stage.renew("esxi")
    (ghost,) = look(stage, About.GHOSTS).findings
    assert ghost.kind == "ghost_pending"
    for fact in ("never polled", "host esxi", "registered_at 20", "holds 0 of 1 slots",
                 "1 in tasks:cpu:esxi", "nobody else serves gemma3:1b"):  # fmt: skip
        assert fact in ghost.evidence
    assert kinds(stage, About.STUCK) == [("stuck_no_home", "tasks:cpu:esxi")]
    assert kinds(stage, About.ALL) == [
        ("ghost_pending", "esxi"),
        ("stuck_no_home", "tasks:cpu:esxi"),
    ]
    stage.let_pass(21)
    assert kinds(stage, About.DEAD) == [("dead_worker", "esxi")]
    stage.worker("ai-core")
    stage.sweep()
    assert kinds(stage, About.ALL) == [("gone", "esxi")], "what the reaper moved is not stuck"


def test_zombies(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("t1")
    (task,) = stage.claim("esxi", SHARED)
    stage.let_pass(40)
    stage.renew("esxi", held=(held(task, silent_s=40, allowed_s=30),))
    stage.poll("esxi")
    assert kinds(stage, About.ZOMBIES) == [("zombie_running", "t1")]
    stage.redis.hset("worker:esxi", "zombies", 3)
    assert kinds(stage, About.ZOMBIES) == [("zombie_running", "t1"), ("wedged", "esxi")]
    assert [kind for kind, _ in kinds(stage, About.ALL)] == ["wedged", "zombie_running"]


def test_the_reverse_of_a_ghost(stage: Stage) -> None:
    stage.hello("bad")
    failed = (Offer(MODEL, OfferState.FAILED, reason="no memory"),)
    stage.renew("bad", offers=failed)
    stage.poll("bad")
    who = Who(WorkerId("bad"), "bad-2", "another lock", "pve2", "cpu", 1, "0", "")
    assert stage.store.do(hello(stage.keys, who, 20_000)).status == "refused"
    assert kinds(stage, About.GHOSTS) == [("excluded", "bad"), ("refused_twin", "bad")]
    twin = look(stage, About.GHOSTS).findings[1]
    assert twin.what == (
        "host pve2 runs a worker under the name bad, which bad holds; give it another name there"
    )


def test_a_back_off_that_nobody_ends(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("t1")
    (task,) = stage.claim("esxi", SHARED)
    stage.finish("esxi", task, "failed", retry=True, backoff_ms=1)
    stage.let_pass(10)
    stage.renew("esxi")
    stage.poll("esxi")
    (found,) = look(stage, About.STUCK).findings
    assert (found.kind, found.subject) == ("stuck_overdue", "t1")
    stage.sweep()
    assert look(stage, About.STUCK).findings == (), "the mend has mended"


def test_what_does_not_agree_is_looked_at_three_times(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("t1")
    stage.redis.zadd(SHARED, {"nobody": 1})
    pauses: list[float] = []
    found = look(stage, About.CONSISTENCY, pauses.append).findings
    assert [(each.kind, each.subject) for each in found] == [("no_task", "nobody")]
    assert len(pauses) == 2
    assert found[0].mend == "cogrid reaper --once"
    stage.claim("esxi", SHARED)
    assert look(stage, About.CONSISTENCY).findings == ()


def test_a_grid_that_moves_on_while_it_is_read_is_consistent(stage: Stage) -> None:
    stage.worker("esxi")
    stage.redis.zadd(SHARED, {"nobody": 1})
    stage.redis.zadd("grid:queues", {SHARED: 1})

    def meanwhile(_: float) -> None:
        stage.redis.zrem(SHARED, "nobody")
        stage.redis.zrem("grid:queues", SHARED)

    assert look(stage, About.CONSISTENCY, meanwhile).findings == ()
