"""A coordinator in the test's own loop, on a free port, with a scripted worker beside it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import httpx

from cogrid.config import Config
from cogrid.config import Coordinator as Settings
from cogrid.coordinator.serve import Coordinator
from cogrid.model.limits import Limits
from cogrid.model.names import TaskId
from cogrid.model.task import Task
from cogrid.model.worker import Offer
from cogrid.rules.route import Routing
from cogrid.store.address import parse_address
from cogrid.store.async_client import AsyncStore
from cogrid.store.reading import Reading
from cogrid.store.task_hashes import read_tasks
from tests.coordinator.script import ScriptedWorker
from tests.wait import POLL_S

T = TypeVar("T")

LIMITS = replace(
    Limits(),
    tick_s=0.05,
    block_s=0.5,
    client_renew_s=0.3,
    keepalive_s=0.15,
    background_delay_s=0.2,
    submit_timeout_s=1.0,
    orphan_grace_s=5.0,
)
MODEL = "gemma3:1b"


@dataclass(slots=True)
class Stage:
    """What a test works with. http: a client of the coordinator."""

    coordinator: Coordinator
    store: AsyncStore
    http: httpx.AsyncClient
    url: str
    running: asyncio.Task[None]
    workers: dict[str, ScriptedWorker] = field(default_factory=dict)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def worker(
        self, worker_id: str = "esxi", *offers: Offer, **options: Any
    ) -> ScriptedWorker:
        """A registered worker that the coordinator has seen."""
        worker = ScriptedWorker(self.store, worker_id, *offers, **options)
        await worker.register()
        await self.refresh()
        self.workers[worker_id] = worker
        return worker

    async def refresh(self) -> None:
        """The coordinator sees the grid as it is now. The first read may have been under way."""
        await self.coordinator.services.registry.refresh()
        await self.coordinator.services.registry.refresh()

    async def call(self, *command: Any) -> Any:
        """One plain command, for looking and meddling; the raw reply."""
        (reply,) = await self.store.read(_plain(command))
        return reply

    async def task(self, task_id: str) -> Task | None:
        """A task as it stands."""
        task = TaskId(task_id)
        return (await self.store.read(read_tasks(self.store.keys, (task,))))[task]

    async def state(self, task_id: str, state: str, within_s: float = 2.0) -> Task:
        """The task, as soon as it is in this state."""

        async def ask() -> Task | None:
            task = await self.task(task_id)
            return task if task and task.state == state else None

        found = await eventually(ask, within_s, f"task {task_id} to be {state}")
        assert found is not None
        return found

    async def pending(self, within_s: float = 2.0) -> str:
        """The id of the one task that is not over, as soon as there is one."""

        async def ask() -> list[bytes]:
            return list(await self.call("ZRANGE", self.store.keys.due, 0, -1))

        return (await eventually(ask, within_s, "a task"))[0].decode()

    async def stop(self) -> None:
        """Ends the coordinator, and waits for that."""
        self.coordinator.stop()
        await asyncio.wait_for(self.running, 20)


def _plain(command: tuple[Any, ...]) -> Reading[list[Any]]:
    return (yield [command])


@contextlib.asynccontextmanager
async def stage(
    url: str,
    *,
    limits: Limits = LIMITS,
    settings: Settings | None = None,
    routing: Routing | None = None,
    prefix: str = "",
    grace_s: float = 1.0,
) -> AsyncIterator[Stage]:
    """A coordinator on the server at ``url``."""
    config = Config(
        coordinator=settings or Settings(listen="127.0.0.1:0"),
        limits=limits,
        routing=routing or Routing(),
    )
    config = replace(config, redis=replace(config.redis, prefix=prefix))
    address = parse_address(url)
    coordinator = Coordinator(config, address, grace_s)
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(coordinator.run(listening.set_result))
    store = AsyncStore(address, prefix)
    try:
        await asyncio.wait((listening, running), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        async with httpx.AsyncClient(base_url=listening.result(), timeout=10) as http:
            made = Stage(coordinator, store, http, listening.result(), running)
            await eventually(lambda: answers(http), what="the coordinator to answer")
            yield made
        if not running.done():
            await made.stop()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        store.close()
        await asyncio.sleep(0)  # the transports close in the loop's next turn


async def eventually(ask: Callable[[], Awaitable[T]], within_s: float = 5.0, what: str = "") -> T:
    """Asks again and again until the answer is true, and returns it."""

    deadline = time.monotonic() + within_s
    while not (answer := await ask()):
        assert time.monotonic() < deadline, f"waited {within_s:g} s for {what or ask}: {answer!r}"
        await asyncio.sleep(POLL_S)
    return answer


async def answers(http: httpx.AsyncClient) -> bool:
    """True when the coordinator accepts a connection."""
    try:
        return (await http.get("/healthz")).status_code == 200
    except httpx.TransportError:
        return False


def chat(words: str = "hello", **fields: Any) -> dict[str, Any]:
    """A chat in either dialect."""
    return {"model": MODEL, "messages": [{"role": "user", "content": words}], **fields}


def events(text: str) -> list[Any]:
    """What server-sent events carry; comments are left out, [DONE] stays a text."""
    found = []
    for part in text.split("\n\n"):
        if part.startswith("data: "):
            data = part.removeprefix("data: ")
            found.append(data if data == "[DONE]" else json.loads(data))
    return found


def lines(text: str) -> list[Any]:
    """The objects of NDJSON; no line may be blank."""
    return [json.loads(line) for line in text.removesuffix("\n").split("\n")]


def content(chunks: list[Any]) -> str:
    """The text of OpenAI's chunks."""
    return "".join(
        choice["delta"].get("content") or ""
        for chunk in chunks
        if isinstance(chunk, dict)
        for choice in chunk.get("choices", ())
    )
