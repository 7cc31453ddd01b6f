"""The claim loop by itself, with a desk and a store that only note what is asked of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from cogrid.model.limits import Limits
from cogrid.model.names import TaskId, Token
from cogrid.model.task import Kind
from cogrid.store.keys import Keys
from cogrid.store.outage import Outage
from cogrid.store.refusal import StoreError
from cogrid.store.tasks import Claimed, Handed
from cogrid.worker.claims import Claims
from cogrid.worker.drill import Hang
from cogrid.worker.held import Held
from tests.wait import until_async

SHARED = "tasks:cpu:shared:m"
TASK = Handed(TaskId("t"), Token("i:1:1"), 1, Kind.CHAT, "m", True, 0, 0, b"")
NOTHING = Claimed("ok")


class Stub:
    """Both at once. replies: what claims are answered, then ``always``; waits: what each wait
    listened to; inbox: what is taken from there."""

    def __init__(self) -> None:
        self.keys = Keys()
        self.replies: list[Claimed | StoreError] = []
        self.always = NOTHING
        self.claims = 0
        self.waits: list[tuple[str, ...]] = []
        self.inbox: list[str] = []
        self.nudges: list[str] = []
        self.during: Callable[[], None] = lambda: None
        self._wake: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def wake(self, key: str, member: str = "armed") -> None:
        self._wake.put_nowait((key, member))

    def queues(self) -> tuple[tuple[str, bool], ...]:
        return (("tasks:cpu:esxi", True), (SHARED, True))

    async def claim(self) -> Claimed:
        self.claims += 1
        self.during()
        await asyncio.sleep(0)
        reply = self.replies.pop(0) if self.replies else self.always
        if isinstance(reply, StoreError):
            raise reply
        return reply

    async def wait(self, hints: Sequence[str], limit_s: float) -> tuple[str, str] | None:
        self.waits.append(tuple(hints))
        try:
            return await asyncio.wait_for(self._wake.get(), limit_s)
        except TimeoutError:
            return None

    async def take_hints(self, hint: str, most: int) -> tuple[str, ...]:
        taken, self.inbox = tuple(self.inbox), []
        return taken

    async def nudge(self, name: str, member: str) -> None:
        self.nudges.append(name)
        self.wake(self.keys.inbox(name), member)


class World:
    """A loop that runs, and everything it touches."""

    def __init__(self, slots: int = 1, **limits: Any) -> None:
        self.limits = Limits(**limits)
        self.stub = Stub()
        self.held = Held(self.limits, slots, ())
        self.held.ready = True
        outage = Outage("")
        stub = cast(Any, self.stub)
        self.claims = Claims(stub, "esxi", stub, self.held, self.limits, outage, Hang({}))
        self.heard: list[str] = []
        self.turns = 0
        self.claims.news = self.heard.append
        self.claims.turned = self._turned

    def _turned(self) -> None:
        self.turns += 1

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        loop = asyncio.create_task(self.claims.run())
        try:
            yield
        finally:
            loop.cancel()
            await asyncio.wait((loop,))


ALL = ("wake:@esxi", f"wake:{SHARED}")
INBOX = ("wake:@esxi",)


async def test_a_free_worker_listens_to_markers_too() -> None:
    world = World()
    async with world.running():
        await until_async(lambda: world.stub.waits)
    assert world.stub.waits == [ALL]
    assert world.stub.claims == 1


async def test_a_full_worker_listens_to_its_inbox_only_until_a_slot_is_free() -> None:
    world = World(slots=0)
    async with world.running():
        await until_async(lambda: world.stub.waits)
        world.held.slots = 1
        world.claims.slot_freed()
        world.claims.slot_freed()
        await until_async(lambda: len(world.stub.waits) == 2)
    assert world.stub.waits == [INBOX, ALL]
    assert world.stub.nudges == ["esxi"]
    assert world.heard == []


async def test_a_slot_that_is_free_again_at_once_needs_no_nudge() -> None:
    world = World(slots=0)
    async with world.running():
        await until_async(lambda: world.stub.claims == 1)
        world.held.slots = 1
        world.claims.slot_freed()
        await until_async(lambda: world.stub.waits)
    assert world.stub.waits == [ALL]
    assert world.stub.nudges == []


async def test_every_wake_is_followed_by_a_claim() -> None:
    world = World()
    async with world.running():
        for number, key in enumerate((ALL[1], ALL[0], ALL[1])):
            await until_async(lambda n=number: len(world.stub.waits) == n + 1)  # type: ignore[misc]
            world.stub.wake(key, "t1")
        await until_async(lambda: world.stub.claims == 4)
    assert world.heard == ["t1"]


async def test_a_claim_that_took_several_is_followed_by_another() -> None:
    world = World()
    world.stub.replies = [Claimed("ok", (TASK, TASK)), Claimed("ok", (TASK, TASK)), NOTHING]
    async with world.running():
        await until_async(lambda: world.stub.waits)
    assert world.stub.claims == 3


async def test_a_claim_that_took_one_waits_a_moment_for_a_hint_before_the_next() -> None:
    world = World(block_s=600.0)
    world.stub.replies = [Claimed("ok", (TASK,)), Claimed("ok", (TASK,)), NOTHING]
    async with world.running():
        await until_async(lambda: world.stub.waits)
        assert world.stub.claims == 1
        await until_async(lambda: len(world.stub.waits) == 3)
    assert world.stub.waits == [ALL, ALL, ALL]
    assert world.stub.claims == 3


async def test_a_worker_that_is_idle_or_draining_polls() -> None:
    for draining in (False, True):
        world = World(block_s=0.02)
        world.held.draining = draining
        async with world.running():
            await until_async(lambda: world.turns > 5)  # noqa: B023
        assert set(world.stub.waits) == {INBOX if draining else ALL}


async def test_a_loop_that_always_finds_work_reads_its_inbox() -> None:
    world = World(tick_s=0.02)
    world.stub.always = Claimed("ok", (TASK, TASK))
    async with world.running():
        await until_async(lambda: world.stub.claims > 3)
        world.stub.inbox = ["t1", "slot", "t2"]
        await until_async(lambda: world.heard == ["t1", "t2"])
    assert world.stub.waits == []


async def test_the_rest_of_an_inbox_is_read_with_its_first_member() -> None:
    world = World()
    async with world.running():
        await until_async(lambda: world.stub.waits)
        world.stub.inbox = ["t2", "t3"]
        world.stub.wake(INBOX[0], "t1")
        await until_async(lambda: len(world.heard) == 3)
    assert world.heard == ["t1", "t2", "t3"]
    assert world.stub.claims == 2


async def test_a_refused_claim_pops_no_markers_and_is_asked_again_after_the_renewal() -> None:
    world = World()
    world.stub.replies = [Claimed("renew")]
    async with world.running():
        await until_async(lambda: world.stub.waits)
        world.claims.renewed()
        await until_async(lambda: len(world.stub.waits) == 2)
    assert world.stub.waits == [INBOX, ALL]


async def test_a_renewal_during_the_refused_claim_counts() -> None:
    world = World()
    world.stub.replies = [Claimed("not_ready")]
    world.stub.during = world.claims.renewed
    async with world.running():
        await until_async(lambda: world.stub.waits)
    assert world.stub.claims == 2
    assert world.stub.waits == [ALL]


async def test_an_unanswered_claim_is_a_turn_too() -> None:
    """The watchdog is fed while Redis is away: the loop lives."""
    world = World(tick_s=0.01)
    world.stub.replies = [StoreError("away") for _ in range(5)]
    async with world.running():
        await until_async(lambda: world.stub.waits)
    assert world.turns == 6
    assert world.stub.claims == 6
