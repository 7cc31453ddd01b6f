"""Whether the fields of a request are what they must be; a sentence for each that is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from cogrid.coordinator.errors import RefusedError
from cogrid.coordinator.shown import shown

_decoder = msgspec.json.Decoder()

DEPTH_MOST = 100
"""Levels of nesting that a request may have; tools' schemas in the wild stay below 20."""


def read_object(body: bytes) -> dict[str, Any]:
    """The request's JSON object; RefusedError for everything else."""
    if not body.strip():
        raise RefusedError("bad_json", "the request has no body", "send a JSON object")
    try:
        payload = _decoder.decode(body)
    except RecursionError as error:
        raise RefusedError("bad_json", "the request is nested too deeply") from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise RefusedError("bad_json", f"the request is not JSON: {error}") from error
    if not isinstance(payload, dict):
        raise RefusedError("bad_request", f"the request is {_shown(payload)}", "send a JSON object")
    if body.count(b"[") + body.count(b"{") > DEPTH_MOST and _deeper(payload, DEPTH_MOST):
        raise RefusedError("bad_json", f"the request is nested deeper than {DEPTH_MOST} levels")
    return payload


def model_of(payload: Mapping[str, Any]) -> str:
    """The model as it was written; RefusedError where it is no name."""
    model = payload.get("model")
    if model is None or model == "":
        raise RefusedError("bad_request", "model is required", "name a model, or auto")
    if not isinstance(model, str):
        raise wrong("model", "a text", model)
    if not model.strip():
        raise RefusedError("bad_request", "model is required", "name a model, or auto")
    if not model.isprintable():
        message = f"the model's name {shown(model)} has control characters"
        raise RefusedError("bad_request", message)
    return model


def check(payload: Mapping[str, Any], fields: Mapping[str, str], where: str = "") -> None:
    """RefusedError for the first field of another type than ``fields`` names; null is none. where:
    what the fields are of, such as ``messages[0].``"""
    for name, wanted in fields.items():
        value = payload.get(name)
        if value is not None and not _IS[wanted](value):
            raise wrong(where + name, wanted, value)


def wrong(name: str, wanted: str, value: object) -> RefusedError:
    """The refusal of a field."""
    return RefusedError("bad_request", f"{name} must be {wanted}, not {_shown(value)}")


def _shown(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {str(value)[:40]}"
        case str():
            return f"the text {value[:40]!a}"
        case list():
            return "a list"
        case _:
            return "an object"


def _deeper(value: Any, levels: int) -> bool:
    """Level by level, so that what is deep cannot exhaust the stack here."""
    row: list[Any] = [value]
    for _ in range(levels):
        row = [
            inner
            for outer in row
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not row:
            return False
    return True


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


_IS: dict[str, Callable[[Any], bool]] = {
    "a number": _number,
    "a whole number": _whole,
    "a whole number above 0": lambda value: _whole(value) and value > 0,
    "true or false": lambda value: isinstance(value, bool),
    "a text": lambda value: isinstance(value, str),
    "a list": lambda value: isinstance(value, list),
    "a list of objects": lambda value: (
        isinstance(value, list) and all(isinstance(part, dict) for part in value)
    ),
    "a list of texts": _texts,
    "an object": lambda value: isinstance(value, dict),
    "a text or a list of texts": lambda value: isinstance(value, str) or _texts(value),
    "a text or a list of parts": lambda value: isinstance(value, (str, list)),
    "a text or an object": lambda value: isinstance(value, (str, dict)),
    "true, false or a text": lambda value: isinstance(value, (bool, str)),
    "a number or a text": lambda value: _number(value) or isinstance(value, str),
}
