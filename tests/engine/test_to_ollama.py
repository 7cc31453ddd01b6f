"""Requests of both dialects as calls of Ollama: golden pairs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogrid.engine.api import EngineError, Fault
from cogrid.engine.call import Call
from cogrid.engine.to_ollama import to_ollama
from cogrid.engine.to_openai import to_openai
from cogrid.model.chat import Dialect, Request
from cogrid.model.task import Kind

PNG = "iVBORw0KGgo="
HI = [{"role": "user", "content": "hi"}]
CLOCK = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}


def chat(**payload: Any) -> dict[str, Any]:
    """The body of an OpenAI-style chat, without what every body has."""
    call = to_ollama(Request(Kind.CHAT, Dialect.OPENAI, "m", {"model": "m"} | payload))
    assert call.path == "/api/chat"
    assert (call.body.pop("model"), call.body.pop("stream")) == ("m", True)
    if payload.get("messages") is HI:
        assert call.body.pop("messages") == HI
    return call.body


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ({"temperature": 0.5, "top_p": 0.9}, {"options": {"temperature": 0.5, "top_p": 0.9}}),
        ({"seed": 7, "top_k": 40}, {"options": {"seed": 7, "top_k": 40}}),
        ({"max_tokens": 12}, {"options": {"num_predict": 12}}),
        ({"max_completion_tokens": 12}, {"options": {"num_predict": 12}}),
        ({"stop": "\n"}, {"options": {"stop": ["\n"]}}),
        ({"stop": ["a", "b"]}, {"options": {"stop": ["a", "b"]}}),
        (
            {"presence_penalty": 1, "frequency_penalty": 2},
            {"options": {"presence_penalty": 1, "frequency_penalty": 2}},
        ),
        ({"num_ctx": 8192}, {"options": {"num_ctx": 8192}}),
        (
            {"options": {"num_ctx": 1, "mirostat": 2}, "seed": 3},
            {"options": {"num_ctx": 1, "mirostat": 2, "seed": 3}},
        ),
        ({"response_format": {"type": "json_object"}}, {"format": "json"}),
        ({"response_format": {"type": "text"}}, {}),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": {"type": "object"}},
                }
            },
            {"format": {"type": "object"}},
        ),
        ({"reasoning_effort": "high"}, {"think": "high"}),
        ({"reasoning_effort": "minimal"}, {"think": "low"}),
        ({"reasoning_effort": "none"}, {"think": False}),
        ({"reasoning": {"effort": "low"}}, {"think": "low"}),
        ({"tools": [CLOCK]}, {"tools": [CLOCK]}),
        ({"tools": [CLOCK], "tool_choice": "auto"}, {"tools": [CLOCK]}),
        ({"tools": [CLOCK], "tool_choice": "none"}, {}),
        ({"tools": []}, {}),
        ({"keep_alive": "1h", "think": True}, {"keep_alive": "1h", "think": True}),
        ({"logprobs": True, "top_logprobs": 3}, {"logprobs": True, "top_logprobs": 3}),
        ({"something_new": {"a": 1}}, {"something_new": {"a": 1}}),
        ({"n": 1, "user": "u", "stream_options": {"include_usage": True}}, {}),
        ({"temperature": None, "tools": None, "stop": None}, {}),
    ],
)
def test_settings(asked: dict[str, Any], sent: dict[str, Any]) -> None:
    assert chat(messages=HI, **asked) == sent


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        ({"role": "developer", "content": "be kind"}, {"role": "system", "content": "be kind"}),
        ({"role": "user", "content": None}, {"role": "user", "content": ""}),
        (
            {"role": "user", "content": "hi", "name": "ada"},
            {"role": "user", "content": "hi", "name": "ada"},
        ),
        (
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            },
            {"role": "user", "content": "a\nb"},
        ),
        (
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "see"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                    {"type": "image_url", "image_url": f"data:image/png;base64,{PNG}"},
                ],
            },
            {"role": "user", "content": "see", "images": [PNG, PNG]},
        ),
        (
            {
                "role": "assistant",
                "content": "a",
                "thinking": "t",
                "reasoning_content": "t",
                "reasoning": "t",
                "refusal": None,
            },
            {"role": "assistant", "content": "a"},
        ),
    ],
)
def test_messages(message: dict[str, Any], sent: dict[str, Any]) -> None:
    assert chat(messages=[message])["messages"] == [sent]


def test_tool_calls_and_their_results() -> None:
    said = chat(
        messages=[
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "index": 0,
                        "function": {"name": "clock", "arguments": '{"zone":"東京"}'},
                    },
                    {"id": "c2", "type": "function", "function": {"name": "now", "arguments": ""}},
                    {
                        "id": "c3",
                        "type": "function",
                        "function": {"name": "odd", "arguments": "{oh"},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "c2", "content": "noon"},
            {"role": "tool", "tool_call_id": "c9", "content": "?"},
        ]
    )["messages"]
    assert said == [
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "c1", "function": {"name": "clock", "arguments": {"zone": "東京"}, "index": 0}},
            {"id": "c2", "function": {"name": "now", "arguments": {}}},
            {"id": "c3", "function": {"name": "odd", "arguments": {"arguments": "{oh"}}},
        ]},
        {"role": "tool", "content": "noon", "tool_name": "now", "tool_call_id": "c2"},
        {"role": "tool", "content": "?", "tool_call_id": "c9"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ([{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}], "address"),
        ([{"type": "input_audio", "input_audio": {}}], "input_audio"),
        ([5], "type"),
        (5, "neither"),
    ],
)
def test_what_ollama_cannot_be_asked(content: Any, word: str) -> None:
    with pytest.raises(EngineError) as caught:
        chat(messages=[{"role": "user", "content": content}])
    assert (caught.value.fault, caught.value.status) == (Fault.REFUSED, 400)
    assert word in caught.value.message
    assert caught.value.hint


def test_completion() -> None:
    payload = {"prompt": ["Once"], "suffix": "end", "max_tokens": 3, "logprobs": 2}
    call = to_ollama(Request(Kind.GENERATE, Dialect.OPENAI, "m", payload))
    assert call == Call(
        "/api/generate",
        {
            "prompt": "Once",
            "suffix": "end",
            "options": {"num_predict": 3},
            "logprobs": True,
            "top_logprobs": 2,
            "model": "m",
            "stream": True,
        },
    )


@pytest.mark.parametrize("prompt", [["a", "b"], [1, 2], 5])
def test_several_prompts_are_refused(prompt: Any) -> None:
    with pytest.raises(EngineError, match="one prompt"):
        to_ollama(Request(Kind.GENERATE, Dialect.OPENAI, "m", {"prompt": prompt}))


def test_embeddings() -> None:
    payload = {"input": ["a"], "encoding_format": "base64", "dimensions": 8, "user": "u"}
    call = to_ollama(Request(Kind.EMBED, Dialect.OPENAI, "m", payload))
    body = {"input": ["a"], "dimensions": 8, "model": "m"}
    assert call == Call("/api/embed", body, streams=False)


def test_own_requests_travel_unchanged() -> None:
    payload = {
        "model": "m",
        "messages": HI,
        "options": {"num_ctx": 4096, "new": [1]},
        "keep_alive": -1,
        "format": {"type": "object"},
        "think": "high",
        "truncate": False,
        "tools": [CLOCK],
        "anything": None,
    }
    call = to_ollama(Request(Kind.CHAT, Dialect.OLLAMA, "m", payload))
    assert call.body == payload | {"stream": True}


def test_own_history_without_thinking_and_empty_tools() -> None:
    """Open WebUI sends back as thinking what it was shown as such, status lines included."""
    history = [{"role": "assistant", "content": "a", "thinking": "worker: esxi"}, *HI]
    call = to_ollama(Request(Kind.CHAT, Dialect.OLLAMA, "m", {"messages": history, "tools": []}))
    assert call.body["messages"] == [{"role": "assistant", "content": "a"}, *HI]
    assert "tools" not in call.body
    assert history[0]["thinking"] == "worker: esxi"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
NAMES = (
    "messages prompt input tools tool_choice options stop response_format reasoning think format "
    "logprobs images stream_options max_tokens system suffix raw"
)
FIELDS = st.sampled_from(NAMES.split())
PARTS = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"])},
    optional={"content": JSON, "tool_calls": JSON, "images": JSON, "tool_call_id": JSON},
)


@given(
    st.sampled_from([kind for kind in Kind if not kind.chore]),
    st.sampled_from(Dialect),
    st.dictionaries(FIELDS, JSON),
    st.none() | st.lists(PARTS | JSON, max_size=3),
)
def test_nonsense_is_refused_or_passed_on(
    kind: Kind, dialect: Dialect, payload: dict[str, Any], messages: Any
) -> None:
    """Whatever a client sends, translating it is no way to bring a worker down."""
    if messages is not None:
        payload = payload | {"messages": messages}
    for translate in (to_ollama, to_openai):
        try:
            said = translate(Request(kind, dialect, "m", payload)).body["model"]
        except EngineError as error:
            said = error.fault
        assert said in ("m", Fault.REFUSED)
