"""The fault engine itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Self

import msgspec

from cogrid import __version__
from cogrid.engine.fault import listing
from cogrid.engine.fault.http import Asked, Reply, read_ahead, read_request
from cogrid.engine.fault.model import FaultModel
from cogrid.engine.fault.record import Outcome, Record, Records
from cogrid.engine.fault.run import PATHS, Memory, Run
from cogrid.engine.fault.script import TOKENS
from cogrid.engine.fault.shelf import Shelf
from cogrid.engine.fault.switch import Mode, Switch, Switches
from cogrid.model.names import normal_model


class FaultEngine:
    """An HTTP server on ``host``; ``url`` once it runs.

    dialect: ``ollama``, ``openai`` or ``both``. tokens, delay_s: of an answer. parallel:
    requests that it works on at once, the others wait inside it, unseen, as in Ollama; 0: no limit.
    """

    def __init__(
        self,
        models: Iterable[str | FaultModel] = ("gemma3:1b",),
        *,
        dialect: str = "both",
        tokens: int = TOKENS,
        delay_s: float = 0.0,
        parallel: int = 0,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        given = [FaultModel(m) if isinstance(m, str) else m for m in models]
        self.models = {normal_model(model.name): model for model in given}
        self.dialect = dialect
        self.switches = Switches()
        self.records = Records()
        self.memory = Memory(parallel)
        self.url = ""
        self._host, self._port = host, port
        self._tokens, self._delay_s = tokens, delay_s
        self.shelf = Shelf(self.models)
        self._connections = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listens; ``url`` says where."""
        self._server = await asyncio.start_server(self._accept, self._host, self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://{self._host}:{self._port}"

    async def stop(self) -> None:
        """Stops listening and breaks what is open. ``start`` listens on the same port again."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def set(self, mode: Mode, **how: Any) -> None:
        """Turns a switch on: ``engine.set(Mode.STALL, after=5)``."""
        self.switches.set(Switch(mode, **how))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._connections += 1
        try:
            await self._serve(reader, writer, self._connections)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> None:
        """Requests of one connection, one after another, until either side closes it."""
        ahead = b""
        while asked := await read_request(reader, ahead):
            record: list[Record] = []
            work = asyncio.create_task(self._answer(asked, Reply(writer), connection, record))
            gone = asyncio.create_task(read_ahead(reader))
            try:
                await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not work.done() and not gone.result():
                    for each in record:
                        self.records.end(each, Outcome.ABORTED)
                    return
                await work
                ahead = gone.result() if gone.done() else b""
            finally:
                work.cancel()
                gone.cancel()
                await asyncio.gather(work, gone, return_exceptions=True)
            if writer.is_closing():
                return

    async def _answer(
        self, asked: Asked, reply: Reply, connection: int, record: list[Record]
    ) -> None:
        if asked.path.startswith("/fault"):
            return await self._control(asked, reply)
        other = {"ollama": "/v1/", "openai": "/api/"}.get(self.dialect)
        if other and asked.path.startswith(other):
            return await reply.whole(b"404 page not found", 404)
        if asked.path == "/api/pull":
            return await self.shelf.pull(asked, reply, self.switches)
        if asked.path == "/api/delete":
            return await self.shelf.delete(asked, reply)
        if asked.path in PATHS and asked.method == "POST":
            return await self._run(asked, reply, connection, record)
        return await self._tell(asked, reply)

    async def _control(self, asked: Asked, reply: Reply) -> None:
        if asked.path == "/fault/requests":
            return await reply.whole({"requests": self.records.all})
        if asked.method == "POST":
            try:
                self.switches.set(msgspec.json.decode(asked.content, type=Switch))
            except msgspec.DecodeError as error:
                return await reply.whole({"error": f"no such switch: {error}"}, 400)
        if asked.method == "DELETE":
            self.switches.clear()
        return await reply.whole(
            {
                "switches": self.switches.all,
                "requests": len(self.records.all),
                "running": self.records.running,
                "peak": self.records.peak,
                "aborted": self.records.count(Outcome.ABORTED),
                "loaded": sorted(self.memory.loaded),
            }
        )

    async def _run(
        self, asked: Asked, reply: Reply, connection: int, records: list[Record]
    ) -> None:
        body = asked.body()
        if body is None:
            return await reply.whole({"error": "missing request body"}, 400)
        record = self.records.begin(connection, asked.path, body)
        records.append(record)
        model = normal_model(record.model)
        run = Run(
            asked.path,
            body,
            self.models.get(model),
            self.switches.meet(model),
            reply,
            record,
            self.records,
            self.memory,
            self._tokens,
            self._delay_s,
        )
        outcome = Outcome.FAILED
        try:
            outcome = await run.play()
        except ConnectionError:
            outcome = Outcome.ABORTED
        finally:
            self.records.end(record, outcome)

    async def _tell(self, asked: Asked, reply: Reply) -> None:
        models = tuple(self.models.values())
        match asked.path:
            case "/":
                await reply.whole(b"Ollama is running")
            case "/api/version":
                await reply.whole({"version": __version__})
            case "/api/tags":
                await reply.whole(listing.tags(models))
            case "/api/ps":
                if self.switches.has(Mode.WEDGED_PS):
                    await asyncio.Event().wait()
                loaded = (model for model in models if model.tagged in self.memory.loaded)
                await reply.whole(listing.ps(loaded))
            case "/api/show":
                await self._show(asked, reply)
            case "/v1/models":
                await reply.whole(listing.openai_models(models))
            case "/props" if self.dialect != "ollama":
                await reply.whole(listing.props(models, self.memory.parallel, __version__))
            case _:
                await reply.whole(b"404 page not found", 404)

    async def _show(self, asked: Asked, reply: Reply) -> None:
        name = str((asked.body() or {}).get("model", ""))
        model = self.models.get(normal_model(name))
        if model is None:
            await reply.whole({"error": f"model '{name}' not found"}, 404)
        else:
            await reply.whole(listing.show(model))
