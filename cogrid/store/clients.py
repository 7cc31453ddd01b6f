"""Those who listen to a task, and what a key may ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cogrid.model.names import TaskId
from cogrid.store.keys import Keys
from cogrid.store.script import Call, text


@dataclass(frozen=True, slots=True)
class Attached:
    """status: ok or unknown (attach); ok, cancelled or unknown (detach). state: the task's."""

    status: str
    state: str = ""


def attach(keys: Keys, task: TaskId, follower: str, orphan_ms: int) -> Call[Attached]:
    """One more connection listens. follower: ``<coordinator>:<n>``, n never used again."""
    args = (keys.prefix, task, follower, orphan_ms)
    return Call("attach", keys.task(task), args, _attached)


def detach(keys: Keys, task: TaskId, follower: str) -> Call[Attached]:
    """That connection has closed; where it was the last, the task's own rule decides."""
    return Call("detach", keys.task(task), (keys.prefix, task, follower), _attached)


def _attached(reply: Any) -> Attached:
    return Attached(text(reply[0]), text(reply[1]) if len(reply) > 1 else "")


@dataclass(frozen=True, slots=True)
class Followed:
    """state: "" where the task is absent. last_id: of its log, "" where that is empty."""

    state: str
    last_id: str


def renew_clients(
    keys: Keys, tasks: tuple[TaskId, ...], orphan_ms: int
) -> Call[tuple[Followed, ...]]:
    """Move the clients' leases on; answers, in the same order, what may have been missed."""
    return Call("renew_clients", keys.clients, (keys.prefix, orphan_ms, *tasks), _followed)


def _followed(reply: Any) -> tuple[Followed, ...]:
    return tuple(Followed(text(state), text(last)) for state, last in reply)


@dataclass(frozen=True, slots=True)
class Counted:
    """allowed, or retry_after_s until the next minute begins."""

    allowed: bool
    retry_after_s: int = 0


def limit(keys: Keys, api_key: str, a_minute: int) -> Call[Counted]:
    """Count one request against a key's limit. api_key: its id, not its secret."""
    return Call("limit", keys.api_keys, (keys.prefix, api_key, a_minute), _counted)


def _counted(reply: Any) -> Counted:
    return Counted(True) if reply[0] == b"ok" else Counted(False, int(reply[1]))
