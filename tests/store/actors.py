"""Who calls the transitions: worker processes, reapers and coordinators, each with no more than it
can know, one after the other, by the scene's clock. What they say can be lost, repeated or late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cogrid.model.names import (
    Queue,
    TaskId,
    Token,
    WorkerId,
    own_queue,
    queue_worker,
    shared_queue,
)
from cogrid.model.worker import Offer, WorkerState
from cogrid.store.clients import attach, detach, renew_clients
from cogrid.store.passes import (
    Acted,
    begin_pass,
    drop_held,
    drop_queued,
    expire,
    fail_homeless,
    move,
    promote,
    reap,
    stamp_homes,
    tend,
)
from cogrid.store.script import Call
from cogrid.store.tasks import (
    Claim,
    Claimed,
    Finished,
    Handed,
    Outcome,
    append,
    cancel_orphan,
    claim,
    finish,
)
from cogrid.store.workers import Held, Life, Who, hello, renew
from tests.store.checker import Grid
from tests.store.scene import Deeds, Scene
from tests.store.world import LIMITS, REPLICATION_ID, RUN_ID

T = TypeVar("T")

LEASE_MS = 20_000
ALLOWED_MS = 30_000
PASS_MS = 3_000


@dataclass(slots=True)
class Run:
    """A run as its process knows it. progress_ms: when it last got on (elapsed time)."""

    handed: Handed
    progress_ms: int
    said: int = 0
    outcome: Outcome | None = None


@dataclass
class Process:
    """One worker process beside one engine. k, asked, settled: its claims; held: what it runs."""

    world: Scene
    name: WorkerId
    instance: str
    lock: str
    pool: str
    models: tuple[str, ...]
    slots: int = 2
    state: WorkerState = WorkerState.STARTING
    k: int = 0
    settled: int = 0
    asked: Claim | None = None
    held: dict[TaskId, Run] = field(default_factory=dict)
    over: bool = False
    sent: list[Call[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.deeds = self.world.truth.deeds[self.instance] = Deeds(self.name)
        self.world.truth.models[self.name] = self.models

    def do(self, call: Call[T]) -> T:
        self.sent.append(call)
        return self.world.do(call)

    @property
    def queues(self) -> tuple[Queue, ...]:
        shared = tuple(shared_queue(self.pool, model) for model in self.models)
        return (own_queue(self.pool, self.name), *shared)

    def hello(self) -> str:
        """Takes the name; a refused process ends, as the program does."""
        who = Who(
            self.name, self.instance, self.lock, self.lock, self.pool, self.slots, "1", "demo"
        )
        pairs = tuple((run.handed.id, run.handed.token) for run in self.held.values())
        welcome = self.do(hello(self.world.keys, who, LEASE_MS, self.k, pairs))
        if welcome.status == "ok":
            self.deeds.renewed_ms = self.world.elapsed_ms
        else:
            self.over = True
        return welcome.status

    def renew(self, lost: bool = False, state: WorkerState = WorkerState.READY) -> None:
        """Says what it runs, and lets go of what is no longer its own. lost: the answer is."""
        now = self.world.elapsed_ms
        runs = tuple(
            Held(run.handed.id, run.handed.token, now - run.progress_ms, ALLOWED_MS)
            for run in self.held.values()
        )
        offers = tuple(Offer(model) for model in self.models)
        life = Life(state, offers, (), self.slots, 0, self.settled, runs, LEASE_MS)
        got = self.do(renew(self.world.keys, self.name, self.instance, self.lock, life))
        if got.status == "ok":
            if state is not self.state:
                self.deeds.freed_ms = now
            self.state, self.deeds.renewed_ms = state, now
        if lost:
            return
        if got.status in ("unknown", "again"):
            self.hello()
        elif got.status == "superseded":
            self.over = True
        for task in got.lost:
            self._let_go(task)
        for task, token in got.unknown_runs:
            self.do(finish(self.world.keys, self.name, task, token, Outcome("back")))

    def _let_go(self, task: TaskId) -> None:
        """What was lost under one token may be held under a newer one."""
        run = self.held.pop(task)
        self.do(finish(self.world.keys, self.name, task, run.handed.token, Outcome("lost")))

    def _next(self) -> Claim:
        if self.asked is None:
            self.k += 1
            named = tuple((queue, False) for queue in self.queues)
            free = max(0, self.slots - len(self.held))
            self.asked = Claim(self.name, self.instance, self.k, free, named, ALLOWED_MS)
        return self.asked

    def claim(self, lost: bool = False) -> None:
        """Asks for work; an answer that was lost is asked for again under the same number."""
        asked = self._next()
        for queue in self.queues[1:]:
            if self.world.client.delete(self.world.keys.wake(queue)):
                self.world.unarmed.add(queue)
        got = self.do(claim(self.world.keys, asked))
        if got.status in ("ok", "not_ready"):
            self.deeds.polled_ms = self.world.elapsed_ms
        if not lost:
            self._take(got)

    def _take(self, got: Claimed) -> None:
        self.asked, self.settled = None, self.k
        for handed in got.tasks:
            self.held[handed.id] = Run(handed, self.world.elapsed_ms)
        if got.status == "unknown":
            self.hello()
        elif got.status == "superseded":
            self.over = True

    def say(self, task: TaskId, pieces: int, lost: bool = False) -> None:
        """Appends text; after a lost answer the same pieces go again."""
        run = self.held[task]
        texts = tuple(f'{{"content":"{run.said + i}"}}'.encode() for i in range(1, pieces + 1))
        token = run.handed.token
        call = append(self.world.keys, task, token, run.said + 1, texts, ALLOWED_MS)
        got = self.do(call)
        run.progress_ms = self.world.elapsed_ms
        if lost:
            return
        if got.status == "ok":
            run.said = got.n
        else:
            assert got.status == "lost", f"{self.instance} knows what it said: {got}"
            self._let_go(task)

    def finish(self, task: TaskId, outcome: Outcome, lost: bool = False,
               then: bool = False) -> Finished:  # fmt: skip
        """Ends a run as it was decided first, however often it must be said."""
        run = self.held[task]
        run.outcome = run.outcome or outcome
        asked = self._next() if then else None
        call = finish(self.world.keys, self.name, task, run.handed.token, run.outcome, asked)
        got = self.do(call)
        if got.status == "ok":
            self.deeds.freed_ms = self.world.elapsed_ms
        if got.claimed and got.claimed.status in ("ok", "not_ready"):
            self.deeds.polled_ms = self.world.elapsed_ms
        if not lost:
            assert got.status != "gap", f"{self.instance} knows what it said: {got}"
            del self.held[task]
            if got.claimed:
                self._take(got.claimed)
        return got


@dataclass
class Reaper:
    """Reads, and acts on what it read: at once, or later when all of it may have changed."""

    world: Scene
    acts: list[Call[Any]] = field(default_factory=list)

    def pass_once(self) -> None:
        """One whole pass."""
        self.begin()
        self.read()
        self.act()

    def begin(self) -> None:
        """Begins a pass; the scripts decide what that allows."""
        self.world.do(begin_pass(self.world.keys, RUN_ID, REPLICATION_ID, LIMITS))

    def read(self) -> None:
        """Decides on what stands now."""
        grid = Grid(self.world.dump(), self.world.now_ms)
        self.acts = [*self._due(grid), *self._of_workers(grid), *self._of_queues(grid)]

    def act(self) -> None:
        """Does what was decided, and judges each outcome by what really happened."""
        acts, self.acts = self.acts, []
        for call in acts:
            got = self.world.do(call)
            if isinstance(got, Acted):
                self.world.judge(call, got)
        for call in acts:
            if call.name == "tend":
                self.world.unarmed -= set(call.args[3 : 3 + int(call.args[2])])

    def _reap(self, task: str, token: str, queue: str) -> Call[Acted]:
        return reap(self.world.keys, TaskId(task), Token(token), Queue(queue), "broken", "spent",
                    RUN_ID, LIMITS)  # fmt: skip

    def _due(self, grid: Grid) -> Iterator[Call[Any]]:
        keys = self.world.keys
        for task, at in grid.hash("grid:due").items():
            told = grid.hash(f"task:{task}")
            if float(at) > grid.now_ms or not told:
                continue
            if told["state"] == "running":
                yield self._reap(task, told["token"], shared_of(told))
            elif told["state"] == "waiting":
                yield promote(keys, TaskId(task), Queue(shared_of(told)))
            else:
                yield expire(keys, TaskId(task), "too long", RUN_ID, LIMITS)
        for task, until in grid.hash("grid:clients").items():
            if float(until) <= grid.now_ms:
                yield cancel_orphan(keys, TaskId(task), "nobody listens", RUN_ID, PASS_MS)

    def _of_workers(self, grid: Grid) -> Iterator[Call[Any]]:
        keys = self.world.keys
        homes: set[str] = set()
        for worker, lease in grid.hash("grid:workers").items():
            told = grid.hash(f"worker:{worker}")
            dead = float(lease) < grid.now_ms
            if told and not dead and told["state"] == "ready":
                homes.update(self.world.truth.models[worker])
            sets = (grid.held.get(worker, ()), grid.chores.get(worker, ()))
            held = tuple(TaskId(task) for ids in sets for task in ids)
            if dead and held:
                yield drop_held(keys, WorkerId(worker), held)
            for task in held:
                run = grid.hash(f"task:{task}")
                if dead and run:
                    yield self._reap(task, run.get("token", ""), shared_of(run))
        yield stamp_homes(keys, tuple(sorted(homes)))
        for waiting, hash_ in grid.tasks.items():
            if hash_["state"] in ("pending", "waiting") and hash_["model"] not in homes:
                yield fail_homeless(keys, TaskId(waiting), "no home", RUN_ID, LIMITS)

    def _of_queues(self, grid: Grid) -> Iterator[Call[Any]]:
        keys = self.world.keys
        for queue, ids in grid.queues.items():
            tasks = tuple(TaskId(task) for task in ids)
            yield drop_queued(keys, Queue(queue), tasks)
            # Of a shared queue only the head: pools would pass everything to and fro.
            for task in tasks if queue_worker(queue) else tasks[:1]:
                to = Queue(shared_of(grid.hash(f"task:{task}"), other_than=queue))
                yield move(keys, task, Queue(queue), to, "evidence", RUN_ID, LIMITS)
        stale = tuple(TaskId(task) for task in grid.hash("grid:due"))
        queues = sorted({*grid.queues, *grid.hash("grid:queues")})
        yield tend(keys, tuple(Queue(queue) for queue in queues), stale)


def shared_of(told: dict[str, str], other_than: str = "") -> str:
    """A shared queue of the task's model: of its pool, or of the other pool."""
    pool, model = told.get("queue", "tasks:cpu").split(":")[1], told.get("model", "m")
    same = shared_queue(pool, model)
    return shared_queue("gpu" if pool == "cpu" else "cpu", model) if same == other_than else same


@dataclass
class Coordinator:
    """Listens on behalf of clients, one name a connection."""

    world: Scene
    name: str
    n: int = 0
    follows: dict[str, TaskId] = field(default_factory=dict)

    def next(self) -> str:
        """A connection's name, never used again."""
        self.n += 1
        return f"{self.name}:{self.n}"

    def attach(self, task: TaskId) -> None:
        """One more connection listens to a task."""
        follower = self.next()
        self.follows[follower] = task
        self.world.do(attach(self.world.keys, task, follower, 60_000))

    def leave(self, follower: str) -> Call[Any]:
        """A connection closes."""
        call = detach(self.world.keys, self.follows.pop(follower), follower)
        self.world.do(call)
        return call

    def renew(self) -> None:
        """Says that it still listens."""
        self.world.do(renew_clients(self.world.keys, tuple(set(self.follows.values())), 60_000))
