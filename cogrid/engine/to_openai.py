"""A request of either dialect as a call of an OpenAI-style API."""

from __future__ import annotations

from typing import Any

import msgspec

from cogrid.engine.call import Call, items, refused
from cogrid.model.chat import Dialect, Request
from cogrid.model.task import Kind

CHAT, GENERATE, EMBED = "/v1/chat/completions", "/v1/completions", "/v1/embeddings"
PATHS = {Kind.CHAT: CHAT, Kind.GENERATE: GENERATE, Kind.EMBED: EMBED}

_OLLAMA_NAMES = "options format think keep_alive truncate shift template context raw system images"
_WITHOUT_MEANING = frozenset(_OLLAMA_NAMES.split())
"""Fields of Ollama's requests that are translated, or that nobody else has anything for."""

_MESSAGE_FIELDS = ("role", "content", "images", "thinking", "tool_calls", "tool_name")

_IMAGE_TYPES = {"iVBOR": "png", "R0lGO": "gif", "UklGR": "webp"}
"""How the base64 of an image begins; what is none of them is taken for a JPEG."""


def to_openai(request: Request, model: str = "") -> Call:
    """The call. model: the engine's own spelling of the model's name, if it has one.

    EngineError(REFUSED) for what cannot be said in this dialect.
    """
    payload = {name: value for name, value in request.payload.items() if value is not None}
    path = PATHS[request.kind]
    if request.dialect is Dialect.OPENAI:
        body = _own(request.payload)
    elif request.kind is Kind.CHAT:
        body = _settings(payload, ("messages", "tools")) | _tools(payload)
        body["messages"] = _Messages().translate(items(payload.get("messages"), "messages"))
    elif request.kind is Kind.EMBED:
        body = {name: v for name, v in payload.items() if name not in _WITHOUT_MEANING}
    elif payload.get("raw") or payload.get("suffix"):
        path, body = GENERATE, _settings(payload, ("logprobs", "top_logprobs")) | _logged(payload)
    else:
        path, body = CHAT, _settings(payload, ("prompt", "suffix"))
        body["messages"] = _Messages().translate(_turns(payload))
    body["model"] = model or request.model
    streams = request.kind is not Kind.EMBED
    if streams:
        body["stream"] = True
        own = body.get("stream_options")
        body["stream_options"] = (own if isinstance(own, dict) else {}) | {"include_usage": True}
    else:
        body.pop("encoding_format", None)  # floats; the coordinator packs them if it must
    return Call(path, body, streams)


def _own(payload: dict[str, Any]) -> dict[str, Any]:
    """An OpenAI-style request; one answer is all that a task can carry."""
    body = {name: value for name, value in payload.items() if name != "n"}
    if not body.get("tools", True):
        for name in ("tools", "tool_choice", "parallel_tool_calls"):
            body.pop(name, None)
    return body


def _tools(payload: dict[str, Any]) -> dict[str, Any]:
    return {"tools": payload["tools"]} if payload.get("tools") else {}


def _turns(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages that /api/generate makes of a prompt, so that the model's template is used."""
    user = {"role": "user", "content": payload.get("prompt", "")}
    if payload.get("images"):
        user["images"] = payload["images"]
    system = payload.get("system")
    return [{"role": "system", "content": system}, user] if system else [user]


def _settings(payload: dict[str, Any], handled: tuple[str, ...]) -> dict[str, Any]:
    """Everything but the handled fields: options at the top, the rest as it came."""
    body = {
        name: value
        for name, value in payload.items()
        if name not in handled and name not in _WITHOUT_MEANING
    }
    options = payload.get("options")
    for name, value in options.items() if isinstance(options, dict) else ():
        if name != "num_predict":
            body[name] = value
        elif isinstance(value, int) and value > 0:  # -1 and -2: without a limit
            body["max_tokens"] = value
    return body | _response_format(payload.get("format")) | _effort(payload.get("think"))


def _logged(payload: dict[str, Any]) -> dict[str, Any]:
    """The two fields for log probabilities as the one count of /v1/completions."""
    return {"logprobs": payload.get("top_logprobs", 1)} if payload.get("logprobs") else {}


def _response_format(wanted: Any) -> dict[str, Any]:
    """``format`` as ``response_format``."""
    if wanted == "json":
        return {"response_format": {"type": "json_object"}}
    if isinstance(wanted, dict):
        schema = {"name": "answer", "schema": wanted}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    return {}


def _effort(think: Any) -> dict[str, Any]:
    """``think`` as ``reasoning_effort``; models whose template has a switch get that turned off
    too, since many know no effort "none"."""
    if think is False:
        off = {"enable_thinking": False}
        return {"reasoning_effort": "none", "chat_template_kwargs": off}
    if think is True:
        return {"reasoning_effort": "medium"}
    if isinstance(think, str) and think:
        return {"reasoning_effort": "high" if think == "max" else think}
    return {}


class _Messages:
    """Translates a conversation; Ollama's calls may be without ids, which are given here, and its
    results without the id of their call, which is then the first open one of that name."""

    def __init__(self) -> None:
        self._given = 0
        self._open: list[tuple[str, str]] = []

    def translate(self, messages: list[Any]) -> list[dict[str, Any]]:
        return [self._message(message) for message in messages]

    def _message(self, message: Any) -> dict[str, Any]:
        if not isinstance(message, dict):
            raise refused("a message is not an object", 'write {"role": …, "content": …}')
        role = message.get("role", "user")
        out: dict[str, Any] = {"role": role, "content": _content(message)}
        calls = items(message.get("tool_calls"), "tool_calls")
        if calls:
            out["tool_calls"] = [self._tool_call(call) for call in calls]
        out |= {
            name: value
            for name, value in message.items()
            if name not in _MESSAGE_FIELDS and value is not None
        }
        if role == "tool":
            out["tool_call_id"] = self._answered(message)
        return out

    def _tool_call(self, call: Any) -> dict[str, Any]:
        match call:
            case {"function": {"name": str(name), **rest}}:
                function = {"name": name, "arguments": _text(rest.get("arguments"))}
            case _:
                raise refused("a tool call names no function", "send the call as it came")
        self._given += 1
        call_id = call.get("id") or f"call_{self._given}"
        self._open.append((call_id, name))
        return {"id": call_id, "type": "function", "function": function}

    def _answered(self, message: dict[str, Any]) -> str:
        """The id of the call whose result this is; it is open no more."""
        given, name = message.get("tool_call_id"), message.get("tool_name")
        for call in self._open:
            if given == call[0] or (not given and name in (None, call[1])):
                self._open.remove(call)
                return call[0]
        return given or f"call_{self._given}"


def _content(message: dict[str, Any]) -> Any:
    content, images = message.get("content"), message.get("images")
    if not images:
        return content if content is not None else ""
    parts: list[dict[str, Any]] = [{"type": "text", "text": content}] if content else []
    for image in items(images, "images"):
        parts.append({"type": "image_url", "image_url": {"url": _url(image)}})
    return parts


def _url(image: Any) -> str:
    if not isinstance(image, str):
        raise refused("an image is not base64 text", "send the image as base64")
    if image.startswith("data:"):
        return image
    return f"data:image/{_IMAGE_TYPES.get(image[:5], 'jpeg')};base64,{image}"


def _text(arguments: Any) -> str:
    """A call's arguments as JSON text."""
    return (
        arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    )
