"""The life of one task, moment by moment."""

from __future__ import annotations

from cogrid.model.chat import Claimed, Delta, End, Entry, Moved, Reset, Usage
from cogrid.model.event import Event
from cogrid.model.names import WorkerId
from cogrid.model.record import Record
from cogrid.model.task import State
from cogrid.rules.timeline import Moment, timeline
from tests.build import NOW_MS, a_task

OWN, GPU = "tasks:cpu:esxi", "tasks:gpu:shared:gemma3:1b"


def an_event(at_ms: int, edge: str, worker: str = "", reason: str = "", n: int = 0) -> Event:
    return Event(f"{at_ms}-{n}", edge, "cb305e3a", worker, "", reason, at_ms)


INCIDENT = (
    an_event(1_000, "submitted", "esxi", OWN),
    an_event(17_000, "moved", "esxi", "ghost_pending registered, never polled for 17.2 s"),
    an_event(17_100, "claimed", "ai-core", GPU),
    an_event(20_000, "reaped", "ai-core", "zombie_running"),
    an_event(20_000, "claimed_again", "old", GPU, 1),
    an_event(23_000, "done", "old", "stop"),
)
LOG = (
    Entry("0-1", Moved("esxi", "ghost_pending", GPU)),
    Entry("17100-0", Claimed("ai-core", GPU)),
    Entry("17100-1", Reset("ai-core", "zombie_running", GPU)),
    Entry("20000-0", Claimed("old", GPU)),
    Entry("20000-7", Delta("said")),
    Entry("20000-8", End(State.DONE, "stop", Usage(completion_tokens=12, total_s=2.5))),
)
DONE = a_task(
    state=State.DONE, worker=WorkerId("old"), run=20_000, n=7, submitted_at_ms=1_000,
    claimed_at_ms=20_000, first_at_ms=20_800, finished_at_ms=23_000,
)  # fmt: skip


def test_the_incident_from_its_beginning_to_its_end() -> None:
    found = timeline(reversed(INCIDENT), Record(DONE), LOG)
    assert [(each.at_ms, each.what, each.told) for each in found] == [
        (1_000, "submitted", f"to {OWN}"),
        (
            17_000,
            "moved",
            f"from esxi's queue: ghost_pending registered, never polled for 17.2 s, to {GPU}",
        ),
        (17_100, "claimed", f"by ai-core from {GPU}"),
        (20_000, "reaped", f"from ai-core: zombie_running, to {GPU}"),
        (20_000, "claimed", f"again by old from {GPU}"),
        (20_800, "first text", "0.8 s after the claim"),
        (23_000, "done", "on old, stop, 12 tokens in 2.5 s"),
    ]


def test_a_task_that_is_gone_is_told_from_its_events() -> None:
    found = timeline(INCIDENT)
    assert [each.what for each in found] == [
        "submitted", "moved", "claimed", "reaped", "claimed", "done"
    ]  # fmt: skip
    assert found[1].queue == ""
    assert found[-1].told == "on old, stop"


def test_the_hash_fills_in_where_the_event_log_does_not_reach() -> None:
    found = timeline((), Record(DONE), LOG)
    assert [(each.at_ms, each.what) for each in found] == [
        (1_000, "submitted"),
        (20_000, "claimed"),
        (20_800, "first text"),
        (23_000, "done"),
    ]
    assert timeline((), Record(a_task())) == (Moment(NOW_MS - 1_000, "submitted"),)


def test_a_failure_says_why() -> None:
    message = "no alternative worker can serve model 'gemma3:1b'"
    log = (Entry("0-9", End(State.FAILED, message=message, code="no_home")),)
    failed = a_task(state=State.FAILED, finished_at_ms=NOW_MS)
    (found,) = [
        each
        for each in timeline([an_event(NOW_MS, "failed", "", "no_home")], Record(failed), log)
        if each.what == "failed"
    ]
    assert found.told == f"no_home, {message}"


def test_attempts_back_offs_and_what_was_handed_back() -> None:
    found = timeline(
        [
            an_event(1, "retried", "esxi", "engine said 500"),
            an_event(2, "promoted", "", OWN),
            an_event(3, "handed_back", "esxi"),
            an_event(4, "repaired", "", "due without a task"),
        ]
    )
    assert [each.told for each in found] == [
        "after a failed attempt on esxi: engine said 500",
        f"its back-off is over, it waits in {OWN}",
        "by esxi",
        "due without a task",
    ]


def test_what_an_operator_did_has_its_place() -> None:
    taken = Event("18000-0", "requeued", "cb305e3a", "ai-core", "token", "by ada@box", 18_000)
    waited = Event("19000-0", "requeued", "cb305e3a", "ai-core", "", "by ada@box", 19_000)
    log = (
        Entry("17100-1", Reset("ai-core", "operator", "tasks:gpu:old")),
        Entry("20000-1", Reset("old", "dead_worker", GPU)),
    )
    found = timeline((taken, waited, an_event(21_000, "reaped", "old", "dead_worker")), None, log)
    assert [(each.what, each.told) for each in found] == [
        ("requeued", "taken back from ai-core: by ada@box, to tasks:gpu:old"),
        ("requeued", "by ada@box"),
        ("reaped", f"from old: dead_worker, to {GPU}"),
    ]


def test_a_revived_letter_has_the_log_of_its_new_life_alone() -> None:
    events = (
        an_event(1_000, "reaped", "esxi", "dead_worker"),
        an_event(2_000, "dead", "esxi", "recoveries_spent"),
        an_event(3_000, "revived", "", "by ada@box"),
        an_event(4_000, "reaped", "old", "zombie_running"),
        an_event(5_000, "done", "ai-core", "stop"),
    )
    log = (
        Entry("3500-1", Reset("old", "zombie_running", GPU)),
        Entry("4500-8", End(State.DONE, "stop", Usage(completion_tokens=12, total_s=2.5))),
    )
    assert [(each.what, each.told) for each in timeline(events, None, log)] == [
        ("reaped", "from esxi: dead_worker"),
        ("dead", "on esxi, recoveries_spent"),
        ("revived", "by ada@box"),
        ("reaped", f"from old: zombie_running, to {GPU}"),
        ("done", "on ai-core, stop, 12 tokens in 2.5 s"),
    ]
