"""Every byte of both dialects, compared with files; ``COGRID_WRITE_GOLDEN=1`` writes them anew."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cogrid.coordinator.gathered import Gathered
from cogrid.coordinator.ollama_answer import OllamaVoice
from cogrid.coordinator.openai_answer import OpenAIVoice
from cogrid.coordinator.voice import Speaker, Voice
from cogrid.model.chat import Delta, End, ToolCall, Usage
from cogrid.model.task import Kind, State

HERE = Path(__file__).with_name("golden")
TASK = "cb305e3a8d6f4f0f9d1c2b3a4e5f6071"
END = End(State.DONE, "stop", Usage(11, 7, 0.25, 0.5, 1.75, 2.5), worker="esxi")
RAN = {
    "task": TASK,
    "worker": "esxi",
    "domain": "general",
    "model": "gemma3:1b",
    "queue": "tasks:cpu:esxi",
    "recoveries": 1,
}
CALLS = (
    Delta(tool_calls=(ToolCall(0, "", "weather", '{"city":'), ToolCall(1, "c2", "time", "{}"))),
    Delta(tool_calls=(ToolCall(0, "", "", '"Kyōto"}'),)),
)
STORIES: dict[str, tuple[Delta, ...]] = {
    "text": (Delta("Hello"), Delta(', "you"\n'), Delta("こんにちは 🙂\x00")),
    "thinking": (Delta(thinking="Let me"), Delta(thinking=" see."), Delta("42")),
    "calls": CALLS,
    "logprobs": (
        Delta("a", logprobs={"content": [{"token": "a", "logprob": -0.5}]}),
        Delta("b", logprobs={"content": [{"token": "b", "logprob": -1.5}]}),
    ),
    "nothing": (),
}
CASES = [
    (dialect, kind, story)
    for dialect in ("openai", "ollama")
    for kind in (Kind.CHAT, Kind.GENERATE)
    for story in STORIES
    if kind is Kind.CHAT or story != "calls"  # completions have no tools
]


def speaker(kind: Kind, **more: bool) -> Speaker:
    return Speaker(TASK, "gemma3:1b", kind, 1_780_800_000.25, **more)


def voice(name: str, kind: Kind, **more: bool) -> Voice:
    made = OpenAIVoice if name == "openai" else OllamaVoice
    return made(speaker(kind, **more))


def compare(name: str, said: bytes) -> None:
    """The bytes against their file, line by line."""
    file = HERE / name
    if os.environ.get("COGRID_WRITE_GOLDEN"):
        file.write_bytes(said)
    assert said.decode().splitlines() == file.read_text("utf-8").splitlines()


@pytest.mark.parametrize(("dialect", "kind", "story"), CASES)
def test_a_stream(dialect: str, kind: Kind, story: str) -> None:
    said = voice(dialect, kind, include_usage=True)
    parts = [
        said.status("domain general · ⏳ waiting", False, False),
        said.alive(),
        *(said.piece(delta) for delta in STORIES[story]),
        said.end(END, RAN),
    ]
    compare(f"{dialect}-{kind}-{story}.stream", b"".join(parts))


@pytest.mark.parametrize(("dialect", "kind", "story"), CASES)
def test_a_whole_answer(dialect: str, kind: Kind, story: str) -> None:
    gathered = Gathered()
    for delta in STORIES[story]:
        gathered.add(delta)
    said = voice(dialect, kind).whole(gathered, END, RAN)
    pretty = json.dumps(json.loads(said), indent=1, ensure_ascii=False)
    compare(f"{dialect}-{kind}-{story}.json", pretty.encode() + b"\n")


@pytest.mark.parametrize(
    ("dialect", "more"),
    [("openai", {}), ("openai", {"base64": True}), ("ollama", {}), ("ollama", {"single": True})],
)
def test_embeddings(dialect: str, more: dict[str, bool]) -> None:
    gathered = Gathered()
    gathered.add(Delta(embeddings=((0.5, -1.0), (0.25, 2.0))))
    said = voice(dialect, Kind.EMBED, **more).whole(gathered, END, RAN)
    pretty = json.dumps(json.loads(said), indent=1)
    compare(f"{dialect}-embed{'-'.join(['', *more])}.json", pretty.encode() + b"\n")


def test_the_hidden_end_of_a_status_line() -> None:
    said = voice("openai", Kind.CHAT).status("done", True, True)
    assert json.loads(said.removeprefix(b"data: "))["event"] == {
        "type": "status",
        "data": {"description": "done", "done": True, "hidden": True},
    }


def test_log_probabilities_cross_the_dialects() -> None:
    tokens = [{"token": "a", "logprob": -0.5}]
    chunk = voice("openai", Kind.CHAT).piece(Delta("a", logprobs=tokens))
    assert json.loads(chunk.removeprefix(b"data: "))["choices"][0]["logprobs"] == {
        "content": tokens
    }
    line = voice("ollama", Kind.CHAT).piece(Delta("a", logprobs={"content": tokens}))
    assert json.loads(line)["logprobs"] == tokens


def test_ollama_keeps_arguments_that_are_no_object() -> None:
    said = voice("ollama", Kind.CHAT)
    assert said.piece(Delta(tool_calls=(ToolCall(0, "c1", "f", "{broken"),))) == b""
    first, _ = said.end(END, RAN).splitlines()
    (call,) = json.loads(first)["message"]["tool_calls"]
    assert call == {
        "id": "c1",
        "function": {"index": 0, "name": "f", "arguments": {"arguments": "{broken"}},
    }
