"""With time, in units of 5 s: a worker that does its duty is never called a ghost.

Its duty: claim and renew once in every unit, whatever its state. Then it may be full, drained,
quarantined, alone with a solo run, or back from an outage of Redis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.explore import Act, Step

GHOST_AFTER = 3  # 15 s
LEASE = 4  # 20 s
LONG = LEASE + 1  # ages beyond it make no difference
RULES = frozenset(("solo", "quarantine"))


class World(NamedTuple):
    state: str = "ready"
    running: int = 0
    revoked: int = 0
    since_poll: int = LONG
    since_freed: int = LONG
    since_registered: int = 0
    since_beat: int = 0
    polled: bool = False  # in this unit
    renewed: bool = True
    down: bool = False  # Redis cannot be reached
    hold: int = 0  # units of it that are left
    solo: bool = False
    quarantined: bool = False
    oldest: int = -1  # age of the oldest task that waits for this worker; -1: none


Steps = Iterator[Step[World]]


class Ghost:
    """`without` leaves out situations, to show what each field is for under a weaker duty."""

    def __init__(
        self,
        mutants: frozenset[str] = frozenset(),
        *,
        slots: int = 2,
        backlog: bool = False,
        without: frozenset[str] = frozenset(),
    ) -> None:
        self.mutants = mutants
        self.slots = slots
        self.backlog = backlog
        self.situations = RULES - without

    def start(self) -> World:
        """Just ready, not yet polled: two stamps say so, either is enough."""
        return World(
            since_registered=LONG if "no_registered_stamp" in self.mutants else 0,
            since_freed=LONG if "ready_no_freed" in self.mutants else 0,
        )

    def steps(self, state: World) -> Steps:
        if state.down:
            yield Step(Act("redis up"), self._up(state))
        else:
            yield from self._worker(state)
            yield from self._operator(state)
            yield Step(Act("redis down"), state._replace(down=True))
            if self.backlog and state.oldest < 0:
                yield Step(Act("a task waits"), state._replace(oldest=0))
        if state.down or (state.renewed and (state.polled or not self._polls(state))):
            yield Step(Act("5 s"), _later(state))

    def _up(self, world: World) -> World:
        hold = 0 if "no_hold_for_ghosts" in self.mutants else LEASE
        return world._replace(down=False, hold=hold, polled=False, renewed=False)

    def _polls(self, world: World) -> bool:
        """The duty. The mutants claim only when there could be something to take."""
        if "poll_only_when_it_could_take" in self.mutants:
            free = 0 if world.solo else self._free(world)
            return world.state == "ready" and free > 0 and not world.quarantined
        return world.state == "ready" or "drain_no_poll" not in self.mutants

    def _free(self, world: World) -> int:
        return self.slots - world.running - world.revoked

    def _worker(self, world: World) -> Steps:
        yield Step(Act("renew"), world._replace(renewed=True, since_beat=0))
        if self._polls(world):
            yield from self._claims(world._replace(polled=True, since_poll=0))
        if world.running:
            freed = world.since_freed if "finish_no_freed" in self.mutants else 0
            after = world._replace(running=world.running - 1, since_freed=freed, solo=False)
            yield Step(Act("finish"), after)
            lost = world._replace(running=world.running - 1, revoked=world.revoked + 1)
            yield Step(Act("cancel"), lost)
        if world.revoked:
            freed = world.since_freed if "confirm_no_freed" in self.mutants else 0
            solo = world.solo and world.running > 0
            after = world._replace(revoked=world.revoked - 1, since_freed=freed, solo=solo)
            yield Step(Act("confirm"), after)

    def _claims(self, world: World) -> Steps:
        yield Step(Act("claim, nothing"), world)
        if world.state != "ready" or world.quarantined or world.solo or self._free(world) <= 0:
            return
        taken = world._replace(running=world.running + 1, oldest=-1)
        yield Step(Act("claim"), taken)
        if "solo" in self.situations and self._free(world) == self.slots:
            yield Step(Act("claim solo"), taken._replace(solo=True))

    def _operator(self, world: World) -> Steps:
        if world.state == "ready":
            yield Step(Act("drain"), world._replace(state="draining"))
        else:
            freed = world.since_freed if "ready_no_freed" in self.mutants else 0
            yield Step(Act("undrain"), world._replace(state="ready", since_freed=freed))
        if "quarantine" in self.situations:
            after = world._replace(quarantined=not world.quarantined)
            yield Step(Act("breaker"), after)

    def wrong(self, state: World) -> str | None:
        if state.down or state.hold or not self._called_ghost(state):
            return None
        return f"a living worker is called a ghost: {state}"

    def _called_ghost(self, world: World) -> bool:
        if world.since_beat >= LEASE:
            return False
        if "age_rule" in self.mutants:
            return world.oldest > GHOST_AFTER
        idle = min(world.since_poll, world.since_freed, world.since_registered)
        return world.state == "ready" and self._free(world) > 0 and idle > GHOST_AFTER

    def wrong_step(self, before: World, step: Step[World]) -> str | None:
        return None

    def rests(self, state: World) -> bool:
        return True  # only safety is asked here


def _later(world: World) -> World:
    return world._replace(
        since_poll=min(LONG, world.since_poll + 1),
        since_freed=min(LONG, world.since_freed + 1),
        since_registered=min(LONG, world.since_registered + 1),
        since_beat=min(LONG, world.since_beat + 1),
        oldest=-1 if world.oldest < 0 else min(LONG, world.oldest + 1),
        hold=world.hold if world.down else max(0, world.hold - 1),
        polled=False,
        renewed=False,
    )
