"""Tasks that wait for nothing."""

from __future__ import annotations

from cogrid.model.finding import Finding
from cogrid.model.limits import Limits
from cogrid.model.names import Queue, TaskId
from cogrid.model.snapshot import ReaperMark
from cogrid.model.task import State, Task
from cogrid.model.worker import Worker
from cogrid.rules.grid import Grid
from cogrid.rules.stuck import stuck
from tests.build import NOW_MS, a_queue, a_snapshot, a_task, a_worker

LIMITS = Limits()
SHARED = Queue("tasks:cpu:shared:gemma3:1b")
OWN = Queue("tasks:cpu:esxi")


def find(
    *tasks: Task, workers: tuple[Worker, ...] = (), depth: int | None = None, **fields: object
) -> tuple[Finding, ...]:
    waiting: dict[Queue, tuple[Task, ...]] = {}
    for task in tasks:
        waiting[task.queue] = (*waiting.get(task.queue, ()), task)
    queues = tuple(a_queue(name, depth or len(found)) for name, found in waiting.items())
    grid = Grid.of(a_snapshot(*workers, queues=queues, **fields), LIMITS)
    return stuck(waiting, (), grid, LIMITS)


def test_a_model_without_a_home() -> None:
    dead = a_worker(lease_until_ms=NOW_MS - 5_000)
    old = a_task("aa", queued_at_ms=NOW_MS - 9_000)
    found = find(old, a_task("bb"), workers=(dead,), depth=7, model_homes={
        "gemma3:1b": NOW_MS - 8_000
    })  # fmt: skip
    assert found == (
        Finding(
            "stuck_no_home",
            SHARED,
            f"7 tasks in {SHARED} for gemma3:1b, which no worker can serve",
            "the oldest has waited for 9.0 s; esxi: dead; last home 8 s ago",
            "cogrid spof --fix --model gemma3:1b",
            (TaskId("aa"), TaskId("bb")),
        ),
    )


def test_what_stands_behind_a_task_without_a_home() -> None:
    tasks = (
        a_task("aa", queue=OWN),
        a_task("bb", queue=OWN, model="gone:7b"),
        a_task("cc", queue=OWN, queued_at_ms=NOW_MS - 3_000),
    )
    homeless, behind = find(*tasks, workers=(a_worker(slots=1, tasks=(TaskId("r"),)),))
    assert (homeless.kind, homeless.at_risk) == ("stuck_no_home", ("bb",))
    assert (
        homeless.evidence
        == "the oldest has waited for 1.0 s; no worker has it; it never had a home"
    )
    assert homeless.what.endswith(
        "; where nobody wants it any more: cogrid task cancel --model gone:7b, "
        "then cogrid model forget gone:7b"
    )
    assert (behind.kind, behind.at_risk) == ("stuck_behind", ("cc",))
    assert behind.evidence == "the oldest has waited for 3.0 s"
    assert behind.mend == "cogrid reaper --once"


def test_a_head_that_nobody_claims_beside_a_free_slot() -> None:
    old = a_task("aa", queued_at_ms=NOW_MS - 31_000)
    (found,) = find(old, a_task("bb"), workers=(a_worker(slots=2),))
    assert (found.kind, found.subject) == ("stuck_unclaimed", SHARED)
    assert found.evidence == (
        "aa has waited for 31.0 s; esxi has 2 of 2 slots free, last poll 1.0 s ago"
    )
    assert found.at_risk == ("aa", "bb")


def test_a_worker_that_never_polled_is_said_to_have_never_polled() -> None:
    fresh = a_worker(polled_at_ms=0, freed_at_ms=NOW_MS - 1_000)
    (found,) = find(a_task("aa", queued_at_ms=NOW_MS - 31_000), workers=(fresh,))
    assert found.evidence.endswith("slots free, never polled")


def test_waiting_behind_the_busy_or_not_for_long_is_none() -> None:
    old = a_task("aa", queued_at_ms=NOW_MS - 31_000)
    full = a_worker(tasks=(TaskId("r"),))
    assert find(old, workers=(full,)) == ()
    assert find(a_task("aa", queued_at_ms=NOW_MS - 29_000), workers=(a_worker(),)) == ()
    served = (a_queue(SHARED, 1, active_ms=NOW_MS - 5_000),)
    grid = Grid.of(a_snapshot(a_worker(), queues=served), LIMITS)
    assert stuck({SHARED: (old,)}, (), grid, LIMITS) == (), "the queue is being served"
    elsewhere = a_worker(pool="gpu")
    assert find(old, workers=(full, elsewhere)) == (), "the reaper moves it there"


def test_what_should_have_been_looked_at() -> None:
    late = [
        (a_task("aa", state=State.WAITING), NOW_MS - 12_000),
        (a_task("bb"), NOW_MS - 4_000),
        (a_task("cc", state=State.WAITING), NOW_MS - 2_000),
        (a_task("dd", state=State.RUNNING), NOW_MS - 9_000),
    ]
    mark = ReaperMark(last_pass_ms=NOW_MS - 40_000)
    grid = Grid.of(a_snapshot(a_worker(), reaper=mark), LIMITS)
    found = stuck({}, late, grid, LIMITS)
    assert [(each.kind, each.subject) for each in found] == [
        ("stuck_overdue", "aa"),
        ("stuck_overdue", "bb"),
    ]
    assert found[0].evidence == "due 12.0 s ago; the reaper's last pass was 40.0 s ago"
    held = Grid.of(a_snapshot(reaper=ReaperMark(hold_until_ms=NOW_MS + 1)), LIMITS)
    assert stuck({}, late, held, LIMITS) == ()
