"""Reading the grid: bounded, pipelined, never writing."""

from __future__ import annotations

from collections.abc import Mapping

from cogrid.model.snapshot import QueueDepth, ReaperMark, Server, Snapshot
from cogrid.model.task import TERMINAL, State
from cogrid.model.worker import Worker
from cogrid.store.keys import Keys
from cogrid.store.queue_depths import ask_queues, depths_in, with_waits
from cogrid.store.reading import Reading, certain, good, hash_of, number, scores
from cogrid.store.server_info import server_facts
from cogrid.store.task_hashes import read_tasks
from cogrid.store.worker_hashes import ask_workers, stray_workers, workers_in


def read_snapshot(
    keys: Keys, *, tasks: bool = False, waits: bool = False, stray: bool = False,
    info: bool = True, members: bool = True,
) -> Reading[Snapshot]:  # fmt: skip
    """The grid at one instant.

    members: which tasks each worker runs, not only how many (without, it costs the same however
    many run). tasks: also the hashes of everything that runs. waits: also the oldest wait of each
    queue (at most 10,000 tasks are looked at). stray: also ``worker:*`` hashes without a lease (one
    scan of at most 10,000 keys). info: also the server's own facts.
    """
    first = yield [
        ("TIME",),
        ("ZRANGE", keys.workers, 0, -1, "WITHSCORES"),
        ("ZRANGE", keys.queues, 0, -1, "WITHSCORES"),
        ("HGETALL", keys.reaper),
        ("HGETALL", keys.totals),
        ("ZRANGE", keys.models, 0, -1, "WITHSCORES"),
        ("ZCARD", keys.due),
        ("ZCARD", keys.dead),
        *([("INFO", "everything")] if info else []),
    ]
    seconds, micros = certain(first[0])
    now_ms = int(seconds) * 1000 + int(micros) // 1000
    leases: dict[str, int | None] = dict(scores(certain(first[1])))
    cut = False
    if stray:
        found, cut = yield from stray_workers(keys)
        leases.update({worker: None for worker in found if worker not in leases})

    queues = scores(certain(first[2]))
    replies = yield [*ask_workers(keys, leases, members), *ask_queues(keys, queues)]
    workers = workers_in(leases, replies, members)
    depths = depths_in(queues, replies[(4 if members else 3) * len(leases) :])
    if waits:
        depths = yield from with_waits(keys, depths)
    running = tuple(task for worker in workers for task in (*worker.tasks, *worker.chores))
    hashes = (yield from read_tasks(keys, running)) if tasks and running else {}

    totals = hash_of(certain(first[4]))
    return Snapshot(
        taken_at_ms=now_ms,
        workers=workers,
        queues=depths,
        tasks=tuple(task for task in hashes.values() if task),
        model_homes=dict(scores(certain(first[5]))),
        counts=_counts(workers, depths, int(certain(first[6])), int(certain(first[7])), totals),
        reaper=_mark(hash_of(certain(first[3]))),
        server=server_facts(good(first[8])) if info else Server(),
        queued_bytes=max(0, int(totals.get("queued_bytes", "0"))),
        scan_cut=cut,
    )


def _mark(fields: Mapping[str, str]) -> ReaperMark:
    return ReaperMark(
        last_pass_ms=number(fields, "last_pass"),
        hold_until_ms=number(fields, "hold_until"),
        run_id=fields.get("run_id", ""),
        schema=number(fields, "schema"),
    )


def _counts(
    workers: tuple[Worker, ...],
    depths: tuple[QueueDepth, ...],
    open_tasks: int,
    dead: int,
    totals: Mapping[str, str],
) -> dict[str, int]:
    pending = sum(queue.depth for queue in depths)
    running = sum(len(worker.tasks) + len(worker.chores) for worker in workers)
    ended = {
        str(state): number(totals, state) for state in sorted(TERMINAL) if state is not State.DEAD
    }
    return {
        "pending": pending,
        "running": running,
        "waiting": max(0, open_tasks - pending - running),
        **ended,
        "dead": dead,
    }
