"""Whether the lists agree with what the tasks say of themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cogrid.model.finding import Finding
from cogrid.model.inventory import Inventory, Kept
from cogrid.model.names import Queue, TaskId, Token, WorkerId
from cogrid.model.record import Record
from cogrid.model.task import State
from cogrid.rules.consistency import in_both, inconsistencies
from tests.build import a_queue, a_snapshot, a_task, a_worker

SHARED = Queue("tasks:cpu:shared:gemma3:1b")
OWN = Queue("tasks:cpu:esxi")
LISTED_AGAIN = "the next claim of a worker that serves it lists it again"
P, R, W, D = (TaskId(name) for name in ("pp", "rr", "ww", "dd"))
ESXI = WorkerId("esxi")
RUN: dict[str, Any] = {"state": State.RUNNING, "worker": ESXI, "token": Token("esxi-1:1:1")}


def a_record(task: str, **fields: Any) -> Record:
    return Record(a_task(task, **fields), client=True, size_bytes=10, max_attempts=3,
                  max_recoveries=3)  # fmt: skip


def well(**fields: Any) -> Inventory:
    """One task of each kind, where it belongs."""
    records = {
        P: a_record(P),
        R: a_record(R, **RUN),
        W: a_record(W, state=State.WAITING),
        D: a_record(D, state=State.DONE),
    }
    open_kept = Kept(None, True)
    defaults: dict[str, Any] = {
        "snapshot": a_snapshot(a_worker(tasks=(R,)), queues=(a_queue(SHARED),), queued_bytes=30),
        "open": frozenset({P, R, W}),
        "ended": frozenset({D}),
        "clients": frozenset({P, R, W}),
        "queued": {SHARED: (P,)},
        "held": {ESXI: (R,)},
        "records": records,
        "kept": {P: open_kept, R: open_kept, W: open_kept, D: Kept(600_000, False, "end")},
    }
    return Inventory(**{**defaults, **fields})


def changed(task: TaskId, record: Record | None) -> Inventory:
    found = well()
    return replace(found, records={**found.records, task: record})


def told(found: Inventory) -> list[tuple[str, str, str]]:
    return [(each.kind, each.subject, each.what) for each in inconsistencies(found)]


def test_where_all_is_well_nothing_is_said() -> None:
    assert told(well()) == []


@pytest.mark.parametrize(
    ("fields", "kind", "what"),
    [
        ({"queued": {}}, "misplaced", "task pp: it is pending and stands nowhere"),
        (
            {"queued": {SHARED: (P,), OWN: (P,)}},
            "misplaced",
            f"task pp: it is pending and stands in {SHARED} and {OWN}",
        ),
        ({"held": {}}, "misplaced", "task rr: it is running and stands nowhere"),
        (
            {"held": {ESXI: (R, W)}},
            "misplaced",
            "task ww: it is waiting and stands in worker esxi",
        ),
        (
            {"open": frozenset({P, R})},
            "not_due",
            "task ww: it is waiting and nobody will look at it: it is not in grid:due",
        ),
        (
            {"open": frozenset({P, R, W, D})},
            "over_and_listed",
            "task dd: it is done and stands in grid:due",
        ),
        (
            {"clients": frozenset({P, R})},
            "client_lease",
            "task ww: it lives only while a client wants it, and has no client's lease",
        ),
        (
            {"unlisted": (OWN,)},
            "unlisted_queue",
            f"{OWN} holds tasks and is not in grid:queues, so no pass looks at it; {LISTED_AGAIN}",
        ),
        (
            {"kept": {P: Kept(5_000, True)}},
            "lifetime",
            "task pp: it is pending and ends by itself in 5 s",
        ),
        ({"kept": {D: Kept(None, False)}}, "lifetime", "task dd: it is done and is kept for ever"),
        (
            {"kept": {P: Kept(None, False)}},
            "body",
            "task pp: it is pending and its request is gone",
        ),
        (
            {"kept": {P: Kept(None, True, "end")}},
            "log",
            "task pp: it is pending and its log has ended: a script was stopped in the middle",
        ),
    ],
)
def test_what_does_not_agree(fields: Any, kind: str, what: str) -> None:
    assert [(each[0], each[2]) for each in told(well(**fields))] == [(kind, what)]


def test_an_entry_without_a_task() -> None:
    found = changed(P, None)
    snapshot = replace(found.snapshot, queued_bytes=20)
    (finding,) = inconsistencies(replace(found, snapshot=snapshot))
    assert (finding.kind, finding.subject) == ("no_task", P)
    assert finding.what == (
        f"task pp: there is no such task, and it stands in {SHARED} and grid:due and grid:clients"
    )
    assert finding.mend == "cogrid reaper --once"


@pytest.mark.parametrize(
    ("task", "record", "kind", "what"),
    [
        (
            P,
            a_record(P, token=Token("t")),
            "token",
            "task pp: it is pending and has the token t",
        ),
        (
            R,
            a_record(R, **{**RUN, "token": None}),
            "token",
            "task rr: it is running and has no token",
        ),
        (
            P,
            a_record(P, recoveries=4),
            "counts",
            "task pp: 0 attempts of 3, 4 recoveries of 3",
        ),
        (
            P,
            replace(a_record(P), client=False),
            "client_lease",
            "task pp: it is to run without a client, and has a client's lease",
        ),
    ],
)
def test_what_a_task_says_of_itself(task: TaskId, record: Record, kind: str, what: str) -> None:
    (found,) = inconsistencies(changed(task, record))
    assert (found.kind, found.what, found.mend) == (kind, what, f"cogrid task cancel {task}")


def test_a_token_that_two_tasks_have() -> None:
    found = changed(W, a_record(W, **RUN))
    held = replace(found, held={ESXI: (R, W)})
    assert ("token_twice", "esxi-1:1:1", "rr and ww run under one token") in told(held)


def test_more_runs_than_slots() -> None:
    two = a_worker(tasks=(R,), revoked=(Token("esxi-1:1:2"),))
    snapshot = a_snapshot(two, queues=(a_queue(SHARED),), queued_bytes=30)
    (found,) = inconsistencies(well(snapshot=snapshot))
    assert (found.kind, found.evidence) == ("slots", "1 runs and 1 not let go, 1 slots")
    other = replace(two, instance="esxi-2", revoked=())
    assert told(well(snapshot=replace(snapshot, workers=(other,)))) == [], "another process's run"


def test_bytes_that_are_miscounted() -> None:
    snapshot = a_snapshot(a_worker(tasks=(R,)), queues=(a_queue(SHARED),), queued_bytes=40)
    (found,) = inconsistencies(well(snapshot=snapshot))
    assert found.evidence == "40 bytes are counted, 30 bytes are in 3 open tasks"


def test_an_empty_queue_that_is_listed() -> None:
    snapshot = a_snapshot(
        a_worker(tasks=(R,)), queues=(a_queue(SHARED), a_queue(OWN, 0)), queued_bytes=30
    )
    assert told(well(snapshot=snapshot)) == [
        ("empty_queue", OWN, f"{OWN} is empty and in grid:queues")
    ]


def test_a_reading_that_was_cut_short_proves_no_absence() -> None:
    found = well(open=frozenset({P}), clients=frozenset(), cut=True)
    assert told(found) == []


def test_only_what_stays_wrong_in_the_same_way_counts() -> None:
    stays = Finding("misplaced", P, "one", "queue a", "")
    moved = Finding("misplaced", R, "two", "queue a", "")
    later = Finding("misplaced", R, "two", "queue b", "")
    assert in_both((stays, moved), (later, stays)) == (stays,)
