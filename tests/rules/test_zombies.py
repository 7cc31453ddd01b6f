"""Why a run is taken back, and why it is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cogrid.model.names import Token
from cogrid.model.task import Reason, State, Task
from cogrid.model.worker import Worker
from cogrid.rules.zombies import why_taken
from tests.build import NOW_MS, a_task, a_worker

RUN = a_task(
    state=State.RUNNING, token=Token("esxi-1:4:1"), worker="esxi", claimed_at_ms=NOW_MS - 35_000
)
DEAD = a_worker(lease_until_ms=NOW_MS - 1_300)


@pytest.mark.parametrize(
    ("worker", "due_ms", "expected"),
    [
        (a_worker(), NOW_MS + 1, None),
        (a_worker(), None, None),
        (
            a_worker(),
            NOW_MS - 800,
            (
                Reason.ZOMBIE_RUNNING,
                "running for 35.0 s, no text, progress overdue for 0.8 s",
            ),
        ),
        (DEAD, None, (Reason.DEAD_WORKER, "lease ran out 1.3 s ago")),
        (DEAD, NOW_MS - 800, (Reason.DEAD_WORKER, "lease ran out 1.3 s ago")),
        (None, None, (Reason.DEAD_WORKER, "no lease")),
        (a_worker(instance="esxi-2"), 0, (Reason.RESTARTED, "its process was replaced")),
        # Deleted by hand, but the process renews: its run goes on.
        (a_worker(known=False, instance=""), None, None),
    ],
)
def test_the_first_ground_that_holds(
    worker: Worker | None, due_ms: int | None, expected: tuple[Reason, str] | None
) -> None:
    assert why_taken(RUN, due_ms, worker, NOW_MS) == expected


@pytest.mark.parametrize("worker", [DEAD, None, a_worker()])
def test_in_a_hold_no_deadline_counts(worker: Worker | None) -> None:
    assert why_taken(RUN, NOW_MS - 800, worker, NOW_MS, hold_until_ms=NOW_MS + 1) is None


def test_in_a_hold_a_replaced_process_does() -> None:
    replaced = a_worker(instance="esxi-2")
    taken = why_taken(RUN, 0, replaced, NOW_MS, hold_until_ms=NOW_MS + 1)
    assert taken == (Reason.RESTARTED, "its process was replaced")


def test_the_evidence_counts_what_came() -> None:
    task: Task = replace(RUN, n=5)
    taken = why_taken(task, NOW_MS - 100, a_worker(), NOW_MS)
    assert taken is not None
    assert taken[1] == "running for 35.0 s, 5 pieces of text, progress overdue for 0.1 s"
