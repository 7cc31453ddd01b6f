"""Values for tests, each with defaults for everything that a test does not care about.

``a_worker()`` is healthy and idle at ``NOW_MS``: ready, one free slot, polled a second ago.
"""

from __future__ import annotations

from typing import Any

from cogrid.model.names import Queue, TaskId, WorkerId
from cogrid.model.snapshot import QueueDepth, Snapshot
from cogrid.model.task import Band, Kind, State, Task
from cogrid.model.worker import Offer, Worker, WorkerState

NOW_MS = 1_780_800_000_000
"""The instant of every built snapshot: 2026-06-07T02:40:00Z in Redis ms."""


def an_offer(name: str = "gemma3:1b", **fields: Any) -> Offer:
    """A model that works."""
    return Offer(name, **fields)


def a_worker(worker_id: str = "esxi", *models: str | Offer, **fields: Any) -> Worker:
    """A healthy worker with these models (default: gemma3:1b)."""
    offers = tuple(m if isinstance(m, Offer) else an_offer(m) for m in models or ("gemma3:1b",))
    defaults: dict[str, Any] = {
        "known": True,
        "lease_until_ms": NOW_MS + 18_000,
        "instance": f"{worker_id}-1",
        "host": worker_id,
        "pool": "cpu",
        "slots": 1,
        "supports": ("cpu_inference",),
        "state": WorkerState.READY,
        "registered_at": "2026-06-07T02:39:00Z",
        "hello_at_ms": NOW_MS - 120_000,
        "beat_at_ms": NOW_MS - 2_000,
        "polled_at_ms": NOW_MS - 1_000,
        "freed_at_ms": NOW_MS - 60_000,
        "offers": offers,
    }
    return Worker(WorkerId(worker_id), **{**defaults, **fields})


def a_task(task_id: str = "cb305e3a", **fields: Any) -> Task:
    """A chat that waits in the shared queue of gemma3:1b, submitted a second ago."""
    defaults: dict[str, Any] = {
        "kind": Kind.CHAT,
        "state": State.PENDING,
        "queue": Queue("tasks:cpu:shared:gemma3:1b"),
        "model": "gemma3:1b",
        "domain": "general",
        "user": "ada",
        "band": Band.INTERACTIVE,
        "attempts": 0,
        "recoveries": 0,
        "run": 0,
        "n": 0,
        "token": None,
        "worker": None,
        "avoid": None,
        "solo": False,
        "streamed": True,
        "reason": "",
        "submitted_at_ms": NOW_MS - 1_000,
        "queued_at_ms": NOW_MS - 1_000,
        "claimed_at_ms": None,
        "first_at_ms": None,
        "finished_at_ms": None,
        "error": "",
    }
    return Task(TaskId(task_id), **{**defaults, **fields})


def a_queue(name: str, depth: int = 1, **fields: Any) -> QueueDepth:
    """A queue with something in it."""
    return QueueDepth(Queue(name), depth, **fields)


def a_snapshot(*workers: Worker, **fields: Any) -> Snapshot:
    """The grid at ``NOW_MS``."""
    return Snapshot(**{"taken_at_ms": NOW_MS, "workers": workers, **fields})
