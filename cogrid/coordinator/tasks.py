"""The grid's own interface: tasks without a client that waits for them."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cogrid.coordinator.accepting import accept, before, listen, submission, task_id
from cogrid.coordinator.access import Caller
from cogrid.coordinator.answer import ENDPOINTS
from cogrid.coordinator.checks import check, read_object, wrong
from cogrid.coordinator.errors import NotTakenError, RefusedError
from cogrid.coordinator.exchange import Exchange, LeftError, too_large
from cogrid.coordinator.follower import Follower
from cogrid.coordinator.openai_answer import OpenAIVoice
from cogrid.coordinator.placing import place
from cogrid.coordinator.ran import Ran
from cogrid.coordinator.reply import reply
from cogrid.coordinator.services import Services
from cogrid.coordinator.voice import Speaker
from cogrid.coordinator.whole import gather
from cogrid.model.chat import Delta, End, Entry, encode_delta
from cogrid.model.names import TASK_ID, is_name
from cogrid.model.task import Band, OnClose, State
from cogrid.store.follow import Known, find_tasks, read_known
from cogrid.store.output import START
from cogrid.store.tasks import cancel

_BANDS = {band.name.lower(): band for band in Band if band is not Band.OPERATOR}
_encode = msgspec.json.encode


async def create(services: Services, request: Request) -> Response:
    """``POST /task``: ``{"path": "/v1/chat/completions", "request": {…}, "band": "batch",
    "worker": "esxi"}``; everything but the request may be left out. The task runs whoever
    listens."""
    caller: Caller = request.scope["caller"]
    path, band, worker, body = _read(await _body(services, request))
    asked = ENDPOINTS[path].read(body)
    if asked.load:
        raise RefusedError(
            "bad_request", "the request asks for nothing", "send messages or a prompt"
        )
    await services.access.count(caller)
    admitted = await place(services, asked, caller, worker, band, len(body))
    task = submission(
        services,
        asked,
        caller,
        admitted,
        task_id(caller, ""),
        streamed=False,
        on_close=OnClose.KEEP,
    )
    accepted = await accept(services, task, time.time())
    told = {
        "task": accepted.task,
        "state": State.PENDING,
        "domain": accepted.domain,
        "model": accepted.model,
        "queue": accepted.queue,
        "position": accepted.place or None,
    }
    return reply(told, 202)


def _read(body: bytes) -> tuple[str, Band, str, bytes]:
    """Path, band, worker and request of a task."""
    given = read_object(body)
    check(given, {"path": "a text", "band": "a text", "worker": "a text"})
    path = given.get("path") or "/v1/chat/completions"
    if path not in ENDPOINTS:
        raise RefusedError("bad_request", f"path is {path[:60]!r}", "write /v1/chat/completions")
    band = given.get("band") or "interactive"
    if band not in _BANDS:
        raise RefusedError("bad_request", f"band is {band[:40]!r}", f"write {', '.join(_BANDS)}")
    worker = given.get("worker") or ""
    if worker and not is_name(worker):
        raise RefusedError("bad_request", "worker is no worker's name", "write one such as esxi")
    if not isinstance(given.get("request"), dict):
        raise wrong("request", "an object", given.get("request"))
    return path, _BANDS[band], worker, _encode(given["request"])


async def show(services: Services, request: Request) -> Response:
    """``GET /task/{id}``"""
    known = await _known(services, request.path_params["task"], request.scope["caller"])
    task = known.task
    told: dict[str, Any] = {
        "task": task.id,
        "state": task.state,
        "reason": task.reason or None,
        "kind": task.kind,
        "domain": task.domain,
        "model": task.model,
        "worker": task.worker,
        "queue": task.queue,
        "position": known.place or None,
        "attempts": task.attempts,
        "recoveries": task.recoveries,
        "submitted_at_ms": task.submitted_at_ms,
        "claimed_at_ms": task.claimed_at_ms,
        "first_at_ms": task.first_at_ms,
        "finished_at_ms": task.finished_at_ms,
        "error": task.error or None,
        "result": None,
    }
    if task.state is State.DONE:
        told["result"] = await _result(services, known)
    return reply(told)


async def remove(services: Services, request: Request) -> Response:
    """``DELETE /task/{id}``: ends it now, wherever it is."""
    known = await _known(services, request.path_params["task"], request.scope["caller"])
    message = f"the task was cancelled by {known.api_key or 'its owner'}"
    done = await services.store.do(cancel(services.store.keys, known.task.id, message))
    if done.status == "unknown":
        raise _no_task(known.task.id)
    state = State.CANCELLED if done.status == "ok" else done.state
    return reply({"task": known.task.id, "state": state, "cancelled": done.status == "ok"})


class Events:
    """``GET /task/{id}/events``: a task's log as server-sent events, from behind Last-Event-ID."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send)
        if exchange.method not in ("GET", "HEAD"):
            raise NotTakenError(exchange.path, exchange.method, ("GET",))
        services = self._services
        known = await _known(services, scope["path_params"]["task"], scope["caller"])
        last_id = exchange.header(b"last-event-id").strip() or START
        if not _is_entry_id(last_id):
            raise RefusedError("bad_request", "Last-Event-ID is no id of an event", "write RUN-N")
        exchange.watch()
        follower = services.live.follow(known.task.id, last_id)
        exchange.left = follower.leave
        try:
            if not await listen(services, follower):
                raise _no_task(known.task.id)
            await _send_events(services, exchange, follower)
        except LeftError:
            pass
        finally:
            exchange.close()
            services.live.unfollow(follower)
            if not follower.ended:
                services.departures.leave(follower)


async def _send_events(services: Services, exchange: Exchange, follower: Follower) -> None:
    headers = [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-cache"),
        (b"x-accel-buffering", b"no"),
        (b"x-cogrid-task", follower.task.encode()),
    ]
    await exchange.start(200, headers)
    while True:
        try:
            entries = await follower.next(services.config.limits.keepalive_s)
        except RefusedError as refusal:
            error = _encode({"message": refusal.sentence, "code": refusal.code})
            await exchange.finish(b"event: error\ndata: " + error + b"\n\n")
            return
        if entries:
            follower.said = True
        body = b"".join(map(_event, entries)) if entries else b": waiting\n\n"
        if entries and type(entries[-1].item) is End:
            await exchange.finish(body)
            return
        await exchange.write(body)


def _event(entry: Entry) -> bytes:
    item = entry.item
    if type(item) is Delta:
        kind, data = b"text", encode_delta(item)
    else:
        kind = type(item).__name__.lower().encode()
        data = _encode(item)
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (entry.id.encode(), kind, data)


async def _known(services: Services, prefix: str, caller: Caller) -> Known:
    """The one task whose id begins so; one of another key is not there."""
    if not TASK_ID.fullmatch(prefix):
        raise RefusedError("bad_request", "a task's id is of letters and digits")
    store = services.store
    found = await store.read(find_tasks(store.keys, prefix))
    if len(found) > 1:
        raise RefusedError(
            "not_found", f"more than one task begins with {prefix}", "write more of it"
        )
    known = await store.read(read_known(store.keys, found[0])) if found else None
    if known is None or (caller.key and known.api_key != caller.key):
        raise _no_task(prefix)
    return known


def _no_task(task: str) -> RefusedError:
    return RefusedError(
        "not_found", f"there is no task {task}", "it ended more than keep_s ago, or never was"
    )


async def _result(services: Services, known: Known) -> Any:
    """The answer in one piece, in OpenAI's form: the request's own is gone with its body."""
    follower = services.live.follow(known.task.id)
    follower.accepted = True
    try:
        await services.live.look(known.task.id)
        if not follower.ended:
            return None  # its text has already been dropped
        ran = Ran.of(before(known))
        end, gathered = await gather(follower, ran)
        task = known.task
        speaker = Speaker(task.id, task.model, task.kind, task.submitted_at_ms / 1000)
        return msgspec.Raw(OpenAIVoice(speaker).whole(gathered, end, ran.facts()))
    finally:
        services.live.unfollow(follower)


async def _body(services: Services, request: Request) -> bytes:
    most_bytes = services.config.limits.body_max_bytes
    parts, size = [], 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > most_bytes:
            raise too_large(size, most_bytes)
    return b"".join(parts)


def _is_entry_id(text: str) -> bool:
    run, dash, n = text.partition("-")
    digits = run.isascii() and run.isdigit() and n.isascii() and n.isdigit()
    return bool(dash) and digits and len(text) <= 41
