"""OpenAI's requests, read and checked. What cogrid does not know travels on unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cogrid.coordinator import messages
from cogrid.coordinator.asked import Asked, name_of
from cogrid.coordinator.checks import check, model_of, read_object, wrong
from cogrid.coordinator.errors import RefusedError
from cogrid.model.chat import Dialect
from cogrid.model.task import Kind
from cogrid.rules.domain import Prompt

_COMMON = {
    "stream": "true or false",
    "stream_options": "an object",
    "n": "a whole number above 0",
    "temperature": "a number",
    "top_p": "a number",
    "max_tokens": "a whole number",
    "max_completion_tokens": "a whole number",
    "frequency_penalty": "a number",
    "presence_penalty": "a number",
    "seed": "a whole number",
    "stop": "a text or a list of texts",
    "user": "a text",
}
_CHAT = {
    **_COMMON,
    "messages": "a list",
    "tools": "a list of objects",
    "tool_choice": "a text or an object",
    "response_format": "an object",
    "reasoning_effort": "a text",
}
_EMBED = {"encoding_format": "a text", "dimensions": "a whole number above 0", "user": "a text"}


def read_chat(body: bytes) -> Asked:
    """``POST /v1/chat/completions``"""
    payload = read_object(body)
    shown = model_of(payload)
    check(payload, _CHAT)
    _one_answer(payload)
    if not payload.get("messages"):
        raise RefusedError(
            "bad_request", "messages is missing or empty", "send at least one message"
        )
    stream, include_usage = _stream(payload)
    asked = messages.read_chat(Dialect.OPENAI, shown, payload, stream, _thinks(payload))
    return replace(asked, include_usage=include_usage)


def read_completion(body: bytes) -> Asked:
    """``POST /v1/completions``"""
    payload = read_object(body)
    shown = model_of(payload)
    check(payload, _COMMON)
    _one_answer(payload)
    prompt = payload.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
        prompt = payload["prompt"] = prompt[0]
    if not isinstance(prompt, str):
        if isinstance(prompt, list):
            raise RefusedError("bad_request", "prompt is a list", "send one text a request")
        raise wrong("prompt", "a text", prompt)
    stream, include_usage = _stream(payload)
    return Asked(
        kind=Kind.GENERATE,
        dialect=Dialect.OPENAI,
        model=name_of(shown),
        shown=shown,
        stream=stream,
        payload=payload,
        prompt=Prompt(prompt, len(prompt)),
        include_usage=include_usage,
    )


def read_embedding(body: bytes) -> Asked:
    """``POST /v1/embeddings``"""
    payload = read_object(body)
    shown = model_of(payload)
    check(payload, _EMBED)
    form = payload.pop("encoding_format", None) or "float"
    if form not in ("float", "base64"):
        raise wrong("encoding_format", "float or base64", form)
    given = payload.get("input")
    if not isinstance(given, (str, list)):
        raise wrong("input", "a text or a list of texts", given)
    if not given:
        raise RefusedError("bad_request", "input is empty", "send at least one text")
    if isinstance(given, list) and not all(isinstance(part, (str, int, list)) for part in given):
        raise RefusedError("bad_request", "input must be a text or a list of texts")
    return Asked(
        kind=Kind.EMBED,
        dialect=Dialect.OPENAI,
        model=name_of(shown),
        shown=shown,
        stream=False,
        payload=payload,
        prompt=Prompt("", len(body)),
        base64=form == "base64",
    )


def _one_answer(payload: dict[str, Any]) -> None:
    if (payload.pop("n", None) or 1) > 1:
        raise RefusedError(
            "bad_request", "n is more than 1", "send the request once for each answer"
        )


def _stream(payload: dict[str, Any]) -> tuple[bool, bool]:
    options = payload.pop("stream_options", None) or {}
    stream = bool(payload.pop("stream", None))
    return stream, stream and options.get("include_usage") is True


def _thinks(payload: dict[str, Any]) -> bool:
    return payload.get("reasoning_effort") not in (None, "none")
