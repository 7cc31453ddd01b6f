"""Models that the fault engine can be told to get, and to throw away."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from cogrid.engine.fault.http import Asked, Reply
from cogrid.engine.fault.model import FaultModel
from cogrid.engine.fault.switch import Mode, Switches
from cogrid.model.names import normal_model

STEPS = 4
"""Lines of progress for each layer of a pull."""


class Shelf:
    """What can be pulled, beside what is there. offers: by normal name; steps_s: between lines.

    The switches meet a pull as they meet an answer, with lines for tokens: STALL, CUT, UNFINISHED,
    ERROR_LINE after so many, DELAY between them, MISSING as Ollama says it.
    """

    def __init__(self, models: dict[str, FaultModel]) -> None:
        self.offers: dict[str, FaultModel] = {}
        self.steps_s = 0.0
        self._models = models

    def offer(self, *models: FaultModel) -> None:
        """These may be pulled from now on."""
        self.offers |= {normal_model(model.name): model for model in models}

    async def pull(self, asked: Asked, reply: Reply, switches: Switches) -> None:
        """/api/pull"""
        name = normal_model(str((asked.body() or {}).get("model", "")))
        met = switches.meet(name)
        await reply.begin("application/x-ndjson")
        model = self.offers.get(name) or self._models.get(name)
        if model is None or Mode.MISSING in met:
            await reply.chunk(_line(error="pull model manifest: file does not exist"))
            await reply.end()
            return
        delay_s = met[Mode.DELAY].seconds if Mode.DELAY in met else self.steps_s
        for n, line in enumerate(_lines(model)):
            if (stall := met.get(Mode.STALL)) and n == stall.after:
                await asyncio.Event().wait()
            if (cut := met.get(Mode.CUT)) and n == cut.after:
                reply.cut()
                return
            if (short := met.get(Mode.UNFINISHED)) and n == short.after:
                await reply.end()
                return
            if (bad := met.get(Mode.ERROR_LINE)) and n == bad.after:
                await reply.chunk(_line(error="write /models: no space left on device"))
                await reply.end()
                return
            await reply.chunk(line)
            await asyncio.sleep(delay_s)
        self._models[name] = model
        await reply.chunk(_line(status="success"))
        await reply.end()

    async def delete(self, asked: Asked, reply: Reply) -> None:
        """/api/delete"""
        name = str((asked.body() or {}).get("model", ""))
        if self._models.pop(normal_model(name), None) is None:
            await reply.whole({"error": f"model '{name}' not found"}, 404)
            return
        await reply.whole(b"")


def _lines(model: FaultModel) -> list[bytes]:
    """As Ollama's: the manifest, a large layer and a small one, and what it does afterwards."""
    small = model.size_bytes // 10
    layers = ((model.digest, model.size_bytes - small), (model.digest[::-1], small))
    lines = [_line(status="pulling manifest")]
    for digest, total in layers:
        for step in range(1, STEPS + 1):
            lines.append(
                _line(
                    status=f"pulling {digest[:12]}",
                    digest=f"sha256:{digest}",
                    total=total,
                    completed=total * step // STEPS,
                )
            )
    return [*lines, _line(status="verifying sha256 digest"), _line(status="writing manifest")]


def _line(**fields: Any) -> bytes:
    return msgspec.json.encode(fields) + b"\n"
