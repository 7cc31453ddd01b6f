"""What the grid has: lists of models and workers in each dialect, from the registry alone."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from cogrid.coordinator.asked import name_of
from cogrid.coordinator.checks import model_of, read_object
from cogrid.coordinator.errors import RefusedError
from cogrid.coordinator.reply import reply
from cogrid.coordinator.services import Services
from cogrid.coordinator.shown import shown
from cogrid.model.worker import Offer, Worker
from cogrid.rules.grid import Grid, Seat
from cogrid.rules.health import health
from cogrid.rules.moment import Moment
from cogrid.rules.route import AUTO

OLLAMA_API = "0.9.3"
"""The version of Ollama whose API this is, for a grid in which no worker has one."""

PS_S = 300
"""Ollama's own time until it unloads a model; workers do not tell theirs."""

BODY_BYTES = 64 * 1024
_VERSION = re.compile(r"ollama (\d+(?:\.\d+)*)")
_CAPABILITIES = {"chat": "completion", "embed": "embedding"}


async def hello(services: Services, request: Request) -> Response:
    """Clients ask this to see whether anything is there at all."""
    return PlainTextResponse("cogrid is running")


async def openai_list(services: Services, request: Request) -> Response:
    """``GET /v1/models``"""
    grid = services.registry.grid
    data = [_openai(model, seats) for model, seats in _listed(services, grid)]
    return reply({"object": "list", "data": data})


async def openai_one(services: Services, request: Request) -> Response:
    """``GET /v1/models/{id}``"""
    model = name_of(request.path_params["model"])
    return reply(_openai(model, _seats(services, model)))


async def tags(services: Services, request: Request) -> Response:
    """``GET /api/tags``"""
    grid = services.registry.grid
    return reply({"models": [_tag(model, seats) for model, seats in _listed(services, grid)]})


async def loaded(services: Services, request: Request) -> Response:
    """``GET /api/ps``: each model that is loaded anywhere, once."""
    grid = services.registry.grid
    expires = _iso(grid.snapshot.taken_at_ms + PS_S * 1000)
    found = []
    for model, seats in sorted(grid.homes.items()):
        warm = tuple(seat for seat in seats if seat.offer.loaded)
        if warm:
            offer = warm[0].offer
            more: dict[str, Any] = {"expires_at": expires, "size_vram": offer.vram_bytes}
            if offer.context:
                more["context_length"] = offer.context
            found.append({**_tag(model, warm), **more})
    return reply({"models": found})


async def version(services: Services, request: Request) -> Response:
    """``GET /api/version``: the lowest of the grid's Ollamas, since that is what all of it can."""
    snapshot = services.registry.snapshot
    told = (_VERSION.search(worker.engine) for worker in (snapshot.workers if snapshot else ()))
    versions = [match[1] for match in told if match]
    lowest = min(versions, key=lambda text: [int(part) for part in text.split(".")], default=None)
    return reply({"version": lowest or OLLAMA_API})


async def show(services: Services, request: Request) -> Response:
    """``POST /api/show``"""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > BODY_BYTES:
            raise RefusedError("body_too_large", f"the request has more than {BODY_BYTES} bytes")
    payload = read_object(body)
    if "model" not in payload and "name" in payload:
        payload["model"] = payload["name"]
    model = name_of(model_of(payload))
    seats = _seats(services, model)
    offer = seats[0].offer if seats else Offer(model)
    context = {"general.context_length": offer.context} if offer.context else {}
    told = {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "details": _details(),
        "model_info": {"general.basename": model, **context},
        "capabilities": _capabilities(seats),
        "modified_at": _iso(_since_ms(seats)),
        "cogrid": {"workers": [seat.worker.id for seat in seats]},
    }
    return reply(told)


async def workers(services: Services, request: Request) -> Response:
    """``GET /workers``"""
    grid = services.registry.grid
    snapshot, limits = grid.snapshot, services.config.limits
    at = Moment.of(snapshot, limits)
    told = [_worker(worker, health(worker, at), at.now_ms) for worker in snapshot.workers]
    return reply({"schema": 1, "workers": told})


def _worker(worker: Worker, word: str, now_ms: int) -> dict[str, Any]:
    return {
        "id": worker.id,
        "health": word,
        "state": worker.state,
        "pool": worker.pool,
        "host": worker.host,
        "slots": worker.slots,
        "busy": worker.busy,
        "models": [offer.name for offer in worker.offers],
        "registered_at": worker.registered_at or None,
        "beat_age_s": _age_s(worker.beat_at_ms, now_ms),
        "poll_age_s": _age_s(worker.polled_at_ms, now_ms),
        "tasks": worker.tasks,
    }


def _age_s(at_ms: int, now_ms: int) -> float | None:
    return max(0.0, (now_ms - at_ms) / 1000) if at_ms else None


def _listed(services: Services, grid: Grid) -> list[tuple[str, tuple[Seat, ...]]]:
    """Every model that has a home; ``auto`` where there are rules that it could follow."""
    found = sorted(grid.homes.items())
    if found and services.config.routing.domains:
        found.insert(0, (AUTO, ()))
    return found


def _seats(services: Services, model: str) -> tuple[Seat, ...]:
    grid = services.registry.grid
    if model == AUTO and grid.homes:
        return ()
    seats = grid.homes.get(model)
    if not seats:
        message = f"model '{shown(model, 256)}' has no home in this grid"
        raise RefusedError("model_not_found", message)
    return seats


def _openai(model: str, seats: tuple[Seat, ...]) -> dict[str, Any]:
    return {
        "id": model,
        "object": "model",
        "created": _since_ms(seats) // 1000,
        "owned_by": "cogrid",
    }


def _tag(model: str, seats: tuple[Seat, ...]) -> dict[str, Any]:
    name = tagged(model)
    offer = seats[0].offer if seats else Offer(model)
    return {
        "name": name,
        "model": name,
        "modified_at": _iso(_since_ms(seats)),
        "size": offer.size_bytes,
        "digest": offer.digest,
        "details": _details(),
        "capabilities": _capabilities(seats),
    }


def tagged(model: str) -> str:
    """The name as Ollama lists it: always with its tag."""
    return model if model == AUTO or ":" in model.rpartition("/")[2] else f"{model}:latest"


def _details() -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "",
        "family": "",
        "families": [],
        "parameter_size": "",
        "quantization_level": "",
    }


def _capabilities(seats: tuple[Seat, ...]) -> list[str]:
    """What any of its homes can."""
    can = {can for seat in seats for can in seat.offer.supports} or {"chat"}
    return sorted(_CAPABILITIES.get(word, word) for word in can)


def _since_ms(seats: tuple[Seat, ...]) -> int:
    """Since when the first of its homes has it, as far as is known."""
    return min((seat.offer.since_ms or seat.worker.hello_at_ms for seat in seats), default=0)


def _iso(at_ms: int) -> str:
    return (
        datetime.fromtimestamp(at_ms / 1000, UTC)
        .isoformat(timespec="seconds")
        .replace("+00:00", "Z")
    )
