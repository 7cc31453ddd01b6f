"""Builders that write what stands in Redis, key by key, with defaults for what a test does not
care about: ``pending("t1")``, ``running("t1", worker="esxi")``, ``worker("esxi", slots=2)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redis

from cogrid.model.names import queue_worker
from cogrid.model.task import CHORES, TERMINAL, State
from cogrid.store.keys import Keys
from tests.build import NOW_MS

Seed = Callable[[redis.Redis, Keys], object]

MODEL = "gemma3:1b"
SHARED = f"tasks:cpu:shared:{MODEL}"
OWN = "tasks:cpu:esxi"
BODY = b'{"q":1}'
LEASE_MS = 18_000
"""What a seeded worker's lease has left."""

BAND = 1 << 50
TURN = 1 << 25


def score(band: int = 0, turn: int = 0, seq: int = 1) -> int:
    """The score of a queue's entry; seq 0: it came back or was moved in."""
    return band * BAND + turn * TURN + seq


def worker(name: str = "esxi", *, lease_ms: int | None = LEASE_MS, tasks: tuple[str, ...] = (),
           revoked: tuple[str, ...] = (), **fields: Any) -> Seed:  # fmt: skip
    """A ready worker that polled a second ago. lease_ms: what is left of it, None for none. A
    field given as None is left out."""
    defaults: dict[str, Any] = {
        "worker_id": name, "instance": f"{name}1", "lock": f"lock-{name}", "host": name,
        "pool": "cpu", "slots": 1, "version": "0.1.0", "engine": "ollama", "state": "ready",
        "models": f'[{{"name":"{MODEL}"}}]', "supports": '["cpu_inference"]', "claim": 0,
        "registered_at": "2026-06-07T02:25:47Z", "hello_at": NOW_MS - 120_000,
        "beat_at": NOW_MS - 2_000, "polled_at": NOW_MS - 1_000, "freed_at": NOW_MS - 60_000,
        "zombies": 0,
    }  # fmt: skip

    def write(client: redis.Redis, keys: Keys) -> None:
        client.hset(keys.worker(name), mapping=_said({**defaults, **fields}))
        if lease_ms is not None:
            client.zadd(keys.workers, {name: NOW_MS + lease_ms})
        if tasks:
            client.sadd(keys.worker_tasks(name), *tasks)
        if revoked:
            client.sadd(keys.worker_revoked(name), *revoked)
            client.pexpire(keys.worker_revoked(name), 3_600_000 + LEASE_MS)

    return write


def _task(client: redis.Redis, keys: Keys, task: str, fields: dict[str, Any],
          due_ms: int | None) -> None:  # fmt: skip
    body = fields.pop("body", BODY)
    defaults: dict[str, Any] = {
        "kind": "chat", "model": MODEL, "domain": "general", "user": "ada", "band": 0,
        "size": len(body), "queue_timeout_ms": 300_000, "keep_ms": 600_000, "client": 1,
        "followers": "", "streamed": 1, "announce": 0, "on_close": "cancel", "key": "",
        "needs": "", "why": "", "max_attempts": 3, "max_recoveries": 3, "queue": SHARED,
        "submitted_at": NOW_MS - 1_000, "queued_at": NOW_MS - 1_000,
    }  # fmt: skip
    told = {**defaults, **fields}
    client.hset(keys.task(task), mapping=_said(told))
    if State(told["state"]) in TERMINAL:
        return
    client.set(keys.body(task), body)
    client.hincrby(keys.totals, "queued_bytes", int(told["size"]))
    client.zadd(keys.due, {task: "inf" if due_ms is None else NOW_MS + due_ms})
    if str(told["client"]) == "1":
        client.zadd(keys.clients, {task: NOW_MS + 60_000})


def pending(task: str, *, turn: int = 1, seq: int = 1, due_ms: int | None = 299_000,
            **fields: Any) -> Seed:  # fmt: skip
    """A task in a queue, with its user's next turn, the marker and the queue's own entries."""

    def write(client: redis.Redis, keys: Keys) -> None:
        told = {"state": "pending", "queue": SHARED, "user": "ada", "band": 0, **fields}
        _task(client, keys, task, dict(told), due_ms)
        queue, band = told["queue"], int(told["band"])
        turns, field = keys.turns(queue), f"f:{band}:{told['user']}"
        client.zadd(keys.queue(queue), {task: score(band, turn, seq)})
        if turn > int(client.hget(turns, f"v:{band}") or 0):
            client.hset(turns, field, max(turn + 1, int(client.hget(turns, field) or 0)))
        client.hset(turns, "seq", max(seq, int(client.hget(turns, "seq") or 0)))
        client.zadd(keys.queues, {queue: NOW_MS - 5_000}, nx=True)
        if queue_worker(queue) is None:
            client.zadd(keys.wake(queue), {"armed": NOW_MS - 5_000})

    return write


def running(task: str, *, worker: str = "esxi", token: str = "", run: int = NOW_MS - 3_000,
            texts: int = 0, due_ms: int | None = 60_000, **fields: Any) -> Seed:  # fmt: skip
    """A task that a worker runs, with the log of that run."""
    told = token or f"{worker}1:1:1"

    def write(client: redis.Redis, keys: Keys) -> None:
        known = {"queue": SHARED, **fields}
        state = {
            "state": "running", "worker": worker, "token": told, "run": run, "n": texts,
            "claimed_at": NOW_MS - 3_000, **known,
        }  # fmt: skip
        _task(client, keys, task, state, due_ms)
        held = keys.worker_chores if fields.get("kind") in CHORES else keys.worker_tasks
        client.sadd(held(worker), task)
        claimed: dict[Any, Any] = {"kind": "claimed", "worker": worker, "queue": known["queue"]}
        client.xadd(keys.out(task), claimed, id=f"{run}-0")
        for n in range(1, texts + 1):
            client.xadd(keys.out(task), {"kind": "text", "data": text_of(n)}, id=f"{run}-{n}")

    return write


def waiting(task: str, *, due_ms: int = 0, run: int = NOW_MS - 9_000, **fields: Any) -> Seed:
    """A task whose first attempt failed on esxi and that waits for its next one."""

    def write(client: redis.Redis, keys: Keys) -> None:
        state = {
            "state": "waiting", "token": "", "run": run, "n": 0, "worker": "esxi",
            "avoid": "esxi", "attempts": 1, "last_token": "esxi1:1:1",
            "reason": "attempt_failed", **fields,
        }  # fmt: skip
        _task(client, keys, task, state, due_ms)
        reset: dict[Any, Any] = {
            "kind": "reset", "worker": "esxi", "reason": "attempt_failed", "queue": ""
        }  # fmt: skip
        claimed: dict[Any, Any] = {"kind": "claimed", "worker": "esxi", "queue": SHARED}
        client.xadd(keys.out(task), claimed, id=f"{run}-0")
        client.xadd(keys.out(task), reset, id=f"{run}-1")

    return write


def ended(task: str, state: str = "done", *, run: int = NOW_MS - 9_000, **fields: Any) -> Seed:
    """A task that is over, ten seconds into its retention."""

    def write(client: redis.Redis, keys: Keys) -> None:
        keep_ms = 7 * 86_400_000 if state == "dead" else 600_000
        known = {
            "state": state, "token": "", "last_token": "esxi1:1:1", "run": run, "n": 0,
            "worker": "esxi", "finished_at": NOW_MS - 8_000, **fields,
        }  # fmt: skip
        _task(client, keys, task, known, None)
        index = keys.dead if state == "dead" else keys.finished
        client.zadd(index, {task: NOW_MS - 8_000 + keep_ms})
        end = {"kind": "end", "state": state, "finish_reason": "stop", "usage": "", "message": "",
               "code": "", "worker": "esxi"}  # fmt: skip
        client.xadd(keys.out(task), end, id=f"{run}-{LAST}")  # type: ignore[arg-type]
        client.pexpire(keys.task(task), keep_ms - 8_000)
        client.pexpire(keys.out(task), keep_ms - 8_000)
        if state == "dead":
            client.set(keys.body(task), BODY, px=keep_ms - 8_000)

    return write


def mark(*, run_id: str = "server-run-1", last_pass_ms: int = -1_000, hold_ms: int = -20_000,
         hold_from_ms: int = -21_000, schema: int = 1) -> Seed:  # fmt: skip
    """``grid:reaper`` after a pass a second ago that held nothing; times are relative to now."""

    def write(client: redis.Redis, keys: Keys) -> None:
        client.hset(keys.reaper, mapping={
            "run_id": run_id, "replication_id": "replication-1", "schema": schema,
            "last_pass": NOW_MS + last_pass_ms, "hold_until": NOW_MS + hold_ms,
            "hold_from": NOW_MS + hold_from_ms,
        })  # fmt: skip

    return write


def home(model: str = MODEL, ago_ms: int = 500) -> Seed:
    """The model had a home that long ago."""
    return lambda client, keys: client.zadd(keys.models, {model: NOW_MS - ago_ms})


def fields(key: str, **named: Any) -> Seed:
    """Further fields of any hash, by its name without the prefix."""
    return lambda client, keys: client.hset(keys.prefix + key, mapping=_said(named))


def no_mark(queue: str = SHARED) -> Seed:
    """A queue's marker has been popped."""
    return lambda client, keys: client.delete(keys.wake(queue))


def text_of(n: int) -> str:
    """The text entry n of a seeded log."""
    return f'{{"content":"w{n}"}}'


LAST = "9223372036854775808"
"""n of every end entry."""


def _said(named: dict[str, Any]) -> dict[Any, Any]:
    return {name: str(value) for name, value in named.items() if value is not None}
