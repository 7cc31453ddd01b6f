"""Reads the lists of the grid and the tasks that stand in them, so that they can be compared."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from cogrid.model.inventory import Inventory, Kept
from cogrid.model.names import Queue, TaskId, own_queue, shared_queue
from cogrid.model.record import Record
from cogrid.model.snapshot import Snapshot
from cogrid.model.task import State
from cogrid.store.keys import Keys
from cogrid.store.reading import Reading, certain, good
from cogrid.store.script import text
from cogrid.store.snapshot import read_snapshot
from cogrid.store.stories import A_TRIP, read_records
from cogrid.store.task_lists import LOOKED_AT, Listing, read_heads, read_listed

ENDED = 1_000
"""Ended tasks and dead letters that are looked at, the latest ones."""
QUEUES = 10_000
"""Queues that could be there, looked for among workers and models."""


def read_inventory(keys: Keys) -> Reading[Inventory]:
    """The lists, bounded: 10,000 open tasks, 1,000 ended ones and dead letters each."""
    snapshot = yield from read_snapshot(keys, info=False)
    opened = yield from read_listed(keys, Listing.OPEN)
    ended = yield from read_listed(keys, Listing.ENDED, ENDED)
    dead = yield from read_listed(keys, Listing.DEAD, ENDED)
    clients, many_clients = yield from _read_clients(keys)
    queued, many_queued = yield from _read_queues(keys, snapshot)
    unlisted = yield from _read_unlisted(keys, snapshot)
    held = {
        worker.id: (*worker.tasks, *worker.chores)
        for worker in snapshot.workers
        if worker.tasks or worker.chores
    }
    lists = (opened.tasks, ended.tasks, dead.tasks)
    open_ids, ended_ids, dead_ids = (frozenset(task for task, _ in each) for each in lists)
    ids = dict.fromkeys(
        chain(open_ids, ended_ids, dead_ids, clients, *queued.values(), *held.values())
    )
    records = yield from read_records(keys, ids)
    kept = yield from _read_kept(keys, records)
    return Inventory(
        snapshot=snapshot,
        open=open_ids,
        ended=ended_ids,
        dead=dead_ids,
        clients=frozenset(clients),
        queued=queued,
        held=held,
        unlisted=unlisted,
        records=records,
        kept=kept,
        cut=opened.cut or many_clients or many_queued,
    )


def _read_clients(keys: Keys) -> Reading[tuple[tuple[TaskId, ...], bool]]:
    found, total = yield [("ZRANGE", keys.clients, 0, LOOKED_AT - 1), ("ZCARD", keys.clients)]
    ids = tuple(TaskId(text(task)) for task in certain(found))
    return ids, int(certain(total)) > len(ids)


def _read_queues(
    keys: Keys, snapshot: Snapshot
) -> Reading[tuple[dict[Queue, tuple[TaskId, ...]], bool]]:
    """What stands in the queues that are listed, up to so many tasks together."""
    if not snapshot.queues:
        return {}, False
    left, asked = LOOKED_AT, dict[Queue, int]()
    for queue in snapshot.queues:
        asked[queue.name] = min(queue.depth, left)
        left -= asked[queue.name]
    return (yield from read_heads(keys, asked)), left == 0


def _read_unlisted(keys: Keys, snapshot: Snapshot) -> Reading[tuple[Queue, ...]]:
    """Queues that workers and models lead to, that hold something and are not listed."""
    listed = {queue.name for queue in snapshot.queues}
    wanted = tuple(dict.fromkeys(_possible(snapshot)))[:QUEUES]
    asked = [queue for queue in wanted if queue not in listed]
    if not asked:
        return ()
    replies = yield [("ZCARD", keys.queue(queue)) for queue in asked]
    return tuple(queue for queue, reply in zip(asked, replies, strict=True) if good(reply))


def _possible(snapshot: Snapshot) -> Iterable[Queue]:
    for worker in snapshot.workers:
        if worker.pool:
            yield own_queue(worker.pool, worker.id)
            yield from (shared_queue(worker.pool, offer.name) for offer in worker.offers)


def _read_kept(keys: Keys, records: dict[TaskId, Record | None]) -> Reading[dict[TaskId, Kept]]:
    """How long each is kept, whether its request is, and how its log ends where that is short: a
    run's last entry may be 64 kB of text."""
    known = [record for record in records.values() if record]
    found: dict[TaskId, Kept] = {}
    for at in range(0, len(known), A_TRIP):
        some = known[at : at + A_TRIP]
        asked: list[Any] = []
        for record in some:
            task = record.task.id
            asked += [("PTTL", keys.task(task)), ("EXISTS", keys.body(task))]
        quiet = [r.task.id for r in some if r.task.state in (State.PENDING, State.WAITING)]
        asked += [("XREVRANGE", keys.out(task), "+", "-", "COUNT", 1) for task in quiet]
        replies = yield asked
        lasts = dict(zip(quiet, map(_last_kind, replies[2 * len(some) :]), strict=True))
        for i, record in enumerate(some):
            ttl, body = int(certain(replies[2 * i])), int(certain(replies[2 * i + 1]))
            task = record.task.id
            found[task] = Kept(ttl if ttl >= 0 else None, bool(body), lasts.get(task, ""))
    return found


def _last_kind(reply: Any) -> str:
    found = certain(reply)
    if not found:
        return ""
    fields = found[0][1]
    return text(dict(zip(fields[::2], fields[1::2], strict=True)).get(b"kind", b""))
