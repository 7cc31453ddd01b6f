"""What happens to the grid: late copies, deaths that only a lease shows, operators, failover."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import tasks, workers
from tests.model.explore import Act, Kind, Step
from tests.model.state import Grid, Hello, Late, Row, Task, World, spend, with_row

Steps = Iterator[Step[World]]


def steps(grid: Grid, world: World) -> Steps:
    for name in grid.names:
        yield from _lease_out(grid, world, name)
        yield from _operator(grid, world, name)
    if world.late is not None:
        yield from _arrival(grid, world, world.late)
    if world.budget.failover or world.epoch:
        yield from _failover(grid, world)


def _lease_out(grid: Grid, world: World, name: str) -> Steps:
    """Certain once nobody renews it; a fault (a frozen host, a cut network) while one lives."""
    row = grid.row(world, name)
    if not row.lease:
        return
    index = grid.index(name)
    if not _renewed_by_somebody(grid, world, name):
        after = with_row(world, index, row._replace(lease=False))
        yield Step(Act("lease out", name), after)
        return
    frozen = spend(world, "freeze")
    if frozen is not None:
        after = with_row(frozen, index, row._replace(lease=False))
        yield Step(Act("frozen, lease out", name), after, Kind.FAULT)


def _renewed_by_somebody(grid: Grid, world: World, name: str) -> bool:
    row = grid.row(world, name)
    return any(
        owner == name
        and process.mode != "off"
        and (process.instance == row.instance or not row.known)
        for (owner, _), process in zip(grid.config.processes, world.processes, strict=True)
    )


def _operator(grid: Grid, world: World, name: str) -> Steps:
    row = grid.row(world, name)
    if not row.known:
        return
    yield from _wish(grid, world, name)
    deleted = spend(world, "delete")
    if deleted is not None:
        gone = Row(lease=row.lease, tasks=row.tasks, revoked=row.revoked)
        after = with_row(deleted, grid.index(name), gone)
        yield Step(Act("DEL", name), after, Kind.FAULT)
    forgetting = None if row.lease else spend(world, "forget")
    if forgetting is not None:
        for after in workers.forget(grid, forgetting, name):
            yield Step(Act("forget", name), after, Kind.FAULT)


def _wish(grid: Grid, world: World, name: str) -> Steps:
    """What the operator wants is written down; the next renew obeys."""
    row = grid.row(world, name)
    index = grid.index(name)
    if row.wanted == "drain":
        after = with_row(world, index, row._replace(wanted="run"))
        yield Step(Act("undrain", name), after, Kind.FAULT)
        return
    draining = spend(world, "drain")
    if draining is not None:
        after = with_row(draining, index, row._replace(wanted="drain"))
        yield Step(Act("drain", name), after, Kind.FAULT)


def _arrival(grid: Grid, world: World, late: Late) -> Steps:
    world = world._replace(late=None)
    yield Step(Act("late copy never arrives"), world)
    if late.hello is not None:
        yield from _late_hello(grid, world, late.worker, late.hello)
    if late.call == "claim":
        for claimed in workers.claim(grid, world, late.worker, late.instance, late.claim, 1):
            act = Act("late claim", late.worker, detail=f"k{late.claim}")
            yield Step(act, claimed.world, Kind.FAULT)
    elif late.call == "renew":
        yield from _late_renew(grid, world, late)
    elif late.call == "append":
        assert late.token is not None
        after, _ = tasks.append(grid, world, late.task, late.token, late.n)
        yield Step(Act("late append", task=late.task), after, Kind.FAULT)
    elif late.call == "reap":
        yield from _stale_reap(grid, world, late)


def _late_hello(grid: Grid, world: World, name: str, hello: Hello) -> Steps:
    row = grid.row(world, name)
    if not workers.hello_refused(grid, row, hello):
        after = with_row(world, grid.index(name), workers.hello_row(grid, world, row, hello))
        yield Step(Act("late hello", name), after, Kind.FAULT)


def _late_renew(grid: Grid, world: World, late: Late) -> Steps:
    row = grid.row(world, late.worker)
    if row.known and row.instance == late.instance:
        renewed = workers.renew_row(grid, row, late.instance, late.claim, late.pairs)
        after = with_row(world, grid.index(late.worker), renewed)
        yield Step(Act("late renew", late.worker), after, Kind.FAULT)


def _stale_reap(grid: Grid, world: World, late: Late) -> Steps:
    """The reaper acts on what it read a while ago; its script reads everything again."""
    task = world.tasks[late.task]
    still = task.token == late.token and "dead" in tasks.reap_reasons(grid, world, late.task)
    if grid.lacks("reap_on_stale_read"):
        still = task.state == "running"
    if grid.lacks("reap_no_token"):
        still = "dead" in tasks.reap_reasons(grid, world, late.task)
    for after in tasks.reap(grid, world, late.task, "dead") if still else ():
        yield Step(Act("reap", task=late.task, detail=("dead", late.token)), after, Kind.FAULT)


def _failover(grid: Grid, world: World) -> Steps:
    """Replication stops at some moment; the server that takes over knows that moment only."""
    if world.replica is None and world.budget.failover:
        yield Step(Act("replicate"), world._replace(replica=(world.tasks, world.rows)), Kind.FAULT)
    failed = spend(world, "failover")
    if failed is not None and world.replica is not None:
        yield from _taken_over(grid, failed, world.replica)
    if world.hold == "unseen":
        yield Step(Act("a pass begins"), world._replace(hold="on"))
    if world.hold == "on" and _all_renewed(grid, world):
        yield Step(Act("hold over"), world._replace(hold="over"))


def _taken_over(
    grid: Grid, world: World, replica: tuple[tuple[Task, ...], tuple[Row, ...]]
) -> Steps:
    """The leases in the copy may be fresh, or look as if they had run out long ago."""
    known, rows = replica
    hold = "over" if grid.lacks("no_hold") else "unseen"
    after = world._replace(tasks=known, rows=rows, replica=None, hold=hold, epoch=world.epoch + 1)
    yield Step(Act("FAILOVER"), after, Kind.FAULT)
    old = tuple(row._replace(lease=False) for row in rows)
    yield Step(Act("FAILOVER, old leases"), after._replace(rows=old), Kind.FAULT)


def _all_renewed(grid: Grid, world: World) -> bool:
    """A hold lasts a lease, and a lease at least three renews: whoever lives has renewed."""
    return all(
        grid.row(world, name).known and grid.row(world, name).lease
        for (name, _), process in zip(grid.config.processes, world.processes, strict=True)
        if process.mode in ("up", "leaving")
    )
