"""Ollama's requests, read and checked. What cogrid does not know travels on unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cogrid.coordinator import messages
from cogrid.coordinator.asked import Asked, is_housekeeping, name_of, needs_of
from cogrid.coordinator.checks import check, model_of, read_object, wrong
from cogrid.coordinator.errors import RefusedError
from cogrid.model.chat import Dialect
from cogrid.model.task import Kind
from cogrid.rules.domain import Prompt

_COMMON = {
    "stream": "true or false",
    "options": "an object",
    "format": "a text or an object",
    "keep_alive": "a number or a text",
    "think": "true, false or a text",
}
_CHAT = {**_COMMON, "messages": "a list", "tools": "a list of objects"}
_GENERATE = {
    **_COMMON,
    "prompt": "a text",
    "suffix": "a text",
    "system": "a text",
    "template": "a text",
    "images": "a list of texts",
    "raw": "true or false",
    "context": "a list",
}
_EMBED = {
    "options": "an object",
    "keep_alive": "a number or a text",
    "truncate": "true or false",
    "dimensions": "a whole number above 0",
}
_OPTIONS = {
    **dict.fromkeys(("num_ctx", "num_predict", "seed", "top_k", "num_keep"), "a whole number"),
    **dict.fromkeys(("temperature", "top_p", "min_p", "repeat_penalty"), "a number"),
    "stop": "a text or a list of texts",
}


def read_chat(body: bytes) -> Asked:
    """``POST /api/chat``"""
    payload, shown = _read(body, _CHAT)
    stream = _stream(payload)
    asked = messages.read_chat(Dialect.OLLAMA, shown, payload, stream, _thinks(payload))
    return replace(asked, load="" if payload.get("messages") else _load(payload))


def read_generate(body: bytes) -> Asked:
    """``POST /api/generate``"""
    payload, shown = _read(body, _GENERATE)
    prompt = payload.get("prompt") or ""
    images = bool(payload.get("images"))
    stream = _stream(payload)
    empty = not prompt and not images and not payload.get("suffix")
    return Asked(
        kind=Kind.GENERATE,
        dialect=Dialect.OLLAMA,
        model=name_of(shown),
        shown=shown,
        stream=stream,
        payload=payload,
        prompt=Prompt(prompt, len(prompt), images),
        needs=needs_of(images, False, _thinks(payload)),
        housekeeping=is_housekeeping(stream, prompt),
        load=_load(payload) if empty else "",
    )


def read_embed(body: bytes) -> Asked:
    """``POST /api/embed``"""
    payload, shown = _read(body, _EMBED)
    given = payload.get("input")
    if not isinstance(given, str) and not (
        isinstance(given, list) and all(isinstance(part, str) for part in given)
    ):
        raise wrong("input", "a text or a list of texts", given)
    if not given:
        raise RefusedError("bad_request", "input is empty", "send at least one text")
    return _embed(payload, shown, len(body), single=False)


def read_embedding(body: bytes) -> Asked:
    """``POST /api/embeddings``, the older form: ``prompt`` in, one ``embedding`` out."""
    payload, shown = _read(body, _EMBED)
    prompt = payload.pop("prompt", None)
    if not isinstance(prompt, str):
        raise wrong("prompt", "a text", prompt)
    if not prompt:
        raise RefusedError("bad_request", "prompt is empty", "send a text")
    payload["input"] = prompt
    return _embed(payload, shown, len(body), single=True)


def _embed(payload: dict[str, Any], shown: str, size: int, single: bool) -> Asked:
    payload.pop("stream", None)
    return Asked(
        kind=Kind.EMBED,
        dialect=Dialect.OLLAMA,
        model=name_of(shown),
        shown=shown,
        stream=False,
        payload=payload,
        prompt=Prompt("", size),
        single=single,
    )


def _read(body: bytes, fields: dict[str, str]) -> tuple[dict[str, Any], str]:
    payload = read_object(body)
    # Older clients say name.
    if "model" not in payload and isinstance(payload.get("name"), str):
        payload["model"] = payload.pop("name")
    shown = model_of(payload)
    check(payload, fields)
    check(payload.get("options") or {}, _OPTIONS)
    return payload, shown


def _stream(payload: dict[str, Any]) -> bool:
    said = payload.pop("stream", None)
    return True if said is None else bool(said)


def _load(payload: dict[str, Any]) -> str:
    return "unload" if payload.get("keep_alive") in (0, "0", "0s") else "load"


def _thinks(payload: dict[str, Any]) -> bool:
    return bool(payload.get("think"))
