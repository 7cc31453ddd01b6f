"""Finds the engine at an address, or the one that runs on this machine."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from cogrid.engine.address import engine_url, ollama_url
from cogrid.engine.api import Engine, EngineError, Fault
from cogrid.engine.demo import DemoEngine
from cogrid.engine.link import Link
from cogrid.engine.ollama import OllamaEngine
from cogrid.engine.openai import OpenAIEngine
from cogrid.errors import UsageError

USUAL_PORTS = {11434: "Ollama", 8080: "llama.cpp", 8000: "vLLM", 1234: "LM Studio"}
"""Where each listens unless told otherwise, in the order in which they are preferred."""

_QUESTIONS = (("ollama", "/api/version", "version"), ("openai", "/v1/models", "data"))


def open_engine(kind: str, url: str, key: str = "") -> Engine:
    """The engine of that kind at that address, which nobody is asked about.

    kind: ``ollama``, ``openai`` or ``demo``. key: its API key, if it wants one.
    """
    match kind:
        case "ollama":
            return OllamaEngine(engine_url(url), key)
        case "openai":
            return OpenAIEngine(engine_url(url), key)
        case "demo":
            return DemoEngine()
    raise UsageError(f"there is no engine of kind {kind!r}", "choose ollama, openai or demo")


async def find(url: str | None = None, timeout_s: float = 2.0, key: str = "") -> Engine:
    """The engine at this address, its kind found out by asking; without one, the first that answers
    on the usual ports of this machine (and where OLLAMA_HOST points).

    ``demo`` is an address too. EngineError where none answers within timeout_s.
    """
    if url is None:
        return await _find_here(timeout_s, key)
    if url.rstrip(":") == "demo":
        return open_engine("demo", url)
    url = engine_url(url)
    return open_engine(await _kind(url, timeout_s, key), url, key)


async def _find_here(timeout_s: float, key: str) -> Engine:
    places = _usual_places()
    asked = (_kind(place, timeout_s, key) for place in places)
    kinds = await asyncio.gather(*asked, return_exceptions=True)
    trouble: EngineError | None = None
    for place, kind in zip(places, kinds, strict=True):
        if isinstance(kind, str):
            return open_engine(kind, place, key)
        if not isinstance(kind, EngineError):
            raise kind
        if kind.fault is Fault.BUSY:
            trouble = trouble or kind
    names = ", ".join(f"{name} ({port})" for port, name in USUAL_PORTS.items())
    raise trouble or EngineError(
        Fault.UNREACHABLE,
        f"no engine answers on this machine; asked for {names}",
        "start one, or give its address with --engine http://HOST:PORT",
    )


def _usual_places() -> list[str]:
    places = [f"http://127.0.0.1:{port}" for port in USUAL_PORTS]
    host = os.environ.get("OLLAMA_HOST", "")
    if host:
        try:
            places.insert(0, ollama_url(host))
        except ValueError as error:
            raise UsageError(f"OLLAMA_HOST={host} is no address", "correct or unset it") from error
    return list(dict.fromkeys(places))


async def _kind(url: str, timeout_s: float, key: str) -> str:
    """What listens there: Ollama has a version to tell; OpenAI-style is what has models."""
    link = Link("what listens", url, key)
    try:
        async with asyncio.timeout(timeout_s):
            for kind, path, field in _QUESTIONS:
                if field in await _answer(link, path):
                    return kind
    except TimeoutError as error:
        message = f"nothing answers at {link.url} within {timeout_s:g} s"
        raise EngineError(
            Fault.UNREACHABLE, message, "is it up, and is that its address?"
        ) from error
    finally:
        await link.aclose()
    raise EngineError(
        Fault.SERVER,
        f"what listens at {link.url} is neither Ollama nor an OpenAI-style server",
        "give the address of the engine itself with --engine",
    )


async def _answer(link: Link, path: str) -> dict[str, Any]:
    """{} where the question is not understood; an error that tells about the engine is one."""
    try:
        return await link.get(path)
    except EngineError as error:
        if error.fault in (Fault.UNREACHABLE, Fault.BUSY) or error.status in (401, 403):
            raise
        return {}
