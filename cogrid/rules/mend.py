"""The command lines that findings name: what an operator pastes to mend it, or to see more."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

REAP = "cogrid reaper --once"
RUN_DEMO = "cogrid worker run --engine demo"
"""A worker with the built-in model; with another name where one runs on that machine already."""


def drain(worker: str) -> str:
    """Until somebody has restarted it nothing more is routed there."""
    return f"cogrid worker drain {shlex.quote(worker)}"


def forget(worker: str) -> str:
    """Its hash and its name go."""
    return f"cogrid worker forget {shlex.quote(worker)}"


def strike_off(worker: str) -> str:
    """The same for one that still renews: its process is void, and a service starts a new one."""
    return f"{forget(worker)} --force"


def show(worker: str) -> str:
    """Everything that is known of it."""
    return f"cogrid worker show {shlex.quote(worker)}"


def cancel(*tasks: str) -> str:
    """They end, and their clients are told."""
    return f"cogrid task cancel {shlex.join(tasks)}"


def purge(task: str) -> str:
    """One that has ended goes before its time."""
    return f"cogrid task purge {shlex.quote(task)}"


def pull(model: str, workers: Iterable[str]) -> str:
    """They get the model, and serve it from then on; "" for nobody."""
    words = [word for worker in workers for word in ("--worker", worker)]
    return f"cogrid model pull {shlex.join((model, *words))}" if words else ""


def unlearn(model: str) -> str:
    """The grid asks no more for a model that nobody has."""
    return f"cogrid model forget {shlex.quote(model)}"


def cancel_all(model: str) -> str:
    """Everything that waits for the model ends, and the clients are told."""
    return f"cogrid task cancel --model {shlex.quote(model)}"


def spof(model: str) -> str:
    """Who can serve the model, and what to do for a second one."""
    return f"cogrid spof --fix --model {shlex.quote(model)}"
