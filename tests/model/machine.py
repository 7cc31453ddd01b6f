"""The main view as a system: which scripts and faults may come next, and what being at rest is."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import faults, invariants, process, reader, tasks
from tests.model.explore import Act, Kind, Step
from tests.model.state import (
    TERMINAL,
    Config,
    Grid,
    Late,
    Process,
    Reader,
    Row,
    Task,
    World,
    spend,
)

Steps = Iterator[Step[World]]


class Machine:
    """Tasks, workers and one server, within the bounds of a configuration."""

    def __init__(self, config: Config, mutants: frozenset[str] = frozenset()) -> None:
        self.grid = Grid(config, mutants)

    def start(self) -> World:
        """Every name has one worker up and ready; further processes of a name start later."""
        config = self.grid.config
        rows: list[Row] = []
        processes: list[Process] = []
        for which, (name, lock) in enumerate(config.processes):
            if self.grid.index(name) < len(rows):
                processes.append(Process())
                continue
            instance = 1 + 10 * which
            rows.append(Row(True, instance, lock, "ready", True))
            processes.append(Process("up", instance))
        return World(
            tasks=(Task(),) * config.tasks,
            rows=tuple(rows),
            processes=tuple(processes),
            budget=config.budget,
            reader=Reader() if config.follows else None,
        )

    def steps(self, state: World) -> Steps:
        for number, task in enumerate(state.tasks):
            if task.state == "absent":
                yield from self._submit(state, number)
            else:
                yield from self._ends(state, number)
                yield from self._reaper(state, number)
                yield from self._reap(state, number)
        for which in range(len(state.processes)):
            yield from process.steps(self.grid, state, which)
        yield from faults.steps(self.grid, state)
        yield from reader.steps(self.grid, state)

    def _submit(self, world: World, number: int) -> Steps:
        """A task that a failover took away is not submitted again: its client got an error."""
        if world.epoch:
            return
        for queue in self.grid.config.submit_to:
            after = tasks.submit(self.grid, world, number, queue)
            yield Step(Act("submit", task=number, detail=queue), after)

    def _ends(self, world: World, number: int) -> Steps:
        cancelling = spend(world, "cancel")
        if cancelling is not None:
            after = tasks.cancel(self.grid, cancelling, number)
            if after is not None:
                yield Step(Act("cancel", task=number), after, Kind.FAULT)
        expiring = spend(world, "expire")
        if expiring is not None:
            after = tasks.expire(self.grid, expiring, number)
            if after is not None:
                yield Step(Act("expire", task=number), after, Kind.FAULT)

    def _reaper(self, world: World, number: int) -> Steps:
        homeless = tasks.fail_homeless(self.grid, world, number)
        if homeless is not None:
            yield Step(Act("fail homeless", task=number), homeless)
        if world.tasks[number].state == "pending":
            for after in tasks.move(self.grid, world, number):
                yield Step(Act("move", task=number), after)
        for after in tasks.promote(self.grid, world, number):
            yield Step(Act("promote", task=number), after)

    def _reap(self, world: World, number: int) -> Steps:
        token = world.tasks[number].token
        reasons = list(tasks.reap_reasons(self.grid, world, number))
        for reason in reasons:
            for after in tasks.reap(self.grid, world, number, reason):
                yield Step(Act("reap", task=number, detail=(reason, token)), after)
        stale = spend(world, "stale_reap")
        if stale is not None and "dead" in reasons and world.late is None:
            late = Late("reap", task=number, token=token)
            read = Act("the reaper reads", task=number)
            yield Step(read, stale._replace(late=late), Kind.FAULT)
        wedged = spend(world, "zombie")
        runs = world.tasks[number].state == "running" and token is not None
        if wedged is not None and runs and not self.grid.held(world):
            for after in tasks.reap(self.grid, wedged, number, "zombie"):
                yield Step(Act("reap", task=number, detail=("zombie", token)), after, Kind.FAULT)

    def wrong(self, state: World) -> str | None:
        return invariants.of_state(self.grid, state)

    def wrong_step(self, before: World, step: Step[World]) -> str | None:
        return invariants.of_step(self.grid, before, step)

    def rests(self, state: World) -> bool:
        """All tasks have ended, the stream is closed, no living worker holds a task or a slot."""
        missing = "absent" if state.epoch else ""
        if any(task.state not in TERMINAL and task.state != missing for task in state.tasks):
            return False
        if state.reader is not None and state.reader.open:
            return False
        return all(self._idle(state, which) for which in range(len(state.processes)))

    def _idle(self, world: World, which: int) -> bool:
        process = world.processes[which]
        row = self.grid.row(world, self.grid.config.processes[which][0])
        mine = row.known and row.instance == process.instance
        if process.mode == "off":
            return True
        if process.mode == "boot":
            # Waiting while another machine has the name is all that it can do.
            return row.known and row.lease and not mine
        return (
            process.mode == "up" and not process.runs and not (mine and (row.tasks or row.revoked))
        )
