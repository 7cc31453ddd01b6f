"""One request to a model of the fault engine, from the first switch to the last byte."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, NoReturn

from cogrid.engine.demo import embed
from cogrid.engine.fault.http import Reply
from cogrid.engine.fault.model import FaultModel
from cogrid.engine.fault.record import Outcome, Record, Records
from cogrid.engine.fault.script import Script, script
from cogrid.engine.fault.switch import Mode, Switch
from cogrid.engine.fault.voice import OllamaVoice, OpenAIVoice, Voice
from cogrid.model.chat import Delta, Usage

GENERATES = ("/api/generate", "/v1/completions")
EMBEDS = ("/api/embed", "/v1/embeddings")
PATHS = ("/api/chat", "/v1/chat/completions", *GENERATES, *EMBEDS)

SPLIT_S = 0.002
"""Between the two halves of a character: long enough for two packets."""

_REFUSALS = {
    Mode.SERVER_ERROR: (500, "the model runner has died"),
    Mode.BUSY: (503, "server busy, please try again.  maximum pending requests exceeded"),
    Mode.REFUSE: (400, "the prompt is longer than the context"),
}
_PAGE = b"<html><head><title>502</title></head><body><h1>Bad Gateway</h1></body></html>"


@dataclass(slots=True)
class Memory:
    """Which models are loaded, and the work that is done at once. parallel: 0 for no limit."""

    parallel: int = 0
    loaded: set[str] = field(default_factory=set)
    _loading: dict[str, asyncio.Lock] = field(default_factory=dict)
    _slots: asyncio.Semaphore | None = None

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.parallel) if self.parallel else None

    async def load(self, model: FaultModel) -> float:
        """Waits until it is loaded; returns the seconds that took."""
        began_s = time.monotonic()
        async with self._loading.setdefault(model.tagged, asyncio.Lock()):
            if model.tagged in self.loaded:
                return 0.0
            await asyncio.sleep(model.load_s)
            self.loaded.add(model.tagged)
        return time.monotonic() - began_s

    async def enter(self) -> None:
        """Waits for a slot, unseen from outside."""
        if self._slots is not None:
            await self._slots.acquire()

    def leave(self) -> None:
        """Frees the slot."""
        if self._slots is not None:
            self._slots.release()


@dataclass(slots=True)
class Run:
    """Plays one request. body: its JSON. model: None where the engine has none of that name.

    tokens, delay_s: of an answer, where no switch says otherwise.
    """

    path: str
    body: dict[str, Any]
    model: FaultModel | None
    met: dict[Mode, Switch]
    reply: Reply
    record: Record
    records: Records
    memory: Memory
    tokens: int
    delay_s: float

    async def play(self) -> Outcome:
        """The whole request; how it ended."""
        if Mode.HANG in self.met:
            await _forever()
        for mode, (status, text) in _REFUSALS.items():
            if mode in self.met:
                return await self._refuse(status, text)
        if Mode.HTML_ERROR in self.met:
            await self.reply.whole(_PAGE, 502, "text/html")
            return Outcome.FAILED
        if self.model is None or Mode.MISSING in self.met:
            return await self._refuse(404, f"model '{self.record.model}' not found")
        lacking = self._lacking(self.model)
        if lacking:
            return await self._refuse(400, f'"{self.record.model}" does not support {lacking}')
        return await self._work(self.model)

    async def _work(self, model: FaultModel) -> Outcome:
        began_s = time.monotonic()
        load_s = await self.memory.load(model)
        await self.memory.enter()
        try:
            if Mode.SLOW_FIRST in self.met:
                await asyncio.sleep(self.met[Mode.SLOW_FIRST].seconds)
            if self.path in EMBEDS:
                return await self._embed()
            plan = script(self.body, self.met, self.tokens)
            usage = Usage(plan.prompt_tokens, len(plan.pieces), load_s)
            if self.body.get("stream", self.path.startswith("/api/")):
                return await self._stream(plan, usage, began_s)
            await self.reply.whole(self._voice().whole(_joined(plan), plan.reason, usage))
            return Outcome.DONE
        finally:
            self.memory.leave()

    async def _stream(self, plan: Script, usage: Usage, began_s: float) -> Outcome:
        voice = self._voice()
        delay_s = self.met[Mode.DELAY].seconds if Mode.DELAY in self.met else self.delay_s
        await self.reply.begin(voice.content_type)
        for number in range(len(plan.pieces) + 1):
            if await self._broken(number, len(plan.pieces), voice):
                return Outcome.FAILED
            if number < len(plan.pieces):
                await asyncio.sleep(delay_s)
                await self._say(voice.piece(plan.pieces[number]))
        total = Usage(
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.load_s,
            total_s=time.monotonic() - began_s,
        )
        await self.reply.chunk(voice.end(plan.reason, total))
        await self.reply.end()
        return Outcome.DONE

    async def _say(self, data: bytes) -> None:
        if Mode.SPLIT in self.met:
            cut = next(n for n, byte in enumerate(data) if byte > 0x7F) + 1
            await self.reply.chunk(data[:cut])
            await asyncio.sleep(SPLIT_S)
            data = data[cut:]
        await self.reply.chunk(data)
        self.records.token(self.record)

    async def _broken(self, number: int, last: int, voice: Voice) -> bool:
        """Breaks the stream before piece ``number`` where a switch says so; True if it did."""
        here = {mode for mode, switch in self.met.items() if min(switch.after, last) == number}
        if Mode.STALL in here:
            await _forever()
        if Mode.CUT in here:
            self.reply.cut()
            return True
        if Mode.ERROR_LINE in here:
            await self.reply.chunk(voice.error("an error was encountered: unexpected EOF"))
        elif Mode.GARBAGE in here:
            await self.reply.chunk(b"data: {]\n\n" if self._is_openai else b"{]\n")
        elif Mode.UNFINISHED not in here:
            return False
        await self.reply.end()
        return True

    async def _embed(self) -> Outcome:
        delta, done = embed(self.body.get("input"))
        tokens = done.usage.prompt_tokens
        if self._is_openai:
            data = [
                {"object": "embedding", "index": index, "embedding": vector}
                for index, vector in enumerate(delta.embeddings)
            ]
            counts = {"prompt_tokens": tokens, "total_tokens": tokens}
            answer: dict[str, Any] = {"object": "list", "data": data, "usage": counts}
        else:
            answer = {"embeddings": delta.embeddings, "prompt_eval_count": tokens}
        await self.reply.whole(answer | {"model": self.record.model})
        return Outcome.DONE

    async def _refuse(self, status: int, text: str) -> Outcome:
        error: Any = text
        if self._is_openai:
            error = {"message": text, "type": "api_error", "param": None, "code": None}
        await self.reply.whole({"error": error}, status)
        return Outcome.FAILED

    def _lacking(self, model: FaultModel) -> str:
        """What the request asks for and the model cannot do; Ollama refuses that, others do not
        ask."""
        if self._is_openai:
            return ""
        asked = {"tools": self.body.get("tools"), "thinking": self.body.get("think")}
        return next((w for w, v in asked.items() if v and w not in model.capabilities), "")

    def _voice(self) -> Voice:
        generate = self.path in GENERATES
        if not self._is_openai:
            return OllamaVoice(self.record.model, generate)
        options = self.body.get("stream_options")
        include = isinstance(options, dict) and bool(options.get("include_usage"))
        return OpenAIVoice(self.record.model, generate, include)

    @property
    def _is_openai(self) -> bool:
        return self.path.startswith("/v1/")


def _joined(plan: Script) -> Delta:
    said = Delta()
    for piece in plan.pieces:
        said += piece
    return said


async def _forever() -> NoReturn:
    while True:
        await asyncio.Event().wait()
