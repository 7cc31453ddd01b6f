"""What goes out to every engine, and failures in sentences."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from cogrid.engine import link as link_module
from cogrid.engine.api import EngineError, Fault
from cogrid.engine.call import Call, plainer
from cogrid.engine.error_text import TEXT_MAX, body_text
from cogrid.engine.failure import failure
from cogrid.engine.link import Link
from tests.engine.wire import head, server, silent

TYPE_ERROR = 'option "temperature" must be of type float32'
WHO = "Ollama at http://127.0.0.1:11434"


@pytest.fixture
async def heard() -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that answers {} and keeps the heads of what it was asked."""
    heads: list[bytes] = []

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            heads.append(await head(reader))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    async with server(speak) as url:
        yield url.removeprefix("http://"), heads


async def test_password_in_the_url_is_sent_and_not_shown(heard: tuple[str, list[bytes]]) -> None:
    place, heads = heard
    link = Link("the engine", f"http://ada:s3cret@{place}/base/")
    assert await link.get("/api/version") == {}
    assert heads[0].startswith(b"GET /base/api/version HTTP/1.1\r\n")
    assert b"Authorization: Basic YWRhOnMzY3JldA==\r\n" in heads[0]
    assert f"Host: {place}\r\n".encode() in heads[0]
    assert str(link) == f"the engine at http://{place}/base"
    await link.aclose()


async def test_key(heard: tuple[str, list[bytes]]) -> None:
    place, heads = heard
    link = Link("the engine", f"http://{place}", "sk-1")
    await link.get("/v1/models")
    assert b"Authorization: Bearer sk-1\r\n" in heads[0]
    await link.aclose()


async def test_a_question_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "ANSWER_S", 0.05)

    async with server(silent) as url:
        link = Link("Ollama", url)
        with pytest.raises(EngineError) as caught:
            await link.get("/api/ps")
        assert caught.value.fault is Fault.UNREACHABLE
        assert caught.value.message == f"{link} did not answer /api/ps within 0.05 s"


@pytest.mark.parametrize(
    ("status", "body", "fault", "message"),
    [
        (
            400,
            b'{"error":"bad prompt."}',
            Fault.REFUSED,
            f"{WHO} refused a request to 'm' (400 Bad Request: bad prompt)",
        ),
        (413, b"", Fault.REFUSED, f"{WHO} refused a request to 'm' (413 Request Entity Too Large)"),
        (
            422,
            b'{"detail":[{"loc":["body"],"msg":"no model"}]}',
            Fault.REFUSED,
            f"{WHO} refused a request to 'm' (422 Unprocessable Entity: no model)",
        ),
        (
            404,
            b'{"error":"model not found"}',
            Fault.MISSING,
            f"{WHO} has no model 'm' (404 Not Found: model not found)",
        ),
        (
            404,
            b"404 page not found",
            Fault.SERVER,
            f"{WHO} refused a request to 'm' (404 Not Found: 404 page not found)",
        ),
        (403, b"", Fault.SERVER, f"{WHO} refused a request to 'm' (403 Forbidden)"),
        (
            401,
            b'{"error":{"message":"bad key"}}',
            Fault.SERVER,
            f"{WHO} refused a request to 'm' (401 Unauthorized: bad key)",
        ),
        (
            429,
            b"slow down",
            Fault.BUSY,
            f"{WHO} refused a request to 'm' (429 Too Many Requests: slow down)",
        ),
        (
            503,
            b'{"error":{"message":"Loading model","code":503}}',
            Fault.BUSY,
            f"{WHO} refused a request to 'm' (503 Service Unavailable: Loading model)",
        ),
        (
            501,
            b'{"error":{"message":"start it with --embeddings"}}',
            Fault.REFUSED,
            f"{WHO} refused a request to 'm' (501 Not Implemented: start it with --embeddings)",
        ),
        (
            500,
            msgspec.json.encode({"error": TYPE_ERROR}),
            Fault.REFUSED,
            f"{WHO} refused a request to 'm' (500 Internal Server Error: {TYPE_ERROR})",
        ),
        (
            500,
            b'{"error":""}',
            Fault.SERVER,
            f"{WHO} refused a request to 'm' (500 Internal Server Error)",
        ),
        (
            502,
            b"<html><style>a{}</style><h1>Bad Gateway</h1>\n<p>nginx</p></html>",
            Fault.SERVER,
            f"{WHO} refused a request to 'm' (502 Bad Gateway: Bad Gateway nginx)",
        ),
        (302, b"", Fault.SERVER, f"{WHO} refused a request to 'm' (302 Found)"),
        (599, b"\xff\xfe", Fault.SERVER, f"{WHO} refused a request to 'm' (599: \ufffd\ufffd)"),
    ],
)
def test_failures_are_sentences(status: int, body: bytes, fault: Fault, message: str) -> None:
    error = failure(WHO, "m", status, body)
    assert (error.fault, error.status, error.message) == (fault, status, message)
    assert error.hint


def test_engine_words_are_bounded_and_on_one_line() -> None:
    assert body_text(b"a\nb\x1b[31m\tc") == "a b [31m c"
    assert len(body_text(b"x" * 10_000)) == TEXT_MAX


TOOLS = {"model": "m", "tools": [1], "tool_choice": "auto", "think": True}


@pytest.mark.parametrize(
    ("status", "text", "left"),
    [
        (400, '"m" does not support tools', {"model", "think"}),
        (400, '"m" does not support thinking', {"model", "tools", "tool_choice"}),
        (500, "tools param requires --jinja flag", {"model", "think"}),
        (400, '"auto" tool choice requires --enable-auto-tool-choice', {"model", "think"}),
        (
            400,
            "json: cannot unmarshal string into Go struct field ChatRequest.think of type bool",
            {"model", "tools", "tool_choice"},
        ),
        (400, "the prompt is too long", None),
        (404, "no tools here", None),
        (503, "thinking", None),
    ],
)
def test_plainer(status: int, text: str, left: set[str] | None) -> None:
    simpler = plainer(Call("/api/chat", TOOLS), status, text)
    assert (set(simpler.body) if simpler else None) == left


def test_plainer_has_an_end() -> None:
    assert plainer(Call("/api/chat", {"model": "m"}), 400, "does not support tools") is None
