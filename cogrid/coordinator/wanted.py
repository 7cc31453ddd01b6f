"""What a client wants beside the answer, by its headers."""

from __future__ import annotations

from dataclasses import dataclass

from cogrid.config import Coordinator
from cogrid.coordinator.errors import RefusedError
from cogrid.coordinator.exchange import Exchange
from cogrid.model.names import is_name
from cogrid.model.task import OnClose

KEY_CHARS = 255
_YES = ("1", "true", "yes", "on")


@dataclass(frozen=True, slots=True)
class Wanted:
    """worker: by name, or "". status: status frames. background: it serves behind somebody's chat.
    on_close: what happens when the client leaves. idempotency: its key for this request, or ""."""

    worker: str = ""
    status: bool = False
    background: bool = False
    on_close: OnClose = OnClose.CANCEL
    idempotency: str = ""


def read_wanted(exchange: Exchange, settings: Coordinator) -> Wanted:
    """The wishes; RefusedError for one that cannot be understood."""
    headers = exchange.headers
    worker = exchange.header(b"x-cogrid-worker").strip()
    if worker and not is_name(worker):
        raise RefusedError(
            "bad_request", "X-Cogrid-Worker is no worker's name", "write one such as esxi"
        )
    idempotency = exchange.header(b"idempotency-key").strip()
    if len(idempotency) > KEY_CHARS:
        raise RefusedError("bad_request", f"Idempotency-Key is longer than {KEY_CHARS} characters")
    on_close = OnClose.GRACE if idempotency else OnClose.CANCEL
    said = exchange.header(b"x-cogrid-on-close").strip().lower()
    if said:
        if said not in set(OnClose):
            hint = "write cancel, grace or keep"
            raise RefusedError("bad_request", f"X-Cogrid-On-Close is {said[:40]!r}", hint)
        on_close = OnClose(said)
    return Wanted(
        worker=worker,
        status=_status(headers, settings.status_line),
        background=bool(headers.get(b"x-owui-task", b"").strip()),
        on_close=on_close,
        idempotency=idempotency,
    )


def _status(headers: dict[bytes, bytes], rule: str) -> bool:
    if rule != "headers":
        return rule == "always"
    said = headers.get(b"x-cogrid-status")
    if said is not None:
        return said.decode("latin-1").strip().lower() in _YES
    return any(name.startswith(b"x-openwebui-") for name in headers)
