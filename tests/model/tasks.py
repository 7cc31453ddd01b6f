"""The scripts about one task. A script is atomic; where it may choose, all choices are returned."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.state import (
    END,
    TERMINAL,
    Grid,
    Line,
    Task,
    Token,
    World,
    own,
    pool,
    with_row,
    with_task,
)


def mark(grid: Grid, task: int, token: Token) -> Token:
    """What `:revoked` holds: the token, because one task may run twice on one worker."""
    if grid.lacks("revoked_by_id"):
        return Token(token.worker, token.instance, 0, task)
    return token


def release(grid: Grid, world: World, number: int, *, revoke: bool) -> World:
    """Takes the task off its worker; what may still run there goes on filling its slot. Another
    instance's run is surely over; a missing hash says nothing about that."""
    token = world.tasks[number].token
    if token is None:
        return world
    index = grid.index(token.worker)
    row = world.rows[index]
    revoked = row.revoked
    superseded = row.known and row.instance != token.instance
    if not row.known and grid.lacks("no_revoke_without_hash"):
        superseded = True
    if revoke and not superseded:
        revoked = revoked | {mark(grid, number, token)}
    return with_row(world, index, row._replace(tasks=row.tasks - {number}, revoked=revoked))


def end(world: World, number: int, state: str, *, keep_token: bool = False) -> World:
    """The only way out: every terminal transition writes the one `end` of the log."""
    task = world.tasks[number]
    task = task._replace(
        state=state,
        queues=frozenset(),
        token=task.token if keep_token else None,
        log=(*task.log, Line(task.run, END, None, state)),
    )
    return with_task(world, number, task)


def enqueue(world: World, number: int, queue: str, task: Task | None = None) -> World:
    task = task or world.tasks[number]
    task = task._replace(state="pending", queues=frozenset((queue,)), token=None, texts=0)
    return with_task(world, number, task)


def may_run_again(grid: Grid, task: Task) -> bool:
    """The break policy: after text was streamed, nobody may start the answer anew unseen."""
    return task.texts == 0 or not grid.config.stream or grid.lacks("rerun_after_text")


def submit(grid: Grid, world: World, number: int, queue: str) -> World:
    """A worker's own queue takes tasks only while that worker looks into it; else the shared."""
    kind, name = queue.split()
    if kind == "own" and not grid.serves(world, name):
        queue = pool(name)
    return enqueue(world, number, queue)


def append(grid: Grid, world: World, number: int, token: Token, n: int) -> tuple[World, str | int]:
    """Text number n of the run that holds the token, once; else "lost" or the last n it has."""
    task = world.tasks[number]
    if task.state != "running" or (task.token != token and not grid.lacks("append_no_token")):
        return world, "lost"
    if grid.lacks("append_no_n"):
        accepted = True
    elif grid.lacks("append_gap"):
        accepted = n > task.texts
    else:
        accepted = n == task.texts + 1
    if not accepted:
        return world, task.texts
    task = task._replace(texts=n, log=(*task.log, Line(task.run, n, token)))
    return with_task(world, number, task), "ok"


def confirm(grid: Grid, world: World, number: int, token: Token) -> World:
    """The worker says that it does not run this any more: the slot is free."""
    index = grid.index(token.worker)
    row = world.rows[index]
    gone = frozenset((mark(grid, number, token),))
    return with_row(world, index, row._replace(revoked=row.revoked - gone))


def finish(grid: Grid, world: World, number: int, token: Token, kind: str) -> World:
    """ "done", "failed attempt" or "handed back"; without the task's token a mere confirmation."""
    task = world.tasks[number]
    holds = task.token == token or grid.lacks("finish_no_token")
    if task.state != "running" or not holds:
        return confirm(grid, world, number, token)
    if not grid.lacks("finish_keeps_tasks"):
        world = release(grid, world, number, revoke=False)
    if kind == "done":
        return end(world, number, "done", keep_token=grid.lacks("finish_keeps_token"))
    if not may_run_again(grid, task):
        return end(world, number, "failed")
    if kind == "handed back":
        return enqueue(world, number, pool(token.worker))
    return _failed_attempt(grid, world, number)


def _failed_attempt(grid: Grid, world: World, number: int) -> World:
    task = world.tasks[number]
    if task.attempts + 1 >= grid.config.attempts:
        return end(world, number, "failed")
    task = task._replace(state="waiting", token=None, texts=0, attempts=task.attempts + 1)
    return with_task(world, number, task)


def cancel(grid: Grid, world: World, number: int) -> World | None:
    """Ends an open task at once; a run that goes on until its worker hears of it is revoked."""
    task = world.tasks[number]
    if task.state == "absent" or (task.state in TERMINAL and not grid.lacks("cancel_terminal")):
        return None
    world = release(grid, world, number, revoke=not grid.lacks("cancel_no_revoke"))
    return end(world, number, "cancelled", keep_token=grid.lacks("cancel_keeps_token"))


def expire(grid: Grid, world: World, number: int) -> World | None:
    """The queue limit counts pending time only, and nothing is due during a hold."""
    state = world.tasks[number].state
    runs = state == "running" and grid.lacks("expire_running")
    if grid.held(world) or (state != "pending" and not runs):
        return None
    return end(world, number, "expired")


def fail_homeless(grid: Grid, world: World, number: int) -> World | None:
    """Nobody serves its model: an answer that says so instead of a wait for nothing."""
    if grid.lacks("homeless_never") or grid.held(world):
        return None
    if world.tasks[number].state != "pending" or any(_home(grid, world, n) for n in grid.names):
        return None
    return end(world, number, "failed")


def _home(grid: Grid, world: World, name: str) -> bool:
    row = grid.row(world, name)
    return row.known and row.lease and row.state in ("ready", "starting", "away")


def promote(grid: Grid, world: World, number: int) -> Iterator[World]:
    if world.tasks[number].state == "waiting":
        for name in grid.names:
            yield enqueue(world, number, pool(name))


def reap(grid: Grid, world: World, number: int, reason: str) -> Iterator[World]:
    """Takes a run back. `reason` is the reaper's; whether it holds was read in this very script."""
    task = world.tasks[number]
    assert task.token is not None
    before = world
    world = release(grid, world, number, revoke=not grid.lacks("reap_no_revoke"))
    if grid.lacks("reap_keeps_tasks"):
        world = before
    if not may_run_again(grid, task):
        yield end(world, number, "failed")
        return
    counted = 0 if grid.lacks("reap_not_counted") else 1
    if task.recoveries + counted > grid.config.recoveries:
        yield end(world, number, "dead")
        return
    avoid = task.token.worker if grid.lacks("claim_avoid_enforced") and reason == "zombie" else ""
    task = world.tasks[number]._replace(recoveries=task.recoveries + counted, avoid=avoid)
    for queue in _places(grid, world, before.tasks[number].token, reason):
        yield enqueue(world, number, queue, task)


def _places(grid: Grid, world: World, token: Token | None, reason: str) -> list[str]:
    """After a zombie another home's own queue, where there is one; else any shared queue."""
    others = [n for n in grid.names if token and n != token.worker and grid.serves(world, n)]
    if reason == "zombie" and others:
        return [own(name) for name in others]
    return [pool(name) for name in grid.names]


def reap_reasons(grid: Grid, world: World, number: int) -> Iterator[str]:
    """The guards of reap that can be read in Redis; a passed deadline is a fault's choice."""
    token = world.tasks[number].token
    if world.tasks[number].state != "running" or token is None:
        return
    row = grid.row(world, token.worker)
    if not row.lease and not grid.held(world) and not grid.lacks("reap_no_dead"):
        yield "dead"
    if row.known and row.instance != token.instance and not grid.lacks("reap_no_instance"):
        yield "instance"


def move(grid: Grid, world: World, number: int) -> Iterator[World]:
    """A pending task goes where it can be served; that counts as nothing against it."""
    task = world.tasks[number]
    for queue in task.queues:
        for target in _better(grid, world, queue):
            kept = task.queues if grid.lacks("move_keeps_old") else frozenset()
            yield with_task(world, number, task._replace(queues=kept | {target}))


def _better(grid: Grid, world: World, queue: str) -> list[str]:
    kind, name = queue.split()
    others = [n for n in grid.names if n != name]
    idle = [n for n in others if grid.serves(world, n) and grid.free(world, n) > 0]
    if kind == "pool":
        return [] if grid.lacks("no_pool_move") else [pool(n) for n in idle]
    if grid.lacks("no_move"):
        return []
    if not grid.serves(world, name):
        doubted = grid.row(world, name).known and not grid.row(world, name).lease
        return [] if doubted and grid.held(world) else [pool(name)]
    return [pool(n) for n in idle] if grid.free(world, name) == 0 else []
