"""Scripts that stop half-way, since Redis keeps the writes that a failing script has made.

One task, workers A and B with a slot each. A script is a row of single writes in three parts:
new entries, the hash (the commit), old entries. Once, any script may stop after any write.
Looks drop an entry that the hash does not confirm, and complete an end that the log has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.explore import Act, Kind, Step
from tests.model.state import TERMINAL

SHARED = "shared A"
RUNS = 3  # the last of them ends the task: attempts or recoveries are spent


class Hash(NamedTuple):
    state: str
    queue: str = ""
    worker: str = ""
    run: int = 0


class World(NamedTuple):
    hash: Hash | None = None
    queues: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()  # whose :tasks has it
    due: bool = False
    ends: tuple[str, ...] = ()
    engines: tuple[int, int] = (0, 0)  # the run that A, that B has; 0: none
    stops: int = 1


class Write(NamedTuple):
    key: str
    value: str | Hash = ""


class Script(NamedTuple):
    name: str
    new: tuple[Write, ...] = ()
    commit: Hash | None = None
    old: tuple[Write, ...] = ()
    worker: str = ""  # who is told something by the reply
    engine: int = 0
    kind: Kind = Kind.FAIR


def _apply(world: World, write: Write) -> World:
    key, value = write
    if key == "hash":
        assert isinstance(value, Hash)
        return world._replace(hash=value)
    assert isinstance(value, str)
    if key == "due":
        return world._replace(due=bool(value))
    if key == "end":
        return world._replace(ends=(*world.ends, value))
    if key == "ZADD queue":
        return world._replace(queues=world.queues | {value})
    if key == "ZREM queue":
        return world._replace(queues=world.queues - {value})
    if key == "SADD tasks":
        return world._replace(held=world.held | {value})
    assert key == "SREM tasks"
    return world._replace(held=world.held - {value})


class Partial:
    def __init__(self, mutants: frozenset[str] = frozenset()) -> None:
        self.mutants = mutants

    def start(self) -> World:
        return World()

    def steps(self, state: World) -> Iterator[Step[World]]:
        for script in self._scripts(state):
            yield from self._run(state, script)

    def _run(self, world: World, script: Script) -> Iterator[Step[World]]:
        """The whole script, and every beginning of it. A stopped one told nobody anything."""
        after = world
        for written, write in enumerate(self._order(script)):
            if written and world.stops:
                act = Act(f"{script.name} stops after {written}")
                yield Step(act, after._replace(stops=0), Kind.FAULT)
            after = _apply(after, write)
        if script.worker:
            engines = list(after.engines)
            engines["AB".index(script.worker)] = script.engine
            after = after._replace(engines=(engines[0], engines[1]))
        yield Step(Act(script.name), after, script.kind)

    def _order(self, script: Script) -> tuple[Write, ...]:
        commit = (Write("hash", script.commit),) if script.commit else ()
        if "hash_first" in self.mutants:
            return commit + script.new + script.old
        if "hash_last" in self.mutants:
            return script.new + script.old + commit
        if "old_first" in self.mutants:
            return script.old + script.new + commit
        return script.new + commit + script.old

    def _scripts(self, world: World) -> Iterator[Script]:
        yield from self._lost(world)
        if world.hash is None:
            yield self._submit()
            yield from self._repairs(world, Hash("absent"))
            return
        if world.hash.state in TERMINAL:
            yield from self._repairs(world, world.hash)
            return
        if world.ends and "end_not_looked_at" not in self.mutants:
            yield _ending(world, world.ends[0], "complete the end", written=True)
            return
        yield from self._transitions(world, world.hash)
        yield from self._repairs(world, world.hash)

    def _submit(self) -> Script:
        new = (Write("due", "+"), Write("ZADD queue", "own A"))
        return Script("submit", new, Hash("pending", "own A"))

    def _transitions(self, world: World, task: Hash) -> Iterator[Script]:
        yield _ending(world, "cancelled", "cancel", kind=Kind.FAULT)
        if task.state == "pending":
            yield from self._claims(world, task)
            if task.queue == "own A":
                yield _requeue("move", task, Write("ZREM queue", "own A"))
        elif task.state == "waiting":
            yield _requeue("promote", task)
        else:
            yield from self._running(world, task)

    def _claims(self, world: World, task: Hash) -> Iterator[Script]:
        """Whoever meets an entry that names another queue than the hash drops it (a repair)."""
        for worker, engine in zip("AB", world.engines, strict=True):
            mine = task.queue == SHARED or task.queue == f"own {worker}"
            if mine and task.queue in world.queues and not engine:
                run = task.run + 1
                yield Script(
                    f"claim by {worker}",
                    (Write("SADD tasks", worker),),
                    Hash("running", "", worker, run),
                    (Write("ZREM queue", task.queue),),
                    worker,
                    run,
                )

    def _running(self, world: World, task: Hash) -> Iterator[Script]:
        left = Write("SREM tasks", task.worker)
        if task.run < RUNS:
            yield _requeue("reap", task, left)
        else:
            yield _ending(world, "dead", "reap")
        if world.engines["AB".index(task.worker)] == task.run:
            yield _ending(world, "done", "finish", worker=task.worker)
            yield self._failed_attempt(world, task, left)

    def _failed_attempt(self, world: World, task: Hash, left: Write) -> Script:
        if task.run == RUNS:
            return _ending(world, "failed", "failed attempt", worker=task.worker)
        waiting = Hash("waiting", run=task.run)
        return Script("failed attempt", (), waiting, (left,), task.worker)

    def _lost(self, world: World) -> Iterator[Script]:
        for worker, engine in zip("AB", world.engines, strict=True):
            held = world.hash and world.hash.state == "running" and world.hash.worker == worker
            if engine and not (held and world.hash and world.hash.run == engine):
                yield Script(f"{worker} hears that it is lost", worker=worker)

    def _repairs(self, world: World, task: Hash) -> Iterator[Script]:
        if "no_repair" in self.mutants:
            return
        for queue in world.queues:
            if task.state != "pending" or task.queue != queue:
                yield Script(f"a look at {queue} drops it", old=(Write("ZREM queue", queue),))
        for worker in world.held:
            if task.state != "running" or task.worker != worker:
                yield Script(f"renew of {worker} drops it", old=(Write("SREM tasks", worker),))
        if world.due and (task.state in TERMINAL or task.state == "absent"):
            yield Script("a look at due drops it", old=(Write("due"),))

    def wrong(self, state: World) -> str | None:
        if len(state.ends) > 1:
            return f"ends {state.ends}"
        task = state.hash
        if task is None:
            return None
        if task.state == "pending" and task.queue not in state.queues:
            return f"pending in {task.queue}, which has it not"
        if task.state == "running" and task.worker not in state.held:
            return f"running on {task.worker}, whose set has it not"
        if task.state not in TERMINAL and not state.due:
            return "open, and nobody will look: it is not in grid:due"
        if task.state in TERMINAL and state.ends != (task.state,):
            return f"{task.state}, and the log ends with {state.ends}"
        return None

    def wrong_step(self, before: World, step: Step[World]) -> str | None:
        old, new = before.hash, step.after.hash
        if old and new and old.state in TERMINAL and new.state != old.state:
            return f"{old.state} became {new.state}"
        return None

    def rests(self, state: World) -> bool:
        ended = state.hash is not None and state.hash.state in TERMINAL
        return ended and not (state.queues or state.held or state.due or any(state.engines))


def _requeue(name: str, task: Hash, *old: Write) -> Script:
    new = (Write("ZADD queue", SHARED),)
    return Script(name, new, Hash("pending", SHARED, "", task.run), old)


def _ending(
    world: World,
    state: str,
    name: str,
    *,
    written: bool = False,
    worker: str = "",
    kind: Kind = Kind.FAIR,
) -> Script:
    new = () if written else (Write("end", state),)
    old = (
        *(Write("ZREM queue", queue) for queue in sorted(world.queues)),
        *(Write("SREM tasks", holder) for holder in sorted(world.held)),
        Write("due"),
    )
    return Script(name, new, Hash(state), old, worker, 0, kind)
