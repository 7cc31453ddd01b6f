"""What status says of a snapshot."""

from __future__ import annotations

from dataclasses import replace

from cogrid.model.limits import Limits
from cogrid.model.names import TaskId, WorkerId, own_queue, shared_queue
from cogrid.model.snapshot import ReaperMark, Server, Snapshot
from cogrid.model.task import State
from cogrid.ops.status import Status, describe
from tests.build import NOW_MS, a_queue, a_snapshot, a_task, a_worker

FIT = Server(
    version="9.1.2", flavour="valkey", role="master", policy="noeviction", append_only=True,
    rdb_ok=True,
)  # fmt: skip
PASSED = ReaperMark(last_pass_ms=NOW_MS - 500)


def a_grid(**fields: object) -> Snapshot:
    """A snapshot of a grid that is well, but for what is given."""
    return replace(a_snapshot(), **{"server": FIT, "reaper": PASSED, **fields})  # type: ignore[arg-type]


def said(snapshot: Snapshot) -> Status:
    return describe(snapshot, Limits(), "redis://127.0.0.1:6379/0")


def test_a_healthy_grid_has_nothing_to_warn_of() -> None:
    found = said(a_grid(workers=(a_worker(),)))
    assert (found.warnings, found.findings) == ([], False)
    assert found.workers[0].health == "healthy"
    assert (found.workers[0].beat_age_s, found.workers[0].poll_age_s) == (2.0, 1.0)


def test_a_worker_that_never_polled_has_no_age() -> None:
    ghost = a_worker(polled_at_ms=0, freed_at_ms=NOW_MS - 17_200)
    found = said(a_grid(workers=(ghost,)))
    assert found.workers[0].poll_age_s is None
    assert found.workers[0].health == "ghost"
    assert found.findings


def test_runs_are_told_with_their_age() -> None:
    task = a_task("aa", state=State.RUNNING, claimed_at_ms=NOW_MS - 4_000, worker=WorkerId("esxi"))
    found = said(a_grid(workers=(a_worker(tasks=(TaskId("aa"),)),), tasks=(task,)))
    assert found.workers[0].tasks == ["aa"]
    assert (found.workers[0].runs[0].model, found.workers[0].runs[0].age_s) == ("gemma3:1b", 4.0)
    assert found.workers[0].health == "busy"


def test_queues_are_servable_or_not() -> None:
    queues = (
        a_queue(shared_queue("cpu", "gemma3:1b"), 3, oldest_ms=NOW_MS - 9_000),
        a_queue(shared_queue("cpu", "gone:7b"), 2),
        a_queue(own_queue("cpu", "esxi"), 1),
        a_queue(own_queue("cpu", "lost"), 1),
    )
    found = said(a_grid(workers=(a_worker(),), queues=queues))
    assert [(queue.depth, queue.oldest_s, queue.servable) for queue in found.queues] == [
        (3, 9.0, True),
        (2, None, False),
        (1, None, True),
        (1, None, False),
    ]
    assert found.findings


def test_a_misconfigured_server_is_told_with_the_cure() -> None:
    server = replace(FIT, policy="allkeys-lru", append_only=False, role="slave", rdb_ok=False)
    warnings = said(a_grid(server=server)).warnings
    assert len(warnings) == 4
    assert any("set maxmemory-policy noeviction" in warning for warning in warnings)
    assert any("set appendonly yes" in warning for warning in warnings)
    assert any("use the primary's URL" in warning for warning in warnings)


def test_a_server_that_hides_its_facts_is_said_to() -> None:
    warnings = said(a_grid(server=Server())).warnings
    assert len(warnings) == 1
    assert "allow +info" in warnings[0]


def test_a_missing_or_silent_reaper_is_a_warning() -> None:
    (nothing,) = said(a_grid(reaper=ReaperMark())).warnings
    assert nothing.startswith("no reaper has ever run here: start a grid with cogrid up, or")
    workers = replace(a_snapshot(a_worker()), server=FIT, reaper=ReaperMark())
    assert (
        said(workers)
        .warnings[0]
        .endswith("has ever run here: start one with cogrid reaper --daemon")
    )
    silent = ReaperMark(last_pass_ms=NOW_MS - 42_000)
    found = said(a_grid(reaper=silent))
    assert "42 s ago" in found.warnings[0]
    assert found.reaper == {"last_pass_age_s": 42.0, "holding_s": None}


def test_a_hold_is_told_with_what_is_left_of_it() -> None:
    held = ReaperMark(last_pass_ms=NOW_MS - 100, hold_until_ms=NOW_MS + 12_000)
    assert said(a_grid(reaper=held)).reaper["holding_s"] == 12.0
