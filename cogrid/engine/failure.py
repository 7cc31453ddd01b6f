"""What an engine's refusal means: its status and words as an EngineError."""

from __future__ import annotations

from http import HTTPStatus

from cogrid.engine.api import EngineError, Fault
from cogrid.engine.error_text import body_text, is_json


def failure(engine: str, model: str, status: int, body: bytes) -> EngineError:
    """The error for an answer that is not 200.

    engine: whose answer, in words, such as "Ollama at http://127.0.0.1:11434". model: what it was
    asked for, "" for a question about the engine itself.
    """
    said = f"{status} {_phrase(status)}".strip()
    text = body_text(body)
    fault = _fault(status, model, body, text)
    said = f"{said}: {text}" if text and text.lower() != _phrase(status).lower() else said
    if fault is Fault.MISSING:
        hint = f"give it the model, for Ollama with: ollama pull {model}"
        return EngineError(fault, f"{engine} has no model {model!r} ({said})", hint, status)
    asked = f" to {model!r}" if model else ""
    return EngineError(
        fault, f"{engine} refused a request{asked} ({said})", _hint(fault, status), status
    )


def _fault(status: int, model: str, body: bytes, text: str) -> Fault:
    """404 speaks of the model only where the engine's own JSON says it; a plain one speaks of the
    path, which another version of the same engine may have. 501 is how llama.cpp says that it was
    started without embeddings. A 500 about an option's type is Ollama's word for a bad request; it
    must not count against the engine, or one client's slip would shut its model out."""
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        return Fault.BUSY
    if status == HTTPStatus.NOT_FOUND:
        return Fault.MISSING if model and is_json(body) else Fault.SERVER
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.METHOD_NOT_ALLOWED):
        return Fault.SERVER
    if 400 <= status < 500 or status == HTTPStatus.NOT_IMPLEMENTED:
        return Fault.REFUSED
    if text.startswith("option ") and "must be of type" in text:
        return Fault.REFUSED
    return Fault.SERVER


def _hint(fault: Fault, status: int) -> str:
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return "give the engine's key as worker.engine_key or COGRID_WORKER_ENGINE_KEY"
    if fault is Fault.BUSY:
        return "ask again when it has loaded or answered what waits"
    if fault is Fault.REFUSED:
        return "change the request"
    return "look into the engine's log"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
