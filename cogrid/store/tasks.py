"""A task's life: submit, claim, append, finish, cancel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cogrid.model.names import Queue, TaskId, Token, WorkerId
from cogrid.model.task import Band, Kind, OnClose
from cogrid.store.keys import Keys
from cogrid.store.script import Arg, Call, text

INLINE_BYTES = 64 * 1024
"""A larger body is SET beside the script."""
BODY_TTL_S = 60
"""Within which the script must take such a body over."""


@dataclass(frozen=True, slots=True)
class Submission:
    """Everything that submit needs. Durations in ms; 0 means none (queue_timeout) or no client's
    lease (orphan). shared: the queue that stands in where ``queue`` is a worker's own and that
    worker cannot take it now. announce: tell the followers of a claim too (status frames).
    fingerprint: of the request, where the same id may be submitted with another one. ticket:
    random, tells submissions under one id apart."""

    id: TaskId
    kind: Kind
    model: str
    queue: Queue
    shared: Queue
    body: bytes
    user: str
    band: Band = Band.INTERACTIVE
    domain: str = "general"
    streamed: bool = True
    announce: bool = False
    on_close: OnClose = OnClose.CANCEL
    follower: str = ""
    api_key: str = ""
    needs: tuple[str, ...] = ()
    why: str = ""
    fingerprint: str = ""
    ticket: str = ""
    queue_timeout_ms: int = 300_000
    keep_ms: int = 600_000
    orphan_ms: int = 60_000
    max_attempts: int = 3
    max_recoveries: int = 3
    queue_max: int = 1000
    bytes_max: int = 1 << 30


@dataclass(frozen=True, slots=True)
class Submitted:
    """status: new, exists, full, bytes, no_body, not_ready (a chore's worker) or withdrawn (it
    comes too late). place: 1 is next. state, fingerprint: of the one that exists. amount: the
    depth of a full queue, or the bytes queued."""

    status: str
    queue: str = ""
    place: int = 0
    state: str = ""
    amount: int = 0
    fingerprint: str = ""


def submit(keys: Keys, task: Submission) -> Call[Submitted]:
    """Make the task pending, once however often it is sent."""
    inline = task.body if len(task.body) <= INLINE_BYTES else b""
    fields: tuple[Arg, ...] = (
        "kind", task.kind, "model", task.model, "domain", task.domain,
        "streamed", int(task.streamed), "announce", int(task.announce),
        "on_close", task.on_close, "key", task.api_key, "needs", " ".join(task.needs),
        "why", task.why, "max_attempts", task.max_attempts, "max_recoveries", task.max_recoveries,
        *(("fingerprint", task.fingerprint) if task.fingerprint else ()),
        *(("ticket", task.ticket) if task.on_close == "keep" and task.ticket else ()),
    )  # fmt: skip
    args: tuple[Arg, ...] = (
        task.id, task.queue, task.shared, inline, len(task.body), task.queue_max, task.bytes_max,
        task.queue_timeout_ms, task.keep_ms, task.orphan_ms if task.on_close != "keep" else 0,
        task.follower, task.user, int(task.band), task.ticket,
    )  # fmt: skip
    return Call("submit", keys.task(task.id), (keys.prefix, *args, *fields), _submitted)


def _submitted(reply: Any) -> Submitted:
    status = text(reply[0])
    if status == "new":
        return Submitted(status, queue=text(reply[1]), place=int(reply[2]))
    if status == "exists":
        state, queue, fingerprint = (text(part or b"") for part in reply[1:4])
        return Submitted(status, queue, state=state, fingerprint=fingerprint)
    return Submitted(status, amount=int(reply[1]) if len(reply) > 1 else 0)


@dataclass(frozen=True, slots=True)
class Handed:
    """One task handed to a worker by a claim. body: its request, as submitted."""

    id: TaskId
    token: Token
    run: int
    kind: Kind
    model: str
    streamed: bool
    attempts: int
    recoveries: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Claimed:
    """status: ok, unknown (hello again), superseded, renew (the lease ran out) or not_ready."""

    status: str
    tasks: tuple[Handed, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim's arguments. k is counted by the worker and repeated until it is answered; free is
    the worker's own view of its slots (0 only stamps ``polled_at``). queues: (name, model loaded).
    allowed_ms: how long the run may be silent before the first renew says better."""

    worker: WorkerId
    instance: str
    k: int
    free: int
    queues: tuple[tuple[str, bool], ...]
    allowed_ms: int
    starve_ms: int = 30_000


def _claim_args(claim: Claim) -> tuple[Arg, ...]:
    flat = (part for name, loaded in claim.queues for part in (name, int(loaded)))
    return (
        claim.instance, claim.k, claim.free, claim.allowed_ms, claim.starve_ms,
        len(claim.queues), *flat,
    )  # fmt: skip


def claim(keys: Keys, asked: Claim) -> Call[Claimed]:
    """Take up to ``free`` tasks."""
    args = (keys.prefix, asked.worker, *_claim_args(asked))
    return Call("claim", keys.worker(asked.worker), args, _claimed)


def _claimed(reply: Any) -> Claimed:
    return Claimed(text(reply[0]), tuple(_handed(part) for part in reply[1:]))


def _handed(part: Any) -> Handed:
    return Handed(
        id=TaskId(text(part[0])),
        token=Token(text(part[1])),
        run=int(part[2]),
        kind=Kind(text(part[3])),
        model=text(part[4]),
        streamed=part[5] == b"1",
        attempts=int(part[6]),
        recoveries=int(part[7]),
        body=bytes(part[8]),
    )


@dataclass(frozen=True, slots=True)
class Appended:
    """status: ok, gap (send again from n + 1) or lost (the run is no longer this worker's)."""

    status: str
    n: int = 0


def append(
    keys: Keys, task: TaskId, token: Token, n: int, pieces: tuple[bytes, ...], allowed_ms: int
) -> Call[Appended]:
    """Write text entries n, n + 1, … of the run; what is already there is left as it is."""
    return Call(
        "append", keys.task(task), (keys.prefix, task, token, n, allowed_ms, *pieces), _appended
    )


def _appended(reply: Any) -> Appended:
    return Appended(text(reply[0]), int(reply[1]) if len(reply) > 1 else 0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended, by its worker's word. what: done, failed, back (handed back unharmed) or
    lost (a run that was taken away has been stopped). n, data: the last text entry, if any is left
    to write; without data, n is the last entry that the server must have. retry: another
    attempt may help; backoff_ms: how long it waits before that."""

    what: str
    n: int = 0
    data: bytes = b""
    finish_reason: str = ""
    usage: bytes = b""
    message: str = ""
    code: str = ""
    retry: bool = False
    backoff_ms: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """status: ok, already, lost or gap (then n is the last entry the server has). state: the
    task's, now. claimed: the reply of the claim that was made in the same call."""

    status: str
    state: str = ""
    n: int = 0
    claimed: Claimed | None = None


def finish(
    keys: Keys, worker: WorkerId, task: TaskId, token: Token, outcome: Outcome,
    then: Claim | None = None,
) -> Call[Finished]:  # fmt: skip
    """End the run, and claim the next one in the same call where ``then`` says so."""
    args: tuple[Arg, ...] = (
        keys.prefix, task, token, outcome.what, outcome.n, outcome.data, outcome.finish_reason,
        outcome.usage, outcome.message, outcome.code, int(outcome.retry), outcome.backoff_ms,
        worker,
        *(_claim_args(then) if then else ()),
    )  # fmt: skip
    return Call("finish", keys.task(task), args, _finished)


def _finished(reply: Any) -> Finished:
    status = text(reply[0])
    if status == "gap":
        return Finished(status, n=int(reply[1]))
    claimed = _claimed(reply[2]) if len(reply) > 2 else None
    return Finished(status, text(reply[1] or b""), claimed=claimed)


@dataclass(frozen=True, slots=True)
class Cancelled:
    """status: ok (state: what it was), over, unknown, moved_on or held."""

    status: str
    state: str = ""


def cancel(keys: Keys, task: TaskId, message: str, code: str = "cancelled") -> Call[Cancelled]:
    """End the task now, wherever it is. message: who wanted it, for the log and the client."""
    return Call("cancel", keys.task(task), (keys.prefix, task, code, message, "", 0), _cancelled)


def withdraw(keys: Keys, task: TaskId, ticket: str, message: str) -> Call[Cancelled]:
    """Void one submission, whether it has arrived or is still to come (within the hour: a server
    that is silent for longer than 15 min gets nothing more of a connection, tcp_retries2)."""
    return Call("withdraw", keys.task(task), (keys.prefix, task, ticket, message), _cancelled)


def cancel_orphan(
    keys: Keys, task: TaskId, message: str, run_id: str, window_ms: int
) -> Call[Cancelled]:
    """End the task only if its client's lease has run out, within a pass of the reaper."""
    args = (keys.prefix, task, "orphaned", message, run_id, window_ms)
    return Call("cancel", keys.task(task), args, _cancelled)


def _cancelled(reply: Any) -> Cancelled:
    return Cancelled(text(reply[0]), text(reply[1]) if len(reply) > 1 else "")
