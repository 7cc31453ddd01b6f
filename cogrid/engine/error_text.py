"""The sentence in an engine's error, whatever form it has."""

from __future__ import annotations

import re
from typing import Any

import msgspec

TEXT_MAX = 400
"""Characters of an engine's own words that are passed on."""

_TAGS = re.compile(r"<(script|style|head)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


def error_text(error: Any) -> str:
    """The words in an ``error`` field: text, or an object that has them under one of its names."""
    if isinstance(error, dict):
        told = [error[name] for name in ("message", "error", "detail", "msg") if name in error]
        if told:
            return error_text(next(filter(None, told), ""))
    if isinstance(error, list) and error:
        return error_text(error[0])
    text = error if isinstance(error, str) else msgspec.json.encode(error).decode()
    return _one_line(text)


def body_text(body: bytes) -> str:
    """The words in the body of an error answer: JSON, HTML or plain text; "" if it has none."""
    try:
        return error_text(msgspec.json.decode(body))
    except msgspec.DecodeError:
        return _one_line(_TAGS.sub(" ", body.decode("utf-8", "replace")))


def is_json(body: bytes) -> bool:
    """Whether the engine itself, and not a router in front of its functions, wrote this error."""
    try:
        return isinstance(msgspec.json.decode(body), dict)
    except msgspec.DecodeError:
        return False


def _one_line(text: str) -> str:
    line = _BLANK.sub(" ", text).strip().rstrip(".")
    return line if len(line) <= TEXT_MAX else line[: TEXT_MAX - 1] + "…"
