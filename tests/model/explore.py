"""Visits every reachable state of a system, breadth first, so that a trace is a shortest one."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, NamedTuple, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)


class Kind(Enum):
    """What may be taken for granted about a step."""

    FAIR = "happens sooner or later once it stays possible"
    BUSY = "as FAIR, and follows at once: a circle of such steps would burn a processor"
    FAULT = "may happen or not: nothing may depend on it"


class Act(NamedTuple):
    """What a step does; the invariants read it, and a trace prints it."""

    verb: str
    who: str = ""
    task: int = -1
    detail: Hashable = None

    def __str__(self) -> str:
        task = "" if self.task < 0 else f"task{self.task}"
        detail = "" if self.detail is None else f"{self.detail}"
        return " ".join(part for part in (self.verb, self.who, task, detail) if part)


class Step(NamedTuple, Generic[S]):
    """One atomic change of the system."""

    act: Act
    after: S
    kind: Kind = Kind.FAIR


class System(Protocol[S]):
    """What the explorer needs to know of a model."""

    def start(self) -> S: ...

    def steps(self, state: S) -> Iterable[Step[S]]: ...

    def wrong(self, state: S) -> str | None:
        """The invariant that this state breaks."""

    def wrong_step(self, before: S, step: Step[S]) -> str | None:
        """The invariant that this step breaks, whatever the states look like."""

    def rests(self, state: S) -> bool:
        """Everything that was begun has ended and nothing is held for nobody."""


@dataclass(frozen=True, slots=True)
class Problem:
    kind: str  # "violation", "stuck" or "spins"
    says: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind}: {self.says}: " + " > ".join(self.trace)


@dataclass(frozen=True, slots=True)
class Outcome:
    states: int
    problem: Problem | None


class TooManyStatesError(Exception):
    """The bounds of a configuration let it grow beyond what its test may take."""


class _Graph(Generic[S]):
    """The states found so far. Numbers stand for them in the edges, to save memory."""

    def __init__(self, start: S) -> None:
        self.states: list[S] = [start]
        self.number: dict[S, int] = {start: 0}
        self.came: list[tuple[int, Act | None]] = [(-1, None)]
        self.back: list[list[int]] = [[]]
        self.busy: list[list[int]] = [[]]

    def add(self, state: S, origin: int, act: Act) -> tuple[int, bool]:
        found = self.number.get(state)
        if found is not None:
            return found, False
        new = len(self.states)
        self.number[state] = new
        self.states.append(state)
        self.came.append((origin, act))
        self.back.append([])
        self.busy.append([])
        return new, True

    def connect(self, origin: int, target: int, kind: Kind) -> None:
        if kind is Kind.FAULT or origin == target:
            return
        self.back[target].append(origin)
        if kind is Kind.BUSY:
            self.busy[origin].append(target)

    def trace(self, number: int) -> tuple[str, ...]:
        acts: list[str] = []
        origin, act = self.came[number]
        while act is not None:
            acts.append(str(act))
            origin, act = self.came[origin]
        return tuple(reversed(acts))


def explore(system: System[S], limit: int = 2_000_000) -> Outcome:
    """The first thing that is wrong with the system, or None for its problem."""
    graph = _Graph(system.start())
    problem = _violation(system, graph, limit) or _stuck(system, graph) or _spins(graph)
    return Outcome(len(graph.states), problem)


def _violation(system: System[S], graph: _Graph[S], limit: int) -> Problem | None:
    says = system.wrong(graph.states[0])
    if says:
        return Problem("violation", says, ())
    here = 0
    while here < len(graph.states):
        state = graph.states[here]
        for step in system.steps(state):
            says = system.wrong_step(state, step)
            there, new = graph.add(step.after, here, step.act)
            if not says and new:
                says = system.wrong(step.after)
            if says:
                return Problem("violation", says, (*graph.trace(here), str(step.act)))
            graph.connect(here, there, step.kind)
        here += 1
        if len(graph.states) > limit:
            raise TooManyStatesError(f"more than {limit} states")
    return None


def _stuck(system: System[S], graph: _Graph[S]) -> Problem | None:
    """A state from which no row of fair steps leads to rest.

    That is termination for a scheduler that sooner or later does whatever stays possible. It
    says nothing about how long it takes: the timed views and the real tests do.
    """
    good = [system.rests(state) for state in graph.states]
    wave = deque(number for number, rests in enumerate(good) if rests)
    while wave:
        for origin in graph.back[wave.popleft()]:
            if not good[origin]:
                good[origin] = True
                wave.append(origin)
    if all(good):
        return None
    first = good.index(False)
    says = f"{good.count(False)} states never come to rest, the first: {graph.states[first]}"
    return Problem("stuck", says, graph.trace(first))


def _spins(graph: _Graph[S]) -> Problem | None:
    """A circle of busy steps: what is left after all states without a successor are peeled off."""
    waits = [len(targets) for targets in graph.busy]
    origins: list[list[int]] = [[] for _ in graph.busy]
    for origin, targets in enumerate(graph.busy):
        for target in targets:
            origins[target].append(origin)
    wave = deque(number for number, count in enumerate(waits) if count == 0)
    while wave:
        for origin in origins[wave.popleft()]:
            waits[origin] -= 1
            if waits[origin] == 0:
                wave.append(origin)
    left = [number for number, count in enumerate(waits) if count]
    if not left:
        return None
    return Problem("spins", f"{len(left)} states on or before a busy circle", graph.trace(left[0]))
