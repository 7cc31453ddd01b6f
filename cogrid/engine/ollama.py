"""Ollama, by its own API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any

from cogrid.engine import hardware
from cogrid.engine.address import is_here, port
from cogrid.engine.api import ANSWER_S, Done, EngineError, Fault, Listed
from cogrid.engine.call import Call
from cogrid.engine.library import Progress
from cogrid.engine.link import Link
from cogrid.engine.ollama_answer import OllamaAnswer, read_embedded
from cogrid.engine.ollama_models import Loaded, Told, listed_model, loaded_models, told
from cogrid.engine.ollama_pull import PullLines
from cogrid.engine.probe import probe
from cogrid.engine.to_ollama import to_ollama
from cogrid.model.chat import Delta, Request
from cogrid.model.names import normal_model
from cogrid.model.task import Kind

_PULL_HINT = "check the model's name, the way to its registry, and the disk's free space"


class OllamaEngine:
    """One Ollama server; an ``Engine``."""

    kind = "ollama"

    def __init__(self, url: str, key: str = "") -> None:
        self._link = Link("Ollama", url, key)
        self.url = self._link.url
        self._told: dict[str, Told] = {}

    async def version(self) -> str:
        return str((await self._link.get("/api/version")).get("version", ""))

    async def listed(self) -> tuple[Listed, ...]:
        """What a model can do is asked once for each digest. Where a machine has so many models
        that the asking takes too long, the rest count as chat models until the next call."""
        deadline_s = asyncio.get_running_loop().time() + ANSWER_S
        tags = _models(await self._link.get("/api/tags"))
        loaded = await self._loaded()
        with suppress(TimeoutError, EngineError):
            async with asyncio.timeout_at(deadline_s):
                await self._learn(tags)
        return tuple(
            listed_model(tag, self._told.get(_identity(tag)), loaded.get(normal_model(_name(tag))))
            for tag in tags
            if _name(tag)
        )

    async def parallel(self) -> int:
        """What OLLAMA_NUM_PARALLEL says, where the server runs here and it can be seen; else 1,
        Ollama's own default."""
        if not is_here(self.url):
            return 1
        return await asyncio.to_thread(hardware.ollama_parallel, port(self.url)) or 1

    async def gpu(self) -> bool:
        """A loaded model tells; with none loaded, the machine does, if it is this one."""
        loaded = await self._loaded()
        if loaded:
            return any(model.vram_bytes > 0 for model in loaded.values())
        return is_here(self.url) and hardware.has_gpu()

    async def probe(self, model: Listed) -> None:
        await probe(self, model)

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Done, None]:
        call = to_ollama(request)
        if request.kind is Kind.EMBED:
            for item in await self._link.once(call, read_embedded):
                yield item
            return
        async with aclosing(self._link.stream(call, OllamaAnswer())) as items:
            async for item in items:
                yield item

    async def pull(self, model: str) -> AsyncGenerator[Progress, None]:
        """A ``Library``'s. A stream that ends without saying that it has everything has not."""
        lines = PullLines()
        call = Call("/api/pull", {"model": model})
        async with aclosing(self._link.lines(call)) as stream:
            async for line in stream:
                if not line.strip():
                    continue
                try:
                    progress = lines.read(line)
                except EngineError as error:
                    message = f"{self._link}, asked to pull {model!r}, {error.message}"
                    raise EngineError(error.fault, message, _PULL_HINT) from error
                yield progress
        if not lines.done:
            message = f"{self._link} ended the pull of {model!r} before it had everything"
            raise EngineError(Fault.CUT, message, "pull once more: it goes on where it stopped")

    async def remove(self, model: str) -> None:
        """A ``Library``'s."""
        await self._link.delete("/api/delete", {"model": model})

    async def aclose(self) -> None:
        await self._link.aclose()

    async def _loaded(self) -> dict[str, Loaded]:
        return loaded_models(_models(await self._link.get("/api/ps")))

    async def _learn(self, tags: list[dict[str, Any]]) -> None:
        for tag in tags:
            identity = _identity(tag)
            if identity in self._told:
                continue
            about = tag
            if not isinstance(tag.get("capabilities"), list):
                try:
                    about = tag | await self._link.post("/api/show", {"model": _name(tag)})
                except EngineError as error:
                    if error.fault is Fault.UNREACHABLE:
                        raise
                    continue  # gone since, or broken: it counts as a chat model
            self._told[identity] = told(about)


def _models(answer: dict[str, Any]) -> list[dict[str, Any]]:
    models = answer.get("models")
    return [m for m in models if isinstance(m, dict)] if isinstance(models, list) else []


def _name(tag: dict[str, Any]) -> str:
    return str(tag.get("model") or tag.get("name") or "")


def _identity(tag: dict[str, Any]) -> str:
    return f"{_name(tag)}@{tag.get('digest', '')}"
