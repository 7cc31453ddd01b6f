"""The async store: for the coordinator and a worker's claim loop and runs. Built on the pipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import hiredis

from cogrid.store.address import Address
from cogrid.store.keys import Keys
from cogrid.store.pipe import Pipe
from cogrid.store.reading import Reading
from cogrid.store.refusal import refusal
from cogrid.store.script import Call, Scripts, script, text

T = TypeVar("T")
GRACE_S = 2.0
"""A blocking call's reply is overdue this long after its own limit."""


class AsyncStore:
    """Transitions and readings on one event loop; one connection for calls, one for waiting."""

    def __init__(
        self,
        address: Address,
        prefix: str = "",
        reply_s: float = 5.0,
        scripts: Scripts = script,
    ) -> None:
        self.keys = Keys(prefix)
        self.shown = address.shown
        self._scripts = scripts
        self._calls = Pipe(address, reply_s)
        self._waits = Pipe(address, reply_s)

    async def do(self, call: Call[T]) -> T:
        """Run one transition. StoreError says what is wrong."""
        made = self._scripts(call.name)
        reply = await self._calls.send(("EVALSHA", made.sha, 1, call.key, *call.args))
        if isinstance(reply, hiredis.ReplyError):
            if str(reply).startswith("NOSCRIPT"):
                reply = await self._calls.call("EVAL", made.source, 1, call.key, *call.args)
            else:
                raise refusal(self.shown, str(reply))
        return call.decode(reply)

    async def read(self, reading: Reading[T]) -> T:
        """Drive a reading to its value."""
        try:
            commands = next(reading)
            while True:
                commands = reading.send(await self._calls.send_all(commands))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        except hiredis.ReplyError as error:
            raise refusal(self.shown, str(error)) from error

    async def wait(self, hints: Sequence[str], limit_s: float) -> tuple[str, str] | None:
        """Block until one of the hint keys (markers, inboxes) has a member, and take that:
        (key, member); None when limit_s has passed. One waiter at a time."""
        reply = await self._waits.call(
            "BZPOPMIN", *hints, f"{limit_s:.3f}", limit_s=limit_s + GRACE_S
        )
        return (text(reply[0]), text(reply[1])) if reply else None

    async def take_hints(self, hint: str, most: int) -> tuple[str, ...]:
        """Take up to so many members of one inbox without blocking."""
        reply = await self._calls.call("ZPOPMIN", hint, most)
        return tuple(text(member) for member in reply[::2])

    async def nudge(self, name: str, member: str) -> None:
        """Put a hint into an inbox, to wake whoever blocks on it."""
        await self._calls.call("ZADD", self.keys.inbox(name), "0", member)

    async def hand_over(self, task: str, ticket: str, body: bytes, ttl_s: int) -> None:
        """SET a large body beside the submit that will take it over."""
        beside = self.keys.body_beside(task, ticket)
        await self._calls.call("SET", beside, body, "EX", ttl_s)

    async def ping(self) -> None:
        """StoreError unless the server answers."""
        await self._calls.call("PING")

    def close(self) -> None:
        """Close both connections."""
        self._calls.close()
        self._waits.close()
