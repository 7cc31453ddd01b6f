"""One connection that listens to one task."""

from __future__ import annotations

import asyncio

from cogrid.coordinator.errors import RefusedError
from cogrid.coordinator.exchange import LeftError
from cogrid.model.chat import End, Entry
from cogrid.model.names import TaskId
from cogrid.store.output import START


class Follower:
    """name: ``<coordinator>:<n>``, n never used again.
    sent: Redis may know its name. accepted: the task is known to exist. last_id: of what was handed
    over. said: text of it was passed on to the client, so that it cannot be taken back. ended: its
    end was handed over."""

    __slots__ = (
        "_entries", "_failure", "_gone", "_timer", "_waiter",
        "accepted", "ended", "last_id", "name", "said", "sent", "task",
    )  # fmt: skip

    def __init__(self, task: TaskId, name: str, last_id: str = START) -> None:
        self.task = task
        self.name = name
        self.last_id = last_id
        self.sent = False
        self.accepted = False
        self.ended = False
        self.said = False
        self._entries: list[Entry] = []
        self._failure: RefusedError | None = None
        self._gone = False
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def next(self, limit_s: float) -> list[Entry]:
        """What is new, as soon as there is something; [] when limit_s has passed. LeftError when
        the client has gone, RefusedError when the task is lost."""
        if not self._entries and not self._failure and not self._gone:
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            self._timer = loop.call_later(limit_s, self._wake)
            try:
                await self._waiter
            finally:
                self._timer.cancel()
                self._waiter = None
        if self._gone:
            raise LeftError
        if self._entries:
            entries, self._entries = self._entries, []
            return entries
        if self._failure:
            raise self._failure
        return []

    def put(self, entries: list[Entry]) -> None:
        """Hand over entries that follow the last ones."""
        self._entries += entries
        self.last_id = entries[-1].id
        for new in entries:
            if type(new.item) is End:
                self.ended = True
        self._wake()

    def restart(self) -> None:
        """Begin again before the first entry."""
        self._entries.clear()
        self.last_id = START

    def fail(self, refusal: RefusedError) -> None:
        """Tell it that nothing more will come; what it has not taken yet comes before that."""
        self._failure = self._failure or refusal
        self._wake()

    def leave(self) -> None:
        """The client has gone."""
        self._gone = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
