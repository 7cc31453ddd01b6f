"""What waits for each model."""

from __future__ import annotations

from collections import Counter

from cogrid.model.snapshot import Snapshot
from cogrid.model.task import State


def queued(snapshot: Snapshot) -> Counter[str]:
    """Model -> tasks that wait for it: all in its shared queues, and of those in workers' own
    queues the ones that were read."""
    found: Counter[str] = Counter()
    for queue in snapshot.queues:
        if queue.model:
            found[queue.model] += queue.depth
    own = {queue.name for queue in snapshot.queues if queue.worker}
    for task in snapshot.tasks:
        if task.state is State.PENDING and task.queue in own:
            found[task.model] += 1
    return found
