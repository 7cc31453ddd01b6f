"""The ASGI application: the hot paths by themselves, the ordinary routes through Starlette."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from cogrid.coordinator.accesslog import Line
from cogrid.coordinator.answer import ENDPOINTS, answer
from cogrid.coordinator.errors import (
    NotTakenError,
    RefusedError,
    body_of,
    dialect_of,
    store_refusal,
)
from cogrid.coordinator.exchange import JSON, Exchange, Header, LeftError, Receive, Send
from cogrid.coordinator.routes import OPEN, routes
from cogrid.coordinator.services import Services
from cogrid.model.chat import Dialect
from cogrid.store.refusal import StoreError

log = logging.getLogger(__name__)

_SPARE = (b"cache-control", b"no-store")


class App:
    """One coordinator's answers to HTTP."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._ordinary = routes(services)
        self._access_log = services.config.coordinator.access_log

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"cogrid speaks HTTP, not {scope['type']}")
        endpoint = ENDPOINTS.get(scope["path"])
        exchange = Exchange(scope, receive, send)
        line = Line(exchange.method, exchange.path)
        dialect = endpoint.dialect if endpoint else dialect_of(exchange.path)
        try:
            if endpoint is None:
                await self._other(scope, receive, exchange, send)
            elif exchange.method != "POST":
                raise NotTakenError(exchange.path, exchange.method, ("POST",))
            else:
                await answer(self._services, endpoint, exchange, line)
        except LeftError:
            line.outcome = "left"
        except RefusedError as refusal:
            await self._refuse(exchange, refusal, dialect, line)
        except StoreError as error:
            await self._refuse(exchange, store_refusal(error), dialect, line)
        except asyncio.CancelledError:
            line.outcome = "shutting_down"
            raise
        except Exception:
            log.exception("%s %s failed in cogrid itself", exchange.method, exchange.path)
            broken = RefusedError("internal", "the coordinator has failed", "its log has the cause")
            await self._refuse(exchange, broken, dialect, line)
        finally:
            exchange.close()
            line.status = exchange.status
            self._services.metrics.count(self._route(endpoint is not None, exchange), line)
            if self._access_log:
                line.write()

    async def _other(self, scope: Any, receive: Receive, exchange: Exchange, send: Send) -> None:
        if exchange.path not in OPEN:
            scope["caller"] = self._services.access.caller(exchange)

        async def noted(message: Any) -> None:
            if message["type"] == "http.response.start":
                exchange.started, exchange.status = True, message["status"]
            await send(message)

        await self._ordinary(scope, receive, noted)

    async def _refuse(
        self, exchange: Exchange, refusal: RefusedError, dialect: Dialect, line: Line
    ) -> None:
        """A status where none was sent yet, else an error at the end of the stream."""
        line.outcome = refusal.code
        if exchange.gone or exchange.complete:
            return
        if not exchange.started:
            await exchange.reply(refusal.status, body_of(refusal, dialect), _headers(refusal))
            return
        body = body_of(refusal, dialect)
        if dialect is Dialect.OLLAMA:
            # Readers of NDJSON take a clean end for a good one, so this one is left without its
            # last chunk: the server then closes the connection.
            await exchange.write(body + b"\n")
            return
        await exchange.finish(b"data: " + body + b"\n\n")

    @staticmethod
    def _route(hot: bool, exchange: Exchange) -> str:
        """The path as a label; what clients invent would be labels without end."""
        return exchange.path if hot or exchange.path in OPEN else "other"


def _headers(refusal: RefusedError) -> list[Header]:
    headers = [JSON, _SPARE]
    if refusal.retry_after_s:
        headers.append((b"retry-after", b"%d" % refusal.retry_after_s))
    if refusal.code == "unauthorized":
        headers.append((b"www-authenticate", b"Bearer"))
    if isinstance(refusal, NotTakenError):
        headers.append((b"allow", ", ".join(refusal.takes).encode()))
    return headers
