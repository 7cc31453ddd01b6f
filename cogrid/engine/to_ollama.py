"""A request of either dialect as a call of Ollama's own API."""

from __future__ import annotations

from typing import Any

import msgspec

from cogrid.engine.call import Call, items, refused
from cogrid.model.chat import Dialect, Request
from cogrid.model.task import Kind

PATHS = {Kind.CHAT: "/api/chat", Kind.GENERATE: "/api/generate", Kind.EMBED: "/api/embed"}

_RENAMED_OPTIONS = {"max_tokens": "num_predict", "max_completion_tokens": "num_predict"}
_OPTION_NAMES = (
    "temperature top_p top_k min_p typical_p seed presence_penalty frequency_penalty "
    "repeat_penalty repeat_last_n num_ctx num_keep num_batch num_gpu main_gpu num_thread "
    "mirostat mirostat_eta mirostat_tau penalize_newline tfs_z use_mmap"
)
_OPTIONS = frozenset(_OPTION_NAMES.split())
"""Fields that stand at the top of an OpenAI-style request and among Ollama's ``options``."""

_WITHOUT_MEANING = ("stream_options", "n", "tool_choice", "parallel_tool_calls", "store", "user")
"""Fields of an OpenAI-style request that Ollama has nothing for."""

_MESSAGE_FIELDS = ("role", "content", "tool_calls", "thinking", "reasoning", "reasoning_content")


def to_ollama(request: Request) -> Call:
    """The call; EngineError(REFUSED) for what Ollama cannot be asked."""
    payload = {name: value for name, value in request.payload.items() if value is not None}
    if request.dialect is Dialect.OLLAMA:
        body = _own(request.payload)
    elif request.kind is Kind.CHAT:
        body = _chat(payload)
    elif request.kind is Kind.GENERATE:
        body = _generate(payload)
    else:
        body = _embed(payload)
    body["model"] = request.model
    streams = request.kind is not Kind.EMBED
    if streams:
        body["stream"] = True
    return Call(PATHS[request.kind], body, streams)


def _own(payload: dict[str, Any]) -> dict[str, Any]:
    """Ollama's own request. Reasoning in the history is left out: clients send it back, and what
    they send may be no reasoning but the status lines they were shown."""
    body = dict(payload)
    if not body.get("tools", True):
        del body["tools"]
    if isinstance(body.get("messages"), list):
        body["messages"] = [
            {name: value for name, value in message.items() if name != "thinking"}
            if isinstance(message, dict)
            else message
            for message in body["messages"]
        ]
    return body


def _chat(payload: dict[str, Any]) -> dict[str, Any]:
    tools = [] if payload.get("tool_choice") == "none" else payload.get("tools")
    body = _settings(payload, ("messages", "tools"))
    names: dict[str, str] = {}
    body["messages"] = [
        _message(each, names) for each in items(payload.get("messages"), "messages")
    ]
    if tools:
        body["tools"] = tools
    return body


def _generate(payload: dict[str, Any]) -> dict[str, Any]:
    body = _settings(payload, ("prompt", "logprobs"))
    prompt = payload.get("prompt", "")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise refused("Ollama takes one prompt, as text", "send each prompt by itself")
    body["prompt"] = prompt
    if "logprobs" in payload:  # a count, where Ollama has two fields
        body |= {"logprobs": True, "top_logprobs": payload["logprobs"]}
    return body


def _embed(payload: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in payload.items()
        if name not in (*_WITHOUT_MEANING, "encoding_format")
    }


def _settings(payload: dict[str, Any], handled: tuple[str, ...]) -> dict[str, Any]:
    """Everything but the handled fields: options in their place, the rest as it came."""
    body: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for name, value in payload.items():
        if name in _RENAMED_OPTIONS:
            options[_RENAMED_OPTIONS[name]] = value
        elif name in _OPTIONS:
            options[name] = value
        elif name == "stop":
            options[name] = [value] if isinstance(value, str) else value
        elif name == "response_format":
            body |= _format(value)
        elif name in ("reasoning_effort", "reasoning"):
            body |= _think(value)
        elif name not in (*handled, *_WITHOUT_MEANING, "options"):
            body[name] = value
    own = payload.get("options")
    if isinstance(own, dict):
        options = own | options
    return body | ({"options": options} if options else {})


def _format(wanted: Any) -> dict[str, Any]:
    """``response_format`` as ``format``."""
    match wanted:
        case {"type": "json_object"}:
            return {"format": "json"}
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return {"format": schema}
        case _:
            return {}


def _think(wanted: Any) -> dict[str, Any]:
    """``reasoning_effort``, or ``reasoning.effort``, as ``think``."""
    effort = wanted.get("effort") if isinstance(wanted, dict) else wanted
    if not isinstance(effort, str):
        return {}
    return {"think": {"none": False, "minimal": "low", "xhigh": "max"}.get(effort, effort)}


def _message(message: Any, names: dict[str, str]) -> dict[str, Any]:
    """One message. names: the calls of the conversation so far, id -> function, so that a result
    can say whose it is; the calls of this message are added."""
    if not isinstance(message, dict):
        raise refused("a message is not an object", 'write {"role": …, "content": …}')
    role = message.get("role", "user")
    out: dict[str, Any] = {"role": "system" if role == "developer" else role}
    out["content"], images = _content(message.get("content"))
    if images:
        out["images"] = images
    calls = items(message.get("tool_calls"), "tool_calls")
    if calls:
        out["tool_calls"] = [_tool_call(call, names) for call in calls]
    answered = message.get("tool_call_id")
    if role == "tool" and isinstance(answered, str) and answered in names:
        out["tool_name"] = names[answered]
    return out | {
        name: value
        for name, value in message.items()
        if name not in _MESSAGE_FIELDS and value is not None
    }


def _content(content: Any) -> tuple[str, list[str]]:
    """Text and images (base64) of a message; parts of text are lines, as llama.cpp joins them."""
    if content is None or isinstance(content, str):
        return content or "", []
    if not isinstance(content, list):
        raise refused("a message's content is neither text nor parts", "send text")
    texts: list[str] = []
    images: list[str] = []
    for part in content:
        match part:
            case str(text) | {"type": "text" | "input_text", "text": str(text)}:
                texts.append(text)
            case {"type": "image_url", "image_url": str(url) | {"url": str(url)}}:
                images.append(_image(url))
            case {"type": str(kind)}:
                raise refused(f"Ollama takes text and images, not {kind}", "leave that part out")
            case _:
                raise refused("a part of a message's content has no type", "send text")
    return "\n".join(texts), images


def _image(url: str) -> str:
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        raise refused(
            "an image is given by an address, and no machine of the grid fetches addresses",
            "send the image itself, as data:image/png;base64,…",
        )
    return data


def _tool_call(call: Any, names: dict[str, str]) -> dict[str, Any]:
    match call:
        case {"function": {"name": str(name), **rest}}:
            out: dict[str, Any] = {"function": {"name": name, "arguments": _object(rest)}}
        case _:
            raise refused("a tool call names no function", "send the call as it came")
    if isinstance(call.get("id"), str):
        names[call["id"]] = name
        out["id"] = call["id"]
    if isinstance(call.get("index"), int):
        out["function"]["index"] = call["index"]
    return out


def _object(function: dict[Any, Any]) -> Any:
    """The arguments as an object. A model's JSON may be broken; it is still what the model said."""
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        return arguments or {}
    try:
        decoded = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        decoded = None
    return decoded if isinstance(decoded, dict) else {"arguments": arguments}
