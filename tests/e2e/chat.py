"""A client of the coordinator that writes down everything it is told, and when."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import httpx

from tests.wait import until_async


class Ending(StrEnum):
    """How a request ended for its client."""

    ANSWER = "answer"
    ERROR = "error"
    REFUSED = "refused"
    """A status of 400 or above, before anything else."""
    BROKEN = "broken"
    """The connection died without a word, or the stream ended without a proper end."""
    LEFT = "left"
    """The client itself went away."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One event or line of a stream. at_s: monotonic. data: None for comments and [DONE]."""

    at_s: float
    raw: str
    data: dict[str, Any] | None


class Chat:
    """One request on its way, from its start on. Await ``ended``, or ``leave``."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        path: str,
        body: dict[str, Any],
        headers: dict[str, str],
    ) -> None:
        self.path = httpx.URL(path).path
        self.stream: bool = body.get("stream", path.startswith("/api/"))
        self.started_s = time.monotonic()
        self.ended_s = 0.0
        self.status = 0
        self.headers: dict[str, str] = {}
        self.frames: list[Frame] = []
        self.body: Any = None
        self.broke = ""
        self._left = False
        self._request = (client, path, body, headers)
        self._task = asyncio.create_task(self._run())

    # What it was told.

    @property
    def task(self) -> str:
        """The id of its task, "" where none was told."""
        return self.headers.get("x-cogrid-task", "")

    @property
    def text(self) -> str:
        """The answer as far as it came."""
        if not self.stream:
            return _said(self.body) if isinstance(self.body, dict) else ""
        return "".join(_said(frame.data) for frame in self.frames if frame.data)

    @property
    def tokens(self) -> int:
        """How many words of the answer came."""
        return len(self.text.split())

    @property
    def told(self) -> list[str]:
        """The status lines, each once, in their order."""
        lines: list[str] = []
        for frame in self.frames:
            event = (frame.data or {}).get("event")
            if event and event["data"]["description"] not in lines[-1:]:
                lines.append(event["data"]["description"])
        return lines

    @property
    def error(self) -> str:
        """The sentence of its error, "" where there was none."""
        bodies = [self.body] if isinstance(self.body, dict) else []
        for data in (*bodies, *(frame.data for frame in self.frames if frame.data)):
            if "error" in data:
                error = data["error"]
                return str(error["message"] if isinstance(error, dict) else error)
        return ""

    @property
    def ran(self) -> dict[str, Any]:
        """The ``cogrid`` object of its last piece."""
        bodies = [self.body] if isinstance(self.body, dict) else []
        found = [
            data["cogrid"]
            for data in (*bodies, *(frame.data for frame in self.frames if frame.data))
            if "cogrid" in data
        ]
        return found[-1] if found else {}

    @property
    def first_s(self) -> float:
        """Seconds to the first text."""
        at = next((f.at_s for f in self.frames if f.data and _said(f.data)), 0.0)
        return at - self.started_s if at else 0.0

    @property
    def took_s(self) -> float:
        """Seconds to its end."""
        return self.ended_s - self.started_s

    @property
    def ending(self) -> Ending:
        """How it ended."""
        if self._left:
            return Ending.LEFT
        if self.status >= 400:
            return Ending.REFUSED
        if self.error:
            return Ending.ERROR
        if self.broke or (self.stream and not self._proper):
            return Ending.BROKEN
        return Ending.ANSWER

    @property
    def _proper(self) -> bool:
        if self.path.startswith("/api/"):
            return any(frame.data and frame.data.get("done") for frame in self.frames)
        return any(frame.raw == "data: [DONE]" for frame in self.frames)

    def faults(self) -> list[str]:
        """What no stream may do: go on behind its end, end twice, change its id, both fail and
        end."""
        if not self.stream or self.status >= 400:
            return []
        found = []
        ends = [n for n, frame in enumerate(self.frames) if _ends(frame)]
        if len(ends) > 1:
            found.append(f"{len(ends)} ends")
        if ends and ends[0] != len(self.frames) - 1:
            found.append(f"{len(self.frames) - 1 - ends[0]} frames behind the end")
        reasons = [frame.data for frame in self.frames if frame.data and _finished(frame.data)]
        if len(reasons) > 1:
            found.append(f"{len(reasons)} finish reasons")
        if self.error and reasons:
            found.append("an error and a finish reason")
        told = [frame.data for frame in self.frames if frame.data]
        for name in ("id", "created"):
            values = {data[name] for data in told if name in data}
            if len(values) > 1:
                found.append(f"{name} changed: {values}")
        return found

    # What a test waits for.

    async def ended(self, within_s: float) -> Ending:
        """Its end, which must come in that time (counted from now)."""
        async with asyncio.timeout(within_s):
            await asyncio.shield(self._task)
        assert not self.faults(), self.faults()
        return self.ending

    async def accepted(self, within_s: float = 10.0) -> str:
        """The id of its task, as soon as the headers are there."""
        return await until_async(lambda: self.task, within_s, "a task to be accepted")

    async def let_in(self, within_s: float = 10.0) -> bool:
        """True as soon as the headers of an answer are there, False for a refusal."""
        await until_async(lambda: self.status or self.ended_s, within_s, "headers or a refusal")
        return 0 < self.status < 400

    async def reaches(self, tokens: int, within_s: float = 10.0) -> None:
        """So many words of the answer have come."""
        await until_async(lambda: self.tokens >= tokens, within_s, f"{tokens} tokens")

    async def leave(self) -> None:
        """Closes the connection, now."""
        self._left = True
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        client, url, body, headers = self._request
        try:
            async with client.stream("POST", url, json=body, headers=headers) as response:
                self.status = response.status_code
                self.headers = dict(response.headers)
                if self.stream and self.status < 400:
                    async for line in response.aiter_lines():
                        self._take(line)
                else:
                    self.body = json.loads(await response.aread())
        except httpx.TransportError as error:
            self.broke = repr(error)
        finally:
            self.ended_s = time.monotonic()

    def _take(self, line: str) -> None:
        if not line:
            return
        said = line if self.path.startswith("/api/") else line.removeprefix("data: ")
        data = json.loads(said) if said.startswith("{") else None
        self.frames.append(Frame(time.monotonic(), line, data))


def _said(data: dict[str, Any]) -> str:
    if "choices" in data:
        choice = (data["choices"] or [{}])[0]
        said = choice.get("delta") or choice.get("message") or {}
        return str(said.get("content") or choice.get("text") or "")
    return str((data.get("message") or {}).get("content") or data.get("response") or "")


def _finished(data: dict[str, Any]) -> bool:
    choices = data.get("choices") or [{}]
    return bool(choices[0].get("finish_reason") or data.get("done"))


def _ends(frame: Frame) -> bool:
    data = frame.data or {}
    return frame.raw == "data: [DONE]" or bool(data.get("done")) or "error" in data
