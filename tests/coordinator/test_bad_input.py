"""Bad input of every kind: a 4xx with a sentence in the dialect of the path, and no task."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cogrid.coordinator import wire
from cogrid.coordinator.answer import ENDPOINTS
from cogrid.coordinator.asked import Asked
from cogrid.coordinator.errors import RefusedError
from tests.coordinator.stage import MODEL, Stage, chat

BAD: list[tuple[str, Any, str]] = [
    ("nothing", b"", "no body"),
    ("no JSON", b"{", "not JSON"),
    ("no object", b"[1]", "a list"),
    ("no UTF-8", b'{"model":"\xff"}', "not JSON"),
    ("a lone surrogate", b'{"model":"\\ud800"}', "not JSON"),
    ("depth", b"[" * 100_000, "nested"),
    ("hidden depth", b'{"model":"m","x":' + b"[" * 500 + b"]" * 500 + b"}", "nested"),
    ("no model", {"messages": [{"role": "user", "content": "x"}]}, "model is required"),
    ("model null", chat(model=None), "model is required"),
    ("model empty", chat(model=" "), "model is required"),
    ("model 1", chat(model=1), "model must be a text, not the number 1"),
    ("model unknown", chat(model="gemma3:2b"), "did you mean 'gemma3:1b'?"),
    ("model with spaces", chat(model="my model"), "'my model' is not known"),
    ("model ../x", chat(model="../x"), "'../x' is not known"),
    ("model x:body", chat(model="x:body"), "'x:body' is not known"),
    ("model with controls", chat(model="a\r\nb"), "control characters"),
    ("model with NUL", chat(model="a\x00"), "control characters"),
    ("model too long", chat(model="m" * 300), "at most 256"),
    ("stream a text", chat(stream="yes"), "stream must be true or false, not the text 'yes'"),
    ("messages a text", {"model": MODEL, "messages": "x"}, "messages must be a list"),
    ("a message a text", {"model": MODEL, "messages": ["x"]}, "messages[0] must be an object"),
    ("no role", {"model": MODEL, "messages": [{"content": "x"}]}, "messages[0].role"),
    (
        "content 1",
        {"model": MODEL, "messages": [{"role": "user", "content": 1}]},
        "messages[0].content must be",
    ),
    ("tools a text", chat(tools="x"), "tools must be a list"),
]
OPENAI: list[tuple[str, Any, str]] = [
    ("messages empty", {"model": MODEL, "messages": []}, "missing or empty"),
    ("n 2", chat(n=2), "n is more than 1"),
    ("n 0", chat(n=0), "n must be a whole number above 0"),
    ("max_tokens a text", chat(max_tokens="many"), "max_tokens must be a whole number"),
    ("temperature true", chat(temperature=True), "temperature must be a number, not true"),
    ("stop an object", chat(stop={}), "stop must be a text or a list of texts"),
    ("stream_options a list", chat(stream_options=[]), "stream_options must be an object"),
]
OLLAMA: list[tuple[str, Any, str]] = [
    ("options a list", chat(options=[]), "options must be an object"),
    ("num_ctx a text", chat(options={"num_ctx": "big"}), "num_ctx must be a whole number"),
    ("format 1", chat(format=1), "format must be"),
    ("keep_alive a list", chat(keep_alive=[]), "keep_alive must be"),
    ("think 1", chat(think=1), "think must be"),
]
CASES = [
    *[("/v1/chat/completions", *case) for case in (*BAD, *OPENAI)],
    *[("/api/chat", *case) for case in (*BAD, *OLLAMA)],
    ("/v1/completions", "prompts", {"model": MODEL, "prompt": ["a", "b"]}, "prompt is a list"),
    ("/v1/embeddings", "no input", {"model": MODEL}, "input must be"),
    ("/v1/embeddings", "input empty", {"model": MODEL, "input": []}, "input is empty"),
    (
        "/v1/embeddings",
        "form",
        {"model": MODEL, "input": "x", "encoding_format": "int8"},
        "encoding_format must be float or base64",
    ),
    ("/v1/embeddings", "a chat model", {"model": MODEL, "input": "x"}, "cannot make embeddings"),
    ("/api/embed", "input 1", {"model": MODEL, "input": 1}, "input must be"),
    ("/api/embeddings", "no prompt", {"model": MODEL}, "prompt must be a text"),
    ("/api/generate", "prompt 1", {"model": MODEL, "prompt": 1}, "prompt must be a text"),
]


async def test_bad_requests_get_a_sentence_and_no_task(grid: Stage) -> None:
    for path, name, body, sentence in CASES:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = await grid.http.post(path, content=data)
        assert 400 <= answer.status_code < 500, (path, name, answer.text)
        assert answer.headers["content-type"] == "application/json"
        error = answer.json()["error"]
        message = error if path.startswith("/api/") else error["message"]
        assert sentence in message, (path, name, message)
        assert message.isprintable()
    assert await tasks_ever(grid) == 0


async def tasks_ever(grid: Stage) -> int:
    said = await grid.call("HGET", grid.store.keys.totals, "submitted")
    return int(said or 0)


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ({"X-Cogrid-Worker": "../x"}, "no worker's name"),
        ({"X-Cogrid-On-Close": "explode"}, "X-Cogrid-On-Close is 'explode'"),
        ({"Idempotency-Key": "k" * 300}, "longer than 255"),
    ],
)
async def test_bad_headers(grid: Stage, headers: dict[str, str], sentence: str) -> None:
    answer = await grid.http.post("/v1/chat/completions", json=chat(), headers=headers)
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/chat"])
@pytest.mark.parametrize("chunked", [True, False])
async def test_a_body_of_20_mb_is_refused(grid: Stage, path: str, chunked: bool) -> None:
    body = json.dumps(chat("x" * 20_000_000)).encode()

    async def pieces() -> Any:
        for first in range(0, len(body), 100_000):
            yield body[first : first + 100_000]

    answer = await grid.http.post(path, content=pieces() if chunked else body)
    assert answer.status_code == 413
    assert "the limit is 8388608" in answer.text
    assert await tasks_ever(grid) == 0


async def test_it_is_refused_before_it_was_read(grid: Stage) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", grid.port)
    writer.write(b"POST /api/chat HTTP/1.1\r\nHost: ::1\r\nContent-Length: 9000000\r\n\r\n{")
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    assert head.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in head
    assert await asyncio.wait_for(reader.readuntil(b"}"), 5)
    writer.close()
    await writer.wait_closed()


async def test_wrong_methods_and_paths(grid: Stage) -> None:
    for method, path, status in (
        ("GET", "/v1/chat/completions", 405),
        ("PUT", "/api/chat", 405),
        ("POST", "/v1/models", 405),
        ("GET", "/api/show", 405),
        ("GET", "/nothing", 404),
        ("GET", "/v1/models/nothing", 404),
        ("POST", "/api/pull", 404),
        ("GET", "/task/..%2fx", 404),
        ("GET", "/task/a-b", 400),
        ("GET", "/task/nosuchtask", 404),
        ("DELETE", "/task/nosuchtask", 404),
        ("GET", "/task/nosuchtask/events", 404),
    ):
        answer = await grid.http.request(method, path)
        assert answer.status_code == status, (method, path, answer.text)
        assert answer.json()["error"]


async def test_http_that_is_none(grid: Stage) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", grid.port)
    writer.write(b"\x16\x03\x01 hello\r\n\r\n")
    assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 400 ")
    writer.close()
    await writer.wait_closed()
    assert (await grid.http.get("/healthz")).status_code == 200


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "HEAD_S", 0.3)


async def dribbled(grid: Stage, *first: bytes) -> bytes:
    """What is answered to one who sends this, and then a header without end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", grid.port)
    for piece in first:
        writer.write(piece)

    async def dribble() -> None:
        while first:
            writer.write(b"a")
            await asyncio.sleep(0.05)

    dribbling = asyncio.create_task(dribble())
    try:
        return await asyncio.wait_for(reader.read(), 5)
    finally:
        dribbling.cancel()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@pytest.mark.usefixtures("impatient")
async def test_headers_come_within_a_time(grid: Stage) -> None:
    answer = await dribbled(grid, b"POST /api/chat HTTP/1.1\r\nHost: h\r\nX-Slow: ")
    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert answer.endswith(
        b'{"error":"the request\'s headers were not complete within 0.3 s: send it again"}'
    )
    asked = b"GET /healthz HTTP/1.1\r\nHost: h\r\n"
    answer = await dribbled(grid, asked + b"\r\n", asked)
    assert [answer.count(b"HTTP/1.1 200"), answer.count(b"HTTP/1.1 408")] == [1, 1]


@pytest.mark.usefixtures("impatient")
async def test_who_says_nothing_is_not_listened_to_for_ever(grid: Stage) -> None:
    assert await dribbled(grid) == b""


@pytest.mark.usefixtures("impatient")
async def test_a_connection_may_rest_between_requests(grid: Stage) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", grid.port)
    for _ in range(2):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
        assert head.startswith(b"HTTP/1.1 200 ")
        length = re.search(rb"content-length: (\d+)", head)
        assert length
        await reader.readexactly(int(length[1]))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.5)
    writer.close()
    await writer.wait_closed()


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
names = st.sampled_from(
    ["model", "messages", "stream", "tools", "prompt", "input", "options", "n", "stop", "format",
     "images", "stream_options", "keep_alive", "encoding_format", "system", "think"]
)  # fmt: skip
bodies = st.dictionaries(names | st.text(max_size=8), values, max_size=6)


def understood(read: Callable[[bytes], Asked], data: bytes) -> Asked | RefusedError:
    """What a request was taken for, or why it was refused."""
    try:
        return read(data)
    except RefusedError as refusal:
        return refusal


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=bodies, model=st.booleans())
def test_any_object_is_understood_or_refused(body: dict[str, Any], model: bool) -> None:
    if model:
        body["model"] = MODEL
    data = json.dumps(body).encode()
    for endpoint in ENDPOINTS.values():
        asked = understood(endpoint.read, data)
        if isinstance(asked, RefusedError):
            assert 400 <= asked.status < 500
            assert asked.sentence.isprintable()
        else:
            assert asked.model
            assert asked.request("m").payload["model"] == "m"


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_understood_or_refused(data: bytes) -> None:
    for endpoint in ENDPOINTS.values():
        with pytest.raises(RefusedError) as caught:
            endpoint.read(data)
        assert caught.value.status == 400


async def test_the_connection_is_good_for_another_request(grid: Stage) -> None:
    async with httpx.AsyncClient(
        base_url=grid.url, limits=httpx.Limits(max_connections=1)
    ) as client:
        assert (await client.post("/api/chat", content=b"{")).status_code == 400
        assert (await client.get("/v1/models")).status_code == 200
