"""Reading the grid: bounded, pipelined, never writing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any

import msgspec

from cogrid.model.names import Queue, TaskId, Token, WorkerId
from cogrid.model.snapshot import QueueDepth, ReaperMark, Server, Snapshot
from cogrid.model.task import TERMINAL, Band, Kind, State, Task
from cogrid.model.worker import Offer, Wish, Worker, WorkerState
from cogrid.store.keys import Keys
from cogrid.store.reading import Command, Reading, certain, good, hash_of, scored
from cogrid.store.script import text
from cogrid.store.task_lists import read_queued

SCAN_KEYS = 10_000
SCAN_STEP = 1_000
WAITING_MOST = 10_000

_offers = msgspec.json.Decoder(tuple[Offer, ...])
_supports = msgspec.json.Decoder(tuple[str, ...])
_wish = msgspec.json.Decoder(Wish)
_report = msgspec.json.Decoder(dict[str, Any])


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
    leases: dict[str, int | None] = dict(_scores(certain(first[1])))
    cut = False
    if stray:
        found, cut = yield from _stray_workers(keys)
        leases.update({worker: None for worker in found if worker not in leases})

    queues = _scores(certain(first[2]))
    replies = yield [*_ask_workers(keys, leases, members), *_ask_queues(keys, queues)]
    workers = _workers(leases, replies, members)
    depths = _depths(queues, replies[(4 if members else 3) * len(leases) :])
    if waits:
        depths = yield from _with_waits(keys, depths)
    running = tuple(task for worker in workers for task in (*worker.tasks, *worker.chores))
    hashes = (yield from read_tasks(keys, running)) if tasks and running else {}

    totals = hash_of(certain(first[4]))
    return Snapshot(
        taken_at_ms=now_ms,
        workers=workers,
        queues=depths,
        tasks=tuple(task for task in hashes.values() if task),
        model_homes=dict(_scores(certain(first[5]))),
        counts=_counts(workers, depths, int(certain(first[6])), int(certain(first[7])), totals),
        reaper=_mark(hash_of(certain(first[3]))),
        server=server_facts(good(first[8])) if info else Server(),
        queued_bytes=max(0, int(totals.get("queued_bytes", "0"))),
        scan_cut=cut,
    )


def read_tasks(keys: Keys, ids: Iterable[TaskId]) -> Reading[dict[TaskId, Task | None]]:
    """The hashes of these tasks in one round trip; None where there is none."""
    wanted = tuple(ids)
    if not wanted:
        return {}
    replies = yield [("HGETALL", keys.task(task)) for task in wanted]
    return {
        task: task_of(task, hash_of(certain(reply)))
        for task, reply in zip(wanted, replies, strict=True)
    }


@dataclass(frozen=True, slots=True)
class DueNow:
    """tasks: (id, since when it is due), the longest due first. orphans: tasks whose client's lease
    has run out. next_ms: when the next of either will be due, None where there is none."""

    tasks: tuple[tuple[TaskId, int], ...]
    orphans: tuple[TaskId, ...]
    next_ms: int | None


def read_due(keys: Keys, now_ms: int, most: int) -> Reading[DueNow]:
    """What a pass must look at: at most so many of each."""
    later = (f"({now_ms}", "+inf", "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
    due, gone, next_due, next_gone = yield [
        ("ZRANGE", keys.due, "-inf", now_ms, "BYSCORE", "LIMIT", 0, most, "WITHSCORES"),
        ("ZRANGE", keys.clients, "-inf", now_ms, "BYSCORE", "LIMIT", 0, most),
        ("ZRANGE", keys.due, *later),
        ("ZRANGE", keys.clients, *later),
    ]
    ahead = [float(score) for reply in (next_due, next_gone) for score in certain(reply)[1::2]]
    return DueNow(
        tuple((TaskId(task), at_ms) for task, at_ms in _scores(certain(due)).items()),
        tuple(TaskId(text(task)) for task in certain(gone)),
        min((int(score) for score in ahead if score != inf), default=None),
    )


def read_waiting(
    keys: Keys, queues: Iterable[Queue], most: int
) -> Reading[dict[Queue, tuple[Task, ...]]]:
    """The first tasks of each queue, in the order in which they will be served."""
    ids = yield from read_queued(keys, tuple(queues), most)
    hashes = yield from read_tasks(keys, (task for tasks in ids.values() for task in tasks))
    return {
        queue: tuple(task for one in tasks if (task := hashes[one])) for queue, tasks in ids.items()
    }


def read_place(keys: Keys, task: TaskId) -> Reading[tuple[Task | None, int]]:
    """A task and its place in its queue (1 is next, 0: in none)."""
    found = (yield from read_tasks(keys, (task,)))[task]
    if found is None or found.state is not State.PENDING:
        return found, 0
    (rank,) = yield [("ZRANK", keys.queue(found.queue), task)]
    return found, 0 if good(rank) is None else int(rank) + 1


def task_of(task: TaskId, fields: Mapping[str, str]) -> Task | None:
    """A task from its hash; None for an empty one."""
    if "state" not in fields:
        return None

    def stamp(name: str) -> int | None:
        return int(fields[name]) if fields.get(name) else None

    return Task(
        id=task,
        kind=Kind(fields.get("kind", "chat")),
        state=State(fields["state"]),
        queue=Queue(fields.get("queue", "")),
        model=fields.get("model", ""),
        domain=fields.get("domain", ""),
        user=fields.get("user", ""),
        band=Band(int(fields.get("band", "0"))),
        attempts=int(fields.get("attempts", "0")),
        recoveries=int(fields.get("recoveries", "0")),
        run=int(fields.get("run", "0")),
        n=int(fields.get("n", "0")),
        token=Token(fields["token"]) if fields.get("token") else None,
        worker=WorkerId(fields["worker"]) if fields.get("worker") else None,
        avoid=WorkerId(fields["avoid"]) if fields.get("avoid") else None,
        solo=fields.get("solo") == "1",
        streamed=fields.get("streamed") == "1",
        reason=fields.get("reason", ""),
        submitted_at_ms=stamp("submitted_at") or 0,
        queued_at_ms=stamp("queued_at"),
        claimed_at_ms=stamp("claimed_at"),
        first_at_ms=stamp("first_at"),
        finished_at_ms=stamp("finished_at"),
        error=fields.get("error", ""),
        needs=tuple(fields.get("needs", "").split()),
    )


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
        pool=fields.get("pool", ""),
        slots=_number(fields, "slots"),
        version=fields.get("version", ""),
        engine=fields.get("engine", ""),
        supports=_json(_supports, fields.get("supports"), ()),
        state=_state(fields.get("state", "")),
        registered_at=fields.get("registered_at", ""),
        hello_at_ms=_number(fields, "hello_at"),
        beat_at_ms=_number(fields, "beat_at"),
        polled_at_ms=_number(fields, "polled_at"),
        freed_at_ms=_number(fields, "freed_at"),
        revoked_at_ms=_number(fields, "revoked_at"),
        zombies=_number(fields, "zombies"),
        offers=_json(_offers, fields.get("models"), ()),
        tasks=() if counted else tuple(sorted(TaskId(text(task)) for task in tasks)),
        chores=tuple(sorted(TaskId(text(task)) for task in chores)),
        revoked=() if counted else tuple(sorted(Token(text(token)) for token in revoked)),
        wish=_json(_wish, fields.get("wanted"), Wish()),
        taken=sum(counted),
        claim_age_ms=_number(fields, "claim_age_ms"),
        report=_json(_report, fields.get("report"), {}),
    )


def server_facts(info: Any) -> Server:
    """The server's facts from INFO; what it does not say stays unknown."""
    if info is None:
        return Server()
    said = info if isinstance(info, Mapping) else _info(text(info))

    def number(name: str) -> int:
        return int(said.get(name) or 0)

    valkey = "valkey_version" in said
    return Server(
        version=str(said.get("valkey_version" if valkey else "redis_version", "")),
        flavour="valkey" if valkey else "redis",
        mode=str(said.get("server_mode", said.get("redis_mode", ""))),
        role=str(said.get("role", "")),
        run_id=str(said.get("run_id", "")),
        replication_id=str(said.get("master_replid", "")),
        maxmemory_bytes=number("maxmemory"),
        used_memory_bytes=number("used_memory"),
        policy=str(said.get("maxmemory_policy", "")),
        append_only=bool(number("aof_enabled")) if "aof_enabled" in said else None,
        rdb_ok=said["rdb_last_bgsave_status"] == "ok" if "rdb_last_bgsave_status" in said else None,
        loading=bool(number("loading")),
    )


def _info(told: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in told.splitlines() if not line.startswith("#"))
    return {name: value.strip() for name, colon, value in pairs if colon}


def _scores(reply: Any) -> dict[str, int]:
    return {name: int(score) for name, score in scored(reply)}


def _number(fields: Mapping[str, str], name: str) -> int:
    said = fields.get(name, "")
    return int(said) if said.lstrip("-").isdigit() else 0


def _state(said: str) -> WorkerState:
    return WorkerState(said) if said in set(WorkerState) else WorkerState.STARTING


def _json(decoder: Any, said: str | None, default: Any) -> Any:
    """Text that a worker of another version wrote differently is not worth a traceback."""
    try:
        return decoder.decode(said) if said else default
    except msgspec.MsgspecError:
        return default


def _ask_workers(keys: Keys, workers: Iterable[str], members: bool) -> list[Command]:
    """Chores only where members are asked for: they take no slot, so that nobody counts them."""
    look = "SMEMBERS" if members else "SCARD"
    sets = [keys.worker_tasks, keys.worker_revoked, *((keys.worker_chores,) if members else ())]
    return [
        command
        for worker in workers
        for command in (("HGETALL", keys.worker(worker)), *((look, key(worker)) for key in sets))
    ]


def _ask_queues(keys: Keys, queues: Iterable[str]) -> list[Command]:
    return [
        command
        for queue in queues
        for command in (
            ("ZCARD", keys.queue(queue)),
            ("HMGET", keys.rate(queue), "mean_s", "var"),
            ("HGETALL", keys.turns(queue)),
        )
    ]


def _workers(
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


def _depths(queues: dict[str, int], replies: list[Any]) -> tuple[QueueDepth, ...]:
    return tuple(
        _depth(Queue(queue), active, *replies[3 * i : 3 * i + 3])
        for i, (queue, active) in enumerate(queues.items())
    )


def _depth(queue: Queue, active_ms: int, depth: Any, rate: Any, turns: Any) -> QueueDepth:
    mean_s, variance = good(rate) or (None, None)
    return QueueDepth(
        queue,
        int(certain(depth)),
        active_ms=active_ms,
        gap_s=float(mean_s or 0),
        gap_sd_s=sqrt(max(0.0, float(variance or 0))),
        waiting=_turns_left(hash_of(good(turns, []))),
    )


def _turns_left(turns: Mapping[str, str]) -> dict[tuple[int, str], int]:
    """How many turns each user has before it; a user's last waiting task is not counted once it is
    its turn, since its entry is gone by then."""
    left: dict[tuple[int, str], int] = {}
    for name, turn in turns.items():
        kind, _, rest = name.partition(":")
        band, _, user = rest.partition(":")
        if kind == "f":
            left[int(band), user] = int(turn) - int(turns.get(f"v:{band}", "0")) - 1
    return left


def _with_waits(keys: Keys, depths: tuple[QueueDepth, ...]) -> Reading[tuple[QueueDepth, ...]]:
    if not depths:
        return depths
    most = max(1, WAITING_MOST // len(depths))
    heads = yield [("ZRANGE", keys.queue(queue.name), 0, most - 1) for queue in depths]
    asked = [
        ("HGET", keys.task(text(task)), "queued_at") for head in heads for task in certain(head)
    ]
    stamps = iter((yield list(asked)) if asked else [])
    oldest = [
        min((int(stamp) for stamp in (next(stamps) for _ in head) if stamp), default=0)
        for head in heads
    ]
    return tuple(
        replace(queue, oldest_ms=since) for queue, since in zip(depths, oldest, strict=True)
    )


def _stray_workers(keys: Keys) -> Reading[tuple[tuple[str, ...], bool]]:
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


def _mark(fields: Mapping[str, str]) -> ReaperMark:
    return ReaperMark(
        last_pass_ms=_number(fields, "last_pass"),
        hold_until_ms=_number(fields, "hold_until"),
        run_id=fields.get("run_id", ""),
        schema=_number(fields, "schema"),
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
        str(state): _number(totals, state) for state in sorted(TERMINAL) if state is not State.DEAD
    }
    return {
        "pending": pending,
        "running": running,
        "waiting": max(0, open_tasks - pending - running),
        **ended,
        "dead": dead,
    }
