"""Who wants an answer. Three connections on two coordinators follow one task; their calls
arrive in any order, late, or twice, and one coordinator may die. The task itself just stays open.

`close`: cancelled when the last one leaves. `key`: has a minute without a listener. `post`:
submitted without a client's lease, so that nobody's coming and going may end it; a submission that
is never acknowledged is withdrawn, also where it arrives after that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.explore import Act, Kind, Step

COORDINATOR = ("c1", "c1", "c2")
WANTS = ("asking", "following")


class World(NamedTuple):
    task: str = "absent"  # absent, open, cancelled
    names: frozenset[str] = frozenset()  # the followers in the hash
    lease: bool = False  # the task stands in grid:clients
    known: bool = False  # its id was answered, so that others can attach
    phases: tuple[str, ...] = ("new", "new", "new")  # of each connection
    calls: frozenset[tuple[str, int]] = frozenset()  # under way: (call, connection)
    void: bool = False  # the submission has been withdrawn
    alive: frozenset[str] = frozenset(("c1", "c2"))
    copies: int = 1
    lost: int = 1


Steps = Iterator[Step[World]]


class Clients:
    def __init__(self, mode: str, mutants: frozenset[str] = frozenset()) -> None:
        self.mode = mode
        self.mutants = mutants

    def start(self) -> World:
        return World()

    def steps(self, state: World) -> Steps:
        for connection, phase in enumerate(state.phases):
            if COORDINATOR[connection] in state.alive:
                yield from self._connection(state, connection, phase)
        for call, connection in state.calls:
            yield from self._arrival(state, call, connection)
        yield from self._lease_out(state)
        if len(state.alive) == 2:
            yield from (self._crash(state, name) for name in sorted(state.alive))

    def _connection(self, world: World, connection: int, phase: str) -> Steps:
        opening = "submit" if connection == 0 else "attach"
        asked = (opening, connection)
        if phase == "new" and connection == 0:
            yield Step(Act("submit sent"), _sent(_in_phase(world, 0, "asking"), asked))
        if phase == "new" and connection > 0 and world.known and world.task == "open":
            after = _sent(_in_phase(world, connection, "asking"), asked)
            yield Step(Act("attach sent", f"#{connection}"), after, Kind.FAULT)
        if phase == "asking" and not any(c == connection for _, c in world.calls):
            yield Step(Act("asked again", f"#{connection}"), _sent(world, asked))
        if phase == "asking" and opening == "submit" and self.mode == "post":
            after = _sent(_in_phase(world, 0, "refused"), ("withdraw", 0))
            yield Step(Act("given up", "#0"), after, Kind.FAULT)
        if phase in WANTS:
            yield self._leave(world, connection)
        if phase == "following" and world.task != "open":
            yield Step(Act("told", f"#{connection}"), _in_phase(world, connection, "told"))

    def _leave(self, world: World, connection: int) -> Step[World]:
        after = _in_phase(world, connection, "left")
        others = any(
            phase in WANTS and COORDINATOR[other] == COORDINATOR[connection]
            for other, phase in enumerate(after.phases)
        )
        if "coordinator_counts" not in self.mutants or not others:
            after = _sent(after, ("detach", connection))
        return Step(Act("client leaves", f"#{connection}"), after, Kind.FAULT)

    def _arrival(self, world: World, call: str, connection: int) -> Steps:
        if world.copies:
            yield from self._delivered(world._replace(copies=0), call, connection, Kind.FAULT)
        world = world._replace(calls=world.calls - {(call, connection)})
        yield from self._delivered(world, call, connection, Kind.FAIR)

    def _delivered(self, world: World, call: str, connection: int, kind: Kind) -> Steps:
        act = Act(call, f"#{connection}")
        if call == "detach":
            yield Step(act, self._detach(world, connection), kind)
            return
        if call == "withdraw":
            yield Step(act, self._withdraw(world), kind)
            return
        after = self._follow(world, call, connection)
        if after.task == "absent":
            asks = after.phases[connection] == "asking"
            yield Step(act, _in_phase(after, connection, "told") if asks else after, kind)
            return
        answered = after._replace(known=True)
        if answered.phases[connection] == "asking":
            answered = _in_phase(answered, connection, "following")
        yield Step(act, answered, kind)
        if after.lost:
            # Whoever reads the grid may know the id although this answer was lost.
            unanswered = after._replace(lost=0, known=True)
            yield Step(act._replace(verb=f"{call}, reply lost"), unanswered, Kind.FAULT)

    def _name(self, connection: int) -> str:
        """One name per connection, never used again."""
        if "names_are_coordinators" in self.mutants or "coordinator_counts" in self.mutants:
            return COORDINATOR[connection]
        return f"{COORDINATOR[connection]}:{connection}"

    def _follow(self, world: World, call: str, connection: int) -> World:
        """submit of a task that exists is an attach; neither gives `post` a client's lease."""
        if call == "submit" and world.void:
            return world
        new = call == "submit" and world.task == "absent"
        if new:
            world = world._replace(task="open")
        follows = self.mode != "post" or ("attach_makes_lease" in self.mutants and not new)
        if world.task != "open" or not follows:
            return world
        leased = world.lease or not (new and "submit_no_lease" in self.mutants)
        return world._replace(names=world.names | {self._name(connection)}, lease=leased)

    def _detach(self, world: World, connection: int) -> World:
        name = self._name(connection)
        if world.task != "open" or name not in world.names:
            return world
        world = world._replace(names=world.names - {name})
        if world.names or self.mode != "close":
            return world
        return world._replace(task="cancelled", lease=False)

    def _withdraw(self, world: World) -> World:
        if "withdrawal_leaves_nothing" not in self.mutants:
            world = world._replace(void=True)
        return world._replace(task="cancelled") if world.task == "open" else world

    def _lease_out(self, world: World) -> Steps:
        """A living coordinator that follows renews the lease."""
        if world.lease and world.task == "open" and not _wanted(world):
            after = world._replace(task="cancelled", lease=False)
            yield Step(Act("client's lease out"), after)

    def _crash(self, world: World, name: str) -> Step[World]:
        phases = tuple(
            "left" if COORDINATOR[connection] == name else phase
            for connection, phase in enumerate(world.phases)
        )
        after = world._replace(alive=world.alive - {name}, phases=phases)
        return Step(Act("coordinator dies", name), after, Kind.FAULT)

    def wrong(self, state: World) -> str | None:
        return None

    def wrong_step(self, before: World, step: Step[World]) -> str | None:
        if step.after.task == before.task or step.after.task != "cancelled":
            return None
        if step.act.verb == "withdraw":
            return None
        there = [n for n, phase in enumerate(step.after.phases) if phase == "following"]
        if there:
            return f"cancelled although connections {there} follow"
        if self.mode == "post":
            return "a task without a client's lease was cancelled"
        if self.mode == "key" and step.act.verb == "detach":
            return "a task with a key was cancelled before its minute"
        return None

    def rests(self, state: World) -> bool:
        """What nobody wants has ended; without a client's lease it may go on alone."""
        if state.phases[0] == "refused" and state.task == "open":
            return False
        if self.mode == "post" or _wanted(state) or state.task == "cancelled":
            return True
        return state.task == "absent" and not state.calls


def _wanted(world: World) -> bool:
    return any(
        phase in WANTS and COORDINATOR[connection] in world.alive
        for connection, phase in enumerate(world.phases)
    )


def _sent(world: World, call: tuple[str, int]) -> World:
    return world._replace(calls=world.calls | {call})


def _in_phase(world: World, connection: int, phase: str) -> World:
    phases = (*world.phases[:connection], phase, *world.phases[connection + 1 :])
    return world._replace(phases=phases)
