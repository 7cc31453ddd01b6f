"""What is wrong, before the reaper acts: the same rules on the same readings, nothing written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from cogrid.model.event import Event
from cogrid.model.finding import Finding
from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.model.task import Task
from cogrid.ops.doubt import fleet_unknown
from cogrid.ops.events import newest_first
from cogrid.rules.consistency import in_both, inconsistencies
from cogrid.rules.ghosts import DEAD, LEFTOVER, gone
from cogrid.rules.ghosts import ghosts as find_ghosts
from cogrid.rules.grid import Grid
from cogrid.rules.seen import as_wished
from cogrid.rules.stuck import stuck as find_stuck
from cogrid.rules.suspects import WEDGED, suspects, twins
from cogrid.rules.zombie_runs import zombie_runs
from cogrid.store.client import Store
from cogrid.store.due import read_due
from cogrid.store.gaps import FLEET, LISTS, Part
from cogrid.store.inventory import read_inventory
from cogrid.store.reading import Reading
from cogrid.store.snapshot import read_snapshot
from cogrid.store.task_hashes import read_tasks, read_waiting

DUE = 1_000
"""Tasks that are due, of which one diagnosis looks at so many."""
HEADS = 100
"""Tasks that are looked at in each of the deepest queues."""
DEEPEST = 50
"""So many queues are looked into; of the others, at their heads."""
LOOKS = 10_000
"""Queues that are looked at at all."""
TWIN_LEASES = 2.1
"""A machine whose name is refused asks again when the lease ends that it was refused for. So in
this many it asks twice at least; silent for them, it has another name or is gone."""
TWIN_EVENTS = 10_000
"""Events that are looked through for them."""
PAUSE_S = 0.2
"""Between two inventories: longer than any script, shorter than a run."""
AGAIN = 2
"""So many further inventories must agree with what looks wrong in the first."""


class About(StrEnum):
    """What is diagnosed."""

    ALL = "all"
    GHOSTS = "ghosts"
    ZOMBIES = "zombies"
    DEAD = "dead"
    STUCK = "stuck"
    CONSISTENCY = "consistency"


_WAITING = frozenset({Part.OPEN, Part.TASKS, Part.QUEUES, Part.QUEUED})
NEEDED: dict[About, frozenset[Part]] = {
    About.GHOSTS: FLEET,
    About.DEAD: FLEET,
    About.ZOMBIES: FLEET | {Part.OPEN, Part.TASKS},
    About.STUCK: FLEET | _WAITING | {Part.MODELS},
    About.CONSISTENCY: FLEET | LISTS | _WAITING | {Part.CLIENTS, Part.TOTALS},
}
"""What each is told by; where some of that is hidden nothing may be concluded."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """findings: what is wrong, the evidence, and the command that mends. notes: what could not be
    looked at, in sentences."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()


def diagnose(
    store: Store, limits: Limits, about: About, sleep: Callable[[float], None]
) -> Diagnosis:
    """Look for what is wrong. sleep: between readings that have to agree."""
    snapshot = store.read(read_snapshot(store.keys, stray=True, info=False))
    notes: tuple[str, ...] = ()
    if snapshot.scan_cut:
        notes += ("the search for left-over worker hashes was cut short",)
    found: list[Finding] = []
    if about in (About.ALL, About.GHOSTS) and not fleet_unknown(store.unread):
        found += ghosts(snapshot, limits, _recent(store, snapshot, limits))
    if about in (About.ALL, About.DEAD) and not fleet_unknown(store.unread):
        found += _dead(snapshot, limits, about)
    if about in (About.ALL, About.ZOMBIES, About.STUCK):
        due = store.read(_read_due(store, snapshot))
        if about is not About.STUCK and not store.unread & NEEDED[About.ZOMBIES]:
            found += _zombies(due, snapshot, limits, about)
        if about is not About.ZOMBIES:
            stuck = _stuck(store, due, snapshot, limits)
            found += () if store.unread & NEEDED[About.STUCK] else stuck
    if about in (About.ALL, About.CONSISTENCY):
        checked = consistency(store, sleep)
        found += checked.findings
        notes += checked.notes
    return Diagnosis(tuple(found), notes + tuple(_left_out(store, about)))


def ghosts(
    snapshot: Snapshot, limits: Limits, events: tuple[Event, ...] = ()
) -> tuple[Finding, ...]:
    """Workers that look alive and are not; and those that live and are of no use."""
    return (*find_ghosts(snapshot, limits), *suspects(snapshot, limits), *twins(events))


def consistency(store: Store, sleep: Callable[[float], None]) -> Diagnosis:
    """What does not agree, in the same way, in several inventories: a grid at work moves on while
    it is read."""
    inventory = store.read(read_inventory(store.keys))
    if store.unread & NEEDED[About.CONSISTENCY]:
        return Diagnosis(())
    found, cut = inconsistencies(inventory), inventory.cut
    for _ in range(AGAIN):
        if not found:
            break
        sleep(PAUSE_S)
        inventory = store.read(read_inventory(store.keys))
        found = in_both(found, inconsistencies(inventory))
    note = "there is more than one diagnosis looks at: 10,000 open tasks were compared"
    return Diagnosis(found, (note,) if cut else ())


def _left_out(store: Store, about: About) -> Iterator[str]:
    """What was not looked for, since it would be told by what our user may not read."""
    for each, needed in NEEDED.items():
        if about in (About.ALL, each) and store.unread & needed:
            hidden = ", ".join(sorted(store.unread & needed))
            yield f"{each} could not be looked for without {hidden}"


def _dead(snapshot: Snapshot, limits: Limits, about: About) -> list[Finding]:
    """ghosts has those that hold work already."""
    holding = [each for each in find_ghosts(snapshot, limits) if each.kind in (DEAD, LEFTOVER)]
    rest = list(gone(snapshot, limits))
    return rest if about is About.ALL else [*holding, *rest]


def _zombies(
    due: tuple[tuple[Task, int], ...], snapshot: Snapshot, limits: Limits, about: About
) -> list[Finding]:
    """ghosts has the wedged workers already."""
    runs = list(zombie_runs(due, snapshot))
    wedged = [each for each in suspects(snapshot, limits) if each.kind == WEDGED]
    return runs if about is About.ALL else [*runs, *wedged]


def _stuck(
    store: Store, due: tuple[tuple[Task, int], ...], snapshot: Snapshot, limits: Limits
) -> tuple[Finding, ...]:
    seen = as_wished(snapshot)
    names = [queue.name for queue in sorted(seen.queues, key=lambda queue: -queue.depth)]
    deepest, rest = names[:DEEPEST], names[DEEPEST:LOOKS]
    waiting = store.read(read_waiting(store.keys, deepest, HEADS))
    waiting |= store.read(read_waiting(store.keys, rest, 1))
    return find_stuck(waiting, due, Grid.of(seen, limits), limits)


def _read_due(store: Store, snapshot: Snapshot) -> Reading[tuple[tuple[Task, int], ...]]:
    due = yield from read_due(store.keys, snapshot.taken_at_ms, DUE)
    tasks = yield from read_tasks(store.keys, (task for task, _ in due.tasks))
    return tuple((task, at_ms) for name, at_ms in due.tasks if (task := tasks[name]))


def _recent(store: Store, snapshot: Snapshot, limits: Limits) -> tuple[Event, ...]:
    since_ms = snapshot.taken_at_ms - round(TWIN_LEASES * limits.lease_s * 1000)
    return tuple(
        event for event in islice(newest_first(store, since_ms, TWIN_EVENTS), TWIN_EVENTS) if event
    )
