"""What a conversation says, read once: for domains, needs, priority and affinity."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cogrid.coordinator.asked import Asked, is_housekeeping, name_of, needs_of
from cogrid.coordinator.checks import check, wrong
from cogrid.coordinator.errors import RefusedError
from cogrid.model.chat import Dialect
from cogrid.model.task import Kind
from cogrid.rules.domain import Prompt


@dataclass(frozen=True, slots=True)
class Said:
    """last: the last text of the user. first: the first one. system: the system's texts. chars: of
    all messages. images: there are some. goes_on: the model has answered before."""

    last: str
    first: str
    system: str
    chars: int
    images: bool
    goes_on: bool


_FIELDS = {
    Dialect.OPENAI: {
        "content": "a text or a list of parts",
        "name": "a text",
        "images": "a list of texts",
        "tool_calls": "a list of objects",
        "tool_call_id": "a text",
    },
    Dialect.OLLAMA: {
        "content": "a text",
        "images": "a list of texts",
        "tool_calls": "a list of objects",
        "tool_name": "a text",
    },
}


def read_chat(
    dialect: Dialect, shown: str, payload: dict[str, Any], stream: bool, thinks: bool
) -> Asked:
    """A chat, which both dialects say alike. shown: the model. payload: without what says how the
    answer is to be sent."""
    said = listen(payload.get("messages") or [], dialect)
    tools = bool(payload.get("tools"))
    return Asked(
        kind=Kind.CHAT,
        dialect=dialect,
        model=name_of(shown),
        shown=shown,
        stream=stream,
        payload=payload,
        prompt=Prompt(said.last, said.chars, said.images, tools),
        needs=needs_of(said.images, tools, thinks),
        housekeeping=is_housekeeping(stream, said.last),
        conversation=(said.system, said.first),
        goes_on=said.goes_on,
    )


def listen(messages: list[Any], dialect: Dialect) -> Said:
    """Read the messages of a chat; RefusedError where they are none."""
    last, first, system, chars, images, goes_on = "", None, "", 0, False, False
    fields = _FIELDS[dialect]
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        if not isinstance(message, dict):
            raise wrong(where, "an object with a role and content", message)
        role = message.get("role")
        if not isinstance(role, str) or not role:
            raise wrong(f"{where}.role", "a text such as user", role)
        check(message, fields, f"{where}.")
        _check_calls(message.get("tool_calls") or (), where)
        text, seen = _content(message, where)
        chars += len(text)
        images = images or seen
        if role == "user":
            last = text
            first = text if first is None else first
        elif role in ("system", "developer"):
            system += text
        elif role == "assistant":
            goes_on = True
    return Said(last, first or "", system, chars, images, goes_on)


def _check_calls(calls: Iterable[dict[str, Any]], where: str) -> None:
    for place, call in enumerate(calls):
        function = call.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            told = f"{where}.tool_calls[{place}] names no function"
            raise RefusedError("bad_request", told, "send the call as it came")
        inner = f"{where}.tool_calls[{place}].function."
        check(function, {"arguments": "a text or an object"}, inner)


def _content(message: dict[str, Any], where: str) -> tuple[str, bool]:
    """Its text, and whether there is an image."""
    content, seen = message.get("content"), bool(message.get("images"))
    if not isinstance(content, list):
        return content or "", seen
    texts = []
    for place, part in enumerate(content):
        if isinstance(part, str):
            texts.append(part)
            continue
        inner = f"{where}.content[{place}]"
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            raise wrong(inner, "a part with a type", part)
        match part["type"]:
            case "text" | "input_text":
                texts.append(_text(part.get("text"), f"{inner}.text"))
            case "image_url":
                _check_image(part.get("image_url"), f"{inner}.image_url")
                seen = True
            case "input_image":
                seen = True
    return "\n".join(texts), seen


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise wrong(where, "a text", value)
    return value


def _check_image(value: Any, where: str) -> None:
    """An address, or an object that holds it."""
    url = value.get("url") if isinstance(value, dict) else value
    if not isinstance(url, str):
        raise wrong(where, 'an object such as {"url": "data:image/png;base64,…"}', value)
