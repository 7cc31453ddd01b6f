"""What an operator does to tasks: have one go again, revive a dead letter, drop what has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cogrid.model.names import Queue, TaskId, Token
from cogrid.store.keys import Keys
from cogrid.store.script import Arg, Call, text

PURGED_A_CALL = 100
"""Tasks that one call drops: a few ms of the server's time."""


@dataclass(frozen=True, slots=True)
class Sent:
    """status: ok (queue: where it waits now), moved_on (state: what it is), unknown, said (text was
    sent already), no_body, full (amount: depth of the queue) or bytes (amount: that are queued)."""

    status: str
    queue: str = ""
    state: str = ""
    amount: int = 0


def requeue(keys: Keys, task: TaskId, token: Token | None, queue: Queue, by: str) -> Call[Sent]:
    """Take the run with this token back, or end a back-off (None), and have the task go again."""
    args: tuple[Arg, ...] = (keys.prefix, task, token or "", queue, by)
    return Call("requeue", keys.task(task), args, _sent)


def revive(
    keys: Keys, task: TaskId, queue: Queue, queue_max: int, bytes_max: int, by: str
) -> Call[Sent]:
    """Make a dead letter a pending task again; nobody listens to it."""
    args: tuple[Arg, ...] = (keys.prefix, task, queue, queue_max, bytes_max, by)
    return Call("revive", keys.task(task), args, _sent)


def purge(keys: Keys, tasks: tuple[TaskId, ...], dead: bool, least_ms: int) -> Call[int]:
    """Drop these ended tasks, at most PURGED_A_CALL, if they ended so long ago; how many went.
    dead: they are dead letters."""
    index = keys.dead if dead else keys.finished
    return Call("purge", index, (keys.prefix, least_ms, *tasks), len)


def forget_model(keys: Keys, model: str) -> Call[bool]:
    """Know a model no more; False where it was not known."""
    return Call("forget_model", keys.models, (keys.prefix, model), bool)


def note(keys: Keys, what: str, task: str = "", worker: str = "") -> Call[None]:
    """Leave an event that says what an operator does, and who it is."""
    return Call("note", keys.events, (keys.prefix, task, worker, what), lambda _: None)


def _sent(reply: Any) -> Sent:
    status, said = text(reply[0]), reply[1] if len(reply) > 1 else b""
    if status in ("full", "bytes"):
        return Sent(status, amount=int(said))
    return Sent(status, queue=text(said)) if status == "ok" else Sent(status, state=text(said))
