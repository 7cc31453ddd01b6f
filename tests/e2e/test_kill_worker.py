"""kill -9 of a worker at every step: each request ends in one answer or one error, nothing is said
twice, nothing stays behind.

The points are reached from outside: by an engine that waits where it is told to, and by a proxy
that cuts what goes to Redis or comes from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cogrid.engine.fault import FaultEngine, Mode
from cogrid.store.script import script
from tests.e2e.chat import Chat, Ending
from tests.e2e.grid import Grid, open_requests, said
from tests.e2e.overlap import scaled
from tests.e2e.rounds import PROOF_LIMIT_S, ROUNDS, in_many_grids
from tests.proxy import Proxy
from tests.wait import until_async

LIMIT_S = 45.0
"""Until everything that was asked in a round has ended: a lease, a restart, a slow machine."""
TOKENS = 8
REQUESTS, ERRORS = 10, 2
"""Of one round over all points: two a point, one where the finish is met; those that had been shown
text."""
FOREVER_S = 600.0
FINISH_S = 1.5
"""How long a run is open: time for the test to see it and to break its way to Redis."""
QUIET_S = 0.15
"""So long after its last claim, nothing of a frozen worker is on its way any more."""
READY_S = 20.0


class Victim:
    """A worker with two slots and an engine of its own, behind a proxy of its own."""

    def __init__(self, grid: Grid, name: str, engine: FaultEngine) -> None:
        self.grid = grid
        self.name = name
        self.engine = engine
        self.proxy = Proxy(grid.server.port)
        redis = f"redis://127.0.0.1:{self.proxy.port}/0"
        self.daemon = grid.worker(name, engine, slots=2, redis=redis)

    def ask(self, stream: bool) -> Chat:
        """A chat for this worker's own queue."""
        return self.grid.chat(worker=self.name, stream=stream)

    def count(self, edge: str) -> int:
        """How often that happened here."""
        return sum(event.worker == self.name for event in self.grid.events(edge))

    async def begins(self, runs: int, tokens: int = 0) -> None:
        """So many runs are open at its engine, each with so many tokens said."""

        def open_so_far() -> bool:
            return sum(r.tokens >= tokens for r in open_requests(self.engine)) == runs

        await until_async(open_so_far, READY_S, f"{runs} runs at {self.name}")

    def close(self) -> None:
        self.proxy.close()


@dataclass(frozen=True, slots=True)
class Expected:
    """How a request must end. text: what its client must have in the end."""

    ending: Ending
    tokens: int
    recoveries: int | None = None


Asked = list[tuple[Chat, Expected]]
ANSWERED = Expected(Ending.ANSWER, TOKENS, recoveries=1)


async def after_the_claim(victim: Victim) -> Asked:
    """Redis has handed one out, and the worker never learns; the other one still waits."""
    before = victim.count("claimed")
    # Frozen meanwhile, so that the first claim whose answer is lost is one that takes something.
    victim.daemon.pause()
    await until_async(lambda: victim.grid.poll_age_s(victim.name) > QUIET_S)
    asked = [victim.ask(stream) for stream in (True, False)]
    await until_async(lambda: victim.grid.depth(f"tasks:cpu:{victim.name}") == 2)
    victim.proxy.lose_answers_to(_sha("claim"))
    victim.daemon.resume()
    await until_async(lambda: victim.count("claimed") > before, READY_S, "a claim")
    return [(chat, Expected(Ending.ANSWER, TOKENS)) for chat in asked]


async def before_the_first_token(victim: Victim) -> Asked:
    """Both run, and nothing has been said."""
    victim.engine.set(Mode.SLOW_FIRST, seconds=FOREVER_S)
    asked = [victim.ask(stream) for stream in (True, False)]
    await victim.begins(2)
    return [(chat, ANSWERED) for chat in asked]


async def after_the_first_token(victim: Victim) -> Asked:
    """One client has seen a token, the other does not stream."""
    return await _stalled(victim, 1)


async def after_the_last_token(victim: Victim) -> Asked:
    """Everything has been said but the end."""
    return await _stalled(victim, TOKENS)


async def _stalled(victim: Victim, tokens: int) -> Asked:
    victim.engine.set(Mode.STALL, after=tokens)
    streamed, whole = victim.ask(True), victim.ask(False)
    await victim.begins(2, tokens)
    await streamed.reaches(tokens)
    return [(streamed, Expected(Ending.ERROR, tokens)), (whole, ANSWERED)]


async def before_the_finish_arrives(victim: Victim) -> Asked:
    """The engine is done; the worker's word of it never gets to Redis."""
    victim.engine.set(Mode.SLOW_FIRST, seconds=FINISH_S)
    asked = victim.ask(False)
    await victim.begins(1)
    victim.proxy.lose_requests_with(_sha("finish"))
    await until_async(lambda: not open_requests(victim.engine))
    return [(asked, ANSWERED)]


async def after_the_finish(victim: Victim) -> Asked:
    """Redis has it, the worker never learns: it is answered, by this worker, once."""
    victim.engine.set(Mode.SLOW_FIRST, seconds=FINISH_S)
    asked = victim.ask(False)
    await victim.begins(1)
    victim.proxy.lose_answers_to(_sha("finish"))
    before = victim.count("done")
    await until_async(lambda: victim.count("done") > before, READY_S, "the end")
    return [(asked, Expected(Ending.ANSWER, TOKENS, recoveries=0))]


Point = Callable[[Victim], Awaitable[Asked]]
POINTS: tuple[Point, ...] = (
    after_the_claim,
    before_the_first_token,
    after_the_first_token,
    after_the_last_token,
    before_the_finish_arrives,
    after_the_finish,
)


async def kill_workers(grid: Grid, rounds: int) -> None:
    """All points at once, each with a worker of its own. Every other time it is started again at
    once, so that its restart is noticed before its lease has run out."""
    grid.coordinator()
    grid.reaper(patient=True)
    spare = await grid.engine(gpu=True)
    grid.worker("spare", spare, pool="gpu", slots=8)
    victims = [Victim(grid, _id(point), await grid.engine()) for point in POINTS]
    try:
        await grid.up("spare", *(victim.name for victim in victims), within_s=60)
        # From here on the server knows every script by its SHA-1.
        assert await grid.chat(worker="spare").ended(READY_S) is Ending.ANSWER
        for number in range(rounds):
            await asyncio.gather(
                *(
                    _kill_once(victim, point, at_once=number % 2 == 0)
                    for victim, point in zip(victims, POINTS, strict=True)
                )
            )
        edges = grid.edges()
        assert edges["submitted"] == edges["done"] + edges["failed"] == 1 + rounds * REQUESTS
        assert edges["failed"] == rounds * ERRORS
    finally:
        for victim in victims:
            victim.close()


async def _kill_once(victim: Victim, point: Point, at_once: bool) -> None:
    grid = victim.grid
    asked = await point(victim)
    victim.daemon.kill()
    # What it had sent and nobody has read is gone with it.
    victim.proxy.cut(refuse=True)
    victim.proxy.heal()
    victim.engine.switches.clear()
    if at_once:
        victim.daemon.start()
    for chat, expected in asked:
        await _ends(chat, expected, LIMIT_S, point.__name__)
    if not at_once:
        victim.daemon.start()
    await until_async(lambda: grid.is_ready(victim.name) and _fresh(victim), READY_S)
    await grid.up(victim.name)


async def _ends(chat: Chat, expected: Expected, within_s: float, where: str) -> None:
    ending = await chat.ended(within_s)
    told = f"{where}: {ending} {chat.text!r} {chat.error} {chat.broke} {chat.told}"
    assert ending is expected.ending, told
    assert chat.text == said(expected.tokens), told
    if expected.recoveries is not None and ending is Ending.ANSWER:
        assert chat.ran["recoveries"] == expected.recoveries, told


def _fresh(victim: Victim) -> bool:
    """The process that runs now has registered."""
    return victim.count("registered") >= victim.daemon.lives


def _sha(script_name: str) -> bytes:
    """What calls that script on the wire."""
    return script(script_name).sha.encode()


def _id(point: Point) -> str:
    return point.__name__.replace("_", "-")


@scaled
async def test_twenty_times(grid: Grid) -> None:
    await kill_workers(grid, ROUNDS)


@pytest.mark.e2e
@pytest.mark.proof
@pytest.mark.timeout(PROOF_LIMIT_S)
async def test_two_hundred_times(tmp_path: Path) -> None:
    await in_many_grids(tmp_path, kill_workers)
