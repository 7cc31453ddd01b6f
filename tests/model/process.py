"""What a worker process does. Each call is atomic with what the process makes of its reply;
a lost reply and one late copy of a call are the exceptions, and both cost budget."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import tasks, workers
from tests.model.explore import Act, Kind, Step
from tests.model.state import (
    Grid,
    Late,
    Process,
    Run,
    Token,
    World,
    spend,
    with_process,
    with_row,
)

Steps = Iterator[Step[World]]


def steps(grid: Grid, world: World, which: int) -> Steps:
    mode = world.processes[which].mode
    if mode == "off":
        yield from _start(grid, world, which)
        return
    yield from _crash(grid, world, which)
    if mode in ("up", "leaving"):
        yield from _leave(grid, world, which)
        yield from _renew(grid, world, which)
        yield from _claim(grid, world, which)
        for run in world.processes[which].runs:
            yield from _work(grid, world, which, run)
    else:
        yield from _hello(grid, world, which)


def _act(grid: Grid, which: int, verb: str, task: int = -1, detail: object = None) -> Act:
    name, lock = grid.config.processes[which]
    return Act(verb, f"{name}{lock}", task, None if detail is None else str(detail))


def _start(grid: Grid, world: World, which: int) -> Steps:
    """A new process is a new instance; 1, 2, … and 11, 12, … stand for random ids."""
    after = spend(world, "start")
    if after is None:
        return
    last = world.processes[which].instance
    fresh = Process("boot", last + 1 if last else 1 + 10 * which)
    yield Step(_act(grid, which, "start"), with_process(after, which, fresh), Kind.FAULT)


def _crash(grid: Grid, world: World, which: int) -> Steps:
    after = spend(world, "crash")
    if after is not None:
        gone = Process("off", world.processes[which].instance)
        yield Step(_act(grid, which, "crash"), with_process(after, which, gone), Kind.FAULT)


def _superseded(world: World, which: int) -> World:
    """A superseded instance stops its engine and is not started again."""
    return with_process(world, which, world.processes[which]._replace(mode="off", runs=frozenset()))


def _leave(grid: Grid, world: World, which: int) -> Steps:
    """SIGTERM: takes nothing new, hands back what it has; the lease is left to run out."""
    process = world.processes[which]
    if process.mode == "up":
        leaving = spend(world, "leave")
        if leaving is not None:
            after = with_process(leaving, which, process._replace(mode="leaving"))
            yield Step(_act(grid, which, "SIGTERM"), after, Kind.FAULT)
    elif not process.runs and process.claim == process.settled:
        gone = Process("off", process.instance)
        yield Step(_act(grid, which, "exit"), with_process(world, which, gone))


def _hello(grid: Grid, world: World, which: int) -> Steps:
    name, lock = grid.config.processes[which]
    process = world.processes[which]
    row = grid.row(world, name)
    hello = workers.hello_of(grid, process, lock)
    if workers.hello_refused(grid, row, hello):
        if process.mode == "again":
            yield Step(_act(grid, which, "hello refused"), _superseded(world, which))
        return
    unheard = with_row(world, grid.index(name), workers.hello_row(grid, world, row, hello))
    up = process._replace(mode="up", instance=hello.instance)
    after = with_process(unheard, which, up)
    yield Step(_act(grid, which, "hello"), after)
    unanswered = spend(unheard, "lost_reply")
    if unanswered is not None:
        yield Step(_act(grid, which, "hello, reply lost"), unanswered, Kind.FAULT)
    copied = spend(after, "late_copy")
    if copied is not None and world.late is None:
        late = Late("hello", name, hello=hello)
        act = _act(grid, which, "hello, a copy under way")
        yield Step(act, copied._replace(late=late), Kind.FAULT)


def _renew(grid: Grid, world: World, which: int) -> Steps:
    name, lock = grid.config.processes[which]
    process = world.processes[which]
    row = grid.row(world, name)
    again = with_process(world, which, process._replace(mode="again"))
    if not row.known:
        yield Step(_act(grid, which, "renew: unknown"), again)
    elif row.instance != process.instance and not grid.lacks("renew_no_instance"):
        if row.lock == lock and not grid.lacks("superseded_exits"):
            yield Step(_act(grid, which, "renew: another of my lock"), again)
        else:
            yield Step(_act(grid, which, "renew: superseded"), _superseded(world, which))
    else:
        yield from _renewed(grid, world, which, name)


def _renewed(grid: Grid, world: World, which: int, name: str) -> Steps:
    process = world.processes[which]
    index = grid.index(name)
    row = world.rows[index]
    pairs = workers.pairs_of(process)
    leaving = process.mode == "leaving"
    renewed = workers.renew_row(grid, row, process.instance, process.settled, pairs, leaving)
    runs = workers.runs_after_renew(grid, world, row, process)
    after = with_row(world, index, renewed)
    after = with_process(after, which, process._replace(runs=runs))
    if after != world:
        yield Step(_act(grid, which, "renew"), after)
    copied = spend(after, "late_copy")
    if copied is not None and world.late is None:
        late = Late("renew", name, process.instance, process.settled, pairs)
        act = _act(grid, which, "renew, a copy under way")
        yield Step(act, copied._replace(late=late), Kind.FAULT)


def _claim(grid: Grid, world: World, which: int) -> Steps:
    """One claim is in flight; it is repeated with its number until it is answered."""
    name, _ = grid.config.processes[which]
    process = world.processes[which]
    repeats = process.claim > process.settled
    room = grid.slots(name) - len(process.runs)
    if not repeats and (room <= 0 or process.mode == "leaving"):
        return
    k = process.claim if repeats else process.claim + 1
    for claimed in workers.claim(grid, world, name, process.instance, k, room):
        yield from _claimed(grid, which, name, k, claimed, world)


def _claimed(
    grid: Grid, which: int, name: str, k: int, claimed: workers.Claimed, before: World
) -> Steps:
    process = before.processes[which]
    if claimed.reply == "unknown":
        again = with_process(before, which, process._replace(mode="again"))
        yield Step(_act(grid, which, "claim: unknown"), again)
    if claimed.reply != "ok":
        return
    got = frozenset(Run(number, token) for number, token in claimed.got)
    settled = process._replace(claim=k, settled=k, runs=process.runs | got)
    after = with_process(claimed.world, which, settled)
    detail = f"k{k} got {[number for number, _ in claimed.got]}"
    repeats = process.claim > process.settled
    if repeats or claimed.world.tasks != before.tasks:
        # An empty claim that nobody copies changes nothing that matters, but would count k up.
        yield Step(_act(grid, which, "claim", detail=detail), after)
    unanswered = spend(claimed.world, "lost_reply")
    if unanswered is not None and got:
        waiting = with_process(unanswered, which, process._replace(claim=k))
        act = _act(grid, which, "claim, reply lost", detail=detail)
        yield Step(act, waiting, Kind.FAULT)
    copied = spend(after, "late_copy")
    if copied is not None and before.late is None:
        late = Late("claim", name, process.instance, k)
        act = _act(grid, which, "claim, a copy under way", detail=detail)
        yield Step(act, copied._replace(late=late), Kind.FAULT)


def _work(grid: Grid, world: World, which: int, run: Run) -> Steps:
    if run.phase == "lost":
        after = tasks.confirm(grid, world, run.task, run.token)
        yield Step(_act(grid, which, "confirm", run.task), _without(after, which, run))
        return
    if run.phase != "run":
        yield from _finish(grid, world, which, run, run.phase)
        return
    if run.next <= grid.config.texts:
        yield from _append(grid, world, which, run)
    else:
        yield from _finish(grid, world, which, run, "done")
    if grid.config.attempts_fail:
        yield from _finish(grid, world, which, run, "failed attempt")
    if world.processes[which].mode == "leaving":
        yield from _finish(grid, world, which, run, "handed back")
    after_hand_back = spend(world, "hand_back")
    if after_hand_back is not None:
        yield from _finish(grid, after_hand_back, which, run, "handed back")


def _without(world: World, which: int, run: Run, instead: Run | None = None) -> World:
    process = world.processes[which]
    runs = process.runs - {run} | ({instead} if instead else frozenset())
    return with_process(world, which, process._replace(runs=runs))


def _append(grid: Grid, world: World, which: int, run: Run) -> Steps:
    after, reply = tasks.append(grid, world, run.task, run.token, run.next)
    if reply == "lost":
        lost = _without(world, which, run, run._replace(phase="lost"))
        yield Step(_act(grid, which, "append: lost", run.task), lost)
        return
    if reply != "ok":
        assert isinstance(reply, int)
        resumed = _without(world, which, run, run._replace(next=reply + 1))
        yield Step(_act(grid, which, "append: have", run.task, reply), resumed)
        return
    done = _without(after, which, run, run._replace(next=run.next + 1))
    yield Step(_act(grid, which, "append", run.task, run.next), done)
    unanswered = spend(after, "lost_reply")
    if unanswered is not None:
        act = _act(grid, which, "append, reply lost", run.task, run.next)
        yield Step(act, unanswered, Kind.FAULT)
    copied = spend(done, "late_copy")
    if copied is not None and world.late is None:
        late = Late("append", task=run.task, token=run.token, n=run.next)
        act = _act(grid, which, "append, a copy under way", run.task, run.next)
        yield Step(act, copied._replace(late=late), Kind.FAULT)


def _finish(grid: Grid, world: World, which: int, run: Run, kind: str) -> Steps:
    after = tasks.finish(grid, world, run.task, run.token, kind)
    detail: tuple[str, Token] = (kind, run.token)
    act = Act("finish", _act(grid, which, "").who, run.task, detail)
    chosen = kind == "handed back" and run.phase == "run"
    fault = chosen and world.processes[which].mode != "leaving"
    yield Step(act, _without(after, which, run), Kind.FAULT if fault else Kind.FAIR)
    unanswered = spend(after, "lost_reply")
    if unanswered is not None and run.phase == "run":
        waiting = _without(unanswered, which, run, run._replace(phase=kind))
        act = act._replace(verb="finish, reply lost")
        yield Step(act, waiting, Kind.FAULT)
