"""Everything that stands about one task, for those who ask about it by its id."""

from __future__ import annotations

from dataclasses import dataclass

from cogrid.model.chat import Entry
from cogrid.model.task import Task


@dataclass(frozen=True, slots=True)
class Record:
    """A task with what only its operator asks for. Instants are Redis ms, None where there is
    none.

    why: the reasons of its route, with "; " between. code: how it failed. api_key: the id of the
    key that submitted it. client: it lives only while a client wants it. followers: connections
    that listen. size_bytes: of its request. queue_timeout_ms 0: it may wait for ever.
    """

    task: Task
    why: str = ""
    code: str = ""
    api_key: str = ""
    client: bool = False
    followers: int = 0
    on_close: str = ""
    size_bytes: int = 0
    max_attempts: int = 0
    max_recoveries: int = 0
    queue_timeout_ms: int = 0
    keep_ms: int = 0


@dataclass(frozen=True, slots=True)
class Story:
    """A task's record and what its lists say. place: in its queue, 1 is next, 0: in none. due_ms:
    when somebody must look at it again. wanted_until_ms: its client's lease. kept_until_ms: when an
    ended one is dropped. log: its entries without the text, but for the last piece of each run."""

    record: Record
    place: int = 0
    due_ms: int | None = None
    wanted_until_ms: int | None = None
    kept_until_ms: int | None = None
    log: tuple[Entry, ...] = ()
