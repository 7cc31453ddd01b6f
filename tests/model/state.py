"""The values of the main view: what Redis holds, what the processes know, what may still happen.

Left out on purpose: `grid:due` stands for "the guards allow it" here (`partial` has it as a
key), bodies and retention do not touch the table, and an answer of "already" is the same to
a worker as one of "lost", so that the last token of an ended task need not be kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

TERMINAL = frozenset(("done", "failed", "dead", "cancelled", "expired"))
END = 99  # the number of an `end` in its run: above that of every text


class Token(NamedTuple):
    """`<instance>:<k>:<i>`, with the worker's name in front for the reader of a trace."""

    worker: str
    instance: int
    claim: int
    place: int


Pairs = frozenset[tuple[int, Token]]


class Line(NamedTuple):
    """One entry of `task:<id>:out`: text number n of a run, or its end."""

    run: int
    n: int
    token: Token | None = None
    end: str = ""


class Task(NamedTuple):
    """`task:<id>`; `queues` is what the queues really hold, so that a mutant can place it twice."""

    state: str = "absent"
    queues: frozenset[str] = frozenset()
    token: Token | None = None
    attempts: int = 0
    recoveries: int = 0
    run: int = 0
    texts: int = 0
    log: tuple[Line, ...] = ()
    avoid: str = ""


class Row(NamedTuple):
    """`worker:<id>` with its lease and its two sets, which outlive the hash."""

    known: bool = False
    instance: int = 0
    lock: int = 0
    state: str = ""
    lease: bool = False
    tasks: frozenset[int] = frozenset()
    revoked: frozenset[Token] = frozenset()
    last_claim: int = 0
    wanted: str = "run"  # or "drain": the operator's wish


class Run(NamedTuple):
    """A task in a worker's engine; `phase` is "run", "lost", or the finish it keeps sending."""

    task: int
    token: Token
    next: int = 1
    phase: str = "run"


class Process(NamedTuple):
    """A worker process; `mode` is "off", "boot" (first hello), "again" (hello anew), "up"
    or "leaving" (SIGTERM)."""

    mode: str = "off"
    instance: int = 0
    claim: int = 0
    settled: int = 0
    runs: frozenset[Run] = frozenset()


class Reader(NamedTuple):
    """The client's stream at its coordinator: the last id that was read, the text passed on."""

    open: bool = True
    last: tuple[int, int] = (0, -1)
    seen: tuple[Line, ...] = ()


class Hello(NamedTuple):
    """What a worker says of itself; a new process is not ready and names no claim and no pairs."""

    instance: int
    lock: int
    ready: bool = False
    claim: int = 0
    pairs: Pairs = frozenset()


class Late(NamedTuple):
    """A call that is still under way although its sender has gone on."""

    call: str
    worker: str = ""
    instance: int = 0
    claim: int = 0
    pairs: Pairs = frozenset()
    task: int = 0
    token: Token | None = None
    n: int = 0
    hello: Hello | None = None


class Budget(NamedTuple):
    """How often each thing that nobody promises may still happen."""

    crash: int = 0
    start: int = 0
    lost_reply: int = 0
    late_copy: int = 0
    stale_reap: int = 0
    delete: int = 0
    zombie: int = 0
    hand_back: int = 0
    freeze: int = 0
    cancel: int = 0
    expire: int = 0
    forget: int = 0
    drain: int = 0
    leave: int = 0
    failover: int = 0


NO_FAULTS = Budget()


class World(NamedTuple):
    tasks: tuple[Task, ...]
    rows: tuple[Row, ...]
    processes: tuple[Process, ...]
    budget: Budget
    late: Late | None = None
    replica: tuple[tuple[Task, ...], tuple[Row, ...]] | None = None
    reader: Reader | None = None
    hold: str = "over"  # "unseen" (a new server, no pass has begun), "on", "over"
    epoch: int = 0  # how many servers there have been before this one


@dataclass(frozen=True, slots=True)
class Config:
    """The bounds of one exploration. A process is a name and the lock file that it holds."""

    tasks: int = 1
    slots: tuple[int, ...] = (1, 1)
    processes: tuple[tuple[str, int], ...] = (("A", 1), ("B", 1))
    attempts: int = 1
    recoveries: int = 1
    texts: int = 1
    stream: bool = True
    attempts_fail: bool = False
    follows: bool = False
    submit_to: tuple[str, ...] = ("pool A",)
    budget: Budget = NO_FAULTS


@dataclass(frozen=True, slots=True)
class Grid:
    """A configuration, and the rules that are left out of it."""

    config: Config
    mutants: frozenset[str] = frozenset()

    def lacks(self, rule: str) -> bool:
        return rule in self.mutants

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted({name for name, _ in self.config.processes}))

    def slots(self, name: str) -> int:
        return self.config.slots[self.index(name)]

    def index(self, name: str) -> int:
        return ord(name) - ord("A")

    def row(self, world: World, name: str) -> Row:
        return world.rows[self.index(name)]

    def free(self, world: World, name: str) -> int:
        """Slots that a claim may fill: what was taken away but runs on still fills one."""
        row = self.row(world, name)
        revoked = 0 if self.lacks("revoked_not_counted") else len(row.revoked)
        return max(0, self.slots(name) - len(row.tasks) - revoked)

    def serves(self, world: World, name: str) -> bool:
        row = self.row(world, name)
        return row.known and row.lease and row.state == "ready"

    def held(self, world: World) -> bool:
        """Deadlines count for nothing yet: the hold runs, or no pass has begun on this server."""
        unseen = world.hold == "unseen" and not self.lacks("hold_only_after_begin_pass")
        return world.hold == "on" or unseen


def own(name: str) -> str:
    return f"own {name}"


def pool(name: str) -> str:
    """Each worker of this view has a pool to itself: two pools, one worker in each."""
    return f"pool {name}"


def with_task(world: World, number: int, task: Task) -> World:
    tasks = (*world.tasks[:number], task, *world.tasks[number + 1 :])
    return world._replace(tasks=tasks)


def with_row(world: World, index: int, row: Row) -> World:
    rows = (*world.rows[:index], row, *world.rows[index + 1 :])
    return world._replace(rows=rows)


def with_process(world: World, index: int, process: Process) -> World:
    processes = (*world.processes[:index], process, *world.processes[index + 1 :])
    return world._replace(processes=processes)


def spend(world: World, fault: str) -> World | None:
    """The world in which that fault may happen once less; None when it may not happen at all."""
    left: int = getattr(world.budget, fault)
    if left == 0:
        return None
    return world._replace(budget=world.budget._replace(**{fault: left - 1}))
