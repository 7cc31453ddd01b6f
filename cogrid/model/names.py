"""Names that people type and keys are made of."""

from __future__ import annotations

import re
from typing import NewType

TaskId = NewType("TaskId", str)
WorkerId = NewType("WorkerId", str)
Token = NewType("Token", str)
"""One run of one task: ``<instance>:<claim number>:<index>``; compared for equality only."""
Queue = NewType("Queue", str)
"""``tasks:<pool>:<worker>`` or ``tasks:<pool>:shared:<model>``, without the prefix."""

SHARED = "shared"
DEMO_MODEL = "demo-echo"
"""The one model of the built-in demonstration: no engine can get it, and that engine no other."""
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
TASK_ID = re.compile(r"[A-Za-z0-9]{1,64}")


def is_name(text: str) -> bool:
    """True for a name that a worker or a pool may have."""
    return text != SHARED and NAME.fullmatch(text) is not None


def host_name(host: str) -> str:
    """The short host name as a worker's name; "" where nothing of it can be one."""
    name = re.sub(r"[^a-z0-9._-]+", "-", host.partition(".")[0].lower()).strip("-._")[:63]
    return name if is_name(name) else ""


def own_queue(pool: str, worker: str) -> Queue:
    """The queue that only this worker takes from: ``tasks:cpu:esxi``."""
    return Queue(f"tasks:{pool}:{worker}")


def shared_queue(pool: str, model: str) -> Queue:
    """The queue of every worker of the pool that has the model: ``tasks:cpu:shared:gemma3:1b``."""
    return Queue(f"tasks:{pool}:{SHARED}:{model}")


def queue_pool(queue: str) -> str:
    """The pool in a queue's name."""
    return queue.split(":", 2)[1]


def queue_worker(queue: str) -> WorkerId | None:
    """The worker whose own queue this is, or None for a shared one."""
    rest = queue.split(":", 2)[2]
    return None if rest.startswith(f"{SHARED}:") else WorkerId(rest)


def queue_model(queue: str) -> str | None:
    """The model of a shared queue, or None for a worker's own."""
    rest = queue.split(":", 2)[2]
    return rest.removeprefix(f"{SHARED}:") if rest.startswith(f"{SHARED}:") else None


def token_instance(token: str) -> str:
    """The instance (one process) that the token was handed to."""
    return token.split(":", 1)[0]


def normal_model(name: str) -> str:
    """One spelling for each model: ``gemma3:latest`` is ``gemma3``; case and everything else stay.

    The tag is what follows the last ``:`` behind the last ``/``, so a registry's port or a
    quantisation such as ``hf.co/LiquidAI/LFM2.5-1.2B-JP-GGUF:Q4_K_M`` is never touched.
    """
    head, slash, last = name.rpartition("/")
    base, colon, tag = last.partition(":")
    return f"{head}{slash}{base}" if colon and tag == "latest" and base else name
