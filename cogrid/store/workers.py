"""A worker's life: hello, renew; and what an operator does to it: forget, wish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from cogrid.model.names import TaskId, Token, WorkerId
from cogrid.model.worker import Offer, Wish, WorkerState
from cogrid.store.keys import Keys
from cogrid.store.script import Arg, Call, text

NO_WISH = Wish()

_json = msgspec.json.Encoder()
_wish = msgspec.json.Decoder(Wish)


@dataclass(frozen=True, slots=True)
class Who:
    """A process that wants a worker's name. instance: random, one a process. lock: random, kept in
    the lock file of this machine and name; the same lock means that the older process is gone.
    address: of its machine as others may reach it, "" where it knows none."""

    worker: WorkerId
    instance: str
    lock: str
    host: str
    pool: str
    slots: int
    version: str
    engine: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Welcome:
    """status: ok, refused (then host holds the name for another left_ms) or fenced (an operator has
    struck this process off)."""

    status: str
    state: str = ""
    host: str = ""
    left_ms: int = 0


def hello(
    keys: Keys, who: Who, lease_ms: int, k: int = 0,
    held: tuple[tuple[TaskId, Token], ...] = (),
) -> Call[Welcome]:  # fmt: skip
    """Take the name. A process that says it again names its claim number and what it runs."""
    args: tuple[Arg, ...] = (
        keys.prefix, who.worker, who.instance, who.lock, lease_ms, who.host, who.pool, who.slots,
        who.version, who.engine, k, who.address, len(held),
        *(part for pair in held for part in pair),
    )  # fmt: skip
    return Call("hello", keys.worker(who.worker), args, _welcome)


def _welcome(reply: Any) -> Welcome:
    status = text(reply[0])
    if status == "refused":
        return Welcome(status, host=text(reply[1]), left_ms=int(reply[2]))
    return Welcome(status, state=text(reply[1]) if len(reply) > 1 else "")


@dataclass(frozen=True, slots=True)
class Held:
    """A run as its worker sees it: silent for silent_ms of the allowed_ms it may be silent."""

    id: TaskId
    token: Token
    silent_ms: int
    allowed_ms: int


@dataclass(frozen=True, slots=True)
class Life:
    """What a worker says of itself at one instant. claim_age_ms: since the claim loop last turned.
    settled: the last claim number whose answer it has dealt with. lease_ms 0: the last renew, the
    lease is left to run out. report: further facts for status (JSON object)."""

    state: WorkerState
    offers: tuple[Offer, ...]
    supports: tuple[str, ...]
    slots: int
    claim_age_ms: int
    settled: int
    held: tuple[Held, ...]
    lease_ms: int
    report: bytes = b"{}"


@dataclass(frozen=True, slots=True)
class Renewed:
    """status: ok, unknown (the hash is gone: hello), again (another instance of the same lock:
    hello) or superseded (host has the name). lost: runs that are no longer this worker's.
    unknown_runs: runs that Redis thinks it has; it hands them back. registered: this renew made it
    ready for the first time. wish: what the operator wants."""

    status: str
    host: str = ""
    wish: Wish = NO_WISH
    registered: bool = False
    lost: tuple[TaskId, ...] = ()
    unknown_runs: tuple[tuple[TaskId, Token], ...] = ()


def renew(keys: Keys, worker: WorkerId, instance: str, lock: str, life: Life) -> Call[Renewed]:
    """Renew the lease and report every run."""
    fine = tuple(offer.name for offer in life.offers if offer.state == "ok")
    pairs = (
        part for run in life.held for part in (run.id, run.token, run.silent_ms, run.allowed_ms)
    )
    args: tuple[Arg, ...] = (
        keys.prefix, worker, instance, lock, life.lease_ms, life.state, _json.encode(life.offers),
        _json.encode(life.supports), life.claim_age_ms, life.settled, life.slots, life.report,
        len(fine), *fine, *pairs,
    )  # fmt: skip
    return Call("renew", keys.worker(worker), args, _renewed)


def _renewed(reply: Any) -> Renewed:
    status = text(reply[0])
    if status != "ok":
        return Renewed(status, host=text(reply[1]) if len(reply) > 1 else "")
    held = [text(part) for part in reply[4]]
    return Renewed(
        status,
        wish=_wish.decode(reply[1]) if reply[1] else NO_WISH,
        registered=int(reply[2]) == 1,
        lost=tuple(TaskId(text(part)) for part in reply[3]),
        unknown_runs=tuple(
            (TaskId(task), Token(token)) for task, token in zip(held[::2], held[1::2], strict=True)
        ),
    )


@dataclass(frozen=True, slots=True)
class Forgotten:
    """status: ok, alive (left_ms of its lease), holds (running, waiting), works (it claimed
    silent_ms ago) or unknown."""

    status: str
    left_ms: int = 0
    running: int = 0
    waiting: int = 0
    silent_ms: int = 0


def forget(
    keys: Keys, worker: WorkerId, force: bool, by: str, silent_ms: int = 0
) -> Call[Forgotten]:
    """Strike a dead worker off, or a living one by force: its late calls are refused. silent_ms: a
    living one only if it has not claimed for so long."""
    args = (keys.prefix, worker, int(force), by, silent_ms)
    return Call("forget", keys.worker(worker), args, _forgotten)


def _forgotten(reply: Any) -> Forgotten:
    status = text(reply[0])
    if status == "alive":
        return Forgotten(status, left_ms=int(reply[1]))
    if status == "works":
        return Forgotten(status, silent_ms=int(reply[1]))
    if status == "holds":
        return Forgotten(status, running=int(reply[1]), waiting=int(reply[2]))
    return Forgotten(status)


def wish(keys: Keys, worker: WorkerId, wanted: Wish, note: str = "") -> Call[bool]:
    """Ask a worker to drain or to run again; False where there is no such worker. note: what the
    event says; else what is wanted and by whom."""
    note = note or f"{wanted.state} by {wanted.by}"
    args = (keys.prefix, worker, _json.encode(wanted), note)
    return Call("wish", keys.worker(worker), args, lambda reply: reply[0] == b"ok")
