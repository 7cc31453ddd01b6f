"""The one reader: hands what is new in the logs of all followed tasks to those who wait for it.

It blocks on the coordinator's inbox. A hint is only a hint: every few seconds ``renew-clients``
answers state and last id of everything that is followed, so a lost one costs that long and never an
answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from cogrid.coordinator.errors import RefusedError
from cogrid.coordinator.follower import Follower
from cogrid.model.limits import Limits
from cogrid.model.names import TaskId
from cogrid.model.task import TERMINAL, State
from cogrid.store.async_client import AsyncStore
from cogrid.store.clients import Followed, renew_clients
from cogrid.store.follow import read_new
from cogrid.store.outage import Outage
from cogrid.store.output import START, entry, order
from cogrid.store.refusal import StoreError

log = logging.getLogger(__name__)

HINTS_MOST = 200
ENTRIES_MOST = 500
RENEW_MOST = 500
RETRY_S = (0.05, 1.0)
"""First and longest wait before a server that is gone is asked again."""


class Live:
    """All followers of one coordinator. name: under which its inbox stands in Redis.

    turned: called each time the reader turns, whether or not Redis answered.
    """

    def __init__(self, store: AsyncStore, limits: Limits, name: str, outage: Outage) -> None:
        self.turned: Callable[[], None] = lambda: None
        self.name = name
        self._store = store
        self._limits = limits
        self._outage = outage
        self._count = 0
        self._by_task: dict[TaskId, list[Follower]] = {}
        self._refusal: RefusedError | None = None
        self._renew_now = asyncio.Event()
        self._down = False

    def __len__(self) -> int:
        return sum(map(len, self._by_task.values()))

    def follow(self, task: TaskId, last_id: str = START) -> Follower:
        """Listen to a task from behind an entry on. End it with ``unfollow``."""
        self._count += 1
        follower = Follower(task, f"{self.name}:{self._count}", last_id)
        self._by_task.setdefault(task, []).append(follower)
        if self._refusal:
            follower.fail(self._refusal)
        return follower

    def unfollow(self, follower: Follower) -> None:
        """Listen no more."""
        followers = self._by_task.get(follower.task, [])
        if follower in followers:
            followers.remove(follower)
        if not followers:
            self._by_task.pop(follower.task, None)

    async def look(self, task: TaskId) -> None:
        """Read what is new of one task now, without a hint (it was there before us)."""
        await self._fetch((task,))

    def end_all(self, refusal: RefusedError) -> None:
        """Tell every follower, and those to come, that this coordinator ends."""
        self._refusal = refusal
        for follower in self._all():
            follower.fail(refusal)

    async def read(self) -> None:
        """Until cancelled: wait for hints, read, hand over."""
        wait_s = RETRY_S[0]
        inbox = self._store.keys.inbox(self.name)
        while True:
            self.turned()
            try:
                got = await self._store.wait((inbox,), self._limits.block_s)
                self._back()
                wait_s = RETRY_S[0]
                if got:
                    await self._take(inbox, got[1])
            except StoreError as error:
                self._outage.lost("hints", error)
                self._down = True
                await asyncio.sleep(wait_s * random.uniform(0.5, 1.5))
                wait_s = min(2 * wait_s, RETRY_S[1])

    async def renew(self) -> None:
        """Until cancelled: move the clients' leases on, and find what hints have missed."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.client_renew_s):
                    await self._renew_now.wait()
            self._renew_now.clear()
            try:
                await self.renew_once()
            except StoreError as error:
                self._outage.lost("renewals", error)
            else:
                self._outage.back("renewals")

    async def renew_once(self) -> None:
        """One round of renew-clients over everything that is followed."""
        known = [
            task
            for task, followers in self._by_task.items()
            if any(follower.accepted for follower in followers)
        ]
        orphan_ms = round(self._limits.orphan_grace_s * 1000)
        for first in range(0, len(known), RENEW_MOST):
            tasks = tuple(known[first : first + RENEW_MOST])
            call = renew_clients(self._store.keys, tasks, orphan_ms)
            answers = await self._store.do(call)
            behind = {
                task
                for task, answer in zip(tasks, answers, strict=True)
                if self._compare(task, answer)
            }
            await self._fetch(behind)

    def _compare(self, task: TaskId, answer: Followed) -> bool:
        """Hold what a follower has against what the server has; True: there is more to read."""
        behind = False
        for follower in self._by_task.get(task, ()):
            if not follower.accepted or follower.ended:
                continue
            if not answer.state:
                follower.fail(_gone(task))
                continue
            last = order(answer.last_id or START)
            have = order(follower.last_id)
            if last > have:
                behind = True
            elif last < have and answer.state != State.RUNNING:
                # A failover took the log back, and no run will write those entries again.
                behind = self._start_again(follower) or behind
            elif State(answer.state) in TERMINAL:
                follower.fail(_without_end(task))
        return behind

    def _start_again(self, follower: Follower) -> bool:
        if follower.said:
            follower.fail(_taken_back(follower.task))
            return False
        follower.restart()
        return True

    async def _take(self, inbox: str, first: str) -> None:
        """Read for one hint, and fetch the next ones on the same way, until there are none."""
        hints: tuple[str, ...] = (first,)
        while hints:
            self.turned()  # under load this may go on for long
            _, hints = await asyncio.gather(
                self._fetch(TaskId(hint) for hint in hints),
                self._store.take_hints(inbox, HINTS_MOST),
            )

    async def _fetch(self, tasks: Iterable[TaskId]) -> None:
        wanted: list[tuple[TaskId, str]] = []
        for task in tasks:
            followers = self._by_task.get(task)
            if followers:
                wanted.append((task, min((f.last_id for f in followers), key=order)))
        if not wanted:
            return
        replies = await self._store.read(read_new(self._store.keys, tuple(wanted), ENTRIES_MOST))
        full = [
            task
            for (task, _), raw in zip(wanted, replies, strict=True)
            if raw and self._hand_over(task, raw) and len(raw) == ENTRIES_MOST
        ]
        if full:
            await self._fetch(full)

    def _hand_over(self, task: TaskId, raw: list[Any]) -> bool:
        followers = self._by_task.get(task)
        if not followers:
            return False
        try:
            entries = [entry(one) for one in raw]
        except (msgspec.MsgspecError, KeyError, ValueError) as error:
            log.error("the log of task %s cannot be read: %s", task, error)
            for follower in followers:
                follower.fail(_unreadable(task))
            return False
        for follower in tuple(followers):
            new = entries
            if follower.last_id != START:
                have = order(follower.last_id)
                new = [one for one in entries if order(one.id) > have]
            if new:
                follower.put(new)
        return True

    def _all(self) -> Iterable[Follower]:
        return [follower for followers in self._by_task.values() for follower in followers]

    def _back(self) -> None:
        self._outage.back("hints")
        if self._down:
            self._down = False
            self._renew_now.set()


def short(task: str) -> str:
    """The part of an id that people read."""
    return task[:8]


def _gone(task: TaskId) -> RefusedError:
    return RefusedError(
        "lost", f"task {short(task)} is gone from Redis", "it was emptied; ask again"
    )


def _taken_back(task: TaskId) -> RefusedError:
    return RefusedError(
        "lost", f"Redis has lost text of task {short(task)} that you have", "ask again"
    )


def _without_end(task: TaskId) -> RefusedError:
    return RefusedError(
        "lost", f"the answer of task {short(task)} is no longer in Redis", "ask again"
    )


def _unreadable(task: TaskId) -> RefusedError:
    return RefusedError("lost", f"the answer of task {short(task)} cannot be read", "ask again")
