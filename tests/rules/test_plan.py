"""A pass as a whole, without a server: which acts, in which order, and none on a grid that is well.

What each does to the grid is tested with the reaper, on a real server.
"""

from __future__ import annotations

from typing import Any

from cogrid.model.limits import Limits
from cogrid.model.names import Queue, TaskId, Token, WorkerId
from cogrid.model.snapshot import ReaperMark
from cogrid.model.task import Reason, State, Task
from cogrid.model.worker import Wish, Worker, WorkerState
from cogrid.rules.act import (
    Act,
    CancelOrphan,
    DropHeld,
    DropQueued,
    Expire,
    FailHomeless,
    Forget,
    Move,
    Promote,
    Reap,
    Stamp,
    Tend,
)
from cogrid.rules.grid import Grid
from cogrid.rules.plan import look, plan
from cogrid.rules.routing import Routing
from cogrid.rules.seen import Seen, as_wished
from tests.build import NOW_MS, a_queue, a_snapshot, a_task, a_worker

MODEL = "gemma3:1b"
ESXI = "tasks:cpu:esxi"
CPU, GPU = f"tasks:cpu:shared:{MODEL}", f"tasks:gpu:shared:{MODEL}"
LIMITS = Limits()
DEAD = a_worker(lease_until_ms=NOW_MS - 1_000, taken=2)
AI_CORE = a_worker("ai-core", pool="gpu", slots=9)
HELD = ReaperMark(hold_until_ms=NOW_MS + 1)


def a_run(task: str = "run", **fields: Any) -> Task:
    running = {"state": State.RUNNING, "token": Token("esxi-1:1:1"), "worker": WorkerId("esxi")}
    return a_task(task, **{**running, "streamed": False, **fields})


def seen(*workers: Worker, tasks: tuple[Task, ...] = (), **fields: Any) -> Seen:
    names = ("queues", "model_homes", "reaper")
    facts = {name: fields.pop(name) for name in names if name in fields}
    grid = Grid.of(a_snapshot(*workers, **facts), LIMITS)
    return Seen(grid, tasks={task.id: task for task in tasks}, **fields)


def acts(reading: Seen) -> tuple[Act, ...]:
    """Without the upkeep that every pass does."""
    planned = plan(reading, Routing(), LIMITS)
    return tuple(act for act in planned if not isinstance(act, Stamp | Tend))


def waiting(queue: str, *tasks: str) -> dict[Queue, tuple[TaskId, ...]]:
    return {Queue(queue): tuple(TaskId(task) for task in tasks)}


def test_a_grid_that_is_well_is_only_stamped_and_tended() -> None:
    reading = seen(a_worker(), AI_CORE, queues=(a_queue(ESXI), a_queue(CPU)))
    assert plan(reading, Routing(), LIMITS) == (
        Stamp((MODEL,)), Tend((Queue(ESXI), Queue(CPU)))
    )  # fmt: skip
    assert look(reading.grid, Routing(), LIMITS) == {}


def test_a_dead_workers_runs_and_its_queue() -> None:
    queued = a_task("queued", queue=ESXI)
    reading = seen(
        DEAD, AI_CORE, tasks=(a_run(), a_run("due"), queued), queues=(a_queue(ESXI),),
        held={DEAD.id: (TaskId("run"), TaskId("due"))}, due=((TaskId("due"), NOW_MS - 5),),
        waiting=waiting(ESXI, "queued"),
    )  # fmt: skip
    first, second, third = acts(reading)
    assert isinstance(first, Reap)
    assert isinstance(second, Reap)
    assert [(act.task, act.reason, act.queue) for act in (first, second)] == [
        ("due", Reason.DEAD_WORKER, GPU), ("run", Reason.DEAD_WORKER, GPU)
    ]  # fmt: skip
    assert (first.homes, first.evidence) == (("ai-core",), "lease ran out 1.0 s ago")
    assert third == Move(
        TaskId("queued"), DEAD.id, Queue(ESXI), Queue(GPU), Reason.DEAD_WORKER,
        "lease ran out 1.0 s ago", (AI_CORE.id,),
    )  # fmt: skip


def test_in_a_hold_nothing_is_ended_or_taken_back() -> None:
    reading = seen(
        DEAD, tasks=(a_run(), a_task("late"), a_task("queued", queue=ESXI)), reaper=HELD,
        queues=(a_queue(ESXI), a_queue(CPU)), due=((TaskId("run"), 1), (TaskId("late"), 1)),
        orphans=(TaskId("late"),), waiting={**waiting(ESXI, "queued"), **waiting(CPU, "late")},
    )  # fmt: skip
    assert acts(reading) == ()
    assert look(reading.grid, Routing(), LIMITS) == {}


def test_what_is_due_by_its_state() -> None:
    tasks = (
        a_run("zombie"),
        a_task("late", queued_at_ms=NOW_MS - 300_000),
        a_task("back", state=State.WAITING, avoid=WorkerId("esxi")),
        a_task("over", state=State.DONE),
    )
    due = tuple((TaskId(task), NOW_MS - 1) for task in ("zombie", "late", "back", "over", "none"))
    reading = seen(a_worker(), AI_CORE, tasks=tasks, due=due)
    zombie, late, back = acts(reading)
    assert isinstance(zombie, Reap)
    assert (zombie.reason, zombie.queue) == (Reason.ZOMBIE_RUNNING, "tasks:gpu:ai-core")
    assert late == Expire(
        TaskId("late"), f"no worker took the request to model '{MODEL}' within 300 s (queue {CPU})"
    )
    assert back == Promote(
        TaskId("back"), Queue("tasks:gpu:ai-core"), (WorkerId("esxi"), AI_CORE.id)
    )
    assert plan(reading, Routing(), LIMITS)[1] == Tend((), (TaskId("over"), TaskId("none")))


def test_without_a_home_waiting_tasks_fail_in_the_incidents_words() -> None:
    tasks = (a_task("a"), a_task("b", state=State.WAITING))
    reading = seen(
        DEAD, tasks=tasks, queues=(a_queue(CPU),), model_homes={MODEL: NOW_MS - 8_000},
        due=((TaskId("b"), NOW_MS),), waiting=waiting(CPU, "a"),
    )  # fmt: skip
    found = acts(reading)
    assert [type(act) for act in found] == [FailHomeless, FailHomeless]
    sentence = (
        "no alternative worker can serve model 'gemma3:1b' (reason=dead_worker); "
        "single point of failure"
    )
    assert {act.message for act in found if isinstance(act, FailHomeless)} == {sentence}
    assert look(reading.grid, Routing(), LIMITS) == {CPU: 1}


def test_a_model_that_was_never_at_home_is_judged_by_the_tasks_own_wait() -> None:
    for waited_ms, failed in ((7_000, 0), (7_001, 1)):
        task = a_task("a", queued_at_ms=NOW_MS - waited_ms)
        reading = seen(tasks=(task,), queues=(a_queue(CPU),), waiting=waiting(CPU, "a"))
        assert len(acts(reading)) == failed


def test_a_full_workers_tasks_leave_after_a_second_for_free_slots_only() -> None:
    full = a_worker(taken=1)
    one_free = a_worker("ai-core", pool="gpu")
    tasks = tuple(
        a_task(f"t{n}", queue=ESXI, queued_at_ms=NOW_MS - waited_ms)
        for n, waited_ms in enumerate((1_000, 999, 1_000))
    )
    reading = seen(
        full, one_free, tasks=tasks, queues=(a_queue(ESXI, 30),),
        waiting=waiting(ESXI, "t0", "t1", "t2"),
    )  # fmt: skip
    (move,) = acts(reading)
    assert isinstance(move, Move)
    assert (move.task, move.reason, move.queue) == ("t0", Reason.WORKER_FULL, GPU)
    assert look(reading.grid, Routing(), LIMITS) == {ESXI: 1}


def test_the_work_of_one_pass_is_bounded() -> None:
    queues = tuple(a_queue(f"tasks:cpu:w{n}", 500) for n in range(12))
    asked = look(seen(queues=queues).grid, Routing(), LIMITS)
    assert list(asked.values()) == [100] * 10


def test_what_nothing_confirms_is_dropped() -> None:
    moved = a_task("moved", queue=CPU)
    ended = a_run("ended", state=State.DONE)
    reading = seen(
        DEAD, tasks=(moved, ended), queues=(a_queue(ESXI),), waiting=waiting(ESXI, "moved", "none"),
        held={DEAD.id: (TaskId("ended"),)},
    )  # fmt: skip
    assert acts(reading) == (
        DropQueued(Queue(ESXI), (TaskId("moved"), TaskId("none"))),
        DropHeld(DEAD.id, (TaskId("ended"),)),
    )


def test_only_a_name_that_holds_nothing_is_forgotten() -> None:
    gone = a_worker(known=False, lease_until_ms=NOW_MS - 1)
    assert acts(seen(gone)) == (Forget(gone.id),)
    assert acts(seen(gone, reaper=HELD)) == ()
    assert acts(seen(gone, queues=(a_queue(ESXI),))) == ()
    assert acts(seen(gone, tasks=(a_run(),), held={gone.id: (TaskId("run"),)})) != (
        Forget(gone.id),
    )
    assert acts(seen(a_worker(known=False))) == ()
    assert acts(seen(DEAD)) == ()


def test_orphans_are_cancelled() -> None:
    reading = seen(orphans=(TaskId("left"),))
    assert acts(reading) == (CancelOrphan(TaskId("left"), "nobody has listened for 60 s"),)


def test_orphans_that_wait_go_before_those_that_run() -> None:
    """Else the worker would take each of them in the place of the one that has just ended."""
    tasks = (a_run("run"), a_task("late"), a_run("too"))
    orphans = (TaskId("run"), TaskId("late"), TaskId("too"))
    ended = [act for act in acts(seen(DEAD, tasks=tasks, orphans=orphans))
             if isinstance(act, CancelOrphan)]  # fmt: skip
    assert [act.task for act in ended] == ["late", "run", "too"]


def test_a_stream_that_broke_is_told_apart() -> None:
    tasks = (a_run("quiet", n=3), a_run("heard", n=3, streamed=True))
    due = ((TaskId("quiet"), 1), (TaskId("heard"), 1))
    quiet, heard = acts(seen(a_worker(), tasks=tasks, due=due))
    assert isinstance(quiet, Reap)
    assert isinstance(heard, Reap)
    assert (quiet.said, heard.said) == (False, True)


def test_a_wish_to_drain_makes_a_worker_drain() -> None:
    snapshot = a_snapshot(a_worker(wish=Wish("drain")), a_worker("b"))
    states = [worker.state for worker in as_wished(snapshot).workers]
    assert states == [WorkerState.DRAINING, WorkerState.READY]


def test_many_queues_are_tended_in_pieces() -> None:
    queues = tuple(a_queue(f"tasks:cpu:shared:m{n}") for n in range(250))
    planned = plan(seen(queues=queues, reaper=HELD), Routing(), LIMITS)
    assert [len(act.queues) for act in planned if isinstance(act, Tend)] == [100, 100, 50]
