"""The reader of a stream at its coordinator: it outlives a failover that the log does not."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.explore import Act, Step
from tests.model.state import Grid, Line, Reader, Task, World

BEGIN = (0, -1)


def steps(grid: Grid, world: World) -> Iterator[Step[World]]:
    reader = world.reader
    if reader is None or not reader.open:
        return
    task = world.tasks[0]
    if task.state == "absent":
        if world.epoch and not grid.lacks("absent_not_told"):
            yield _step(world, "reader: the task is gone, error", reader._replace(open=False))
        return
    new = next((line for line in task.log if (line.run, line.n) > reader.last), None)
    if new is not None:
        yield _step(world, "read", _passed_on(grid, reader, new))
    elif _taken_back(reader, task) and not grid.lacks("reader_no_rollback"):
        yield _step(world, "reader: the log went back", _restarted(reader))


def _step(world: World, verb: str, reader: Reader) -> Step[World]:
    return Step(Act(verb), world._replace(reader=reader))


def _passed_on(grid: Grid, reader: Reader, line: Line) -> Reader:
    last = (line.run, line.n)
    if line.end:
        return reader._replace(open=False, last=last)
    other_run = bool(reader.seen) and reader.seen[-1].run != line.run
    if other_run and grid.config.stream and not grid.lacks("reader_no_policy"):
        return reader._replace(open=False, last=last)
    return reader._replace(last=last, seen=(*reader.seen, line))


def _taken_back(reader: Reader, task: Task) -> bool:
    """The last id is below what was read. While the task runs, its worker writes it again."""
    last = (task.log[-1].run, task.log[-1].n) if task.log else BEGIN
    return reader.last > last and task.state != "running"


def _restarted(reader: Reader) -> Reader:
    """From the start if the client has nothing yet; else only an error is honest."""
    if reader.seen:
        return reader._replace(open=False)
    return reader._replace(last=BEGIN)
