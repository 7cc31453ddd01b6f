"""The scripts that a worker calls about itself: hello, renew, claim; and forget, an operator's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.state import (
    Grid,
    Hello,
    Pairs,
    Process,
    Row,
    Run,
    Task,
    Token,
    World,
    own,
    pool,
    with_row,
    with_task,
)
from tests.model.tasks import mark, reap


class Claimed(NamedTuple):
    """The world after a claim, and what the reply says."""

    world: World
    reply: str
    got: tuple[tuple[int, Token], ...] = ()


def pairs_of(process: Process) -> Pairs:
    return frozenset((run.task, run.token) for run in process.runs)


def hello_of(grid: Grid, process: Process, lock: int) -> Hello:
    if process.mode == "boot":
        return Hello(process.instance, lock)
    instance = process.instance + (5 if grid.lacks("again_new_instance") else 0)
    return Hello(instance, lock, True, process.claim, pairs_of(process))


def hello_refused(grid: Grid, row: Row, hello: Hello) -> bool:
    """Another machine has the name, and its lease runs. The same lock file proves that the old
    instance is gone, and one's own name is always one's own."""
    if grid.lacks("hello_no_lock"):
        return False
    return row.known and row.lease and row.instance != hello.instance and row.lock != hello.lock


def hello_row(grid: Grid, world: World, row: Row, hello: Hello) -> Row:
    """Takes the name. From the instance that has it already this is a repeat or a late copy: the
    lease runs on and nothing else changes, since what it says may long be out of date. Where the
    hash is gone, only the worker still knows its last claim number."""
    if row.known and row.instance == hello.instance:
        literal = grid.lacks("hello_repeat_replaces_revoked")
        revoked = _lost_of(grid, world, hello) if literal else row.revoked
        return row._replace(lease=True, revoked=revoked)
    drops = grid.lacks("hello_drops_tasks") and not hello.ready
    return row._replace(
        known=True,
        instance=hello.instance,
        lock=hello.lock,
        lease=True,
        state="ready" if hello.ready else "starting",
        tasks=frozenset() if drops else row.tasks,
        revoked=_revoked_after_hello(grid, world, row, hello),
        last_claim=0 if grid.lacks("again_forgets_claim") else hello.claim,
    )


def _revoked_after_hello(grid: Grid, world: World, row: Row, hello: Hello) -> frozenset[Token]:
    """What this instance may still run stays counted until a renew is silent about it, and what
    it names but has lost begins to count. Other instances run nothing any more."""
    if grid.lacks("hello_keeps_revoked"):
        return row.revoked
    if grid.lacks("again_clears_revoked"):
        return frozenset()
    kept = frozenset(token for token in row.revoked if token.instance == hello.instance)
    return kept if grid.lacks("again_without_pairs") else kept | _lost_of(grid, world, hello)


def _lost_of(grid: Grid, world: World, hello: Hello) -> frozenset[Token]:
    return frozenset(
        mark(grid, task, token) for task, token in hello.pairs if world.tasks[task].token != token
    )


def renew_row(
    grid: Grid, row: Row, instance: int, settled: int, pairs: Pairs, leaving: bool = False
) -> Row:
    """The lease runs on. Silence confirms: a revoked token whose claim is settled and that the
    worker does not name is not running, also when its reply never arrived."""
    revoked = row.revoked
    if not grid.lacks("renew_no_revoked_cleanup"):
        named = {mark(grid, task, token) for task, token in pairs}
        revoked = frozenset(
            token
            for token in revoked
            if token.instance == instance and (token.claim > settled or token in named)
        )
    state = "away" if leaving else "draining" if row.wanted == "drain" else "ready"
    return row._replace(lease=True, state=state, revoked=revoked)


def runs_after_renew(grid: Grid, world: World, row: Row, process: Process) -> frozenset[Run]:
    """The worker drops what is lost, and hands back what it holds without knowing."""
    runs = {
        run._replace(phase="lost")
        if run.phase == "run" and world.tasks[run.task].token != run.token
        else run
        for run in process.runs
    }
    return frozenset(runs | set(_held_unknown(grid, world, row, process)))


def _held_unknown(grid: Grid, world: World, row: Row, process: Process) -> Iterator[Run]:
    if grid.lacks("renew_no_held"):
        return
    for number in row.tasks:
        token = world.tasks[number].token
        if token is None or (number, token) in pairs_of(process):
            continue
        if token.instance != process.instance:
            if grid.lacks("renew_held_any_instance"):
                yield Run(number, token)
        elif token.claim <= process.settled or grid.lacks("renew_held_unsettled"):
            yield Run(number, token, phase="handed back")


def claim(
    grid: Grid, world: World, name: str, instance: int, k: int, room: int
) -> Iterator[Claimed]:
    """Takes from the head of one of its queues; which one is the worker's choice, so both."""
    row = grid.row(world, name)
    if not row.known:
        yield Claimed(world, "unknown")
    elif row.instance != instance and not grid.lacks("claim_no_instance"):
        yield Claimed(world, "superseded")
    elif grid.lacks("claim_repeat_needs_ready") and _refuses(grid, row):
        yield Claimed(world, _refuses(grid, row))
    elif _seen(grid, world, row, instance, k):
        yield Claimed(world, "ok", _held_of(world, row, instance, k))
    elif refusal := _refuses(grid, row):
        yield Claimed(world, refusal)
    else:
        yield from _take(grid, world, name, instance, k, room)


def _refuses(grid: Grid, row: Row) -> str:
    """Why nothing new is handed out. A repeated claim is answered all the same: a worker that is
    being drained would else never hear of the task that it holds."""
    if row.state != "ready" and not grid.lacks("claim_not_ready"):
        return "not ready"
    if not row.lease and not grid.lacks("claim_no_lease"):
        return "renew first"
    return ""


def _seen(grid: Grid, world: World, row: Row, instance: int, k: int) -> bool:
    """A claim number that is not new asks for an answer that got lost, never for more."""
    if grid.lacks("claim_repeat_takes_new"):
        return False
    if grid.lacks("claim_nonce_unordered"):
        return k == row.last_claim
    if grid.lacks("claim_nonce_not_remembered"):
        return bool(_held_of(world, row, instance, k))
    return k <= row.last_claim


def _held_of(world: World, row: Row, instance: int, k: int) -> tuple[tuple[int, Token], ...]:
    held = ((number, world.tasks[number].token) for number in sorted(row.tasks))
    return tuple(
        (number, token)
        for number, token in held
        if token is not None and (token.instance, token.claim) == (instance, k)
    )


def _take(
    grid: Grid, world: World, name: str, instance: int, k: int, room: int
) -> Iterator[Claimed]:
    free = 1 if grid.lacks("claim_no_free") else min(room, grid.free(world, name))
    took = False
    for queue in (own(name), pool(name)) if free > 0 else ():
        ready = [n for n, task in enumerate(world.tasks) if _offers(grid, task, queue, name)]
        if ready:
            took = True
            chosen = ready[: min(free, -(-len(ready) // 2))]
            yield _hand_out(grid, world, name, instance, k, queue, chosen)
    if not took:
        row = grid.row(world, name)
        yield Claimed(with_row(world, grid.index(name), row._replace(last_claim=k)), "ok")


def _offers(grid: Grid, task: Task, queue: str, name: str) -> bool:
    """`avoid` was a wish when the queue was chosen; at the head it would only block."""
    avoids = grid.lacks("claim_avoid_enforced") and task.avoid == name
    return queue in task.queues and not avoids


def _hand_out(
    grid: Grid, world: World, name: str, instance: int, k: int, queue: str, chosen: list[int]
) -> Claimed:
    if grid.lacks("two_step_claim"):
        return _pop_only(world, queue, chosen)
    got = tuple((number, Token(name, instance, k, place)) for place, number in enumerate(chosen))
    for number, token in got:
        task = world.tasks[number]
        left = task.queues if grid.lacks("claim_keeps_queue") else task.queues - {queue}
        run = _next_run(grid, world, task)
        task = task._replace(state="running", queues=left, token=token, run=run, texts=0)
        world = with_task(world, number, task)
    index = grid.index(name)
    row = world.rows[index]
    row = row._replace(tasks=row.tasks | frozenset(chosen), last_claim=k)
    return Claimed(with_row(world, index, row), "ok", got)


def _pop_only(world: World, queue: str, chosen: list[int]) -> Claimed:
    """Pop first, write down later: between the two calls the task is nowhere."""
    for number in chosen:
        task = world.tasks[number]
        world = with_task(world, number, task._replace(queues=task.queues - {queue}))
    return Claimed(world, "ok")


def _next_run(grid: Grid, world: World, task: Task) -> int:
    """A later server counts from its own clock on, so that it repeats no run of an earlier one."""
    clock = 0 if grid.lacks("failover_run_counter") else 10 * world.epoch
    return max(task.run + 1, clock)


def forget(grid: Grid, world: World, name: str) -> Iterator[World]:
    """Only the dead are forgotten: their runs are taken back, hash and revoked tokens deleted."""
    worlds = [world]
    for number in sorted(grid.row(world, name).tasks):
        worlds = [after for one in worlds for after in reap(grid, one, number, "dead")]
    for after in worlds:
        row = after.rows[grid.index(name)]
        gone = Row(lease=row.lease, tasks=row.tasks)
        yield with_row(after, grid.index(name), gone)
