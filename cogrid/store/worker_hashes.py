"""Workers as their hashes and sets tell them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from cogrid.model.names import TaskId, Token, WorkerId
from cogrid.model.worker import Offer, Wish, Worker, WorkerState
from cogrid.store.keys import Keys
from cogrid.store.reading import Command, Reading, good, hash_of, number
from cogrid.store.script import text

SCAN_KEYS = 10_000
SCAN_STEP = 1_000

_offers = msgspec.json.Decoder(tuple[Offer, ...])
_supports = msgspec.json.Decoder(tuple[str, ...])
_wish = msgspec.json.Decoder(Wish)
_report = msgspec.json.Decoder(dict[str, Any])


def ask_workers(keys: Keys, workers: Iterable[str], members: bool) -> list[Command]:
    """Chores only where members are asked for: they take no slot, so that nobody counts them."""
    look = "SMEMBERS" if members else "SCARD"
    sets = [keys.worker_tasks, keys.worker_revoked, *((keys.worker_chores,) if members else ())]
    return [
        command
        for worker in workers
        for command in (("HGETALL", keys.worker(worker)), *((look, key(worker)) for key in sets))
    ]


def workers_in(
    leases: dict[str, int | None], replies: list[Any], members: bool
) -> tuple[Worker, ...]:
    each = 4 if members else 3
    return tuple(
        worker_of(
            worker,
            lease,
            hash_of(good(replies[each * i], [])),
            good(replies[each * i + 1], ()),
            good(replies[each * i + 2], ()),
            good(replies[each * i + 3], ()) if members else (),
        )
        for i, (worker, lease) in enumerate(leases.items())
    )


def stray_workers(keys: Keys) -> Reading[tuple[tuple[str, ...], bool]]:
    """Hashes that look like workers, from one bounded scan. True: it was cut short."""
    cursor, seen = 0, 0
    found: set[str] = set()
    start = len(keys.worker(""))
    while True:
        (reply,) = yield [
            ("SCAN", cursor, "MATCH", keys.worker("*"), "COUNT", SCAN_STEP, "TYPE", "hash")
        ]
        if isinstance(reply, Exception):
            return (), True
        cursor = int(reply[0])
        found.update(text(name)[start:] for name in reply[1])
        seen += SCAN_STEP
        if cursor == 0 or seen >= SCAN_KEYS:
            return tuple(sorted(name for name in found if ":" not in name)), cursor != 0


def worker_of(
    worker: str, lease: int | None, fields: Mapping[str, str], tasks: Any, revoked: Any,
    chores: Any = (),
) -> Worker:  # fmt: skip
    """A worker from its hash and sets, or from how many are in them."""
    counted = [held for held in (tasks, revoked) if isinstance(held, int)]
    return Worker(
        id=WorkerId(worker),
        known=bool(fields),
        lease_until_ms=lease,
        instance=fields.get("instance", ""),
        lock_id=fields.get("lock", ""),
        host=fields.get("host", ""),
        address=fields.get("address", ""),
        pool=fields.get("pool", ""),
        slots=number(fields, "slots"),
        version=fields.get("version", ""),
        engine=fields.get("engine", ""),
        supports=_json(_supports, fields.get("supports"), ()),
        state=_state(fields.get("state", "")),
        registered_at=fields.get("registered_at", ""),
        hello_at_ms=number(fields, "hello_at"),
        beat_at_ms=number(fields, "beat_at"),
        polled_at_ms=number(fields, "polled_at"),
        freed_at_ms=number(fields, "freed_at"),
        revoked_at_ms=number(fields, "revoked_at"),
        zombies=number(fields, "zombies"),
        offers=_json(_offers, fields.get("models"), ()),
        tasks=() if counted else tuple(sorted(TaskId(text(task)) for task in tasks)),
        chores=tuple(sorted(TaskId(text(task)) for task in chores)),
        revoked=() if counted else tuple(sorted(Token(text(token)) for token in revoked)),
        wish=_json(_wish, fields.get("wanted"), Wish()),
        taken=sum(counted),
        claim_age_ms=number(fields, "claim_age_ms"),
        report=_json(_report, fields.get("report"), {}),
    )


def _state(said: str) -> WorkerState:
    return WorkerState(said) if said in set(WorkerState) else WorkerState.STARTING


def _json(decoder: Any, said: str | None, default: Any) -> Any:
    """Text that a worker of another version wrote differently is not worth a traceback."""
    try:
        return decoder.decode(said) if said else default
    except msgspec.MsgspecError:
        return default
