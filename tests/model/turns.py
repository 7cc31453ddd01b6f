"""Whose turn it is in one queue, with users, bands, tasks that leave unserved and that return.

Two answers that the table leaves open are given here. A task that comes back stands before all
who wait in its band only if its score has no number of its own (`seq` 0): somebody else may
still wait at the very turn v. And an emptied queue may forget its turns: nobody has a claim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.explore import Act, Kind, Step

TURN = 1 << 25
BAND = 1 << 50
BANDS = 3  # interactive, background, batch


class Entry(NamedTuple):
    """A member of the queue; `paid`: it entered by submit, at a turn of its user."""

    score: int
    task: int
    user: str
    band: int
    paid: bool
    turn: int


class Turns(NamedTuple):
    """`turns:<queue>`: the last number, v of each band, f of each band and user."""

    seq: int = 0
    served: tuple[int, ...] = (0,) * BANDS
    nexts: frozenset[tuple[int, str, int]] = frozenset()

    def next_of(self, band: int, user: str) -> int:
        return next((f for b, u, f in self.nexts if (b, u) == (band, user)), 0)

    def with_next(self, band: int, user: str, f: int) -> Turns:
        """f is kept only while it says more than v does."""
        others = frozenset(n for n in self.nexts if n[:2] != (band, user))
        if f > self.served[band] + 1:
            others = others | {(band, user, f)}
        return self._replace(nexts=others)


class Passed(NamedTuple):
    """How many tasks of another user in its band were served while a newcomer's task waited."""

    task: int
    band: int
    by: str
    times: int


class World(NamedTuple):
    turns: Turns = Turns()
    queue: tuple[Entry, ...] = ()  # in the order of their scores
    running: frozenset[Entry] = frozenset()
    passed: frozenset[Passed] = frozenset()
    submitted: int = 0
    leaves: frozenset[tuple[str, int]] = frozenset()  # how many of each user left unserved
    left: int = 0
    returned: int = 0


def score(band: int, turn: int, seq: int) -> int:
    return band * BAND + turn * TURN + seq % TURN


class Queue:
    def __init__(
        self,
        mutants: frozenset[str] = frozenset(),
        *,
        users: str = "XYN",
        bands: int = 2,
        submits: int = 5,
        leaves: int = 1,
        returns: int = 1,
        strict_order: bool = False,
        forgets: bool = True,
    ) -> None:
        self.mutants = mutants
        self.users = users
        self.bands = bands
        self.submits = submits
        self.leaves = leaves
        self.returns = returns
        self.strict_order = strict_order
        self.forgets = forgets

    def start(self) -> World:
        return World()

    def steps(self, state: World) -> Iterator[Step[World]]:
        if state.submitted < self.submits:
            for user in self.users:
                for band in range(self.bands):
                    act = Act("submit", user, state.submitted, f"band {band}")
                    yield Step(act, self.submit(state, user, band), Kind.FAULT)
        if state.queue:
            yield Step(Act("claim", state.queue[0].user, state.queue[0].task), self.claim(state))
        for entry in state.queue if state.left < self.leaves else ():
            yield Step(Act("leave", entry.user, entry.task), self.leave(state, entry), Kind.FAULT)
        for entry in state.running if state.returned < self.returns else ():
            act = Act("return", entry.user, entry.task)
            yield Step(act, self.come_back(state, entry), Kind.FAULT)

    def submit(self, world: World, user: str, band: int) -> World:
        turns = world.turns._replace(seq=world.turns.seq + 1)
        v, f = turns.served[band], turns.next_of(band, user)
        turn = max(v + 1, f)
        if "order_of_arrival" in self.mutants:
            turn = 0
        if "newcomer_starts_at_one" in self.mutants:
            turn = max(1, f)
        paid_until = turn if "f_not_moved_on" in self.mutants else turn + 1
        entry = self._entry(turns, world.submitted, user, band, turn, turns.seq)
        alone = not any((e.user, e.band) == (user, band) for e in world.queue)
        others = [by for by in self.users if by != user and alone]
        passed = world.passed | {Passed(entry.task, band, by, 0) for by in others}
        return world._replace(
            turns=turns.with_next(band, user, paid_until),
            queue=_in_order(world.queue, entry),
            passed=passed,
            submitted=world.submitted + 1,
        )

    def _entry(self, turns: Turns, task: int, user: str, band: int, turn: int, seq: int) -> Entry:
        of_band = 0 if "band_ignored" in self.mutants else band
        return Entry(score(of_band, turn, seq), task, user, band, seq > 0, turn)

    def claim(self, world: World) -> World:
        head = world.queue[0]
        turns = world.turns
        if "v_not_moved_on" not in self.mutants:
            served = list(turns.served)
            served[head.band] = head.turn
            turns = turns._replace(served=tuple(served))
        f = turns.next_of(head.band, head.user)
        if "f_dropped_early" in self.mutants:
            f = 0
        if "f_never_dropped" not in self.mutants:
            turns = turns.with_next(head.band, head.user, f)
        queue = world.queue[1:]
        return world._replace(
            turns=self._kept(turns, queue),
            queue=queue,
            running=self._may_return(world, world.running | {head}),
            passed=_passed_by(world.passed, head),
        )

    def _kept(self, turns: Turns, queue: tuple[Entry, ...]) -> Turns:
        return Turns() if self.forgets and not queue else turns

    def leave(self, world: World, entry: Entry) -> World:
        """Cancelled, expired or moved: its user gets the turn back."""
        turns = world.turns
        f = turns.next_of(entry.band, entry.user)
        if f and "leaving_keeps_f" not in self.mutants:
            turns = turns.with_next(entry.band, entry.user, f - 1)
        count = dict(world.leaves).get(entry.user, 0)
        leaves = world.leaves - {(entry.user, count)} | {(entry.user, count + 1)}
        queue = tuple(other for other in world.queue if other != entry)
        return world._replace(
            turns=self._kept(turns, queue),
            queue=queue,
            leaves=leaves,
            passed=frozenset(p for p in world.passed if p.task != entry.task),
            left=world.left + 1,
        )

    def come_back(self, world: World, entry: Entry) -> World:
        """After a recovery, a hand-back, a back-off, or out of another queue: at turn v."""
        turns = world.turns
        turn, seq = turns.served[entry.band], 0
        if "returns_at_the_end" in self.mutants:
            turn = max(turn + 1, turns.next_of(entry.band, entry.user))
        if "returns_with_a_new_number" in self.mutants:
            seq = turns.seq + 1
            turns = turns._replace(seq=seq)
        back = self._entry(turns, entry.task, entry.user, entry.band, turn, seq)
        after = world._replace(
            turns=turns,
            queue=_in_order(world.queue, back._replace(paid=False)),
            returned=world.returned + 1,
        )
        return after._replace(running=self._may_return(after, world.running - {entry}))

    def _may_return(self, world: World, running: frozenset[Entry]) -> frozenset[Entry]:
        return running if world.returned < self.returns else frozenset()

    def wrong(self, state: World) -> str | None:
        """Nobody is remembered who has nothing waiting; and a newcomer, who enters at v + 1, waits
        for at most two tasks of anybody else: one of the turn that is being served, one of the
        next. A turn that was given back may be used once more."""
        for band, user, f in state.turns.nexts:
            if not any((e.band, e.user) == (band, user) for e in state.queue):
                return f"keeps f={f} of {user}, who has nothing waiting in band {band}"
        leaves = dict(state.leaves)
        for passed in state.passed:
            if passed.times > 2 + leaves.get(passed.by, 0):
                return f"task{passed.task} waited for {passed.times} tasks of {passed.by}"
        return None

    def wrong_step(self, before: World, step: Step[World]) -> str | None:
        if step.act.verb != "claim":
            return None
        head = before.queue[0]
        if head.band != min(entry.band for entry in before.queue):
            return f"band {head.band} before a more urgent one"
        mates = [entry for entry in before.queue if entry.band == head.band]
        if head.paid and not all(entry.paid for entry in mates):
            return f"task{head.task} before one that came back"
        older = [e.task for e in mates if e.paid and e.user == head.user and e.task < head.task]
        if head.paid and older and (self.strict_order or not before.left):
            return f"task{head.task} of {head.user} before {older} of the same user"
        return None

    def rests(self, state: World) -> bool:
        return not state.queue


def _in_order(queue: tuple[Entry, ...], entry: Entry) -> tuple[Entry, ...]:
    return tuple(sorted((*queue, entry)))


def _passed_by(passed: frozenset[Passed], head: Entry) -> frozenset[Passed]:
    """What came back goes first by right, so it does not count as passing."""
    mover = (head.band, head.user) if head.paid else None
    return frozenset(
        p._replace(times=p.times + 1) if (p.band, p.by) == mover else p
        for p in passed
        if p.task != head.task
    )
