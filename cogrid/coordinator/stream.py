"""A streamed answer: every stream ends in exactly one of its proper end, or an error."""

from __future__ import annotations

import time

from cogrid.coordinator.accesslog import Line
from cogrid.coordinator.errors import RefusedError, failed
from cogrid.coordinator.exchange import Exchange, Header
from cogrid.coordinator.follower import Follower
from cogrid.coordinator.live import short
from cogrid.coordinator.placing import may_take
from cogrid.coordinator.ran import Ran
from cogrid.coordinator.services import Services
from cogrid.coordinator.status_line import StatusLine
from cogrid.coordinator.voice import Voice
from cogrid.model.chat import Claimed, Delta, End, Entry, Moved, Reset
from cogrid.model.task import State
from cogrid.store.refusal import StoreError
from cogrid.store.task_hashes import read_place

_STREAM: list[Header] = [
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


class Stream:
    """Passes one task's log on to one client. status: None for clients that get no frames."""

    def __init__(
        self,
        services: Services,
        exchange: Exchange,
        follower: Follower,
        voice: Voice,
        ran: Ran,
        line: Line,
        status: StatusLine | None,
    ) -> None:
        self._services = services
        self._exchange = exchange
        self._follower = follower
        self._voice = voice
        self._ran = ran
        self._line = line
        self._status = status
        self._told = ""
        self._run = -1

    async def run(self) -> End:
        """Headers, pieces, end. RefusedError where the stream must end in an error."""
        kind = (b"content-type", self._voice.content_type)
        await self._exchange.start(200, [kind, *_STREAM, *self._ran.headers()])
        if self._status:
            place = self._ran.accepted.place
            await self._exchange.write(self._tell(self._status.waiting(place)))
        keepalive_s = self._services.config.limits.keepalive_s
        while True:
            entries = await self._follower.next(keepalive_s)
            if not entries:
                await self._exchange.write(await self._alive())
                continue
            said, end = self._take(entries)
            if end is None:
                if said:
                    await self._exchange.write(said)
                continue
            if end.state is not State.DONE:
                if said:
                    await self._exchange.write(said)
                raise failed(end)
            said += self._close_status() + self._voice.end(end, self._ran.facts())
            await self._exchange.finish(said)
            return end

    def _take(self, entries: list[Entry]) -> tuple[bytes, End | None]:
        """What to send for these entries, and the end if it is among them."""
        parts: list[bytes] = []
        for entry in entries:
            item = entry.item
            if type(item) is Delta:
                parts.append(self._piece(entry.run, item))
                continue
            self._ran.take(item)
            if type(item) is End:
                return b"".join(parts), item
            if type(item) is Reset and self._run >= 0:
                raise _broken(self._ran, item.reason)
            if self._status:
                parts.append(self._frame(self._status, item))
        return b"".join(parts), None

    def _piece(self, run: int, delta: Delta) -> bytes:
        if run == self._run:
            return self._voice.piece(delta)
        if self._run >= 0:
            raise _broken(self._ran, "another run began")
        self._run = run
        self._follower.said = True
        self._line.first_at = time.monotonic()
        return self._close_status() + self._voice.piece(delta)

    def _frame(self, status: StatusLine, item: Claimed | Reset | Moved | Delta | End) -> bytes:
        if type(item) is Claimed:
            return self._tell(status.running(item.worker, item.queue))
        if type(item) is Reset or type(item) is Moved:
            queue = item.queue or self._ran.queue
            candidates = may_take(self._services, queue, self._ran.accepted.model)
            return self._tell(status.left(item, candidates))
        return b""

    def _tell(self, description: str) -> bytes:
        self._told = description
        return self._voice.status(description, False, False)

    def _close_status(self) -> bytes:
        """The last frame: it stays above the answer, or goes, as is configured."""
        if self._status is None:
            return b""
        self._status = None
        return self._voice.status(
            self._told, True, not self._services.config.coordinator.status_stays
        )

    async def _alive(self) -> bytes:
        """A sign of life; in a status line, with the place in the queue as it is now."""
        if self._status is None:
            return self._voice.alive()
        store = self._services.store
        try:
            task, place = await store.read(read_place(store.keys, self._follower.task))
        except StoreError:
            return self._voice.status(self._told, False, False)
        if task and task.state is State.PENDING:
            return self._tell(self._status.waiting(place))
        return self._voice.status(self._told, False, False)


def _broken(ran: Ran, reason: str) -> RefusedError:
    message = (
        f"the run of task {short(ran.accepted.task)} with model '{ran.accepted.model}'"
        f" on {ran.worker or 'its worker'} broke off ({reason}) after text was sent"
    )
    return RefusedError("broken_stream", message, "ask again")
