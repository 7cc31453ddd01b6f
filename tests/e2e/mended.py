"""What a finding prints as its cure is run as it is printed, and then the finding is gone."""

from __future__ import annotations

import asyncio
import shlex
import time

from cogrid.model.finding import Finding
from cogrid.model.limits import Limits
from cogrid.ops.diagnose import About, diagnose
from cogrid.ops.spof import spof, without
from cogrid.rules.drift import drift
from cogrid.store.client import Store
from cogrid.store.snapshot import read_snapshot
from tests.e2e.grid import Grid

BY_PROCESSES = (
    "frozen_claims",
    "excluded",
    "refused_twin",
    "stuck_no_home",
    "no_home",
    "single_worker",
    "single_host",
    "lost_model",
    "left_with_one",
    "drift",
)
"""The kinds of findings that tests of whole grids bring about and mend."""


async def found(grid: Grid, kind: str, ask: str, subject: str = "") -> list[Finding]:
    """Findings of this kind. ask: what finds them, as on the command line; it is asked in this
    process, since a look is taken often. subject: "" for all."""
    findings = await asyncio.to_thread(_look, grid.store, grid.limits, *ask.split())
    return [each for each in findings if each.kind == kind and subject in ("", each.subject)]


def _look(store: Store, limits: Limits, verb: str, *words: str) -> tuple[Finding, ...]:
    match verb, *words:
        case "diagnose", what:
            return diagnose(store, limits, About(what), time.sleep).findings
        case "spof", "--without", worker:
            return without(store, limits, (worker,), ()).findings
        case "spof", "--model", model:
            return spof(store, limits, model).findings
        case ("spof",):
            return spof(store, limits).findings
        case ("drift",):
            return drift(store.read(read_snapshot(store.keys, info=False)))
    raise AssertionError(f"nobody finds anything by {verb} {words}")


async def mend(
    grid: Grid, kind: str, ask: str, subject: str = "", *, code: int = 0, gone: bool = True
) -> str:
    """Run the command of the one finding of this kind, and say yes. gone: False where the finding
    is only another one then. Returns the command."""
    (before,) = await found(grid, kind, ask, subject)
    done = await grid.on_terminal(*command(before), typed="y\n")
    assert done.code == code, done.out
    after = await found(grid, kind, ask, subject)
    assert after != [before]
    assert bool(after) is not gone, after
    return before.mend


def command(finding: Finding) -> list[str]:
    """The words behind ``cogrid`` of the command that it prints."""
    name, *words = shlex.split(finding.mend)
    assert name == "cogrid", finding
    return words
