"""Tasks that ask for nothing, through one worker process: what the grid itself costs.

The worker is a real one with the demonstration engine at delay 0. The tasks are submitted while it
works, from this process, as a coordinator does it; each is claimed, answered and kept with its
result, with fencing, events and the append-only file.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import uvloop

from benchmarks.grid import Grid
from benchmarks.table import Row, row
from cogrid.engine.demo import DELAY_ENV, MODEL
from cogrid.model.chat import Dialect, Request, encode_request
from cogrid.model.names import TaskId, shared_queue
from cogrid.model.task import Kind, OnClose
from cogrid.store.async_client import AsyncStore
from cogrid.store.keys import Keys
from cogrid.store.reading import Reading, certain
from cogrid.store.tasks import Submission, submit

GOAL_PER_S = 3000.0
SLOTS = 64
SUBMITTERS = 32
POOL = "cpu"
WAIT_S = 60.0
POLL_S = 0.005

_BODY = encode_request(
    Request(Kind.CHAT, Dialect.OPENAI, MODEL, {"messages": [{"role": "user", "content": "hi"}]})
)


@dataclass(frozen=True, slots=True)
class Drained:
    """One repeat. per_s: from the first submit to the last end. cpu_us: a task, by process."""

    per_s: float
    cpu_us: dict[str, float]


def measure(tasks: int, repeats: int) -> list[Row]:
    """A row for the machine's own redis-server, to which the goal belongs, and one for the embedded
    server; only that one where there is no other."""
    own = shutil.which("redis-server")
    if own is None:
        return [_row("no-op tasks", "", tasks, repeats, GOAL_PER_S)]
    return [
        _row("no-op tasks", own, tasks, repeats, GOAL_PER_S),
        _row("no-op tasks, embedded server", "", tasks, repeats, None),
    ]


def _row(name: str, server: str, tasks: int, repeats: int, goal: float | None) -> Row:
    with Grid(server) as grid:
        grid.worker("demo", SLOTS, **{DELAY_ENV: "0"})
        numbers = count()
        uvloop.run(_drain(grid, max(1, tasks // 10), numbers))  # the worker has started, is warm
        runs = [_timed(grid, tasks, numbers) for _ in range(repeats)]
        server = grid.server.name
    middle = sorted(runs, key=lambda run: run.per_s)[len(runs) // 2]
    used = ", ".join(f"{who} {us:.0f}" for who, us in middle.cpu_us.items())
    note = f"{server}; CPU us a task: {used}"
    return row(name, [run.per_s for run in runs], "tasks/s", goal, note=note)


def _timed(grid: Grid, tasks: int, numbers: Iterator[int]) -> Drained:
    before, own_s = grid.cpu_s(), time.process_time()
    seconds = uvloop.run(_drain(grid, tasks, numbers))
    own_s = time.process_time() - own_s
    used = {name: after - before[name] for name, after in grid.cpu_s().items()}
    used["submitter"] = own_s
    return Drained(tasks / seconds, {name: s / tasks * 1e6 for name, s in used.items()})


async def _drain(grid: Grid, tasks: int, numbers: Iterator[int]) -> float:
    """Submits so many tasks and waits for the last to end; seconds."""
    store = grid.server.async_store()
    left = iter(range(tasks))
    start_s = time.perf_counter()
    try:
        await asyncio.gather(*(_submit_all(store, left, numbers) for _ in range(SUBMITTERS)))
        while await store.read(_open_tasks(store.keys)):
            worker = grid.processes["worker"]
            if time.perf_counter() - start_s > WAIT_S or not worker.runs:
                raise RuntimeError(f"the worker is late, or has ended: {worker.last_lines()}")
            await asyncio.sleep(POLL_S)
        return time.perf_counter() - start_s
    finally:
        store.close()


async def _submit_all(store: AsyncStore, left: Iterator[int], numbers: Iterator[int]) -> None:
    queue = shared_queue(POOL, MODEL)
    for _ in left:
        task = Submission(
            id=TaskId(f"noop{next(numbers)}"),
            kind=Kind.CHAT,
            model=MODEL,
            queue=queue,
            shared=queue,
            body=_BODY,
            user="bench",
            streamed=False,
            on_close=OnClose.KEEP,
            queue_max=1_000_000,
        )
        submitted = await store.do(submit(store.keys, task))
        assert submitted.status == "new", submitted


def _open_tasks(keys: Keys) -> Reading[int]:
    (reply,) = yield [("ZCARD", keys.due)]
    return int(certain(reply))
