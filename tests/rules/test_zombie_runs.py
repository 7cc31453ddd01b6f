"""Runs that make no progress, as findings."""

from __future__ import annotations

from cogrid.model.names import Token, WorkerId
from cogrid.model.snapshot import ReaperMark
from cogrid.model.task import State
from cogrid.rules.zombie_runs import zombie_runs
from tests.build import NOW_MS, a_snapshot, a_task, a_worker

RUN = a_task(
    "aa", state=State.RUNNING, worker=WorkerId("esxi"), token=Token("esxi-1:1:1"), n=5,
    claimed_at_ms=NOW_MS - 40_000,
)  # fmt: skip


def test_a_run_without_progress() -> None:
    (found,) = zombie_runs([(RUN, NOW_MS - 2_000)], a_snapshot(a_worker()))
    assert (found.kind, found.subject) == ("zombie_running", "aa")
    assert found.evidence == (
        "running for 40.0 s, 5 pieces of text, progress overdue for 2.0 s; model gemma3:1b, "
        "attempts 0, recoveries 0"
    )
    assert found.mend == "cogrid reaper --once"


def test_runs_of_the_dead_and_what_does_not_run_are_none() -> None:
    dead = a_snapshot(a_worker(lease_until_ms=NOW_MS - 1))
    assert zombie_runs([(RUN, NOW_MS - 2_000)], dead) == ()
    assert zombie_runs([(a_task(), NOW_MS - 2_000)], a_snapshot(a_worker())) == ()
    held = a_snapshot(a_worker(), reaper=ReaperMark(hold_until_ms=NOW_MS + 1))
    assert zombie_runs([(RUN, NOW_MS - 2_000)], held) == ()
