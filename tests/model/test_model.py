"""The transition table holds in every state that its bounds allow."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model import turns
from tests.model.clients import Clients
from tests.model.configs import NARROW, PROOF, QUICK
from tests.model.explore import System, explore
from tests.model.ghost import RULES, Ghost
from tests.model.machine import Machine
from tests.model.partial import Partial
from tests.model.state import Config
from tests.model.turns import Queue
from tests.model.wake import Wake

VIEWS: dict[str, System[Any]] = {
    "clients, closing": Clients("close"),
    "clients, with a key": Clients("key"),
    "clients, POST /task": Clients("post"),
    "partial": Partial(),
    "wake": Wake(),
    "ghost": Ghost(),
    "ghost, behind a backlog": Ghost(slots=1, backlog=True, without=RULES),
    "turns, two users": Queue(users="XY", bands=1),
    "turns, three users": Queue(bands=1, submits=4),
    "turns, two bands": Queue(users="XY", submits=4),
    "turns, never forgotten": Queue(users="XY", bands=1, forgets=False),
}
PROOF_VIEWS: dict[str, System[Any]] = {
    "turns, two users": Queue(users="XY", bands=1, submits=6, leaves=2),
    "turns, three users": Queue(bands=1),
    "turns, two returns": Queue(users="XY", bands=1, leaves=2, returns=2, forgets=False),
    "turns, two bands": Queue(users="XY"),
}


def holds(system: System[Any], least: int) -> None:
    """Too few states mean bounds that exclude what they should let happen."""
    outcome = explore(system)
    assert outcome.problem is None, str(outcome.problem)
    assert outcome.states >= least


@pytest.mark.parametrize("config", QUICK.values(), ids=QUICK.keys())
def test_the_table_holds(config: Config) -> None:
    holds(Machine(config), least=500)


@pytest.mark.parametrize("config", NARROW.values(), ids=NARROW.keys())
def test_the_table_holds_in_narrow_bounds(config: Config) -> None:
    holds(Machine(config), least=10)


@pytest.mark.parametrize("system", VIEWS.values(), ids=VIEWS.keys())
def test_the_view_holds(system: System[Any]) -> None:
    holds(system, least=400)


@pytest.mark.proof
@pytest.mark.timeout(900)
@pytest.mark.parametrize("config", PROOF.values(), ids=PROOF.keys())
def test_the_table_holds_in_full_bounds(config: Config) -> None:
    holds(Machine(config), least=4000)


@pytest.mark.proof
@pytest.mark.timeout(900)
@pytest.mark.parametrize("system", PROOF_VIEWS.values(), ids=PROOF_VIEWS.keys())
def test_the_view_holds_in_full_bounds(system: System[Any]) -> None:
    holds(system, least=50_000)


def served(queue: Queue, world: turns.World, count: int) -> tuple[list[int], turns.World]:
    """The tasks that the next claims take."""
    tasks = []
    for _ in range(count):
        tasks.append(world.queue[0].task)
        world = queue.claim(world)
    return tasks, world


def submitted(queue: Queue, world: turns.World, users: str, band: int = 0) -> turns.World:
    for user in users:
        world = queue.submit(world, user, band)
    return world


@pytest.mark.parametrize("already_served", [0, 1, 40])
def test_a_newcomer_behind_a_backlog_of_100_is_served_second(already_served: int) -> None:
    queue = Queue(submits=200)
    world = submitted(queue, queue.start(), "X" * (100 + already_served))
    _, world = served(queue, world, already_served)
    newcomer = world.submitted
    world = submitted(queue, world, "N")
    tasks, _ = served(queue, world, 2)
    assert tasks == [already_served, newcomer]


def test_one_user_alone_is_served_in_order() -> None:
    queue = Queue(submits=200)
    world = submitted(queue, queue.start(), "X" * 30)
    first, world = served(queue, world, 10)
    world = submitted(queue, world, "X" * 20)
    rest, _ = served(queue, world, 40)
    assert first + rest == list(range(50))


def test_who_gave_back_two_turns_may_be_served_out_of_order() -> None:
    """A turn goes back to the user and not to the tasks that still wait, so that a later one can
    get an earlier turn. Nobody else loses by it, and it takes a cancel in the middle."""
    problem = explore(Queue(users="X", bands=1, leaves=2, strict_order=True)).problem
    assert problem is not None
    assert sum(act.startswith("leave") for act in problem.trace) == 2
    one = explore(Queue(users="X", bands=1, leaves=1, returns=0, strict_order=True))
    assert one.problem is None


def test_a_task_that_returns_is_served_next_in_its_band() -> None:
    queue = Queue(submits=200)
    world = submitted(queue, queue.start(), "XYXYN")
    _, world = served(queue, world, 3)
    taken = next(entry for entry in world.running if entry.task == 0)
    world = queue.come_back(world, taken)
    assert world.queue[0].task == 0
    assert turns.score(0, world.queue[0].turn, 0) == world.queue[0].score
    urgent = submitted(queue, queue.come_back(queue.start(), taken._replace(band=1)), "N")
    assert urgent.queue[0].band == 0


def test_bands_are_served_in_order() -> None:
    queue = Queue(submits=200)
    world = submitted(queue, queue.start(), "XX", band=2)
    world = submitted(queue, world, "Y", band=1)
    world = submitted(queue, world, "N", band=0)
    tasks, _ = served(queue, world, 4)
    assert tasks == [3, 2, 0, 1]


def test_a_score_is_exact_in_a_double() -> None:
    last = turns.score(turns.BANDS - 1, turns.TURN - 1, turns.TURN - 1)
    assert int(float(last)) == last
    assert int(float(last - 1)) == last - 1


def test_a_band_has_room_for_two_to_the_25_turns() -> None:
    """One more and a task would stand in the next band: turns must start anew before."""
    assert turns.score(0, turns.TURN - 1, turns.TURN - 1) < turns.score(1, 0, 0)
    assert turns.score(0, turns.TURN, 0) == turns.score(1, 0, 0)
