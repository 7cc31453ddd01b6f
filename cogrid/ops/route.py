"""Where a prompt would go: the coordinator's own decision on a snapshot read now."""

from __future__ import annotations

from dataclasses import dataclass

from cogrid.model.limits import Limits
from cogrid.model.names import normal_model
from cogrid.rules.domain import Prompt
from cogrid.rules.route import Ask, NoRoute, Routing, route
from cogrid.store.client import Store
from cogrid.store.gaps import FLEET, Part
from cogrid.store.snapshot import read_snapshot


@dataclass(frozen=True, slots=True)
class Routed:
    """queue: None where there is no way, then error says why. workers: who may take it there."""

    domain: str
    model: str
    queue: str | None
    pool: str | None
    workers: tuple[str, ...]
    expected_wait_s: float | None
    reasons: tuple[str, ...]
    error: str | None = None
    near: tuple[str, ...] = ()


def route_prompt(
    store: Store, routing: Routing, limits: Limits, prompt: str, model: str, worker: str
) -> Routed:
    """Route a chat that consists of this prompt."""
    asked = Ask(model=normal_model(model), prompt=Prompt(prompt, len(prompt)), worker=worker)
    snapshot = store.read(read_snapshot(store.keys))
    store.demand(FLEET)
    found = route(asked, snapshot, routing, limits)
    if isinstance(found, NoRoute):
        store.demand((Part.MODELS,))
        return Routed(
            found.domain,
            found.model,
            None,
            None,
            (),
            None,
            found.reasons,
            found.message,
            found.near,
        )
    return Routed(
        found.domain,
        found.model,
        found.queue,
        found.pool,
        tuple(found.candidates),
        found.expected_wait_s,
        found.reasons,
    )
