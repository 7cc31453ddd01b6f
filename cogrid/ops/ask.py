"""Asks a coordinator a question and passes its answer on as it comes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from cogrid.errors import CogridError, NotFoundError, UnreachableError, UsageError

CONNECT_S = 5.0
SILENCE_S = 60.0
"""A coordinator says something at least every keepalive_s (10 s)."""
NO_WORKER_CURE = "cogrid status shows the workers, cogrid doctor what each of them needs"


@dataclass(frozen=True, slots=True)
class Question:
    """model: auto leaves the choice to the grid. worker: by name, or ""."""

    prompt: str
    model: str = "auto"
    worker: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """Where the question waits or runs, in one line."""

    description: str


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer; thinking: of the reasoning before it."""

    text: str
    thinking: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """The end, and where it ran: the ``cogrid`` object of the answer."""

    ran: dict[str, Any]
    finish_reason: str


def ask(url: str, api_key: str, question: Question) -> Iterator[Status | Text | Done]:
    """The answer, piece by piece. Leaving the iterator cancels the task."""
    headers = {"X-Cogrid-Status": "1"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    if question.worker:
        headers["X-Cogrid-Worker"] = question.worker
    body = {
        "model": question.model,
        "messages": [{"role": "user", "content": question.prompt}],
        "stream": True,
    }
    timeout = httpx.Timeout(SILENCE_S, connect=CONNECT_S)
    address = f"{url.rstrip('/')}/v1/chat/completions"
    try:
        with (
            httpx.Client(timeout=timeout, headers=headers) as client,
            client.stream("POST", address, json=body) as answer,
        ):
            if answer.status_code != 200:
                answer.read()
                raise _refused(url, answer)
            yield from _pieces(url, answer)
    except httpx.InvalidURL as error:
        raise UsageError(f"{url!r} is no URL", "write http://HOST:PORT") from error
    except httpx.TransportError as error:
        raise UnreachableError(
            f"the coordinator at {url} cannot be reached: {error or type(error).__name__}",
            "start it (cogrid up), or name it with --url or COGRID_CLIENT_URL",
        ) from error


def _pieces(url: str, answer: httpx.Response) -> Iterator[Status | Text | Done]:
    ended = False
    for line in answer.iter_lines():
        if not line.startswith("data:"):
            continue
        data = line[5:].strip()
        if data == "[DONE]":
            ended = True
            break
        yield from _read(json.loads(data), answer.headers.get("X-Cogrid-Task", ""))
    if not ended:
        raise CogridError(f"the answer of {url} broke off before its end", "ask again")


def _read(chunk: dict[str, Any], task: str) -> Iterator[Status | Text | Done]:
    if "error" in chunk:
        hint = f"cogrid explain {task} tells what happened to it" if task else ""
        raise CogridError(str(chunk["error"].get("message", chunk["error"])), hint)
    if "event" in chunk:
        yield Status(chunk["event"]["data"]["description"])
    for choice in chunk.get("choices", ()):
        delta = choice.get("delta", {})
        if delta.get("reasoning_content"):
            yield Text(delta["reasoning_content"], thinking=True)
        if delta.get("content"):
            yield Text(delta["content"])
        if choice.get("finish_reason"):
            yield Done(chunk.get("cogrid", {}), choice["finish_reason"])


def _refused(url: str, answer: httpx.Response) -> CogridError:
    try:
        error = answer.json()["error"]
        message, code = str(error["message"]), str(error["code"])
    except (ValueError, KeyError, TypeError):
        return CogridError(f"{url} answered {answer.status_code} and is no coordinator of cogrid")
    if code in ("unauthorized", "forbidden"):
        return UsageError(message, "set COGRID_CLIENT_API_KEY")
    if code == "model_not_found":
        return NotFoundError(message, "cogrid model list shows all")
    if code == "grid_starting":
        return UnreachableError(message, NO_WORKER_CURE)
    if code == "store_unreachable":
        return UnreachableError(message)
    if code == "no_home":
        return CogridError(message, NO_WORKER_CURE)
    return CogridError(message)
