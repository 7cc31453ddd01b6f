"""What a renewal tells is one instant."""

from __future__ import annotations

from cogrid.model.limits import Limits
from cogrid.model.names import TaskId, Token
from cogrid.model.worker import Offer, WorkerState
from cogrid.store.workers import Held as HeldRun
from cogrid.worker.held import Held, Pulse


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


def a_held(clock: Clock, slots: int = 2) -> Held:
    return Held(Limits(), slots, ("cpu_inference",), clock, clock)


def a_pulse(clock: Clock, name: str = "t1", k: int = 1) -> Pulse:
    return Pulse(TaskId(name), Token(f"i:{k}:1"), clock.s, 300.0)


def test_a_settled_claim_and_its_runs_are_told_together() -> None:
    clock = Clock()
    held = a_held(clock)
    assert (held.ask(), held.claims()) == (1, (1, 0, ()))
    held.settle(1, [a_pulse(clock)])
    clock.s += 7
    life = held.life(20_000)
    assert life.settled == 1
    assert life.held == (HeldRun(TaskId("t1"), Token("i:1:1"), 7_000, 301_000),)
    assert held.claims() == (1, 1, ((TaskId("t1"), Token("i:1:1")),))
    assert held.free == 1


def test_a_run_that_ends_with_the_next_claim_leaves_as_that_one_comes() -> None:
    clock = Clock()
    held = a_held(clock, slots=1)
    first, second = a_pulse(clock), a_pulse(clock, "t2", 2)
    held.settle(1, [first])
    held.settle(2, [second], over=first)
    assert [run.id for run in held.life(1).held] == ["t2"]
    assert held.free == 0
    held.end(second)
    assert held.free == 1


def test_a_number_is_never_handed_out_twice_and_settled_never_falls() -> None:
    held = a_held(Clock())
    assert [held.ask(), held.ask()] == [1, 2]
    held.settle(2, [])
    held.settle(1, [])
    assert held.life(1).settled == 2


def test_its_state_is_the_last_word() -> None:
    held = a_held(Clock())
    said = [held.state]
    for name, value in (("draining", True), ("ready", True), ("draining", False), ("away", True)):
        setattr(held, name, value)
        said.append(held.state)
    assert said == [
        WorkerState.STARTING,
        WorkerState.STARTING,
        WorkerState.DRAINING,
        WorkerState.READY,
        WorkerState.AWAY,
    ]


def test_it_stops_to_emit_two_seconds_before_its_lease_ends() -> None:
    clock = Clock()
    held = a_held(clock)
    assert not held.emits()
    held.leased(clock.s)
    clock.s += 17.9
    assert held.emits()
    clock.s += 0.2
    assert not held.emits()
    held.leased(clock.s)
    assert held.emits()


def test_a_model_s_state_is_dated_by_redis_own_clock() -> None:
    clock = Clock()
    held = a_held(clock)
    held.offer(((Offer("m"), clock.s),))
    assert held.life(1).offers[0].since_ms == 0
    assert held.redis_ms() == 0
    clock.s += 5
    held.redis_is_at(1_780_000_000_000)
    assert held.life(1).offers[0].since_ms == 1_780_000_000_000 - 5_000
    clock.s += 2
    assert held.redis_ms() == 1_780_000_002_000


def test_the_claim_loop_s_age_is_told() -> None:
    clock = Clock()
    held = a_held(clock)
    clock.s += 3.5
    assert held.life(1).claim_age_ms == 3_500
