"""A fire drill: which fault is made, what must notice it, and by when."""

from __future__ import annotations

from enum import StrEnum

from cogrid.model.limits import Limits
from cogrid.model.task import Reason

MARGIN_TICKS = 2
"""A pass comes within one tick, and what it frees is claimed within another."""


class Fault(StrEnum):
    """What befalls the throw-away worker."""

    GHOST = "ghost"
    DEAD = "dead"
    ZOMBIE = "zombie"


NOTICED: dict[Fault, Reason] = {
    Fault.GHOST: Reason.GHOST_PENDING,
    Fault.DEAD: Reason.DEAD_WORKER,
    Fault.ZOMBIE: Reason.ZOMBIE_RUNNING,
}
"""The trigger that must fire."""

TOLD: dict[Fault, str] = {
    Fault.GHOST: "registers, renews its lease and never claims",
    Fault.DEAD: "claims a task and is gone",
    Fault.ZOMBIE: "claims a task, renews its lease and makes no progress",
}


def silence_s(limits: Limits) -> float:
    """How long the zombie may be silent before its progress is overdue. A real run has minutes; a
    drill need not."""
    return limits.block_s


def bound_s(fault: Fault, limits: Limits, hold_s: float) -> float:
    """Seconds from the fault until another worker must have the task. hold_s: for so long the
    reaper takes nothing back."""
    trigger_s = {
        Fault.GHOST: limits.ghost_after_s,
        Fault.DEAD: limits.lease_s,
        Fault.ZOMBIE: silence_s(limits),
    }[fault]
    return max(trigger_s, hold_s) + MARGIN_TICKS * limits.tick_s
