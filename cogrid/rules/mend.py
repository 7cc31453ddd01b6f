"""The command lines that findings name: what an operator pastes to mend it, or to see more."""

from __future__ import annotations

import shlex

REAP = "cogrid reaper --once"


def drain(worker: str) -> str:
    """Until somebody has restarted it nothing more is routed there."""
    return f"cogrid worker drain {shlex.quote(worker)}"


def forget(worker: str) -> str:
    """Its hash and its name go."""
    return f"cogrid worker forget {shlex.quote(worker)}"


def show(worker: str) -> str:
    """Everything that is known of it."""
    return f"cogrid worker show {shlex.quote(worker)}"


def spof(model: str) -> str:
    """Who can serve the model, and what to do for a second one."""
    return f"cogrid spof --fix --model {shlex.quote(model)}"
