"""Every order of everything: a state machine over the real scripts on a real server, in which each
call can be lost, repeated or late, with all invariants checked after every step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from cogrid.model.names import Queue, TaskId, WorkerId, own_queue, shared_queue
from cogrid.model.task import TERMINAL, Band, Kind, OnClose
from cogrid.model.worker import Wish, WorkerState
from cogrid.store.script import Call, Scripts
from cogrid.store.tasks import Outcome, Submission, cancel, submit
from cogrid.store.workers import forget, wish
from tests.conftest import needs
from tests.servers import KINDS, Pool
from tests.store.actors import Coordinator, Process, Reaper
from tests.store.scene import Scene
from tests.store.variants import CLOCK_KEY, clocked

WORKERS = {"a": ("cpu", ("m", "n")), "b": ("gpu", ("m",))}
DONE = Outcome("done", finish_reason="stop", usage=b'{"completion_tokens":2}')
AGAIN = Outcome("failed", message="engine", code="engine_error", retry=True, backoff_ms=1_000)
FAILED = Outcome("failed", message="refused", code="engine_refused")
BACK = Outcome("back", message="stopping")
OVER = {str(state) for state in TERMINAL}
PICK = st.integers(0, 7)
BOTH = st.integers(0, 1)
ONE_IN_FIVE = st.sampled_from([False, False, False, False, True])
NAME = st.sampled_from(sorted(WORKERS))

# How often each thing happens beside the others, and what is drawn for it.
ACTIONS: dict[str, tuple[int, dict[str, st.SearchStrategy[Any]]]] = {
    "submit": (6, {
        "user": st.sampled_from("xyz"), "band": st.sampled_from(Band),
        "model": st.sampled_from("mmn"), "own": st.sampled_from(["", "", "a", "b"]),
        "streamed": st.booleans(), "forever": ONE_IN_FIVE, "pick": PICK,
        "close": st.sampled_from([OnClose.CANCEL, OnClose.CANCEL, OnClose.GRACE, OnClose.KEEP]),
    }),
    "cancel": (2, {"pick": PICK}),
    "listen": (1, {"which": BOTH, "pick": PICK}),
    "leave": (2, {"which": BOTH, "pick": PICK}),
    "coordinator_renews": (1, {"which": BOTH}),
    "coordinator_dies": (1, {"which": BOTH}),
    "claim": (14, {"pick": PICK, "lost": ONE_IN_FIVE}),
    "renew": (6, {
        "pick": PICK, "lost": ONE_IN_FIVE,
        "state": st.sampled_from(
            [*[WorkerState.READY] * 6, WorkerState.DRAINING, WorkerState.AWAY]
        ),
    }),
    "say": (5, {"pick": PICK, "pieces": st.integers(1, 3), "lost": ONE_IN_FIVE}),
    "finish": (8, {
        "pick": PICK, "outcome": st.sampled_from([DONE, DONE, AGAIN, FAILED, BACK]),
        "lost": ONE_IN_FIVE, "then": st.booleans(),
    }),
    "restart": (2, {"name": NAME, "lock": st.sampled_from("1112")}),
    "crash": (2, {"pick": PICK}),
    "delete_hash": (1, {"name": NAME}),
    "forget": (1, {"name": NAME, "force": ONE_IN_FIVE}),
    "wish": (1, {"name": NAME, "state": st.sampled_from(["run", "run", "drain"])}),
    "late_copy": (4, {"pick": st.integers(0, 30)}),
    "marker_is_lost": (1, {"pool": st.sampled_from(["cpu", "gpu"])}),
    "time_passes": (4, {"ms": st.sampled_from([100, 1_000, 2_500, 6_000, 16_000, 21_000])}),
    "clock_steps": (1, {"ms": st.sampled_from([-60_000, -1_000, 3_600_000])}),
    "time_goes_by": (10, {
        "passes": st.sampled_from([1, 1, 1, 2, 9, 14]), "silent": st.sampled_from([0, 1, 9, 9]),
    }),
    "reaper_begins": (3, {"which": BOTH}),
    "reaper_reads": (3, {"which": BOTH}),
    "reaper_acts": (3, {"which": BOTH}),
}  # fmt: skip
NAMES = [name for name, (weight, _) in ACTIONS.items() for _ in range(weight)]


class Grids(RuleBasedStateMachine):
    """Two workers in two pools, two coordinators, two reapers."""

    client: redis.Redis
    scripts: Scripts = staticmethod(clocked)

    @initialize()
    def begin(self) -> None:
        self.client.flushall()
        self.scene = Scene(self.client, self.scripts)
        self.reapers = [Reaper(self.scene), Reaper(self.scene)]
        self.coordinators = [Coordinator(self.scene, "c1"), Coordinator(self.scene, "c2")]
        self.processes: dict[str, Process] = {}
        self.frozen: list[Process] = []
        self.tasks: list[TaskId] = []
        self.ended: dict[TaskId, str] = {}
        self.late: list[Call[Any]] = []
        self.born = 0
        for name in WORKERS:
            self._start(name, "1").renew()
        for reaper in self.reapers:
            reaper.begin()

    def _start(self, name: str, lock: str) -> Process:
        pool, models = WORKERS[name]
        self.born += 1
        process = Process(
            self.scene, WorkerId(name), f"{name}{self.born}", f"{name}-{lock}", pool, models
        )
        process.sent = self.late
        if process.hello() == "ok":
            self.processes[name] = process
        return process

    @rule(data=st.data())
    def something_happens(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(NAMES), "what")
        drawn = {arg: data.draw(kind, arg) for arg, kind in ACTIONS[name][1].items()}
        getattr(self, name)(**drawn)

    # What can be picked: a process that lives, or one that is frozen and comes back.

    def _process(self, pick: int) -> Process | None:
        everybody = [*self.processes.values(), *self.frozen]
        return everybody[pick % len(everybody)] if everybody else None

    def _run(self, pick: int) -> tuple[Process, TaskId] | None:
        runs = [
            (process, task)
            for process in [*self.processes.values(), *self.frozen]
            for task in process.held
        ]
        return runs[pick % len(runs)] if runs else None

    def _task(self, pick: int) -> TaskId | None:
        return self.tasks[-1 - pick % len(self.tasks)] if self.tasks else None

    # --- clients

    def submit(self, user: str, band: Band, model: str, own: str, streamed: bool, close: OnClose,
               forever: bool, pick: int) -> None:  # fmt: skip
        coordinator = self.coordinators[pick % 2]
        follower, task = coordinator.next(), TaskId(f"t{len(self.tasks)}")
        shared = shared_queue("cpu" if pick % 3 else "gpu", model)
        queue = own_queue(WORKERS[own][0], own) if own else shared
        asked = Submission(
            id=task, kind=Kind.CHAT, model=model, queue=Queue(queue), shared=shared,
            body=b"x" * (pick + 1), user=user, band=band, streamed=streamed, on_close=close,
            follower=follower, announce=pick % 2 == 0, max_recoveries=2,
            queue_timeout_ms=0 if forever else 300_000,
        )  # fmt: skip
        call = submit(self.scene.keys, asked)
        assert self.scene.do(call).status == "new"
        self.late.append(call)
        self.tasks.append(task)
        coordinator.follows[follower] = task

    def cancel(self, pick: int) -> None:
        task = self._task(pick)
        if task:
            self.scene.do(cancel(self.scene.keys, task, "by hand"))

    def listen(self, which: int, pick: int) -> None:
        task = self._task(pick)
        if task:
            self.coordinators[which].attach(task)

    def leave(self, which: int, pick: int) -> None:
        coordinator = self.coordinators[which]
        followers = sorted(coordinator.follows)
        if followers:
            self.late.append(coordinator.leave(followers[pick % len(followers)]))

    def coordinator_renews(self, which: int) -> None:
        self.coordinators[which].renew()

    def coordinator_dies(self, which: int) -> None:
        self.coordinators[which].follows.clear()

    # --- workers

    def claim(self, pick: int, lost: bool) -> None:
        process = self._process(pick)
        if process:
            process.claim(lost)
            self._bury(process)

    def renew(self, pick: int, lost: bool, state: WorkerState) -> None:
        process = self._process(pick)
        if process:
            process.renew(lost, state)
            self._bury(process)

    def say(self, pick: int, pieces: int, lost: bool) -> None:
        found = self._run(pick)
        if found and found[0].held[found[1]].outcome is None:
            found[0].say(found[1], pieces, lost)

    def finish(self, pick: int, outcome: Outcome, lost: bool, then: bool) -> None:
        found = self._run(pick)
        if found:
            found[0].finish(found[1], outcome, lost, then)
            self._bury(found[0])

    def restart(self, name: str, lock: str) -> None:
        """The old process is gone where it was on the same machine; else it goes on, frozen."""
        before = self.processes.pop(name, None)
        fresh = self._start(name, lock)
        if before and before.lock != fresh.lock:
            self.frozen.append(before)

    def crash(self, pick: int) -> None:
        process = self._process(pick)
        if process:
            process.over = True
            self._bury(process)

    def delete_hash(self, name: str) -> None:
        self.scene.truth.struck.add(name)
        self.client.delete(self.scene.keys.worker(name))

    def forget(self, name: str, force: bool) -> None:
        if self.scene.do(forget(self.scene.keys, WorkerId(name), force, "op")).status == "ok":
            self.scene.truth.struck.add(name)
            self.scene.truth.forgotten.add(name)

    def wish(self, name: str, state: str) -> None:
        self.scene.do(wish(self.scene.keys, WorkerId(name), Wish(state, 0, "op")))

    def _bury(self, process: Process) -> None:
        if process.over:
            self.frozen = [one for one in self.frozen if one is not process]
            if self.processes.get(process.name) is process:
                del self.processes[process.name]

    def late_copy(self, pick: int) -> None:
        """Something that was sent arrives once more; its answer goes nowhere."""
        if self.late:
            call = self.late[-1 - pick % len(self.late)]
            if call.name != "hello":
                self.scene.do(call)

    def marker_is_lost(self, pool: str) -> None:
        queue = shared_queue(pool, "m")
        if self.client.delete(self.scene.keys.wake(queue)):
            self.scene.unarmed.add(queue)

    # --- time and reapers

    def time_passes(self, ms: int) -> None:
        self.scene.tick(ms)

    def clock_steps(self, ms: int) -> None:
        self.scene.step(ms)

    def time_goes_by(self, passes: int, silent: int) -> None:
        """What the grid does most of the time; up to one process, as if it hung, does not renew."""
        for _ in range(passes):
            self.scene.tick(2_500)
            self.reapers[0].pass_once()
            for i, process in enumerate(list(self.processes.values())):
                if i != silent:
                    process.renew()
                    self._bury(process)
            for coordinator in self.coordinators:
                coordinator.renew()

    def reaper_begins(self, which: int) -> None:
        self.reapers[which].begin()

    def reaper_reads(self, which: int) -> None:
        self.reapers[which].read()

    def reaper_acts(self, which: int) -> None:
        """On what it read, however long ago that was."""
        self.reapers[which].act()

    # --- what must hold

    @invariant()
    def everything_holds(self) -> None:
        if hasattr(self, "scene"):
            self.scene.check()
            self._ends_are_final()

    def _ends_are_final(self) -> None:
        for task in self.tasks:
            state = self.scene.hash_of(task).get("state", "")
            if task in self.ended and state:
                assert state == self.ended[task], f"{task} was {self.ended[task]}, is {state}"
            if state in OVER:
                self.ended[task] = state

    def teardown(self) -> None:
        """With one healthy worker everything comes to its end."""
        if not hasattr(self, "scene"):
            return
        drain(self.scene)
        self.everything_holds()
        open_tasks = [
            t for t in self.tasks if self.scene.hash_of(t).get("state", "done") not in OVER
        ]
        assert not open_tasks, f"still open: {open_tasks}"


def drain(scene: Scene, models: tuple[str, ...] = ("m", "n"), step_ms: int = 1_000) -> None:
    """One healthy worker of every model joins, a reaper passes, nobody else lives."""
    helper = Process(scene, WorkerId("z"), "z1", "z", "cpu", models)
    reaper = Reaper(scene)
    assert helper.hello() == "ok"
    for _ in range(400):
        scene.tick(step_ms)
        helper.renew()
        reaper.pass_once()
        if not scene.client.exists(scene.keys.due):
            return
        helper.claim()
        for task in list(helper.held):
            helper.finish(task, DONE)
    raise AssertionError(f"still open: {scene.client.zrange(scene.keys.due, 0, -1)!r}")


def run(client: redis.Redis, examples: int, steps: int, scripts: Scripts = clocked) -> None:
    """Runs the machine on a server."""

    class Here(Grids):
        pass

    Here.client = client
    Here.scripts = staticmethod(scripts)
    try:
        run_state_machine_as_test(
            Here,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                derandomize="COGRID_TEST_SEED" not in os.environ,
                database=None,
                phases=[Phase.explicit, Phase.generate, Phase.shrink],
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        client.delete(CLOCK_KEY)


@pytest.fixture
def client(servers: Pool) -> Iterator[redis.Redis]:
    needs(KINDS[0])
    yield servers.get(KINDS[0].name).client
    servers.get(KINDS[0].name)


def test_every_order_holds(client: redis.Redis) -> None:
    run(client, examples=60, steps=50)


@pytest.mark.proof
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_every_order_holds_often(servers: Pool, kind: str) -> None:
    needs(next(one for one in KINDS if one.name == kind))
    run(servers.get(kind).client, examples=1_500, steps=60)
