"""The engine that a worker finds at its start."""

from __future__ import annotations

import asyncio

import pytest

from cogrid.config import Config, Worker
from cogrid.engine.api import EngineError
from cogrid.engine.find import find
from cogrid.worker.start import find_place
from tests.engine.wire import head, server

MODELS = b'{"data":[{"id":"m"}]}'


async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """An OpenAI-style server that answers nobody who does not know its key."""
    while asked := await head(reader):
        knows = b"Authorization: Bearer sk-1\r\n" in asked
        path = asked.split(b" ")[1]
        status = b"200 OK" if knows and path == b"/v1/models" else b"404 Not Found"
        status, body = (status, MODELS) if knows else (b"401 Unauthorized", b"{}")
        writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))


async def test_an_engine_that_wants_a_key_is_given_the_configured_one() -> None:
    async with server(guarded) as url:
        config = Config(worker=Worker(engine=url, engine_key="sk-1", slots=1))
        place = await find_place(config, None, lambda: None)
        assert (place.engine.kind, place.engine.url) == ("openai", url)
        await place.engine.aclose()


async def test_without_it_the_refusal_names_the_setting() -> None:
    async with server(guarded) as url:
        with pytest.raises(EngineError) as refused:
            await find(url)
        assert refused.value.status == 401
        assert "worker.engine_key" in refused.value.hint
