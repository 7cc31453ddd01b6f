"""A grid around a worker under test: submits, looks, and lets the worker live in this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cogrid.config import Config
from cogrid.config.settings import Worker as WorkerSettings
from cogrid.engine.api import Engine
from cogrid.model.chat import Delta, Dialect, End, Entry, Request, encode_request
from cogrid.model.limits import Limits
from cogrid.model.names import Queue, TaskId, shared_queue
from cogrid.model.task import Kind, OnClose, State, Task
from cogrid.model.worker import Worker, WorkerState
from cogrid.store.address import Address, parse_address
from cogrid.store.async_client import AsyncStore
from cogrid.store.output import entry
from cogrid.store.snapshot import read_snapshot
from cogrid.store.task_hashes import read_tasks
from cogrid.store.tasks import Submission, submit
from cogrid.worker.life import Life
from tests.wait import until_async

MODEL = "gemma3:1b"


@dataclass(slots=True)
class Grid:
    """limits: those of every worker that lives here."""

    address: Address
    directory: Path
    limits: Limits
    store: AsyncStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = AsyncStore(self.address)

    async def submit(self, task: str, model: str = MODEL, queue: str = "", **fields: Any) -> None:
        """A chat, streamed unless said otherwise, into the shared queue of pool cpu."""
        payload = {"model": model, "messages": [{"role": "user", "content": "hello there"}]}
        body = encode_request(Request(Kind.CHAT, Dialect.OPENAI, model, payload))
        shared = shared_queue("cpu", model)
        submission = Submission(
            TaskId(task), Kind.CHAT, model, Queue(queue or shared), shared, body, "ada",
            **{"on_close": OnClose.KEEP, **fields},
        )  # fmt: skip
        submitted = await self.store.do(submit(self.store.keys, submission))
        assert submitted.status == "new", submitted

    async def raw(self, *command: str) -> Any:
        """A plain command."""

        def once() -> Any:
            return (yield [command])

        (reply,) = await self.store.read(once())
        return reply

    async def log(self, task: str) -> list[Entry]:
        """Everything in a task's log."""
        raw = await self.raw("XRANGE", self.store.keys.out(task), "-", "+")
        return [entry(each) for each in raw]

    async def text(self, task: str) -> str:
        """The text of a task so far, of all its runs."""
        items = [each.item for each in await self.log(task)]
        return "".join(item.content for item in items if isinstance(item, Delta))

    async def task(self, task: str) -> Task:
        """A task's hash."""
        found = (await self.store.read(read_tasks(self.store.keys, (TaskId(task),))))[TaskId(task)]
        assert found is not None, f"there is no task {task}"
        return found

    async def in_state(self, task: str, state: State) -> Task:
        """The task once it is in that state."""

        async def there() -> Task | None:
            now = await self.task(task)
            return now if now.state is state else None

        found = await until_async(there, what=f"{task} to be {state}")
        assert found is not None
        return found

    async def end(self, task: str) -> End:
        """The one end of a task, once it is there."""

        async def ended() -> End | None:
            items = [each.item for each in await self.log(task)]
            ends = [item for item in items if isinstance(item, End)]
            assert len(ends) <= 1
            return ends[0] if ends else None

        found = await until_async(ended, what=f"{task} to end")
        assert found is not None
        return found

    async def worker(self, worker: str = "esxi") -> Worker | None:
        """A worker's hash."""
        return (await self.store.read(read_snapshot(self.store.keys, info=False))).worker(worker)

    async def worker_is(self, state: WorkerState, worker: str = "esxi") -> Worker:
        """The worker once it says that it is in that state."""

        async def there() -> Worker | None:
            now = await self.worker(worker)
            return now if now and now.known and now.state is state else None

        found = await until_async(there, what=f"{worker} to be {state}")
        assert found is not None
        return found

    @contextlib.asynccontextmanager
    async def living(
        self,
        beside: Engine | None,
        *,
        ready: bool = True,
        machine: str = "",
        **settings: Any,
    ) -> AsyncIterator[Living]:
        """A worker named esxi beside this engine, ready; it is told to leave at the end. machine:
        another name is another machine, with lock files of its own."""
        worker = WorkerSettings(**{"id": "esxi", **settings})
        config = Config(worker=worker, limits=self.limits)
        life = Life(config, self.address, self.directory / f"machine{machine}", beside)
        living = Living(life, asyncio.create_task(life.run()))
        try:
            if ready:
                await self.worker_is(WorkerState.READY, worker.id)
            yield living
        finally:
            await living.ended()


@dataclass(slots=True)
class Living:
    """A worker that lives in this process."""

    life: Life
    task: asyncio.Task[int]

    async def ended(self) -> int:
        """Told to leave, twice; its exit status."""
        self.life.leave()
        self.life.leave()
        return await self.task


def a_grid(url: str, directory: Path, scale: float, **limits: Any) -> Grid:
    """A grid on this server with scaled limits, some of them replaced."""
    return Grid(parse_address(url), directory, replace(Limits().scaled(scale), **limits))
