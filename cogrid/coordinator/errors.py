"""Every way in which a request can fail, and what a client of each dialect is told: one table."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from cogrid.coordinator.shown import shown
from cogrid.errors import CogridError
from cogrid.model.chat import Dialect, End
from cogrid.store.refusal import StoreError


@dataclass(frozen=True, slots=True)
class Row:
    """status: of the HTTP answer, where none was sent yet. type: OpenAI's word for the kind."""

    status: int
    type: str


_INVALID, _LIMIT, _SERVER = "invalid_request_error", "rate_limit_error", "server_error"

TABLE: dict[str, Row] = {
    "bad_http": Row(400, _INVALID),
    "bad_json": Row(400, _INVALID),
    "bad_request": Row(400, _INVALID),
    "engine_refused": Row(400, _INVALID),
    "unauthorized": Row(401, "authentication_error"),
    "forbidden": Row(403, "permission_error"),
    "model_not_found": Row(404, _INVALID),
    "worker_not_found": Row(404, _INVALID),
    "not_found": Row(404, _INVALID),
    "method_not_allowed": Row(405, _INVALID),
    "head_too_slow": Row(408, _INVALID),
    # Somebody ended it on purpose; a status that clients try again by themselves would be wrong.
    "cancelled": Row(410, _INVALID),
    "orphaned": Row(410, _INVALID),
    "body_too_large": Row(413, _INVALID),
    "idempotency_mismatch": Row(422, _INVALID),
    "rate_limited": Row(429, _LIMIT),
    "queue_full": Row(429, _LIMIT),
    "queue_wait": Row(429, _LIMIT),
    "headers_too_large": Row(431, _INVALID),
    "internal": Row(500, _SERVER),
    "engine_error": Row(502, _SERVER),
    "broken_stream": Row(502, _SERVER),
    "recoveries_spent": Row(502, _SERVER),
    "worker_gone": Row(502, _SERVER),
    "lost": Row(502, _SERVER),
    "grid_starting": Row(503, _SERVER),
    "no_home": Row(503, _SERVER),
    "memory_full": Row(503, _SERVER),
    "queue_timeout": Row(503, _SERVER),
    "store_unreachable": Row(503, _SERVER),
    "shutting_down": Row(503, _SERVER),
    "timeout": Row(504, _SERVER),
}
"""Code -> row. The codes of rules/admission.py and of model/chat.py are all here (tested)."""


class RefusedError(CogridError):
    """A request that is not answered. retry_after_s: 0 where trying again is no use."""

    def __init__(self, code: str, message: str, hint: str = "", retry_after_s: int = 0) -> None:
        super().__init__(message, hint)
        self.code = code
        self.retry_after_s = retry_after_s

    @property
    def row(self) -> Row:
        """Its line of the table; an unknown code is our own fault."""
        return TABLE.get(self.code, TABLE["internal"])

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.row.status

    @property
    def sentence(self) -> str:
        """What the client reads."""
        return f"{self.message}: {self.hint}" if self.hint else self.message


class NotTakenError(RefusedError):
    """A path that is there, asked by a method that it does not take."""

    def __init__(self, path: str, method: str, takes: tuple[str, ...]) -> None:
        message = f"{shown(path)} takes {' and '.join(takes)}, not {method}"
        super().__init__("method_not_allowed", message)
        self.takes = takes


def failed(end: End) -> RefusedError:
    """The refusal for a task that ended without an answer."""
    message = end.message or f"the task ended as {end.state.value}"
    return RefusedError(end.code or "engine_error", message)


def store_refusal(error: StoreError) -> RefusedError:
    """The refusal for a request that meets no usable Redis."""
    return RefusedError("store_unreachable", error.message, error.hint, 2 if error.passing else 0)


def dialect_of(path: str) -> Dialect:
    """Whose errors are expected under a path."""
    return Dialect.OLLAMA if path.startswith("/api/") else Dialect.OPENAI


_json = msgspec.json.Encoder()


def body_of(refusal: RefusedError, dialect: Dialect) -> bytes:
    """The error as JSON: OpenAI's object or Ollama's text."""
    if dialect is Dialect.OLLAMA:
        return _json.encode({"error": refusal.sentence})
    error = {
        "message": refusal.sentence,
        "type": refusal.row.type,
        "param": None,
        "code": refusal.code,
    }
    return _json.encode({"error": error})
