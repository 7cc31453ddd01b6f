"""Whether this process lives, whether it could serve, and its figures."""

from __future__ import annotations

import asyncio

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from cogrid.coordinator.errors import RefusedError
from cogrid.coordinator.reply import reply
from cogrid.coordinator.services import Services
from cogrid.store.follow import touch_inbox
from cogrid.store.refusal import StoreError


async def alive(services: Services, request: Request) -> Response:
    """``GET /healthz``: the process answers, whatever the grid does."""
    return reply({"status": "ok"})


async def ready(services: Services, request: Request) -> Response:
    """``GET /readyz``: Redis takes writes, and some worker could take a task."""
    missing = await _missing(services)
    if missing:
        return reply({"status": "not ready", "missing": missing}, 503)
    return reply({"status": "ready"})


async def metrics(services: Services, request: Request) -> Response:
    """``GET /metrics``"""
    return Response(services.metrics.text(), headers={"content-type": CONTENT_TYPE_LATEST})


async def _missing(services: Services) -> list[str]:
    limit_s = services.config.limits.submit_timeout_s
    try:
        async with asyncio.timeout(limit_s):  # who asks does not wait long either
            await services.store.read(touch_inbox(services.store.keys, services.live.name))
            await services.registry.freshen()
        grid = services.registry.grid
    except (StoreError, RefusedError) as error:
        return [error.message]
    except TimeoutError:
        return [f"Redis at {services.store.shown} did not answer within {limit_s:g} s"]
    if not any(seat.able for seats in grid.homes.values() for seat in seats):
        return ["no worker could take a task"]
    return []
