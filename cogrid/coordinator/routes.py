"""The ordinary routes: everything that is not worth a path of its own for speed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from cogrid.coordinator import health, models, tasks
from cogrid.coordinator.errors import NotTakenError, RefusedError
from cogrid.coordinator.services import Services
from cogrid.coordinator.shown import shown

Handler = Callable[[Services, Request], Awaitable[Response]]

OPEN = frozenset({"/", "/healthz", "/readyz"})
"""Answered without a key: they say nothing but that somebody is there."""

HANDLERS: dict[str, dict[str, Handler]] = {
    "/": {"GET": models.hello},
    "/healthz": {"GET": health.alive},
    "/readyz": {"GET": health.ready},
    "/metrics": {"GET": health.metrics},
    "/workers": {"GET": models.workers},
    "/v1/models": {"GET": models.openai_list},
    "/v1/models/{model:path}": {"GET": models.openai_one},
    "/api/tags": {"GET": models.tags},
    "/api/ps": {"GET": models.loaded},
    "/api/version": {"GET": models.version},
    "/api/show": {"POST": models.show},
    "/task": {"POST": tasks.create},
    "/task/{task}": {"GET": tasks.show, "DELETE": tasks.remove},
}


class Answers:
    """A path's handlers by method, as an ASGI application; HEAD is GET without the body."""

    def __init__(self, services: Services, handlers: dict[str, Handler]) -> None:
        self._services = services
        self._handlers = handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        handler = self._handlers.get(method)
        if handler is None:
            raise NotTakenError(scope["path"], scope["method"], tuple(self._handlers))
        response = await handler(self._services, Request(scope, receive))
        await response(scope, receive, send)


def routes(services: Services) -> Router:
    """The router; a path that it does not know raises a RefusedError."""
    ordinary = [Route(path, Answers(services, table)) for path, table in HANDLERS.items()]
    events = Route("/task/{task}/events", tasks.Events(services))
    return Router([events, *ordinary], default=_unknown, redirect_slashes=False)


async def _unknown(scope: Scope, receive: Receive, send: Send) -> None:
    raise RefusedError("not_found", f"there is nothing at {shown(scope['path'])}")
