"""One story for each mistake that random orders find too rarely; each is told with the processes
of the state machine and ends with every invariant checked."""

from __future__ import annotations

import pytest

from cogrid.model.names import Queue, TaskId, WorkerId, shared_queue
from cogrid.model.task import Kind, OnClose
from cogrid.model.worker import WorkerState
from cogrid.store.passes import begin_pass
from cogrid.store.script import Scripts
from cogrid.store.tasks import Outcome, Submission, append, cancel, finish, submit
from cogrid.store.workers import forget
from tests.store.actors import Process, Reaper
from tests.store.conftest import a_fake
from tests.store.scene import Scene
from tests.store.variants import clocked
from tests.store.world import LIMITS, REPLICATION_ID, RUN_ID, World

DONE = Outcome("done", finish_reason="stop")
T1, T2 = TaskId("t1"), TaskId("t2")


def scene_of(world: World, scripts: Scripts = clocked) -> Scene:
    """A story on the world's server; a pass has just begun."""
    scene = Scene(world.client, scripts)
    for ms in (0, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 100):
        scene.tick(ms)
        scene.do(begin_pass(scene.keys, RUN_ID, REPLICATION_ID, LIMITS))
    return scene


@pytest.fixture
def scene(real: World) -> Scene:
    return scene_of(real)


def a_process(scene: Scene, instance: str = "a1", lock: str = "a", slots: int = 2) -> Process:
    name = WorkerId(instance[0])
    process = Process(scene, name, instance, lock, "cpu", ("m",), slots)
    assert process.hello() == "ok"
    process.renew()
    return process


def a_task(scene: Scene, task: TaskId = T1, streamed: bool = True, own: str = "") -> None:
    shared = shared_queue("cpu", "m")
    asked = Submission(
        id=task, kind=Kind.CHAT, model="m", queue=Queue(f"tasks:cpu:{own}" if own else shared),
        shared=shared, body=b"{}", user="ada", streamed=streamed, on_close=OnClose.KEEP,
    )  # fmt: skip
    assert scene.do(submit(scene.keys, asked)).status == "new"


def silence(scene: Scene, *living: Process, seconds: int = 21) -> None:
    """Time in which passes go on and only these processes renew."""
    reaper = Reaper(scene)
    for _ in range(seconds):
        scene.tick(1_000)
        for process in living:
            process.renew()
            process.claim()
        reaper.pass_once()
        scene.check()


def state(scene: Scene, task: TaskId = T1) -> str:
    return scene.hash_of(task).get("state", "")


def test_a_zombie_reports_late(scene: Scene) -> None:
    """Its run was given to another; what it says and how it ends counts for nothing."""
    zombie = a_process(scene)
    a_task(scene, streamed=False)
    zombie.claim()
    silence(scene)
    other = a_process(scene, "b1", "b")
    other.claim()
    assert list(other.held) == [T1]
    other.say(T1, 1)
    token = zombie.held[T1].handed.token
    late = scene.do(append(scene.keys, T1, token, 2, (b'{"content":"zombie"}',), 1_000))
    assert late.status == "lost"
    scene.check()
    assert scene.do(finish(scene.keys, zombie.name, T1, token, DONE)).status == "lost"
    scene.check()
    assert state(scene) == "running"
    assert other.finish(T1, DONE).status == "ok"
    scene.check()


def test_a_slot_that_was_just_freed_makes_no_ghost(scene: Scene) -> None:
    """Full for a minute, so it has not polled with a free slot; the pass comes before its claim."""
    worker = a_process(scene, slots=1)
    a_task(scene)
    worker.claim()
    reaper = Reaper(scene)
    for _ in range(20):
        scene.tick(2_900)
        worker.renew()
        worker.say(T1, 1)
        reaper.pass_once()
    a_task(scene, T2, own="a")
    worker.finish(T1, DONE)
    reaper.pass_once()
    scene.check()
    assert scene.client.zrange("tasks:cpu:a", 0, -1) == [b"t2"]


def test_a_cancelled_claim_whose_answer_was_lost_gives_its_slot_back(scene: Scene) -> None:
    worker = a_process(scene, slots=1)
    a_task(scene)
    worker.claim(lost=True)
    scene.do(cancel(scene.keys, T1, "by hand"))
    scene.check()
    worker.claim()
    worker.renew()
    scene.check()
    a_task(scene, T2)
    worker.claim()
    assert list(worker.held) == [T2]
    worker.finish(T2, DONE)
    scene.check()


def test_two_runs_of_one_task_are_two_slots(scene: Scene) -> None:
    """Taken back as a zombie and claimed again by the same process, then cancelled: the engine
    works on both until it has let go of both."""
    worker = a_process(scene, slots=2)
    a_task(scene, streamed=False)
    worker.claim()
    first = worker.held[T1].handed.token
    scene.tick(1_000)
    scene.client.zadd("grid:due", {T1: scene.now_ms - 1})
    Reaper(scene).pass_once()
    worker.claim()
    assert worker.held[T1].handed.token != first
    scene.do(cancel(scene.keys, T1, "by hand"))
    scene.check()
    assert scene.client.scard("worker:a:revoked") == 2
    a_task(scene, T2)
    worker.claim()
    assert T2 not in worker.held


def test_a_late_copy_of_a_claim_takes_nothing(scene: Scene) -> None:
    worker = a_process(scene, slots=2)
    a_task(scene)
    worker.claim()
    late = worker.sent[-1]
    worker.finish(T1, DONE)
    a_task(scene, T2)
    scene.do(late)
    scene.check()
    assert state(scene, T2) == "pending"


def test_a_late_copy_of_a_claim_that_took_nothing_takes_nothing(scene: Scene) -> None:
    worker = a_process(scene, slots=2)
    worker.claim()
    late = worker.sent[-1]
    a_task(scene)
    scene.do(late)
    assert state(scene) == "pending"


def test_a_lost_answer_is_no_orphan(scene: Scene) -> None:
    worker = a_process(scene)
    a_task(scene)
    worker.claim(lost=True)
    worker.claim()
    assert list(worker.held) == [T1]
    worker.say(T1, 2, lost=True)
    worker.say(T1, 2)
    worker.finish(T1, DONE, lost=True)
    worker.finish(T1, DONE)
    scene.check()
    assert state(scene) == "done"


def test_a_restart_in_the_middle_is_taken_back_at_once(scene: Scene) -> None:
    old = a_process(scene)
    a_task(scene)
    old.claim()
    fresh = a_process(scene, "a2", "a")
    Reaper(scene).pass_once()
    scene.check()
    fresh.claim()
    assert list(fresh.held) == [T1]
    fresh.finish(T1, DONE)
    scene.check()


def test_another_machine_does_not_take_a_living_name(scene: Scene) -> None:
    mine = a_process(scene)
    stranger = Process(scene, WorkerId("a"), "a9", "elsewhere", "cpu", ("m",))
    assert stranger.hello() == "refused"
    a_task(scene)
    mine.claim()
    assert list(mine.held) == [T1]


def test_an_old_process_claims_nothing_under_its_lost_name(scene: Scene) -> None:
    old = a_process(scene)
    silence(scene)
    a_process(scene, "a2", "elsewhere")
    a_task(scene)
    old.claim()
    assert old.over
    assert state(scene) == "pending"


def test_a_dead_worker_that_comes_back_must_renew_first(scene: Scene) -> None:
    worker = a_process(scene)
    silence(scene)
    a_task(scene)
    worker.claim()
    assert worker.held == {}
    worker.renew()
    worker.claim()
    assert list(worker.held) == [T1]


def test_a_new_process_owes_no_slot_to_its_predecessor(scene: Scene) -> None:
    """What the old one had to let go of went with it."""
    old = a_process(scene, slots=1)
    a_task(scene)
    old.claim()
    scene.do(cancel(scene.keys, T1, "by hand"))
    assert scene.client.scard("worker:a:revoked") == 1
    fresh = a_process(scene, "a2", "a", slots=1)
    scene.check()
    a_task(scene, T2)
    fresh.claim()
    assert list(fresh.held) == [T2]


def test_a_reaper_that_read_long_ago_takes_nothing_from_the_living(scene: Scene) -> None:
    worker = a_process(scene)
    a_task(scene)
    worker.claim()
    scene.tick(21_000)
    reaper, other = Reaper(scene), Reaper(scene)
    other.begin()
    reaper.read()
    for _ in range(21):
        scene.tick(1_000)
        worker.renew()
        worker.say(T1, 1)
        other.begin()
    assert reaper.acts
    reaper.act()
    scene.check()
    assert state(scene) == "running"


def test_a_deleted_hash_ends_no_running_answer(scene: Scene) -> None:
    worker = a_process(scene)
    a_task(scene)
    a_task(scene, T2, own="a")
    worker.claim()
    scene.truth.struck.add("a")
    scene.client.delete("worker:a")
    Reaper(scene).pass_once()
    worker.renew()
    worker.renew()
    scene.check()
    for task in tuple(worker.held):
        assert worker.finish(task, DONE).status == "ok"
    worker.claim()
    assert len(worker.held) == 1
    scene.check()


def test_what_a_server_gives_without_the_worker_knowing_is_handed_back(scene: Scene) -> None:
    """As after a failover that took the finish back."""
    worker = a_process(scene, slots=1)
    a_task(scene)
    worker.claim()
    del worker.held[T1]
    worker.renew()
    scene.check()
    assert state(scene) == "pending"
    worker.claim()
    assert list(worker.held) == [T1]


def test_a_forgotten_worker_that_lives_comes_back(scene: Scene) -> None:
    worker = a_process(scene)
    a_task(scene, streamed=False)
    worker.claim()
    scene.truth.forgotten.add("a")
    scene.do(forget(scene.keys, worker.name, True, "op"))
    Reaper(scene).pass_once()
    scene.check()
    worker.renew()
    worker.renew()
    scene.check()
    worker.claim()
    assert list(worker.held) == [T1]


def test_text_of_two_runs_never_meets_in_one_stream(scene: Scene) -> None:
    worker = a_process(scene)
    a_task(scene)
    worker.claim()
    worker.say(T1, 2)
    silence(scene)
    assert state(scene) == "failed"


def test_a_step_of_the_clock_takes_nothing_from_the_living(scene: Scene) -> None:
    worker = a_process(scene)
    a_task(scene)
    worker.claim()
    scene.step(3_600_000)
    reaper = Reaper(scene)
    reaper.act()
    for _ in range(30):
        reaper.pass_once()
        worker.renew()
        worker.claim()
        worker.say(T1, 1)
        scene.tick(1_000)
        scene.check()
    assert worker.finish(T1, DONE).status == "ok"


def test_a_worker_that_leaves_keeps_its_queue_for_its_return(scene: Scene) -> None:
    """Its lease runs out by itself; until then a pass moves its tasks to where they are served."""
    worker = a_process(scene)
    a_task(scene, own="a")
    worker.renew(state=WorkerState.AWAY)
    Reaper(scene).pass_once()
    scene.check()
    assert scene.client.exists("tasks:cpu:a") == 0
    assert state(scene) == "pending"


def test_stories_can_be_told_without_a_server() -> None:
    """The mutants are tested in this process."""
    client = a_fake()
    scene = scene_of(World(client))
    test_a_zombie_reports_late(scene)
    client.close()
