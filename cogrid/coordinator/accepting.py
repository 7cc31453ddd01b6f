"""A request becomes a task: submitted until that is acknowledged, or found to be there already."""

from __future__ import annotations

import asyncio
import hashlib
import random
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from cogrid.coordinator.access import Caller
from cogrid.coordinator.asked import Asked
from cogrid.coordinator.errors import RefusedError, store_refusal
from cogrid.coordinator.follower import Follower
from cogrid.coordinator.services import Services
from cogrid.model.chat import encode_request
from cogrid.model.limits import Limits
from cogrid.model.names import TaskId
from cogrid.model.snapshot import Server
from cogrid.model.task import OnClose, Task
from cogrid.rules.admission import Admitted, queued_bytes_max
from cogrid.store.clients import attach
from cogrid.store.follow import Known, read_known
from cogrid.store.passes import ms
from cogrid.store.refusal import StoreError, silence
from cogrid.store.tasks import BODY_TTL_S, INLINE_BYTES, Submission, Submitted, submit

T = TypeVar("T")

AGAIN_S = 0.05
"""Wait before a submit that failed at once is sent again."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A task that is there. place: in its queue, 0 where it was there before. created_s: seconds
    since 1970."""

    task: TaskId
    domain: str
    model: str
    queue: str
    place: int
    created_s: float


def task_id(caller: Caller, idempotency: str) -> TaskId:
    """A new task's id: random, or the same for the same key and caller."""
    if not idempotency:
        return TaskId(secrets.token_hex(16))
    told = f"{caller.key or caller.user}\0{idempotency}"
    return TaskId(hashlib.sha256(told.encode()).hexdigest()[:32])


def fingerprint(path: str, body: bytes) -> str:
    """What tells one request from another under the same key."""
    return hashlib.sha256(path.encode() + b"\0" + body).hexdigest()[:32]


def submission(
    services: Services, asked: Asked, caller: Caller, admitted: Admitted, task: TaskId, **more: Any
) -> Submission:
    """The submission of an admitted request, with every limit that applies. more: fields of it that
    are the caller's business."""
    limits, route = services.config.limits, admitted.route
    snapshot = services.registry.snapshot
    server = snapshot.server if snapshot else Server()
    return Submission(
        id=task,
        kind=asked.kind,
        model=route.model,
        queue=route.queue,
        shared=route.shared_queue,
        body=encode_request(asked.request(route.model)),
        user=caller.user,
        band=route.band,
        domain=route.domain,
        api_key=caller.key,
        ticket=secrets.token_hex(8),
        needs=asked.needs,
        why="; ".join(route.reasons),
        queue_timeout_ms=ms(admitted.queue_timeout_s or 0),
        keep_ms=ms(limits.keep_s),
        orphan_ms=ms(limits.orphan_grace_s),
        max_attempts=limits.attempts,
        max_recoveries=limits.recoveries,
        queue_max=limits.queue_max,
        bytes_max=queued_bytes_max(server),
        **more,
    )


async def accept(services: Services, task: Submission, created_s: float) -> Accepted:
    """Submit a task; RefusedError where it is not let in or Redis does not say so in time."""
    try:
        submitted = await _until_said(services, task)
    except BaseException:
        # It may have arrived; without a client's lease nothing else would ever end it.
        if task.on_close is OnClose.KEEP:
            services.departures.withdraw(task.id, task.ticket)
        raise
    match submitted.status:
        case "exists" if submitted.fingerprint != task.fingerprint:
            # Both were under way when each looked for the other.
            raise _mismatch()
        case "new" | "exists":
            queue = submitted.queue or task.queue
            return Accepted(
                task.id,
                task.domain,
                task.model,
                queue,
                submitted.place,
                created_s,
            )
        case "full":
            message = f"queue {task.queue} is full: {submitted.amount} tasks wait"
            raise RefusedError("queue_full", message, retry_after_s=1)
        case "bytes":
            message = f"the grid holds {submitted.amount} bytes of waiting requests"
            raise RefusedError("memory_full", message, "try again later", 10)
        case _:
            message = f"the body of task {task.id} did not arrive in Redis"
            raise RefusedError("store_unreachable", message, "send it again", 1)


async def accepted_before(
    services: Services, task: TaskId, print_: str, follower: Follower
) -> Accepted | None:
    """Listen to the task that this request has become before, from its first entry on; None where
    there is none. RefusedError 422 where the key was used for another request."""
    known = await ask_again(
        services, lambda: services.store.read(read_known(services.store.keys, task))
    )
    if known is None:
        return None
    if known.fingerprint != print_:
        raise _mismatch()
    if not await listen(services, follower):
        return None
    return before(known)


def _mismatch() -> RefusedError:
    message = "this Idempotency-Key was used for another request"
    return RefusedError("idempotency_mismatch", message, "use a new key for each request")


async def listen(services: Services, follower: Follower) -> bool:
    """Attach a follower to a task that is there and read what it has said; False: it is gone."""
    orphan_ms = ms(services.config.limits.orphan_grace_s)
    call = attach(services.store.keys, follower.task, follower.name, orphan_ms)
    attached = await ask_again(services, lambda: services.store.do(call))
    if attached.status != "ok":
        return False
    follower.accepted = True
    await services.live.look(follower.task)
    return True


def before(known: Known) -> Accepted:
    """A task that is there, as if it had just been accepted."""
    task: Task = known.task
    created_s = task.submitted_at_ms / 1000
    return Accepted(task.id, task.domain, task.model, task.queue, known.place, created_s)


async def _until_said(services: Services, task: Submission) -> Submitted:
    store = services.store
    call = submit(store.keys, task)

    async def once() -> Submitted:
        if len(task.body) > INLINE_BYTES:
            await store.hand_over(task.id, task.ticket, task.body, BODY_TTL_S)
        return await store.do(call)

    return await ask_again(services, once)


async def ask_again(services: Services, once: Callable[[], Awaitable[T]]) -> T:
    """Ask Redis until it answers, for submit_timeout_s at most; RefusedError 503 after that."""
    limits: Limits = services.config.limits
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limits.submit_timeout_s
    error: StoreError = silence(services.store.shown, "no answer in time")
    while (left_s := deadline - loop.time()) > 0:
        try:
            # The first try leaves time for a second one.
            async with asyncio.timeout(min(left_s, 0.6 * limits.submit_timeout_s)):
                return await once()
        except TimeoutError:
            continue
        except StoreError as failed:
            error = failed
            if not failed.passing:
                break
            await asyncio.sleep(AGAIN_S * random.uniform(0.5, 2))
    raise store_refusal(error)
