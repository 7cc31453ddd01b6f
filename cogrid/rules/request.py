"""What routing takes and gives: the request, and a route or the lack of one."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from cogrid.model.names import Queue
from cogrid.model.task import Band, Kind, Task
from cogrid.rules.domain import GENERAL, Prompt

AUTO = "auto"
"""The model name that leaves the choice to the domain's list; so does no name at all."""

MODEL_CHARS = 256
"""A longer model name is a mistake; the longest in public registries are about 150."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What routing needs to know of a request. model: its normal name, ``auto`` or "". needs:
    of vision, tools, thinking. worker: asked for by name, or "". affinity: the worker that has
    this conversation's cache, or ""."""

    model: str = AUTO
    kind: Kind = Kind.CHAT
    needs: tuple[str, ...] = ()
    prompt: Prompt = field(default_factory=Prompt)
    worker: str = ""
    affinity: str = ""
    band: Band = Band.INTERACTIVE
    user: str = ""


def ask_of(task: Task) -> Ask:
    """What a task that was routed once asks for, when it is looked at again."""
    return Ask(model=task.model, kind=task.kind, needs=task.needs, band=task.band, user=task.user)


@dataclass(frozen=True, slots=True)
class Route:
    """queue: where the task goes. shared_queue: where it goes instead when the worker of an own
    queue turns out not to be ready. candidates: ids of those that may take it from ``queue``.
    expected_wait_s: at the measured rate, 0 where a slot is free or nothing was measured."""

    model: str
    domain: str
    queue: Queue
    shared_queue: Queue
    pool: str
    band: Band
    candidates: tuple[str, ...]
    expected_wait_s: float = 0.0
    reasons: tuple[str, ...] = ()


class NoRouteKind(StrEnum):
    """Why there is no queue for a request."""

    UNKNOWN_MODEL = "unknown_model"
    UNKNOWN_WORKER = "unknown_worker"
    NO_HOME = "no_home"
    BAD_REQUEST = "bad_request"


@dataclass(frozen=True, slots=True)
class NoRoute:
    """message: a sentence for the client. near: names that may have been meant."""

    kind: NoRouteKind
    message: str
    near: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    model: str = ""
    domain: str = GENERAL
