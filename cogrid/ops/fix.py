"""Pulls that end single points of failure, planned, and looked at afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from cogrid.model.finding import Finding
from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.model.task import Kind
from cogrid.ops.chores import Step, Wanted
from cogrid.ops.found import the_model
from cogrid.rules.fix import Fix, Pull, Unfixed, fix
from cogrid.rules.spof import single_points
from cogrid.store.client import Store
from cogrid.store.snapshot import read_snapshot

LOOK_S = 0.25
"""Between two looks whether the grid knows of what was pulled."""
KNOWN_WITHIN_S = 30.0
"""A worker tells at once what it serves; this is a renewal that was lost, and some."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """pulls: the plan. unfixed: models that it leaves as they are. exact: no smaller plan leaves
    fewer. by: null in a dry run. chores: how each pull ended. findings: what spof still finds."""

    dry_run: bool
    by: str | None
    pulls: tuple[Pull, ...]
    unfixed: tuple[Unfixed, ...]
    exact: bool
    chores: tuple[Step, ...] = ()
    findings: tuple[Finding, ...] = ()


def plan_fix(store: Store, limits: Limits, model: str | None = None) -> Fix:
    """The pulls for one model or for all. NotFoundError for one that the grid does not know."""
    snapshot = _read(store)
    return fix(snapshot, limits, the_model(snapshot, model) if model else None)


def wanted(plan: Fix) -> tuple[Wanted, ...]:
    """The plan as chores."""
    return tuple(Wanted(Kind.PULL.value, pull.model, pull.worker) for pull in plan.pulls)


def left(
    store: Store,
    limits: Limits,
    model: str | None,
    pulled: Collection[str],
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Finding, ...]:
    """What spof finds, once it no longer finds the models that were pulled, or after
    KNOWN_WITHIN_S."""
    end_s = clock() + KNOWN_WITHIN_S
    while True:
        snapshot = _read(store)
        named = the_model(snapshot, model) if model else None
        found = single_points(snapshot, limits, named)
        if not {finding.subject for finding in found} & set(pulled) or clock() >= end_s:
            return found
        sleep(LOOK_S)


def _read(store: Store) -> Snapshot:
    return store.read(read_snapshot(store.keys, info=False))
