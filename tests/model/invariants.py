"""What must hold in every state and over every step of the main view."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.explore import Step
from tests.model.state import TERMINAL, Grid, Line, Process, Row, Task, World
from tests.model.tasks import mark


def of_state(grid: Grid, world: World) -> str | None:
    for number, task in enumerate(world.tasks):
        holders = [n for n in grid.names if number in grid.row(world, n).tasks]
        says = _place(task, holders) or _log(grid, task) or _counts(grid, world, task)
        if says:
            return f"task{number}: {says}"
    for which, process in enumerate(world.processes):
        if says := _engine(grid, world, which, process):
            return f"{grid.config.processes[which]}: {says}"
    return _seen(grid, world)


def _place(task: Task, holders: list[str]) -> str | None:
    """Every task stands in exactly the one place that its state names."""
    queues = sorted(task.queues)
    here = f"{task.state}, in queues {queues}, held by {holders}, token {task.token}"
    if task.state == "pending":
        right = len(queues) == 1 and not holders and task.token is None
    elif task.state == "running":
        right = not queues and task.token is not None and holders == [task.token.worker]
    else:
        right = not queues and not holders and task.token is None
    return None if right else here


def _log(grid: Grid, task: Task) -> str | None:
    """One end, and nothing after it; each run's text without a gap; one run in a stream."""
    ends = [line for line in task.log if line.end]
    if len(ends) != (task.state in TERMINAL) or (ends and not task.log[-1].end):
        return f"{task.state} with the log {task.log}"
    last: dict[int, int] = {}
    writers: dict[int, object] = {}
    for line in task.log:
        if line.end:
            continue
        if line.n != last.get(line.run, 0) + 1:
            return f"run {line.run} has text {line.n} after {last.get(line.run, 0)}"
        if writers.setdefault(line.run, line.token) != line.token:
            return f"two tokens wrote run {line.run}"
        last[line.run] = line.n
    if grid.config.stream and len(last) > 1:
        return f"a stream got text of runs {sorted(last)}"
    return None


def _counts(grid: Grid, world: World, task: Task) -> str | None:
    config = grid.config
    if task.recoveries > config.recoveries:
        return f"{task.recoveries} recoveries"
    # A deleted hash may forget a claim number, so that its run is handed back by a later renew.
    handed_back = config.budget.hand_back + config.budget.leave + config.budget.delete
    bound = config.attempts + config.recoveries + handed_back
    if not config.budget.failover and task.run > bound:
        return f"run {task.run} although attempts and recoveries allow {bound}"
    return None


def _engine(grid: Grid, world: World, which: int, process: Process) -> str | None:
    """The engine runs no more than its slots, and the server counts whatever it runs."""
    name, _ = grid.config.processes[which]
    row = grid.row(world, name)
    if len(process.runs) > grid.slots(name):
        return f"really runs {sorted(run.task for run in process.runs)}"
    if world.epoch or not row.known or row.instance != process.instance:
        return None
    for run in process.runs:
        held = world.tasks[run.task].token == run.token
        counted = mark(grid, run.task, run.token) in row.revoked
        if run.phase == "run" and not held and not counted:
            return f"runs {run}, a slot that the server counts as free"
    busy = [run for run in process.runs if run.phase in ("run", "lost")]
    if process.mode in ("up", "leaving") and len(busy) > len(row.tasks) + len(row.revoked):
        return f"runs {len(busy)}, the server counts {len(row.tasks) + len(row.revoked)}"
    return None


def _seen(grid: Grid, world: World) -> str | None:
    """What the client of a stream was given is one run's text, from its start, each text once."""
    if world.reader is None or not grid.config.stream:
        return None
    seen = world.reader.seen
    numbers = [line.n for line in seen]
    writers = {(line.run, line.token) for line in seen}
    if numbers != list(range(1, len(seen) + 1)) or len(writers) > 1:
        return f"the client was given {_short(seen)}"
    return None


def _short(seen: tuple[Line, ...]) -> list[str]:
    return [f"{line.run}-{line.n} of {line.token}" for line in seen]


def of_step(grid: Grid, before: World, step: Step[World]) -> str | None:
    return next(_of_step(grid, before, step), None)


def _of_step(grid: Grid, before: World, step: Step[World]) -> Iterator[str]:
    verb, who = step.act.verb, step.act.who
    if not verb.startswith("FAILOVER"):
        yield from _finality(before, step.after)
    if verb == "reap":
        yield from _reaped(grid, before, step)
    elif verb == "fail homeless":
        yield from _homeless(grid, before)
    elif "claim" in verb and before.tasks != step.after.tasks:
        yield from _overfull(grid, step.after, who[0])
        if verb != "late claim":
            yield from _claimed(grid, before, who)
    elif verb.startswith("finish"):
        yield from _finished(before, step)
    elif verb.startswith("hello") and verb != "hello refused":
        yield from _took_name(grid, before, who)
    elif verb == "renew: superseded":
        yield from _gave_up(grid, before, who)


def _finality(before: World, after: World) -> Iterator[str]:
    for number, (old, new) in enumerate(zip(before.tasks, after.tasks, strict=True)):
        if old.state in TERMINAL and new.state != old.state:
            yield f"task{number}: {old.state} became {new.state}"


def _reaped(grid: Grid, before: World, step: Step[World]) -> Iterator[str]:
    """A run is taken back for a reason that holds in the very moment it is taken back."""
    assert isinstance(step.act.detail, tuple)
    reason, token = step.act.detail
    if before.tasks[step.act.task].token != token:
        yield "reaped a run that was not meant"
    if reason != "dead" or token is None:
        return
    if grid.row(before, token.worker).lease:
        yield f"reaped as dead while the lease of {token.worker} runs"
    alive = any(run.token == token for process in before.processes for run in process.runs)
    if alive and before.epoch:
        yield "taken back from a living worker whose lease only looks old after a failover"


def _homeless(grid: Grid, before: World) -> Iterator[str]:
    for (name, _), process in zip(grid.config.processes, before.processes, strict=True):
        row = grid.row(before, name)
        lives = process.mode == "up" and process.instance == row.instance
        if lives and grid.serves(before, name):
            yield f"failed as homeless while {name} lives and is ready"


def _process(grid: Grid, world: World, who: str) -> tuple[Row, Process, int]:
    name, lock = who[0], int(who[1:])
    process = world.processes[grid.config.processes.index((name, lock))]
    return grid.row(world, name), process, lock


def _claimed(grid: Grid, before: World, who: str) -> Iterator[str]:
    row, process, _ = _process(grid, before, who)
    if not row.lease:
        yield "claimed with a lease that has run out: it would be reaped at once"
    if row.instance != process.instance:
        yield "a superseded instance claimed"
    if row.state != "ready":
        yield "claimed before it was ready"


def _overfull(grid: Grid, after: World, name: str) -> Iterator[str]:
    """Out of date news may count a slot too many for a while, but none is ever filled twice."""
    row = grid.row(after, name)
    if len(row.tasks) + len(row.revoked) > grid.slots(name):
        yield f"{len(row.tasks)} tasks and {len(row.revoked)} revoked after a claim of {name}"


def _finished(before: World, step: Step[World]) -> Iterator[str]:
    """A result is taken from the run that holds the task, and from no other."""
    task = before.tasks[step.act.task]
    assert isinstance(step.act.detail, tuple)
    if step.after.tasks[step.act.task] != task and task.token != step.act.detail[1]:
        yield f"took a result of {step.act.detail[1]}, the task's token is {task.token}"


def _took_name(grid: Grid, before: World, who: str) -> Iterator[str]:
    row, process, lock = _process(grid, before, who)
    if row.known and row.lease and row.lock != lock and row.instance != process.instance:
        yield "took the name of another machine whose lease runs"


def _gave_up(grid: Grid, before: World, who: str) -> Iterator[str]:
    """The process that has the lock file is the only one of it that lives."""
    row, _, lock = _process(grid, before, who)
    if row.lock == lock:
        yield "exits for ever because the server remembers an older instance of its own lock"
