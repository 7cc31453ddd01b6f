"""What a conversation says, read once: for domains, needs, priority and affinity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cogrid.coordinator.checks import wrong


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


def listen(messages: list[Any]) -> Said:
    """Read messages of either dialect; RefusedError where they are none."""
    last, first, system, chars, images, goes_on = "", None, "", 0, False, False
    for place, message in enumerate(messages):
        if not isinstance(message, dict):
            raise wrong(f"messages[{place}]", "an object with a role and content", message)
        role = message.get("role")
        if not isinstance(role, str) or not role:
            raise wrong(f"messages[{place}].role", "a text such as user", role)
        text, seen = _content(message, place)
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


def _content(message: dict[str, Any], place: int) -> tuple[str, bool]:
    content = message.get("content")
    images = message.get("images")
    if images is not None and not isinstance(images, list):
        raise wrong(f"messages[{place}].images", "a list of texts", images)
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise wrong(f"messages[{place}].tool_calls", "a list", calls)
    if isinstance(content, str):
        return content, bool(images)
    if content is None:
        return "", bool(images)
    if not isinstance(content, list):
        raise wrong(f"messages[{place}].content", "a text or a list of parts", content)
    texts, seen = [], bool(images)
    for part in content:
        if isinstance(part, str):
            texts.append(part)
            continue
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            raise wrong(f"messages[{place}].content", "a list of parts, each with a type", part)
        if isinstance(part.get("text"), str):
            texts.append(part["text"])
        seen = seen or part["type"] in ("image_url", "input_image")
    return "\n".join(texts), seen
