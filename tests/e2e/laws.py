"""What must hold of a grid that has come to rest, read from Redis alone.

Every ``client`` here answers in text (``decode_responses``).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from cogrid.model.task import State
from cogrid.store.events import Event
from tests.key_leaks import leaks

ENDS = frozenset(state.value for state in State if state.terminal)


def open_work(client: Any) -> list[str]:
    """Why the grid is not at rest: tasks that are open, slots that are taken."""
    found = [f"task {task} is open" for task in client.zrange("grid:due", 0, -1)]
    for worker in client.zrange("grid:workers", 0, -1):
        for kind in ("tasks", "revoked"):
            held = client.smembers(f"worker:{worker}:{kind}")
            found += [f"{worker}:{kind} holds {each}" for each in held]
    return found


def violations(client: Any, events: list[Event]) -> list[str]:
    """Everything that is wrong in a grid at rest."""
    found = [*leaks(client), *_history(events)]
    for name in client.scan_iter("task:*", count=1000):
        if name.endswith(":out"):
            found += _log(client, name)
        elif name.count(":") == 1:
            state = client.hget(name, "state")
            if state is not None and state not in ENDS:
                found.append(f"{name} is {state}")
    if client.zcard("grid:queues"):
        found.append(f"queues are not empty: {client.zrange('grid:queues', 0, -1)}")
    if client.zcard("grid:clients"):
        found.append(f"clients are left: {client.zrange('grid:clients', 0, -1)}")
    queued = client.hget("grid:totals", "queued_bytes")
    if int(queued or 0) != 0:
        found.append(f"queued_bytes is {queued!r}")
    return found


def _history(events: list[Event]) -> list[str]:
    """Each task that was submitted ended once; nothing had to be repaired."""
    ends = Counter(event.task for event in events if event.edge in ENDS)
    submitted = {event.task for event in events if event.edge == "submitted"}
    found = [f"task {task} ended {ends[task]} times" for task in submitted if ends[task] != 1]
    found += [f"repaired: {event}" for event in events if event.edge == "repaired"]
    runs = Counter(event.token for event in events if event.edge in ("claimed", "claimed_again"))
    found += [f"token {token} was handed out {n} times" for token, n in runs.items() if n > 1]
    return found


def _log(client: Any, name: str) -> list[str]:
    """One end, behind everything else; the text of each run numbered without a gap."""
    entries = client.xrange(name)
    kinds = [fields["kind"] for _, fields in entries]
    if not entries:
        return []  # its time ran out just now
    found = []
    if kinds.count("end") != 1 or kinds[-1] != "end":
        found.append(f"{name}: {kinds}")
    texts: dict[str, list[int]] = {}
    for entry_id, fields in entries:
        run, _, number = entry_id.partition("-")
        if fields["kind"] == "text":
            texts.setdefault(run, []).append(int(number))
    found += [
        f"{name}: run {run} has text {numbers}"
        for run, numbers in texts.items()
        if numbers != list(range(1, len(numbers) + 1))
    ]
    return found
