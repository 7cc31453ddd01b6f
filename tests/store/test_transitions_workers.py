"""hello, renew, forget and wish: the whole state before, one call, the whole state after."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cogrid.model.names import TaskId, Token, WorkerId
from cogrid.model.worker import Offer, OfferState, Wish, WorkerState
from cogrid.store.workers import (
    Forgotten,
    Held,
    Life,
    Renewed,
    Welcome,
    Who,
    forget,
    hello,
    renew,
    wish,
)
from tests.build import NOW_MS
from tests.store import seed
from tests.store.seed import MODEL
from tests.store.world import World

ESXI = WorkerId("esxi")
WHO = Who(ESXI, "esxi1", "lock-esxi", "esxi", "cpu", 2, "0.1.0", "ollama")
NEWCOMER = replace(WHO, instance="esxi2")
STRANGER = replace(WHO, instance="other1", lock="another machine", host="other")
STANDS = {
    "worker_id": "esxi", "instance": "esxi1", "lock": "lock-esxi", "host": "esxi", "pool": "cpu",
    "slots": "2", "version": "0.1.0", "engine": "ollama", "beat_at": str(NOW_MS),
}  # fmt: skip


def says_hello(world: World, who: Who = WHO, k: int = 0, *held: tuple[str, str]) -> Welcome:
    pairs = tuple((TaskId(task), Token(token)) for task, token in held)
    return world.do(hello(world.keys, who, 20_000, k, pairs))


def test_the_first_hello_of_a_name(world: World) -> None:
    assert says_hello(world) == Welcome("ok", "starting")
    assert world.changes() == {
        "worker:esxi": {
            **STANDS, "state": "starting", "claim": "0", "hello_at": str(NOW_MS), "zombies": "0",
        },
        "grid:workers": {"esxi": NOW_MS + 20_000},
        "grid:events": [("hello", "", "esxi", "esxi1", "esxi")],
    }  # fmt: skip


def test_the_address_of_the_machine_is_kept_until_it_is_told_anew(world: World) -> None:
    assert says_hello(world, replace(WHO, address="192.168.0.41")).status == "ok"
    told = world.changes()["worker:esxi"]
    assert told["address"] == "192.168.0.41"
    world.mark()
    assert says_hello(world, NEWCOMER).status == "ok"
    assert world.changes()["worker:esxi"]["address"] is None


def test_a_hello_said_twice_only_keeps_the_name(world: World) -> None:
    """A late copy of the first one must not take the process back to its start."""
    world.seed(seed.worker(slots=2, claim=7, tasks=("t1",), revoked=("esxi1:3:1",)),
               seed.running("t1"))  # fmt: skip
    assert says_hello(world) == Welcome("ok", "ready")
    assert world.changes() == {"grid:workers": {"esxi": NOW_MS + 20_000}}


def test_a_restart_takes_the_name_at_once_and_what_it_ran_is_due(world: World) -> None:
    world.seed(
        seed.worker(slots=2, claim=7, tasks=("t1", "t2"), revoked=("esxi1:3:1",), revoked_at=1),
        seed.running("t1"), seed.running("t2", token="esxi1:2:1"),
    )  # fmt: skip
    assert says_hello(world, NEWCOMER) == Welcome("ok", "starting")
    assert world.changes() == {
        "worker:esxi": {
            "instance": "esxi2", "state": "starting", "claim": "0", "hello_at": str(NOW_MS),
            "beat_at": str(NOW_MS), "registered_at": None, "polled_at": None, "freed_at": None,
            "revoked_at": None,
        },
        "worker:esxi:revoked": None,
        "grid:workers": {"esxi": NOW_MS + 20_000},
        "grid:due": {"t1": 0, "t2": 0},
        "grid:events": [("hello", "", "esxi", "esxi2", "esxi")],
    }  # fmt: skip


def test_another_machine_is_refused_while_the_lease_runs(world: World) -> None:
    world.seed(seed.worker())
    assert says_hello(world, STRANGER) == Welcome("refused", host="esxi", left_ms=18_000)
    told = "name held by esxi, asked by other"
    assert world.changes() == {"grid:events": [("refused", "", "esxi", "other1", told)]}


@pytest.mark.parametrize("lease_ms", [-1, None])
def test_another_machine_takes_over_once_it_has_run_out(world: World, lease_ms: int | None) -> None:
    world.seed(seed.worker(lease_ms=lease_ms, tasks=("t1",)), seed.running("t1"))
    assert says_hello(world, STRANGER) == Welcome("ok", "starting")
    found = world.changes()
    assert found["worker:esxi"]["host"] == "other"
    assert found["grid:due"] == {"t1": 0}


def test_a_name_whose_hash_is_gone_is_anybodys(world: World) -> None:
    world.seed(seed.worker())
    world.client.delete("worker:esxi")
    assert says_hello(world, STRANGER) == Welcome("ok", "starting")
    assert world.hash("worker:esxi")["instance"] == "other1"


def test_after_a_lost_hash_the_number_goes_on(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1"))
    world.client.delete("worker:esxi")
    world.mark()
    assert says_hello(world, WHO, 7, ("t1", "esxi1:1:1")) == Welcome("ok", "starting")
    assert world.hash("worker:esxi")["claim"] == "7"
    assert "grid:due" not in world.changes()


def test_runs_that_were_taken_meanwhile_keep_their_slots_until_let_go(world: World) -> None:
    """The engine still works on them."""
    world.seed(
        seed.worker(slots=4, tasks=("t1",), revoked=("esxi1:5:1", "old:1:1")),
        seed.running("t1"), seed.pending("t2"),
    )  # fmt: skip
    world.client.delete("worker:esxi")
    world.mark()
    says_hello(world, WHO, 9, ("t1", "esxi1:1:1"), ("t2", "esxi1:4:1"))
    assert world.changes()["worker:esxi:revoked"] == {"-old:1:1", "+esxi1:4:1"}
    assert 3_600 < world.client.ttl("worker:esxi:revoked") <= 3_620


# --- renew ------------------------------------------------------------------------------------


LIFE = Life(WorkerState.READY, (Offer(MODEL),), ("cpu_inference",), 1, 12, 1, (), 20_000)


def renewed(world: World, instance: str = "esxi1", lock: str = "lock-esxi",
            **changed: Any) -> Renewed:  # fmt: skip
    return world.do(renew(world.keys, ESXI, instance, lock, replace(LIFE, **changed)))


def test_a_renewal_moves_the_lease_and_nothing_it_did_not_say(world: World) -> None:
    world.seed(seed.worker(models="[]", report="{}"))
    assert renewed(world) == Renewed("ok")
    (told,) = (change for key, change in world.changes().items() if key == "worker:esxi")
    assert MODEL in told.pop("models")
    assert told == {"beat_at": str(NOW_MS), "claim_age_ms": "12"}
    found = world.changes()
    del found["worker:esxi"]
    assert found == {"grid:workers": {"esxi": NOW_MS + 20_000}}


def test_the_first_renewal_that_is_ready_registers(world: World) -> None:
    world.seed(seed.worker(state="starting", registered_at=None, polled_at=None, freed_at=None))
    offers = (Offer(MODEL), Offer("broken", OfferState.FAILED))
    assert renewed(world, offers=offers).registered
    found = world.changes()
    told = found["worker:esxi"]
    assert (told["registered_at"], told["state"], told["freed_at"]) == (
        "2026-06-07T02:40:00Z", "ready", str(NOW_MS),
    )  # fmt: skip
    assert found["grid:models"] == {MODEL: NOW_MS}
    ((edge, _, worker, instance, models),) = found["grid:events"]
    assert (edge, worker, instance) == ("registered", "esxi", "esxi1")
    assert MODEL in models
    assert not renewed(world).registered


def test_becoming_ready_again_stamps_its_homes_but_registers_nothing(world: World) -> None:
    world.seed(seed.worker(state="draining"))
    assert renewed(world) == Renewed("ok")
    found = world.changes()
    assert found["worker:esxi"]["freed_at"] == str(NOW_MS)
    assert found["grid:models"] == {MODEL: NOW_MS}
    assert "grid:events" not in found


def test_runs_report_their_progress(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1"))
    held = (Held(TaskId("t1"), Token("esxi1:1:1"), 4_000, 30_000),)
    assert renewed(world, held=held) == Renewed("ok")
    assert world.changes()["grid:due"] == {"t1": NOW_MS + 26_000}


def test_what_is_no_longer_its_own_is_lost(world: World) -> None:
    world.seed(
        seed.worker(tasks=()), seed.running("t1", worker="ai-core", token="ai-core1:1:1"),
        seed.ended("t2"), seed.pending("t3"),
    )  # fmt: skip
    held = tuple(Held(TaskId(f"t{i}"), Token(f"esxi1:{i}:1"), 0, 30_000) for i in (1, 2, 3, 4))
    assert renewed(world, held=held, settled=4).lost == ("t1", "t2", "t3", "t4")
    assert "grid:due" not in world.changes()


def test_what_it_has_without_knowing_is_told_once_settled(world: World) -> None:
    world.seed(
        seed.worker(slots=4, claim=3, tasks=("t1", "t2", "t3")), seed.running("t1"),
        seed.running("t2", token="esxi1:3:1"), seed.running("t3", token="esxi0:1:1"),
    )  # fmt: skip
    assert renewed(world, settled=0).unknown_runs == ()
    assert renewed(world, settled=1).unknown_runs == (("t1", "esxi1:1:1"),)
    named = (Held(TaskId("t1"), Token("esxi1:1:1"), 0, 30_000),)
    assert renewed(world, settled=2, held=named).unknown_runs == ()


def test_silence_confirms(world: World) -> None:
    revoked = ("esxi1:1:1", "esxi1:2:1", "esxi1:5:1", "esxi0:9:1")
    world.seed(seed.worker(slots=4, claim=5, revoked=revoked), seed.ended("t2", last_token=""))
    held = (Held(TaskId("t2"), Token("esxi1:2:1"), 0, 30_000),)
    assert renewed(world, settled=4, held=held).lost == ("t2",)
    found = world.changes()
    assert found["worker:esxi:revoked"] == {"-esxi1:1:1", "-esxi0:9:1"}
    assert found["worker:esxi:revoked ttl"] == 3_620
    assert found["worker:esxi"]["freed_at"] == str(NOW_MS)


@pytest.mark.parametrize(
    "seeded",
    [seed.pending("t1"), seed.ended("t1"), seed.running("t1", worker="ai-core"), seed.worker("x")],
)
def test_runs_that_no_hash_confirms_are_dropped(world: World, seeded: seed.Seed) -> None:
    world.seed(seeded, seed.worker(tasks=("t1",)))
    assert renewed(world) == Renewed("ok")
    found = world.changes()
    assert found["worker:esxi:tasks"] is None
    assert found["grid:events"] == [("repaired", "t1", "esxi", "", "not run here")]


def test_the_last_renewal_lets_the_lease_run_out(world: World) -> None:
    world.seed(seed.worker())
    assert renewed(world, state=WorkerState.AWAY, lease_ms=0) == Renewed("ok")
    found = world.changes()
    assert found["worker:esxi"]["state"] == "away"
    assert "grid:workers" not in found


@pytest.mark.parametrize(
    ("seeded", "said"),
    [
        (seed.worker("ai-core"), Renewed("unknown")),
        (seed.worker(instance="esxi2"), Renewed("again")),
        (seed.worker(instance="other1", lock="x", host="other"), Renewed("superseded", "other")),
    ],
)
def test_who_must_not_renew(world: World, seeded: seed.Seed, said: Renewed) -> None:
    world.seed(seeded)
    assert renewed(world) == said
    assert world.changes() == {}


# --- forget and wish --------------------------------------------------------------------------


FENCED = {"worker:esxi:fenced": "esxi1", "worker:esxi:fenced ttl": 7 * 86_400}


def forgotten(world: World, force: bool = False, silent_ms: int = 0) -> Forgotten:
    return world.do(forget(world.keys, ESXI, force, "ada", silent_ms))


def test_a_dead_worker_is_struck_off(world: World) -> None:
    world.seed(seed.worker(lease_ms=-1, revoked=("esxi1:1:1",)))
    assert forgotten(world) == Forgotten("ok")
    assert world.changes() == {
        "worker:esxi": None,
        "worker:esxi:revoked": None,
        **FENCED,
        "grid:workers": None,
        "grid:events": [("forgotten", "", "esxi", "", "ada")],
    }


def test_a_living_worker_is_not(world: World) -> None:
    world.seed(seed.worker())
    assert forgotten(world) == Forgotten("alive", left_ms=18_000)
    assert world.changes() == {}


def test_a_hash_without_a_lease_is_struck_off(world: World) -> None:
    world.seed(seed.worker(lease_ms=None))
    assert forgotten(world) == Forgotten("ok")
    assert world.changes()["worker:esxi"] is None


def test_what_it_still_has_must_go_first(world: World) -> None:
    world.seed(
        seed.worker(lease_ms=-1, tasks=("t1",)), seed.running("t1"),
        seed.pending("t2", queue="tasks:cpu:esxi"),
    )  # fmt: skip
    assert forgotten(world) == Forgotten("holds", running=1, waiting=1)
    assert world.changes() == {}


def test_by_force_it_goes_and_its_runs_are_a_dead_workers(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1"))
    assert forgotten(world, force=True) == Forgotten("ok")
    assert world.changes() == {
        "worker:esxi": None,
        **FENCED,
        "grid:workers": {"esxi": 0},
        "grid:events": [("forgotten", "", "esxi", "", "ada")],
    }
    world.client.delete("worker:esxi:tasks")
    assert forgotten(world) == Forgotten("ok")
    assert world.client.zscore("grid:workers", "esxi") is None


@pytest.mark.parametrize(
    ("silent_ms", "got"),
    [(1_000, Forgotten("ok")), (1_001, Forgotten("works", silent_ms=1_000))],
)
def test_by_force_only_one_that_claims_nothing(
    world: World, silent_ms: int, got: Forgotten
) -> None:
    world.seed(seed.worker())
    assert forgotten(world, True, silent_ms) == got
    assert (world.changes() == {}) is (got.status == "works")


def test_one_that_was_struck_off_stays_away_and_its_successor_comes(world: World) -> None:
    world.seed(seed.worker())
    assert forgotten(world, force=True) == Forgotten("ok")
    assert renewed(world).status == "unknown"
    world.mark()
    assert says_hello(world) == Welcome("fenced")
    assert world.changes() == {}
    assert says_hello(world, NEWCOMER) == Welcome("ok", "starting")


def test_nobody_knows_a_worker_that_never_was(world: World) -> None:
    assert forgotten(world) == Forgotten("unknown")
    assert world.changes() == {}


def test_a_wish_is_kept_and_told(world: World) -> None:
    world.seed(seed.worker())
    assert world.do(wish(world.keys, ESXI, Wish("drain", 0, "ada")))
    assert world.changes() == {
        "worker:esxi": {"wanted": '{"state":"drain","until_ms":0,"by":"ada"}'},
        "wake:@esxi": {"wish": NOW_MS},
        "wake:@esxi ttl": 60,
        "grid:events": [("wish", "", "esxi", "", "drain by ada")],
    }
    assert renewed(world).wish == Wish("drain", 0, "ada")


def test_nobody_is_asked_who_is_not_there(world: World) -> None:
    assert not world.do(wish(world.keys, ESXI, Wish("drain")))
    assert world.changes() == {}
