"""Markers: a task must not lie while a worker sleeps, and no marker may be passed round for ever.

One shared queue. Worker A has a long run that may never end and a free slot, B is idle. A task
may be `solo`: only a worker that runs nothing takes it. A may die with a marker in its hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.explore import Act, Kind, Step

SLOTS = 2


class World(NamedTuple):
    queue: tuple[str, ...] = ()  # "plain" or "solo", in order
    armed: bool = False
    phases: tuple[str, ...] = ("blocks", "blocks")  # blocks, awake, dead
    used: tuple[int, ...] = (1, 0)  # slots; a solo run uses both
    submits: int = 3
    crashes: int = 1


class Wake:
    def __init__(self, mutants: frozenset[str] = frozenset()) -> None:
        self.mutants = mutants

    def start(self) -> World:
        return World()

    def steps(self, state: World) -> Iterator[Step[World]]:
        if state.submits:
            yield from (_submit(state, kind) for kind in ("plain", "solo"))
        if state.queue and not state.armed and "reaper_no_rearm" not in self.mutants:
            yield Step(Act("reaper arms"), state._replace(armed=True))
        for which, phase in enumerate(state.phases):
            if phase == "blocks":
                yield from self._blocked(state, which)
            elif phase == "awake":
                yield self._claim(state, which)
        if state.crashes and state.phases[0] == "awake":
            after = _with(state, 0, "dead", 0)._replace(crashes=0)
            yield Step(Act("crash", "A"), after, Kind.FAULT)

    def _blocked(self, world: World, which: int) -> Iterator[Step[World]]:
        name, used = "AB"[which], world.used[which]
        if world.armed and used < SLOTS:
            popped = _with(world, which, "awake", used)._replace(armed=False)
            yield Step(Act("pops", name), popped, Kind.BUSY)
        if "timeout_no_claim" not in self.mutants:
            yield Step(Act("block ends", name), _with(world, which, "awake", used))
        for size in {1, SLOTS} if used else ():
            if size <= used:
                after = _with(world, which, "awake", used - size)
                yield Step(Act("finish", name), after, Kind.FAULT)

    def _claim(self, world: World, which: int) -> Step[World]:
        """Arms again only after it took something: else two workers would wake each other."""
        name, used = "AB"[which], world.used[which]
        size = _takes(world, which)
        if not size:
            spins = "rearm_when_nothing_taken" in self.mutants and bool(world.queue)
            after = _with(world, which, "blocks", used)
            after = after._replace(armed=world.armed or spins)
            return Step(Act("claims nothing", name), after, Kind.BUSY)
        left = world.queue[1:]
        rearms = bool(left) and "claim_never_rearms" not in self.mutants
        after = _with(world, which, "blocks", used + size)
        after = after._replace(queue=left, armed=world.armed or rearms)
        return Step(Act("claims", name, detail=world.queue[0]), after, Kind.BUSY)

    def wrong(self, state: World) -> str | None:
        return None

    def wrong_step(self, before: World, step: Step[World]) -> str | None:
        return None

    def rests(self, state: World) -> bool:
        """Nobody who lives could take the head."""
        return not any(
            phase != "dead" and _takes(state, which) for which, phase in enumerate(state.phases)
        )


def _submit(world: World, kind: str) -> Step[World]:
    after = world._replace(queue=(*world.queue, kind), armed=True, submits=world.submits - 1)
    return Step(Act("submit", detail=kind), after, Kind.FAULT)


def _takes(world: World, which: int) -> int:
    """The slots that the head would use there; 0: it may not be taken."""
    used = world.used[which]
    if not world.queue or used == SLOTS:
        return 0
    if world.queue[0] == "solo":
        return SLOTS if used == 0 else 0
    return 1


def _with(world: World, which: int, phase: str, used: int) -> World:
    phases, slots = list(world.phases), list(world.used)
    phases[which], slots[which] = phase, used
    return world._replace(phases=tuple(phases), used=tuple(slots))
