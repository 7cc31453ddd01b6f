"""What a plan is made from beside the look at the host."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the operator allows. upgrade: install what this side has, also over the same version.
    replace: workers that were found there. force: over what somebody edited. rollback: instead of
    all that, go back to the cogrid that ran there before."""

    upgrade: bool = False
    replace: bool = False
    force: bool = False
    rollback: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """cogrid on the host and what would come. there: the installation that units use, "" for none.
    coming: the one that would be installed, "" where there is no need. needed_bytes: for it."""

    there: str = ""
    coming: str = ""
    packages: int = 0
    packed_bytes: int = 0
    needed_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What the grid knows of the worker of that name. alive: its lease runs. host: where. polls:
    it has claimed lately. runs: tasks at work. instance: which process of that name."""

    alive: bool = False
    host: str = ""
    polls: bool = False
    runs: int = 0
    instance: str = ""
