"""Models that have one name and are not the same everywhere."""

from __future__ import annotations

from cogrid.model.finding import Finding
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import OfferState
from cogrid.rules.mend import pull

DRIFT = "drift"
DIGEST_CHARS = 12
"""As many characters of a digest are shown as ollama itself shows."""


def drift(snapshot: Snapshot) -> tuple[Finding, ...]:
    """A finding for each model whose workers have different digests. Engines that tell none are
    left out."""
    found: dict[str, dict[str, list[str]]] = {}
    for worker in snapshot.workers:
        for offer in worker.offers:
            if offer.digest and offer.state is not OfferState.MISSING:
                digests = found.setdefault(offer.name, {})
                digests.setdefault(offer.digest, []).append(worker.id)
    return tuple(
        _finding(model, digests, snapshot)
        for model, digests in sorted(found.items())
        if len(digests) > 1
    )


def _finding(model: str, digests: dict[str, list[str]], snapshot: Snapshot) -> Finding:
    groups = sorted(digests.items(), key=lambda each: (-len(each[1]), each[0]))
    minority = [worker for _, workers in groups[1:] for worker in workers]
    able = {worker.id for worker in snapshot.workers if worker.pulls}
    return Finding(
        DRIFT,
        model,
        f"{model} is not the same on every worker; pull it again on {', '.join(minority)}",
        "; ".join(f"{digest[:DIGEST_CHARS]} on {', '.join(workers)}" for digest, workers in groups),
        pull(model, (worker for worker in minority if worker in able)),
        tuple(minority),
    )
