"""The way to one engine: questions, streamed answers, and failures told in sentences."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

import httpx
import msgspec

from cogrid.engine.answer import Answer
from cogrid.engine.api import ANSWER_S, CONNECT_S, Done, EngineError, Fault
from cogrid.engine.call import Call, plainer
from cogrid.engine.error_text import body_text
from cogrid.engine.failure import failure
from cogrid.engine.lines import Lines, LineTooLongError
from cogrid.engine.transport import EngineTransport
from cogrid.model.chat import Delta

DRAIN_S = 0.25
"""How long the end of HTTP is waited for behind the end of an answer, so that the connection can be
used again; it comes with the same packet or the next."""

ERROR_MAX_BYTES = 64 * 1024
"""More than this of an error is not read."""

_TIMEOUT = {"connect": CONNECT_S}

_encode = msgspec.json.Encoder().encode


class Link:
    """Speaks HTTP to one engine. name: what it is, for messages. url: without a slash at the end.

    key: its API key, if it wants one; user and password in the URL go out as basic authentication
    and are shown nowhere.
    """

    def __init__(self, name: str, url: str, key: str = "") -> None:
        given = httpx.URL(url)
        self.url = str(given.copy_with(userinfo=b"")).rstrip("/")
        self.name = name
        self._urls: dict[str, httpx.URL] = {}
        self._transport = EngineTransport()
        self._headers = [
            ("User-Agent", "cogrid"),
            ("Accept-Encoding", "identity"),  # packing tokens one by one would only hold them up
            ("Content-Type", "application/json"),
        ]
        if key:
            self._headers.append(("Authorization", f"Bearer {key}"))
        elif given.userinfo:
            pair = f"{given.username}:{given.password}".encode()
            self._headers.append(("Authorization", f"Basic {b64encode(pair).decode()}"))

    def __str__(self) -> str:
        return f"{self.name} at {self.url}"

    async def aclose(self) -> None:
        """Closes the connections that are kept."""
        await self._transport.aclose()

    async def get(self, path: str) -> dict[str, Any]:
        """The object that a question is answered with, within ANSWER_S."""
        return await self._ask("GET", path, None)

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The same for a question with a body."""
        return await self._ask("POST", path, body)

    async def once(
        self, call: Call, read: Callable[[bytes], tuple[Delta, Done]]
    ) -> tuple[Delta, Done]:
        """An answer that comes whole. Waits for as long as the engine takes."""
        began_s = time.monotonic()
        response = await self._begin(call)
        try:
            delta, done = read(await response.aread())
        except httpx.TransportError as error:
            raise EngineError(Fault.CUT, f"{self} broke its answer off: {error}") from error
        except msgspec.DecodeError as error:
            raise EngineError(Fault.SERVER, f"{self} sent what is no answer: {error}") from error
        except EngineError as error:
            raise self._named(error, call) from error
        finally:
            await response.aclose()
        return delta, done.timed(time.monotonic() - began_s)

    async def stream(self, call: Call, answer: Answer) -> AsyncGenerator[Delta | Done, None]:
        """An answer piece by piece, as ``Engine.stream`` promises it."""
        began_s = time.monotonic()
        response = await self._begin(call)
        body = response.stream
        assert isinstance(body, httpx.AsyncByteStream)
        try:
            async for data in body:
                for delta in answer.feed(data):
                    yield delta
                if answer.done or answer.failure:
                    break
            else:
                for delta in answer.close():
                    yield delta
            if answer.failure is None:
                await _drain(body)
        except httpx.TransportError as error:
            for delta in answer.close():
                yield delta
            if answer.done is None:
                raise EngineError(Fault.CUT, f"{self} broke its answer off: {error}") from error
        finally:
            await response.aclose()
        if answer.failure is not None:
            raise self._named(answer.failure, call)
        assert answer.done is not None
        yield answer.done.timed(time.monotonic() - began_s)

    async def lines(self, call: Call) -> AsyncGenerator[bytes, None]:
        """The lines of a streamed answer that is no chat, the last one also without its end."""
        response = await self._begin(call)
        body = response.stream
        assert isinstance(body, httpx.AsyncByteStream)
        lines = Lines()
        try:
            async for data in body:
                for line in lines.feed(data).splitlines():
                    yield line
            yield lines.rest()
        except httpx.TransportError as error:
            raise EngineError(Fault.CUT, f"{self} broke its answer off: {error}") from error
        except LineTooLongError as error:
            raise EngineError(Fault.SERVER, f"{self} sent what is no answer: {error}") from error
        finally:
            await response.aclose()

    async def delete(self, path: str, body: dict[str, Any]) -> None:
        """Has something thrown away, within ANSWER_S; the answer has nothing to tell."""
        try:
            async with asyncio.timeout(ANSWER_S):
                response = await self._send("DELETE", path, body)
                content = await self._content(response)
        except TimeoutError as error:
            message = f"{self} did not answer {path} within {ANSWER_S:g} s"
            raise EngineError(Fault.UNREACHABLE, message, "it hangs: restart it") from error
        if response.status_code != httpx.codes.OK:
            raise failure(str(self), str(body.get("model", "")), response.status_code, content)

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        try:
            async with asyncio.timeout(ANSWER_S):
                response = await self._send(method, path, body)
                content = await self._content(response)
        except TimeoutError as error:
            message = f"{self} did not answer {path} within {ANSWER_S:g} s"
            raise EngineError(Fault.UNREACHABLE, message, "it hangs: restart it") from error
        if response.status_code != httpx.codes.OK:
            raise failure(str(self), "", response.status_code, content)
        try:
            return msgspec.json.decode(content, type=dict[str, Any])
        except msgspec.DecodeError as error:
            message = f"{self} answered {path} with what is no JSON object: {error}"
            raise EngineError(Fault.SERVER, message, "is it an engine at all?") from error

    async def _begin(self, call: Call) -> httpx.Response:
        """Sends the call, and again without what this engine cannot do."""
        while True:
            response = await self._send("POST", call.path, call.body)
            if response.status_code == httpx.codes.OK:
                return response
            status = response.status_code
            content = await self._refusal(response)
            simpler = plainer(call, status, body_text(content))
            if simpler is None:
                raise failure(str(self), str(call.body.get("model", "")), status, content)
            call = simpler

    async def _send(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response:
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = httpx.URL(self.url + path)
        content = _encode(body) if body is not None else None
        request = httpx.Request(
            method, url, headers=self._headers, content=content, extensions={"timeout": _TIMEOUT}
        )
        try:
            return await self._transport.handle_async_request(request)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            hint = "start it, or give its address with --engine"
            raise EngineError(
                Fault.UNREACHABLE, f"{self} cannot be reached: {error}", hint
            ) from error
        except httpx.TransportError as error:
            message = f"{self} took a request and did not answer: {error}"
            raise EngineError(Fault.UNREACHABLE, message, "look into the engine's log") from error

    async def _refusal(self, response: httpx.Response) -> bytes:
        """The body of an error; b"" where that does not come either."""
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._content(response, ERROR_MAX_BYTES)
        except (TimeoutError, EngineError):
            return b""

    async def _content(self, response: httpx.Response, max_bytes: int | None = None) -> bytes:
        body = response.stream
        assert isinstance(body, httpx.AsyncByteStream)
        content = bytearray()
        try:
            async for data in body:
                content += data
                if max_bytes is not None and len(content) > max_bytes:
                    break
        except httpx.TransportError as error:
            message = f"{self} broke its answer off: {error}"
            raise EngineError(Fault.UNREACHABLE, message, "look into the engine's log") from error
        finally:
            await response.aclose()
        return bytes(content)

    def _named(self, error: EngineError, call: Call) -> EngineError:
        """An error found in an answer, with whose answer it is: "Ollama at … failed: …"."""
        message = f"{self}, asked for {call.body.get('model')!r}, {error.message}"
        return EngineError(error.fault, message, "look into the engine's log", error.status)


async def _drain(body: httpx.AsyncByteStream) -> None:
    with suppress(TimeoutError, httpx.TransportError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in body:
                pass
