"""Bad input of every kind, through a real coordinator beside a real worker: a 4xx with a sentence
in the form of its dialect, in a moment, and the engine hears of nothing."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.e2e.door import AT_ONCE_S, Door, open_door, sentence
from tests.e2e.grid import MODEL, chats

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

MESSAGES = [{"role": "user", "content": "hi"}]
GOOD: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": MODEL, "messages": MESSAGES},
    "/v1/completions": {"model": MODEL, "prompt": "hi"},
    "/v1/embeddings": {"model": MODEL, "input": "hi"},
    "/api/chat": {"model": MODEL, "messages": MESSAGES},
    "/api/generate": {"model": MODEL, "prompt": "hi"},
    "/api/embed": {"model": MODEL, "input": "hi"},
}
CHATS = ("/v1/chat/completions", "/api/chat")

BYTES = {
    "nothing": b"",
    "blank": b" \n",
    "text": b"hello",
    "half": b'{"model": "gemma3:1b", "messages": [',
    "two": b'{"model": "gemma3:1b"} {}',
    "null": b"null",
    "list": b"[1]",
    "number": b"1",
    "not a number": b'{"model": "gemma3:1b", "temperature": NaN}',
    "too large a number": b'{"model": "gemma3:1b", "temperature": 1e999}',
    "a number of 5000 digits": b'{"seed": ' + b"9" * 5000 + b"}",
    "Latin-1": '{"model": "café"}'.encode("latin-1"),
    "cut inside a character": '{"model": "語'.encode()[:-1],
    "half a surrogate": b'{"model": "\\ud800"}',
    "a model of bytes": b'{"model": "\xff\xfe\x00"}',
    "deep": b'{"x":' * 50_000 + b"1" + b"}" * 50_000,
    "deep lists": b"[" * 200_000,
    "deep inside": b'{"model": "gemma3:1b", "x": ' + b"[" * 600 + b"]" * 600 + b"}",
    "a form": b"model=gemma3%3A1b&prompt=hi",
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
}

_TEXTISH: tuple[Any, ...] = (1, True, [], {})
_NUMBERISH: tuple[Any, ...] = ("1", True, [], {})
_OBJECTISH: tuple[Any, ...] = (1, "x", True, [])
COMMON: dict[str, tuple[Any, ...]] = {"model": (*_TEXTISH, "", " "), "stream": (1, "true", [], {})}
FIELDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "/v1/chat/completions": {
        "messages": (1, "hi", {}, [], None, [1], ["hi"], [[]], [{}]),
        "tools": (1, "x", {}, [1], ["weather"]),
        "tool_choice": (1, True, []),
        "response_format": _OBJECTISH,
        "stream_options": _OBJECTISH,
        "n": (0, -1, 2, 1.5, "1"),
        **dict.fromkeys(("temperature", "top_p", "presence_penalty"), _NUMBERISH),
        **dict.fromkeys(("max_tokens", "max_completion_tokens", "seed"), (*_NUMBERISH, 1.5)),
        "stop": (1, True, {}, [1]),
        "user": _TEXTISH,
        "reasoning_effort": _TEXTISH,
    },
    "/v1/completions": {"prompt": (1, True, {}, None, ["a", "b"], [1, 2], []), "stop": (1, {})},
    "/v1/embeddings": {
        "input": (1, True, {}, None, "", [], [{}], [None]),
        "encoding_format": (1, "int8", []),
        "dimensions": (0, "64", 1.5),
    },
    "/api/chat": {
        "messages": (1, "hi", {}, [1], ["hi"], [[]], [{}]),
        "tools": (1, "x", {}, [1]),
        "options": _OBJECTISH,
        "format": (1, True, []),
        "keep_alive": (True, [], {}),
        "think": (1, [], {}),
    },
    "/api/generate": {
        **dict.fromkeys(("prompt", "suffix", "system", "template"), _TEXTISH),
        "images": (1, "x", {}, [1]),
        "raw": (1, "x"),
        "context": (1, "x", {}),
        "options": _OBJECTISH,
    },
    "/api/embed": {
        "input": (1, True, {}, None, "", [], [1], [None]),
        "truncate": (1, "x"),
        "dimensions": (0, "64"),
        "options": _OBJECTISH,
    },
}
OPTIONS = {
    **dict.fromkeys(("num_ctx", "num_predict", "seed", "top_k"), (*_NUMBERISH, 1.5)),
    **dict.fromkeys(("temperature", "top_p"), _NUMBERISH),
    "stop": (1, {}, [1]),
}
MESSAGE: dict[str, tuple[Any, ...]] = {
    "role": (1, None, "", [], {}),
    "content": (1, True, {}, [1], [{}], [{"type": 1}], [{"type": "text", "text": 1}]),
    "images": (1, "x", {}, [1]),
    "tool_calls": (1, "x", {}, [1], [{}], [{"function": 1}], [{"function": {"name": 1}}]),
}
OPENAI_MESSAGE: dict[str, tuple[Any, ...]] = {
    "content": (
        [{"type": "text"}],
        [{"type": "image_url", "image_url": 1}],
        [{"type": "image_url", "image_url": {"url": 1}}],
    ),
    "tool_calls": ([{"function": {"name": "x", "arguments": 1}}],),
    "tool_call_id": (1, [], {}),
}
NAMES = {
    "gemma3:2b": "gemma3:1b",
    "gemma3": "gemma3:1b",
    "GEMMA3:1B": "gemma3:1b",
    "a model with spaces": "",
    "../x": "",
    "../../etc/passwd": "",
    "x:body": "",
    "task:1:out": "",
    "{cogrid}:x": "",
    "*": "",
    "%s%n": "",
    "モデル": "",
}
"""Names that nobody has, and the one that the sentence offers instead."""
UNFIT = ("a\nb", "a\x00b", "\x1b[31mred", "a\u202eb", "\r", "x" * 100_000)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Door]:
    """At the end nothing may have reached the engine, nor become a task."""
    async with open_door(tmp_path_factory.mktemp("door")) as one:
        yield one
        assert chats(one.engine) == []
        assert one.grid.events("submitted") == []


@pytest.mark.parametrize("what", BYTES)
async def test_no_request_at_all(door: Door, what: str) -> None:
    """Bytes that are no JSON object."""
    for path in (*GOOD, "/api/show", "/task"):
        said = await door.refuses(path, BYTES[what], what)
        assert "JSON" in said or "request" in said


@pytest.mark.parametrize("path", GOOD)
async def test_every_field_of_another_type(door: Door, path: str) -> None:
    """Each known field by itself; the sentence names it."""
    fields = COMMON | FIELDS[path]
    if path == "/v1/embeddings":
        del fields["stream"]
    if path == "/api/embed":
        del fields["stream"]
    for name, values in fields.items():
        for value in values:
            said = await door.refuses(path, {**GOOD[path], name: value}, (name, value))
            assert name in said, (path, name, value, said)
    without = {name: value for name, value in GOOD[path].items() if name != "model"}
    assert "model" in await door.refuses(path, without)


async def test_options_of_another_type(door: Door) -> None:
    """Ollama's options, in each of its requests that has them."""
    for path in ("/api/chat", "/api/generate", "/api/embed"):
        for name, values in OPTIONS.items():
            for value in values:
                body = {**GOOD[path], "options": {name: value}}
                assert name in await door.refuses(path, body, (name, value))


@pytest.mark.parametrize("path", CHATS)
async def test_messages_that_are_none(door: Door, path: str) -> None:
    """The second of three is wrong; the sentence says where."""
    more = OPENAI_MESSAGE if path.startswith("/v1") else {"tool_name": (1, [])}
    for name, value in itertools.chain(
        ((name, value) for name, values in MESSAGE.items() for value in values),
        ((name, value) for name, values in more.items() for value in values),
    ):
        wrong = {"role": "user", "content": "hi", name: value}
        body = {"model": MODEL, "messages": [*MESSAGES, wrong, *MESSAGES]}
        said = await door.refuses(path, body, (name, value))
        assert said.startswith("messages[1]"), said
        assert name in said


async def test_no_messages(door: Door) -> None:
    """OpenAI's clients get an error. To Ollama's clients it means: load the model; the grid has it,
    and asks no engine for that."""
    assert "messages" in await door.refuses("/v1/chat/completions", {"model": MODEL})
    for path, body in (("/api/chat", {"messages": []}), ("/api/generate", {"prompt": ""})):
        answer = await door.grid.http.post(path, json={"model": MODEL, **body})
        assert answer.status_code == 200
        assert (answer.json()["done"], answer.json()["done_reason"]) == (True, "load")
        assert "no-model" in await door.refuses(path, {"model": "no-model", **body})


@pytest.mark.parametrize("path", GOOD)
async def test_models_that_nobody_has(door: Door, path: str) -> None:
    """404 with the name as it was written, and the near one."""
    for name, near in NAMES.items():
        body = {**GOOD[path], "model": name}
        answer = await door.grid.http.post(path, json=body, timeout=AT_ONCE_S)
        assert answer.status_code == 404, (name, answer.text)
        said = sentence(path, answer)
        assert f"'{name}'" in said
        assert f"did you mean '{near}'" in said if near else "did you mean" not in said
    for name in UNFIT:
        await door.refuses(path, {**GOOD[path], "model": name}, ascii(name)[:40])


async def test_what_a_model_cannot_do(door: Door) -> None:
    """A vector of a model that chats."""
    for path in ("/v1/embeddings", "/api/embed"):
        assert MODEL in await door.refuses(path, GOOD[path])


@pytest.mark.parametrize("chunked", [False, True])
async def test_20_mb(door: Door, chunked: bool) -> None:
    """413, whether or not the length was said before; the next request on the same client works."""
    body = json.dumps({**GOOD["/v1/chat/completions"], "x": "x" * 20_000_000}).encode()

    async def pieces() -> AsyncIterator[bytes]:
        for first in range(0, len(body), 100_000):
            yield body[first : first + 100_000]

    for path in (*GOOD, "/task", "/api/show"):
        content = pieces() if chunked else body
        answer = await door.grid.http.post(path, content=content, timeout=30)
        assert answer.status_code == 413, answer.text
        assert ("65536" if path == "/api/show" else "8388608") in sentence(path, answer)
    wrong = await door.grid.http.put("/api/chat", content=pieces() if chunked else body)
    assert wrong.status_code == 405
    assert (await door.grid.http.get("/v1/models")).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/chat/completions", 405),
        ("DELETE", "/api/chat", 405),
        ("POST", "/v1/models", 405),
        ("PUT", "/api/tags", 405),
        ("PATCH", "/task/abc", 405),
        ("OPTIONS", "/api/chat", 405),
        ("POST", "/v1/chat/completions/", 404),
        ("POST", "/V1/chat/completions", 404),
        ("POST", "/api/pull", 404),
        ("GET", "/nothing", 404),
        ("GET", "/%00%0d%0aSet-Cookie:x", 404),
        ("GET", "/v1/models/../../x", 404),
        ("GET", "/v1/models/..%2f..%2fx", 404),
        ("GET", "/v1/models/a%0ab", 404),
        ("GET", "/task/..%2fx", 404),
        ("GET", "/task/x:body", 400),
        ("GET", "/task/%2a", 400),
        ("GET", "/task/nosuch", 404),
        ("DELETE", "/task/nosuch", 404),
        ("GET", "/task/nosuch/events", 404),
    ],
)
async def test_methods_and_paths(door: Door, method: str, path: str, status: int) -> None:
    answer = await door.grid.http.request(method, path, timeout=AT_ONCE_S)
    assert answer.status_code == status, answer.text
    sentence(path, answer)
    if status == 405:
        assert method not in answer.headers["allow"].split(", ")


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Cogrid-Worker": "../x"},
        {"X-Cogrid-Worker": "x:tasks"},
        {"X-Cogrid-Worker": "shared"},
        {"X-Cogrid-On-Close": "explode"},
        {"Idempotency-Key": "k" * 300},
    ],
)
async def test_headers(door: Door, headers: dict[str, str]) -> None:
    for path in CHATS:
        answer = await door.grid.http.post(path, json=GOOD[path], headers=headers)
        assert 400 <= answer.status_code < 500, answer.text
        sentence(path, answer)


async def test_tasks(door: Door) -> None:
    """``POST /task`` checks what is inside as the paths themselves do."""
    good = {"request": GOOD["/v1/chat/completions"]}
    bodies: tuple[dict[str, Any], ...] = (
        {},
        {"request": 1},
        {"request": {}},
        {"request": {**good["request"], "messages": 1}},
        {"request": {"model": "nobody", "messages": MESSAGES}},
        {**good, "path": "/etc/passwd"},
        {**good, "path": []},
        {**good, "path": {}},
        {**good, "band": "first"},
        {**good, "band": []},
        {**good, "worker": "../x"},
        {**good, "worker": 1},
        {**good, "worker": ["esxi"]},
        {"path": "/api/chat", "request": {"model": MODEL}},
    )
    for wrong in bodies:
        await door.refuses("/task", wrong)


RAW = {
    "no HTTP": b"\x16\x03\x01\x02\x00hello\r\n\r\n",
    "no version": b"POST /v1/chat/completions\r\n\r\n",
    "another version": b"POST /v1/chat/completions HTTP/9.9\r\n\r\n",
    "no method": b"BREW /v1/chat/completions HTTP/1.1\r\nHost: ::1\r\n\r\n",
    "a length of letters": b"POST /api/chat HTTP/1.1\r\nHost: ::1\r\nContent-Length: x\r\n\r\n",
    "a length below 0": b"POST /api/chat HTTP/1.1\r\nHost: ::1\r\nContent-Length: -1\r\n\r\n",
    "a length of 30 digits": b"POST /api/chat HTTP/1.1\r\nContent-Length: "
    + b"9" * 30
    + b"\r\n\r\n",
    "a body said twice": (
        b"POST /api/chat HTTP/1.1\r\nHost: ::1\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "no chunk": b"POST /api/chat HTTP/1.1\r\nHost: ::1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a header with NUL": b"GET /v1/models HTTP/1.1\r\nHost: ::1\r\nX: a\x00b\r\n\r\n",
    "a path with bytes": b"GET /\xff\xfe HTTP/1.1\r\nHost: ::1\r\n\r\n",
    "a proxy's": b"CONNECT x:80 HTTP/1.1\r\nHost: ::1\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a huge header": b"POST /api/chat HTTP/1.1\r\nHost: ::1\r\nX: " + b"a" * 2_000_000,
    "many headers": b"POST /api/chat HTTP/1.1\r\n" + b"X-Header: y\r\n" * 100_000 + b"\r\n",
    "a huge path": b"GET /" + b"a" * 2_000_000,
}


@pytest.mark.parametrize("what", RAW)
async def test_no_http(door: Door, what: str) -> None:
    """What the parser cannot read is answered too, and the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", door.grid.port)
    writer.write(RAW[what])
    async with asyncio.timeout(AT_ONCE_S):
        said = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, body = said.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    assert first.split(" ")[1] in ("400", "431")
    assert ("431" in first) == ("huge" in what or "many" in what)
    headers = dict(line.split(": ") for line in lines)
    assert headers["connection"] == "close"
    path = "/api/chat" if b"/api/chat" in RAW[what][:20] else "/"
    sentence(path, httpx.Response(400, headers=headers, content=body))
    assert (await door.grid.http.get("/healthz")).status_code == 200


async def test_the_log_has_one_line_a_request(door: Door) -> None:
    """Nothing that a client sends begins a line of its own, or paints the terminal."""
    for path in ("/%0aFAKE%20line", "/%1b[31mFAKE"):
        await door.grid.http.get(path)
    await door.refuses("/api/chat", {**GOOD["/api/chat"], "model": "x\nFAKE"})
    log = door.grid.daemons["coordinator"].log
    assert not [line for line in log.splitlines() if line.startswith("FAKE")]
    assert "\x1b" not in log
    await door.refuses("/api/chat", {**GOOD["/api/chat"], "model": "y" * 100_000})
    assert max(len(line) for line in door.grid.daemons["coordinator"].log.splitlines()) < 1000
