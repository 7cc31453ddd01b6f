"""Requests of both dialects as OpenAI-style calls: golden pairs."""

from __future__ import annotations

from typing import Any

import pytest

from cogrid.engine.api import EngineError, Fault
from cogrid.engine.call import Call
from cogrid.engine.to_openai import to_openai
from cogrid.model.chat import Dialect, Request
from cogrid.model.task import Kind

PNG = "iVBORw0KGgo="
HI = [{"role": "user", "content": "hi"}]
CLOCK = {"type": "function", "function": {"name": "clock"}}
STREAM = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}


def body(kind: Kind = Kind.CHAT, **payload: Any) -> dict[str, Any]:
    """The body of a request in Ollama's dialect, without what every stream has."""
    call = to_openai(Request(kind, Dialect.OLLAMA, "m", payload))
    assert STREAM.items() <= call.body.items()
    return {name: value for name, value in call.body.items() if name not in STREAM}


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        (
            {"options": {"temperature": 0, "seed": 7, "top_p": 0.9, "stop": ["x"]}},
            {"temperature": 0, "seed": 7, "top_p": 0.9, "stop": ["x"]},
        ),
        ({"options": {"num_predict": 12}}, {"max_tokens": 12}),
        ({"options": {"num_predict": -1}}, {}),
        ({"options": {"min_p": 0.1, "num_ctx": 4096}}, {"min_p": 0.1, "num_ctx": 4096}),
        ({"format": "json"}, {"response_format": {"type": "json_object"}}),
        ({"format": ""}, {}),
        (
            {"format": {"type": "object"}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": {"type": "object"}},
                }
            },
        ),
        ({"think": True}, {"reasoning_effort": "medium"}),
        (
            {"think": False},
            {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False}},
        ),
        ({"think": "low"}, {"reasoning_effort": "low"}),
        ({"think": "max"}, {"reasoning_effort": "high"}),
        ({"tools": [CLOCK]}, {"tools": [CLOCK]}),
        ({"tools": []}, {}),
        ({"keep_alive": "5m", "truncate": True, "shift": True}, {}),
        ({"logprobs": True, "top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
        ({"something_new": 1}, {"something_new": 1}),
    ],
)
def test_settings(asked: dict[str, Any], sent: dict[str, Any]) -> None:
    assert body(messages=HI, **asked) == sent | {"messages": HI}


def test_images() -> None:
    said = body(messages=[{"role": "user", "content": "see", "images": [PNG, "/9j/4AA"]}])
    assert said["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/4AA"}},
            ],
        }
    ]


def test_tool_calls_get_ids_and_results_find_them() -> None:
    """Ollama's clients may name the function only; two calls of one are answered in order."""
    call = {"function": {"name": "clock", "arguments": {"zone": "東京"}}}
    said = body(
        messages=[
            {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [
                call, {"function": {"name": "now"}}, call]},
            {"role": "tool", "tool_name": "now", "content": "noon"},
            {"role": "tool", "tool_name": "clock", "content": "1"},
            {"role": "tool", "content": "2"},
        ]
    )["messages"]  # fmt: skip
    assert said[0] == {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "call_1", "type": "function",
             "function": {"name": "clock", "arguments": '{"zone":"東京"}'}},
            {"id": "call_2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
            {"id": "call_3", "type": "function",
             "function": {"name": "clock", "arguments": '{"zone":"東京"}'}},
        ],
    }  # fmt: skip
    assert [m["tool_call_id"] for m in said[1:]] == ["call_2", "call_1", "call_3"]
    assert "tool_name" not in said[1]


def test_ids_that_are_there_are_kept() -> None:
    calls = [{"id": "x9", "function": {"name": "clock", "arguments": {}}}]
    said = body(
        messages=[
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "x9", "content": "noon"},
        ]
    )["messages"]
    assert said[0]["tool_calls"][0]["id"] == said[1]["tool_call_id"] == "x9"


def test_generate_uses_the_models_template() -> None:
    request = Request(
        Kind.GENERATE, Dialect.OLLAMA, "m", {"prompt": "hi", "system": "be kind", "images": [PNG]}
    )
    call = to_openai(request)
    assert call.path == "/v1/chat/completions"
    assert [message["role"] for message in call.body["messages"]] == ["system", "user"]
    assert call.body["messages"][1]["content"][0] == {"type": "text", "text": "hi"}
    assert "images" not in call.body


@pytest.mark.parametrize("extra", [{"raw": True}, {"suffix": "end"}])
def test_generate_raw_does_not(extra: dict[str, Any]) -> None:
    payload = {"prompt": "hi", "logprobs": True, "top_logprobs": 3} | extra
    call = to_openai(Request(Kind.GENERATE, Dialect.OLLAMA, "m", payload))
    assert call.path == "/v1/completions"
    assert (call.body["prompt"], call.body["logprobs"]) == ("hi", 3)
    assert call.body.get("suffix") == extra.get("suffix")
    assert "top_logprobs" not in call.body


def test_embeddings_as_floats() -> None:
    for dialect in Dialect:
        payload = {"input": ["a"], "encoding_format": "base64", "dimensions": 8}
        call = to_openai(Request(Kind.EMBED, dialect, "m", payload))
        body = {"input": ["a"], "dimensions": 8, "model": "m"}
        assert call == Call("/v1/embeddings", body, streams=False)


def test_own_requests_travel_unchanged() -> None:
    payload = {
        "messages": [{"role": "assistant", "content": None, "reasoning_content": "r"}, *HI],
        "max_completion_tokens": 5,
        "stream_options": {"continuous_usage_stats": True},
        "chat_template_kwargs": {"a": 1},
        "tools": [CLOCK],
        "tool_choice": "required",
        "logit_bias": None,
    }
    call = to_openai(Request(Kind.CHAT, Dialect.OPENAI, "m", payload), "m:latest")
    options = {"continuous_usage_stats": True, "include_usage": True}
    assert call.body == payload | {"model": "m:latest", "stream": True, "stream_options": options}


def test_one_answer_and_no_empty_tools() -> None:
    payload = {"messages": HI, "n": 3, "tools": [], "tool_choice": "auto"}
    call = to_openai(Request(Kind.CHAT, Dialect.OPENAI, "m", payload))
    assert call.body == STREAM | {"messages": HI}


@pytest.mark.parametrize("messages", ["hi", [5], [{"role": "user", "images": "x"}]])
def test_nonsense_is_refused(messages: Any) -> None:
    with pytest.raises(EngineError) as caught:
        body(messages=messages)
    assert caught.value.fault is Fault.REFUSED
