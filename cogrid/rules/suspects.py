"""Workers that renew and poll and are of no use all the same: the reverse of a ghost."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable

from cogrid.model.event import Event
from cogrid.model.finding import Finding
from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import OfferState, Worker, WorkerState
from cogrid.rules.counted import counted
from cogrid.rules.health import (
    is_dead,
    is_ghost,
    is_wedged,
    poll_evidence,
    registered_at_ms,
    wedged_evidence,
)
from cogrid.rules.idle import why_excluded
from cogrid.rules.mend import drain, pull, strike_off
from cogrid.rules.moment import Moment
from cogrid.rules.seen import WISH_DRAIN

WEDGED = "wedged"
FROZEN = "frozen_claims"
EXCLUDED = "excluded"
TWIN = "refused_twin"
KINDS = (WEDGED, FROZEN, EXCLUDED, TWIN)
"""The findings come in this order."""

REFUSED = "refused"
HELLO = "hello"
_HOSTS = re.compile(r"name held by (.*), asked by (.*)")


def suspects(snapshot: Snapshot, limits: Limits) -> tuple[Finding, ...]:
    """Workers that take and never produce, whose claim loop is frozen while every slot is taken,
    or that no rule ever hands anything."""
    found = (_suspect(worker, snapshot, limits) for worker in snapshot.workers)
    return tuple(sorted((each for each in found if each), key=_order))


def twins(events: Iterable[Event]) -> tuple[Finding, ...]:
    """Machines that asked for a name that another one holds, once for each pair. A process that was
    let in later is none: it waited for one to end that it has replaced. Nor is one that has asked
    once where the name is held on its own host: so does the one that was replaced, and ends."""
    every = tuple(events)
    let_in = {event.token: event.at_ms for event in every if event.edge == HELLO}
    asked = Counter(
        (event.worker, event.reason)
        for event in every
        if event.edge == REFUSED and let_in.get(event.token, 0) < event.at_ms
    )
    found = (_twin(*pair, n) for pair, n in asked.items() if n > 1 or not _on_one_host(pair[1]))
    return tuple(sorted(found, key=_order))


def _on_one_host(reason: str) -> bool:
    hosts = _HOSTS.fullmatch(reason)
    return hosts is not None and hosts[1] == hosts[2]


def _order(finding: Finding) -> tuple[int, str]:
    return KINDS.index(finding.kind), finding.subject


def _suspect(worker: Worker, snapshot: Snapshot, limits: Limits) -> Finding | None:
    at, now_ms = Moment.of(snapshot, limits), snapshot.taken_at_ms
    if not worker.known or is_dead(worker, now_ms) or is_ghost(worker, at):
        return None
    if is_wedged(worker, at):
        return _wedged(worker, now_ms)
    if now_ms >= at.hold_until_ms and _is_frozen(worker, now_ms, limits):
        return _frozen(worker, now_ms)
    ready = worker.state is WorkerState.READY and worker.wish.state != WISH_DRAIN
    rule = why_excluded(worker, now_ms, limits) if ready else ""
    return _excluded(worker, rule, now_ms) if rule else None


def _is_frozen(worker: Worker, now_ms: int, limits: Limits) -> bool:
    """A ghost whose slots are all taken: it renews, and has not claimed although it does that also
    when it is full. Its runs go on, but no new one will ever come."""
    if worker.state is not WorkerState.READY or worker.free:
        return False
    since_ms = max(worker.polled_at_ms, worker.freed_at_ms, registered_at_ms(worker))
    return now_ms - since_ms > limits.ghost_after_s * 1000


def _wedged(worker: Worker, now_ms: int) -> Finding:
    return Finding(
        WEDGED,
        worker.id,
        f"{worker.id} takes work and never produces any; restart its engine and the worker on "
        f"{worker.host or 'its host'}",
        f"{_host(worker)}; {wedged_evidence(worker, now_ms)}; "
        f"{worker.busy} of {worker.slots} slots taken",
        strike_off(worker.id),
        tuple(offer.name for offer in worker.offers),
    )


def _frozen(worker: Worker, now_ms: int) -> Finding:
    since_ms = worker.polled_at_ms or worker.freed_at_ms or registered_at_ms(worker)
    poll = f"no claim for {(now_ms - since_ms) / 1000:.1f} s" if since_ms else "never polled"
    return Finding(
        FROZEN,
        worker.id,
        f"{worker.id} renews its lease while its claim loop stands still; it takes nothing more "
        f"once its runs are over: restart it on {worker.host or 'its host'}",
        f"{_host(worker)}; {poll}; renewed {(now_ms - worker.beat_at_ms) / 1000:.1f} s ago, when "
        f"its claim loop had stood still for {worker.claim_age_ms / 1000:.1f} s; "
        f"{worker.busy} of {worker.slots} slots taken",
        drain(worker.id),
        tuple(worker.tasks),
    )


def _excluded(worker: Worker, rule: str, now_ms: int) -> Finding:
    missing = _missing(worker)
    return Finding(
        EXCLUDED,
        worker.id,
        f"{worker.id} polls and is handed nothing: {rule}; {_advice(worker)}",
        "; ".join(
            (
                _host(worker),
                poll_evidence(worker, now_ms),
                *(
                    f"{offer.name} {offer.state.value}{f': {offer.reason}' if offer.reason else ''}"
                    for offer in worker.offers
                ),
            )
        ),
        pull(missing[0], (worker.id,)) if missing else "",
        tuple(offer.name for offer in worker.offers),
    )


def _advice(worker: Worker) -> str:
    """What to do; a worker tries again by itself what its engine could not do."""
    where = worker.host or "its host"
    if worker.slots < 1:
        return f"start it on {where} with one slot or more"
    if not worker.offers:
        return f"give the engine on {where} a model"
    if _missing(worker):
        return "have it pull one of them"
    return f"put right on {where} what its engine says of them"


def _missing(worker: Worker) -> tuple[str, ...]:
    """Models that it could get from its engine."""
    if not worker.pulls:
        return ()
    return tuple(o.name for o in worker.offers if o.state is OfferState.MISSING)


def _twin(worker: str, reason: str, times: int) -> Finding:
    hosts = _HOSTS.fullmatch(reason)
    holder, other = hosts.groups() if hosts else ("another host", "a host")
    return Finding(
        TWIN,
        worker,
        f"host {other} runs a worker under the name {worker}, which {holder} holds; give it "
        f"another name there",
        f"refused {counted(times, 'time')} of late; {reason}",
        f"cogrid worker run --id {shlex.quote(f'{worker}-2')}",
    )


def _host(worker: Worker) -> str:
    return f"host {worker.host or 'unknown'}"
