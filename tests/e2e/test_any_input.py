"""Whatever comes in, the coordinator answers: never a 5xx, never a hang, never a traceback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cogrid.engine.fault import Mode, Outcome
from tests.e2e.door import AT_ONCE_S, Door, open_door, sentence
from tests.e2e.grid import MODEL, chats
from tests.wait import until_async

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

PATHS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/api/chat",
    "/api/generate",
    "/api/embed",
    "/api/embeddings",
    "/api/show",
    "/task",
)
FIELDS = (
    "model messages prompt input stream stream_options tools tool_choice options format think"
    " keep_alive images system template suffix raw context n stop temperature max_tokens seed user"
    " response_format reasoning_effort encoding_format dimensions truncate name request path band"
    " worker"
)

anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=10,
)
names = st.sampled_from(FIELDS.split()) | st.text(max_size=8)
parts = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "image_url", "input_audio", "x"])},
        optional={"text": anything, "image_url": anything},
    ),
    max_size=2,
)
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "system", "assistant", "tool"]) | anything},
        optional={
            "content": st.text(max_size=20) | parts | anything,
            "tool_calls": anything,
            "tool_call_id": anything,
            "images": anything,
        },
    ),
    max_size=3,
)
bodies = st.builds(
    lambda model, said, more: {**more, "model": model, **({} if said is None else said)},
    st.sampled_from([MODEL, "auto", "nobody"]) | st.text(max_size=20) | anything,
    st.none() | st.builds(lambda told: {"messages": told}, messages),
    st.dictionaries(names, anything, max_size=5),
)
tasks = st.builds(
    lambda inner, more: {**more, "request": inner}, bodies, st.dictionaries(names, anything)
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Door]:
    """Many of these requests are good enough to run."""
    async with open_door(tmp_path_factory.mktemp("any")) as one:
        yield one


async def test_requests_in_one_go(door: Door) -> None:
    """Large bodies and the next request's head in the same packets are no large heads."""
    said = json.dumps({"model": "nobody", "messages": [], "x": "x" * 200_000}).encode()
    one = b"POST /api/chat HTTP/1.1\r\nHost: ::1\r\nContent-Length: %d\r\n\r\n%b" % (
        len(said),
        said,
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", door.grid.port)
    writer.write(one * 10 + b"GET /healthz HTTP/1.1\r\nHost: ::1\r\nConnection: close\r\n\r\n")
    async with asyncio.timeout(AT_ONCE_S):
        answers = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answers.count(b"HTTP/1.1 404 ") == 10
    assert answers.count(b"HTTP/1.1 200 ") == 1


async def test_nonsense_behind_a_request(door: Door) -> None:
    """It ends the answer that is on its way, and adds nothing to it."""
    door.engine.set(Mode.DELAY, seconds=0.2)
    said = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()
    head = b"POST /api/chat HTTP/1.1\r\nHost: ::1\r\nContent-Length: %d\r\n\r\n" % len(said)
    reader, writer = await asyncio.open_connection("127.0.0.1", door.grid.port)
    writer.write(head + said)
    async with asyncio.timeout(AT_ONCE_S):
        await reader.readuntil(b'"content":"0 "')
        writer.write(b"\x00nonsense\r\n\r\n")
        rest = await reader.read()
    writer.close()
    await writer.wait_closed()
    door.engine.switches.clear()
    assert b"not HTTP" not in rest
    assert b'"done":true' not in rest
    record = chats(door.engine)[-1]
    await until_async(lambda: record.outcome is Outcome.ABORTED, AT_ONCE_S)


async def _answered(door: Door, path: str, content: bytes) -> None:
    answer = await door.grid.http.post(path, content=content, timeout=AT_ONCE_S)
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        sentence(path, answer)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(path=st.sampled_from(PATHS), body=bodies | tasks)
async def test_any_object(door: Door, path: str, body: dict[str, Any]) -> None:
    """An answer, or a refusal with a sentence."""
    await _answered(door, path, json.dumps(body).encode())


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(path=st.sampled_from(PATHS), content=st.binary(max_size=300))
async def test_any_bytes(door: Door, path: str, content: bytes) -> None:
    """The same for what is hardly ever JSON."""
    await _answered(door, path, content)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    path=st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD"]),
)
async def test_any_path(door: Door, path: str, method: str) -> None:
    """Every path is something or nothing."""
    raw = "/" + "".join(f"%{byte:02x}" for byte in path.encode())
    for where in (raw, f"/v1/models{raw}", f"/task{raw}"):
        answer = await door.grid.http.request(method, where, timeout=AT_ONCE_S)
        assert answer.status_code < 500, answer.text
