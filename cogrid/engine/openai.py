"""OpenAI-style servers: llama.cpp's, vLLM, LM Studio and their like."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from cogrid.engine import hardware
from cogrid.engine.address import is_here
from cogrid.engine.api import Done, EngineError, Fault, Listed
from cogrid.engine.link import Link
from cogrid.engine.openai_answer import OpenAIAnswer, read_embedded
from cogrid.engine.openai_models import Maker, listed_models, maker, raw_names
from cogrid.engine.probe import probe
from cogrid.engine.to_openai import to_openai
from cogrid.model.chat import Delta, Request
from cogrid.model.task import Kind

VLLM_PARALLEL = 16
"""vLLM batches whatever comes (256 at once by default), but each answer gets slower with every one
beside it; at this many a single GPU's throughput is near its best and chats are still quick."""


class OpenAIEngine:
    """One OpenAI-style server; an ``Engine``."""

    kind = "openai"

    def __init__(self, url: str, key: str = "") -> None:
        self._link = Link("the OpenAI-style engine", url, key)
        self.url = self._link.url
        self._raw_names: dict[str, str] = {}

    async def version(self) -> str:
        """vLLM and llama.cpp each have a way of their own to tell."""
        match await self._maker():
            case Maker.LLAMA_CPP:
                return str((await self._props()).get("build_info", ""))
            case Maker.VLLM:
                return str((await self._asked("/version")).get("version", ""))
        return ""

    async def listed(self) -> tuple[Listed, ...]:
        models = await self._models()
        about: dict[str, Any] = {}
        match maker(models):
            case Maker.LLAMA_CPP:
                about = await self._props()
            case Maker.LM_STUDIO:
                about = await self._asked("/api/v0/models")
        self._raw_names = raw_names(models)
        return listed_models(models, about)

    async def parallel(self) -> int:
        """llama.cpp says how many slots it has. Others work on one after another until they are
        known to do better."""
        match await self._maker():
            case Maker.LLAMA_CPP:
                slots = (await self._props()).get("total_slots")
                return slots if isinstance(slots, int) and slots > 0 else 1
            case Maker.VLLM:
                return VLLM_PARALLEL
        return 1

    async def gpu(self) -> bool:
        """None of them tells; vLLM is hardly ever run without, others as the machine is."""
        if is_here(self.url):
            return hardware.has_gpu()
        return await self._maker() is Maker.VLLM

    async def probe(self, model: Listed) -> None:
        await probe(self, model)

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Done, None]:
        call = to_openai(request, self._raw_names.get(request.model, ""))
        if request.kind is Kind.EMBED:
            for item in await self._link.once(call, read_embedded):
                yield item
            return
        async with aclosing(self._link.stream(call, OpenAIAnswer())) as items:
            async for item in items:
                yield item

    async def aclose(self) -> None:
        await self._link.aclose()

    async def _models(self) -> list[dict[str, Any]]:
        models = (await self._link.get("/v1/models")).get("data")
        return [m for m in models if isinstance(m, dict)] if isinstance(models, list) else []

    async def _maker(self) -> Maker:
        return maker(await self._models())

    async def _props(self) -> dict[str, Any]:
        return await self._asked("/props")

    async def _asked(self, path: str) -> dict[str, Any]:
        """The answer to a question that not every version understands; {} where it does not."""
        try:
            return await self._link.get(path)
        except EngineError as error:
            if error.fault is Fault.UNREACHABLE:
                raise
            return {}
