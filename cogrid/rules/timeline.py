"""The life of one task, moment by moment, from the event log, its own log and its hash."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cogrid.model.chat import End, Entry, Moved, Reset
from cogrid.model.event import Event
from cogrid.model.record import Record
from cogrid.model.task import TERMINAL

SUBMITTED = "submitted"
_TERMINAL = {str(state) for state in TERMINAL}
_CLAIMED = ("claimed", "claimed_again")
_RESETS = ("reaped", "handed_back", "retried")
REVIVED = "revived"
REQUEUED = "requeued"


@dataclass(frozen=True, slots=True)
class Moment:
    """at_ms: Redis time. what: a word, such as ``claimed``. told: the rest of the sentence."""

    at_ms: int
    what: str
    told: str = ""
    worker: str = ""
    queue: str = ""
    reason: str = ""


def timeline(
    events: Iterable[Event], record: Record | None = None, log: tuple[Entry, ...] = ()
) -> tuple[Moment, ...]:
    """Moments in their order. events: of this task, in any order. record, log: None and () where
    the task itself is gone. Where the event log does not reach back, the hash fills in."""
    told = list(_lives(sorted(events, key=_when), log))
    if record:
        told += _from_hash(record, log, {moment.what for moment in told})
    return tuple(sorted(told, key=lambda moment: moment.at_ms))


def _when(event: Event) -> tuple[int, int]:
    at, _, n = event.id.partition("-")
    return int(at), int(n or 0)


def _lives(events: list[Event], log: tuple[Entry, ...]) -> Iterator[Moment]:
    """A dead letter that was revived began a new log; of its lives before only the events tell."""
    revivals = [at for at, event in enumerate(events) if event.edge == REVIVED]
    last = revivals[-1] if revivals else 0
    yield from _from_events(events[:last], ())
    yield from _from_events(events[last:], log)


def _from_events(events: list[Event], log: tuple[Entry, ...]) -> Iterator[Moment]:
    """Resets and moves stand in both logs in the same order; the task's own has the queue."""
    moves = iter([entry.item for entry in log if isinstance(entry.item, Moved)])
    resets = iter([entry.item for entry in log if isinstance(entry.item, Reset)])
    ends = [entry.item for entry in log if isinstance(entry.item, End)]
    for event in events:
        at_ms, edge, worker, reason = event.at_ms, event.edge, event.worker, event.reason
        if edge == SUBMITTED or edge in _CLAIMED:
            yield _placed(at_ms, edge, worker, reason)
        elif edge == "moved":
            move = next(moves, None)
            yield _on(at_ms, edge, worker, reason, move.queue if move else "")
        elif edge in _RESETS or (edge == REQUEUED and event.token):
            reset = next(resets, None)
            yield _on(at_ms, edge, worker, reason, reset.queue if reset else "")
        elif edge == "promoted":
            yield Moment(at_ms, edge, f"its back-off is over, it waits in {reason}", queue=reason)
        elif edge in _TERMINAL:
            yield _ended(at_ms, edge, worker, reason, ends[-1] if ends else None)
        else:
            yield Moment(at_ms, edge, reason, worker, reason=reason)


def _placed(at_ms: int, edge: str, worker: str, queue: str) -> Moment:
    if edge == SUBMITTED:
        return Moment(at_ms, edge, f"to {queue}" if queue else "", queue=queue)
    again = "again " if edge == "claimed_again" else ""
    return Moment(at_ms, "claimed", f"{again}by {worker} from {queue}", worker, queue)


def _on(at_ms: int, edge: str, worker: str, reason: str, queue: str) -> Moment:
    """It left a worker or a queue and goes on elsewhere."""
    said = {
        "moved": "from {worker}'s queue" if worker else "from a shared queue",
        "reaped": "from {worker}",
        "handed_back": "by {worker}",
        "retried": "after a failed attempt on {worker}",
        REQUEUED: "taken back from {worker}",
    }[edge].format(worker=worker)
    because = f": {reason}" if reason else ""
    to = f", to {queue}" if queue else ""
    return Moment(at_ms, edge, f"{said}{because}{to}", worker, queue, reason)


def _ended(at_ms: int, edge: str, worker: str, reason: str, end: End | None) -> Moment:
    parts = [f"on {worker}" if worker else "", reason]
    if end and end.message:
        parts.append(end.message)
    if end and end.usage.completion_tokens:
        parts.append(f"{end.usage.completion_tokens} tokens in {end.usage.total_s:.1f} s")
    return Moment(at_ms, edge, ", ".join(filter(None, parts)), worker, reason=reason)


def _from_hash(record: Record, log: tuple[Entry, ...], known: set[str]) -> Iterator[Moment]:
    task = record.task
    if SUBMITTED not in known:
        yield _placed(task.submitted_at_ms, SUBMITTED, "", "")
    if task.claimed_at_ms and "claimed" not in known:
        yield _placed(task.claimed_at_ms, "claimed", task.worker or "", task.queue)
    if task.first_at_ms and task.claimed_at_ms:
        after_s = (task.first_at_ms - task.claimed_at_ms) / 1000
        yield Moment(task.first_at_ms, "first text", f"{after_s:.1f} s after the claim")
    if task.finished_at_ms and task.state.value not in known:
        end = next((each.item for each in log if isinstance(each.item, End)), None)
        yield _ended(task.finished_at_ms, task.state, task.worker or "", record.code, end)
