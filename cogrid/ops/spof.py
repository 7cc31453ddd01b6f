"""Single points of failure: models that one worker or one host alone can serve."""

from __future__ import annotations

from cogrid.model.finding import Finding
from cogrid.model.limits import Limits
from cogrid.rules.spof import single_points
from cogrid.store.client import Store
from cogrid.store.snapshot import read_snapshot


def spof(store: Store, limits: Limits, model: str | None = None) -> tuple[Finding, ...]:
    """The findings, of one model or of all."""
    return single_points(store.read(read_snapshot(store.keys, info=False)), limits, model)
