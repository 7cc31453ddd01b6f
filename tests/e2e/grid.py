"""A whole grid for one test: a server, and the daemons and engines that the test starts.

``async with Grid(directory, scale) as grid``: at the end everything must come to rest, the laws
must hold, and every daemon must end by itself when asked to. Whatever happens, all of it is ended
by its pid; where the test failed, the tails of the logs are in the report.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import httpx
import redis

from cogrid.engine.fault import FaultEngine, FaultModel, Outcome, Record
from cogrid.model.limits import Limits
from cogrid.rules.health import health
from cogrid.rules.moment import Moment
from cogrid.store.address import parse_address
from cogrid.store.client import Store
from cogrid.store.events import Event
from cogrid.store.snapshot import read_snapshot
from tests.cli.terminal import on_terminal
from tests.e2e.chat import Chat
from tests.e2e.daemon import Daemon
from tests.e2e.events import Log
from tests.e2e.host import Host
from tests.e2e.laws import open_work, violations
from tests.servers import VALKEY9, Server, free_port, launch
from tests.wait import until_async

MODEL = "gemma3:1b"
COMMAND_S = 60.0
SUBMIT_S = 2.0
PASS_WINDOW_S = 3.0
GHOST_AFTER_S = 8.0
QUEUE_TIMEOUT_S = 300.0
FIT = ("healthy", "busy")
COLUMNS = 100
OF_A_TERMINAL = ("COLUMNS", "NO_COLOR", "TERM")
LOOK_S = 0.1
"""Between two looks at what the coordinator sees; a fleet of tests would keep it busy else."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed. code: its exit status."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """stdout as the one document that it is."""
        return json.loads(self.out)


class Reachable(Protocol):
    """An engine of any make."""

    @property
    def url(self) -> str: ...


class Grid:
    """scale: of every time limit of its processes; tests multiply theirs by it too.

    rests: at the end all of the above is asked; False where the test has failed already.
    persist: its server loses nothing when it ends and starts again. more: environment of all of its
    processes, beside what they need.
    """

    def __init__(self, directory: Path, scale: float = 1.0, *, persist: bool = False) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.scale = scale
        self.persist = persist
        self.more: dict[str, str] = {}
        self.limits = Limits().scaled(scale)
        self.rests = True
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.daemons: dict[str, Daemon] = {}
        self.engines: list[FaultEngine] = []
        self._server: Server | None = None
        self._stack = contextlib.AsyncExitStack()

    @property
    def server(self) -> Server:
        """Its Redis."""
        assert self._server is not None
        return self._server

    async def __aenter__(self) -> Self:
        self._server = await asyncio.to_thread(launch, VALKEY9, persist=self.persist)
        self.redis: Any = redis.Redis.from_url(self.server.url, decode_responses=True)
        self.store = Store.connect(parse_address(self.server.url))
        self._log = Log(self.store)
        client = httpx.AsyncClient(
            base_url=self.url,
            timeout=None,  # a test limits its waits itself
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        )
        self.http = await self._stack.enter_async_context(client)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                await self._settle()
        except BaseException as late:
            error = late
            raise
        finally:
            if error is not None:
                for daemon in self.daemons.values():
                    error.add_note(daemon.tail)
            await self._end()

    def patient(self, ghost_after_s: float = GHOST_AFTER_S) -> None:
        """Nothing that a busy machine makes late is taken for a fault, however small the scale: not
        a pass, not a wait, and not the time between a registration and what the test does next."""
        own: dict[str, Any] = {
            "ghost_after_s": ghost_after_s,
            "pass_window_s": PASS_WINDOW_S,
            "queue_timeout_s": QUEUE_TIMEOUT_S,
        }
        self.limits = replace(self.limits, **own)
        self.more |= {
            f"COGRID_LIMITS_{name.upper()}": f"{seconds / self.scale:g}"
            for name, seconds in own.items()
        }

    # Its parts.

    async def engine(
        self, *models: str | FaultModel, gpu: bool = False, **options: Any
    ) -> FaultEngine:
        """An engine beside whose switches the test sits; it runs in the test's own loop. models:
        none for MODEL. gpu: that is in the memory of one."""
        model = FaultModel(MODEL, vram_bytes=1_000_000 if gpu else 0)
        engine = FaultEngine(models or (model,), **options)
        if gpu:
            engine.memory.loaded.add(model.tagged)
        await self._stack.enter_async_context(engine)
        self.engines.append(engine)
        return engine

    def coordinator(
        self,
        name: str = "coordinator",
        port: int = 0,
        redis: str = "",
        env: Mapping[str, str] | None = None,
    ) -> Daemon:
        """A coordinator, started. port: 0 for the one that ``chat`` asks."""
        words = ("coordinator", "run", "--listen", f"127.0.0.1:{port or self.port}")
        return self.daemon(name, words, {**self._redis(redis), **(env or {})})

    def reaper(self, name: str = "reaper", redis: str = "", patient: bool = False) -> Daemon:
        """A reaper, started. patient: it does not take passes that come late on a busy machine for
        an outage, however small the scale."""
        late = {"COGRID_LIMITS_PASS_WINDOW_S": f"{PASS_WINDOW_S / self.scale:g}"} if patient else {}
        return self.daemon(name, ("reaper", "--daemon"), {**self._redis(redis), **late})

    def worker(
        self,
        name: str,
        engine: Reachable,
        *,
        pool: str = "cpu",
        slots: int = 1,
        redis: str = "",
        worker_id: str = "",
        host: Host | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Daemon:
        """A worker, started. redis: another way to the server, such as through a proxy. worker_id:
        where it is not the daemon's name. host: a machine of its own."""
        who = ("--id", worker_id or name, "--pool", pool, "--slots", str(slots))
        words = ("worker", "run", *who, "--engine", engine.url)
        return self.daemon(name, words, {**self._redis(redis), **(env or {})}, host)

    def daemon(
        self,
        name: str,
        words: Sequence[str],
        env: Mapping[str, str],
        host: Host | None = None,
    ) -> Daemon:
        """``cogrid <words>``, started. host: on a machine of its own."""
        before = host.words(self.directory) if host else ()
        daemon = Daemon(name, tuple(words), {**self.env, **env}, self.directory, before)
        self.daemons[name] = daemon
        daemon.start()
        return daemon

    def _redis(self, url: str) -> dict[str, str]:
        return {"COGRID_REDIS_URL": url} if url else {}

    @property
    def env(self) -> dict[str, str]:
        """The environment of its processes."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith("COGRID_")}
        return {
            **kept,
            "HOME": str(self.directory),
            "XDG_STATE_HOME": str(self.directory / "state"),
            "XDG_CONFIG_HOME": str(self.directory / "config"),
            "COGRID_REDIS_URL": self.server.url,
            "COGRID_CLIENT_URL": self.url,
            "COGRID_TIME_SCALE": f"{self.scale:g}",
            # An acknowledgement is no wait for anything, so a busy machine needs all of its time.
            "COGRID_LIMITS_SUBMIT_TIMEOUT_S": f"{SUBMIT_S / self.scale:g}",
            **self.more,
        }

    async def begin(self) -> None:
        """A coordinator and a reaper, past the hold with which a first reaper begins (one lease,
        in which nobody is taken for dead)."""
        self.coordinator()
        self.reaper()
        await self.up()

    async def up(self, *workers: str, within_s: float = 30.0) -> None:
        """These workers are fit, the coordinator has seen that, and no reaper holds back."""

        def ask() -> Awaitable[bool] | bool:
            return self._shows(workers)

        await until_async(ask, within_s, f"{', '.join(workers) or 'the coordinator'} to be up")
        if "reaper" in self.daemons:
            await until_async(self.is_calm, within_s, "the reaper's hold to end")

    def is_calm(self) -> bool:
        """A reaper passes, and holds nothing back."""
        hold_ms = self.redis.hget("grid:reaper", "hold_until")
        return hold_ms is not None and int(hold_ms) < self.now_ms()

    def now_ms(self) -> int:
        """The time in Redis."""
        seconds, micros = self.redis.time()
        return int(seconds * 1000 + micros // 1000)

    async def _shows(self, workers: tuple[str, ...]) -> bool:
        try:
            answer = await self.http.get("/workers")
        except httpx.TransportError:
            return False
        rows = answer.json()["workers"] if answer.status_code == 200 else []
        if {row["id"] for row in rows if row["health"] in FIT}.issuperset(workers):
            return True
        await asyncio.sleep(LOOK_S)
        return False

    # Asking.

    def chat(
        self,
        words: str = "hello",
        *,
        model: str = MODEL,
        worker: str = "",
        stream: bool = True,
        ollama: bool = False,
        status: bool = False,
        headers: Mapping[str, str] | None = None,
        url: str = "",
        **fields: Any,
    ) -> Chat:
        """A chat that has just been sent off. worker: the one that it asks for. status: with Open
        WebUI's status events. url: of another coordinator."""
        path = "/api/chat" if ollama else "/v1/chat/completions"
        body = {
            "model": model,
            "messages": [{"role": "user", "content": words}],
            "stream": stream,
            **fields,
        }
        asked = {
            **({"X-Cogrid-Worker": worker} if worker else {}),
            **({"X-Cogrid-Status": "1"} if status else {}),
            **(headers or {}),
        }
        return Chat(self.http, url + path, body, asked)

    async def on_terminal(
        self, *words: str, typed: str = "", cues: Sequence[tuple[str, str]] = ()
    ) -> Said:
        """A command on a terminal, where somebody types; out: everything it showed."""
        env = {name: text for name, text in self.env.items() if name not in OF_A_TERMINAL}
        run = partial(on_terminal, *words, columns=COLUMNS, typed=typed, cues=cues, **env)
        return Said(*await asyncio.to_thread(run), "")

    async def cogrid(self, *words: str) -> Said:
        """A command of the command line."""
        done = await asyncio.to_thread(
            subprocess.run,
            (sys.executable, "-m", "cogrid.cli.main", *words),
            env=self.env,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    # Looking.

    def events(self, *edges: str, task: str = "") -> list[Event]:
        """The event log; of these edges, of this task."""
        return [
            event
            for event in self._log.read()
            if (not edges or event.edge in edges) and (not task or event.task == task)
        ]

    def edges(self) -> Counter[str]:
        """How often each transition happened."""
        return Counter(event.edge for event in self.events())

    def field(self, task: str, name: str) -> str:
        """A field of a task's hash, "" where there is none."""
        return self.redis.hget(f"task:{task}", name) or ""

    def depth(self, queue: str) -> int:
        """How many wait in a queue."""
        return int(self.redis.zcard(queue))

    def poll_age_s(self, worker: str) -> float:
        """Seconds since its claim loop was last heard of."""
        polled_ms = int(self.redis.hget(f"worker:{worker}", "polled_at") or 0)
        return (self.now_ms() - polled_ms) / 1000

    def health(self, worker: str) -> str:
        """Its health, in the word of ``cogrid status``."""
        snapshot = self.store.read(read_snapshot(self.store.keys, info=False))
        found = snapshot.worker(worker)
        return health(found, Moment(snapshot.taken_at_ms, self.limits)) if found else ""

    def is_ready(self, worker: str) -> bool:
        """Redis has it as one that works."""
        return bool(self.redis.hget(f"worker:{worker}", "state") == "ready")

    async def happens(self, edge: str, *, task: str = "", within_s: float = 10.0) -> Event:
        """The first such event."""
        found = await until_async(lambda: self.events(edge, task=task), within_s, f"{edge} {task}")
        return found[0]

    async def at_rest(self, within_s: float = 15.0) -> None:
        """No task is open, no slot is taken."""

        def resting() -> bool:
            return not open_work(self.redis)

        try:
            await until_async(resting, within_s)
        except AssertionError:
            raise AssertionError(f"no rest: {open_work(self.redis)}") from None

    async def _settle(self) -> None:
        if self.rests:
            await self.at_rest()
            found = violations(self.redis, self.events())
            assert not found, "\n".join(found)
            await until_async(self._engines_rest, 2, "the engines to be let go")
            await self._stop()

    def _engines_rest(self) -> bool:
        """A slot is free as soon as its connection is closed; its engine sees that a moment later,
        the more so behind a proxy."""
        return not any(open_requests(engine) for engine in self.engines)

    async def _stop(self) -> None:
        running = [daemon for daemon in self.daemons.values() if daemon.runs]
        codes = await asyncio.gather(*(daemon.stop() for daemon in running))
        assert not any(codes), dict(zip((daemon.name for daemon in running), codes, strict=True))

    async def _end(self) -> None:
        for daemon in self.daemons.values():
            daemon.end()
        await self._stack.aclose()
        self.store.close()
        self.redis.close()
        await asyncio.to_thread(self.server.close)


def open_requests(engine: FaultEngine) -> list[Record]:
    """What the engine is still working on."""
    return [record for record in engine.records.all if record.outcome is Outcome.OPEN]


def chats(engine: FaultEngine) -> list[Record]:
    """The requests that came from clients: all but the worker's own one-token probes."""
    return [r for r in engine.records.all if not is_probe(r)]


def is_probe(record: Record) -> bool:
    """A sanity probe asks for one token, which no chat of these tests does."""
    options = record.body.get("options")
    limit = options.get("num_predict") if isinstance(options, dict) else None
    return 1 in (limit, record.body.get("max_tokens"))


def said(tokens: int) -> str:
    """The fault engine's answer of so many tokens."""
    return "".join(f"{n} " for n in range(tokens))
