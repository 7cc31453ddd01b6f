"""Drives one request of the hot paths: read, route, submit, acknowledged, headers, answer, end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from cogrid.coordinator import ollama_request, openai_request
from cogrid.coordinator.accepting import (
    Accepted,
    accept,
    accepted_before,
    fingerprint,
    listen,
    submission,
    task_id,
)
from cogrid.coordinator.access import Caller
from cogrid.coordinator.accesslog import Line
from cogrid.coordinator.asked import Asked
from cogrid.coordinator.exchange import JSON, Exchange
from cogrid.coordinator.follower import Follower
from cogrid.coordinator.ollama_answer import OllamaVoice
from cogrid.coordinator.openai_answer import OpenAIVoice
from cogrid.coordinator.placing import may_take, place, remember
from cogrid.coordinator.ran import Ran
from cogrid.coordinator.services import Services
from cogrid.coordinator.status_line import StatusLine
from cogrid.coordinator.stream import Stream
from cogrid.coordinator.voice import Speaker, Voice
from cogrid.coordinator.wanted import Wanted, read_wanted
from cogrid.coordinator.whole import whole
from cogrid.model.chat import Dialect
from cogrid.model.names import TaskId
from cogrid.model.task import Band


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One hot path. read: its request, RefusedError where that is none."""

    dialect: Dialect
    read: Callable[[bytes], Asked]


ENDPOINTS: dict[str, Endpoint] = {
    "/v1/chat/completions": Endpoint(Dialect.OPENAI, openai_request.read_chat),
    "/v1/completions": Endpoint(Dialect.OPENAI, openai_request.read_completion),
    "/v1/embeddings": Endpoint(Dialect.OPENAI, openai_request.read_embedding),
    "/api/chat": Endpoint(Dialect.OLLAMA, ollama_request.read_chat),
    "/api/generate": Endpoint(Dialect.OLLAMA, ollama_request.read_generate),
    "/api/embed": Endpoint(Dialect.OLLAMA, ollama_request.read_embed),
    "/api/embeddings": Endpoint(Dialect.OLLAMA, ollama_request.read_embedding),
}


@dataclass(frozen=True, slots=True)
class Order:
    """A request that was understood. size: of its body, in bytes."""

    asked: Asked
    caller: Caller
    wanted: Wanted
    task: TaskId
    print_: str
    size: int


async def answer(services: Services, endpoint: Endpoint, exchange: Exchange, line: Line) -> None:
    """Answer one request. RefusedError, LeftError or StoreError where it comes to no good end."""
    caller = services.access.caller(exchange)
    wanted = read_wanted(exchange, services.config.coordinator)
    limits = services.config.limits
    body = await exchange.body(limits.body_max_bytes)
    exchange.watch()
    asked = endpoint.read(body)
    line.model, line.user = asked.model, caller.user
    await services.access.count(caller)
    if asked.load:
        await _load(services, asked, caller, exchange, len(body))
        return
    task = task_id(caller, wanted.idempotency)
    print_ = fingerprint(exchange.path, body) if wanted.idempotency else ""
    order = Order(asked, caller, wanted, task, print_, len(body))
    follower = services.live.follow(task)
    exchange.left = follower.leave
    try:
        accepted = await _accepted(services, order, follower, exchange)
        line.task, line.model = accepted.task, accepted.model
        exchange.stay()
        await _answer(services, order, accepted, follower, exchange, line)
    finally:
        services.live.unfollow(follower)
        if follower.sent and not follower.ended:
            services.departures.leave(follower)


async def _accepted(
    services: Services, order: Order, follower: Follower, exchange: Exchange
) -> Accepted:
    if order.wanted.idempotency:
        follower.sent = True
        before = await accepted_before(services, order.task, order.print_, follower)
        if before:
            return before
    band = Band.INTERACTIVE
    if order.asked.housekeeping or order.wanted.background:
        # Open WebUI's call for a title arrives before the chat that it belongs to.
        band = Band.BACKGROUND
        await exchange.pause(services.config.limits.background_delay_s)
    admitted = await place(
        services, order.asked, order.caller, order.wanted.worker, band, order.size
    )
    task = submission(
        services,
        order.asked,
        order.caller,
        admitted,
        order.task,
        streamed=order.asked.stream,
        announce=order.asked.stream and order.wanted.status,
        on_close=order.wanted.on_close,
        follower=follower.name,
        fingerprint=order.print_,
    )
    exchange.stay()
    follower.sent = True
    accepted = await accept(services, task, time.time())
    follower.accepted = True
    if not accepted.place:
        # It was there already: our own submit whose answer was lost, or another client's.
        await listen(services, follower)
    return accepted


async def _answer(
    services: Services,
    order: Order,
    accepted: Accepted,
    follower: Follower,
    exchange: Exchange,
    line: Line,
) -> None:
    ran = Ran.of(accepted)
    voice = _voice(order.asked, accepted)
    try:
        if order.asked.stream:
            status = _status(services, accepted) if order.wanted.status else None
            end = await Stream(services, exchange, follower, voice, ran, line, status).run()
        else:
            end = await whole(exchange, follower, voice, ran)
        line.prompt_tokens = end.usage.prompt_tokens
        line.completion_tokens = end.usage.completion_tokens
        remember(services, order.asked, order.caller, ran.worker)
    finally:
        line.queue, line.worker = ran.queue, ran.worker


def _voice(asked: Asked, accepted: Accepted) -> Voice:
    speaker = Speaker(
        task=accepted.task,
        model=asked.shown if asked.model == accepted.model else accepted.model,
        kind=asked.kind,
        created_s=accepted.created_s,
        include_usage=asked.include_usage,
        base64=asked.base64,
        single=asked.single,
    )
    return OpenAIVoice(speaker) if asked.dialect is Dialect.OPENAI else OllamaVoice(speaker)


def _status(services: Services, accepted: Accepted) -> StatusLine:
    candidates = may_take(services, accepted.queue, accepted.model)
    return StatusLine(accepted.domain, accepted.model, accepted.queue, candidates)


async def _load(
    services: Services, asked: Asked, caller: Caller, exchange: Exchange, size: int
) -> None:
    """Ollama's clients load a model by an empty request. Workers load what they are asked, so this
    only says whether the grid has it."""
    await place(services, asked, caller, "", Band.INTERACTIVE, size)
    voice = OllamaVoice(Speaker("", asked.shown, asked.kind, time.time()))
    await exchange.reply(200, voice.loaded(asked.load), [JSON])
