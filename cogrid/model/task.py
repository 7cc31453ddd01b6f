"""A task: one request on its way to an answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from cogrid.model.names import Queue, TaskId, Token, WorkerId


class State(StrEnum):
    """Where a task is. The last five are terminal, and final but for a dead letter that an operator
    revives."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    DEAD = "dead"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def terminal(self) -> bool:
        """True when nothing changes this task any more by itself."""
        return self in TERMINAL


TERMINAL = frozenset({State.DONE, State.FAILED, State.DEAD, State.CANCELLED, State.EXPIRED})

MOVES: dict[State, frozenset[State]] = {
    State.PENDING: frozenset({State.RUNNING, State.CANCELLED, State.EXPIRED, State.FAILED}),
    State.RUNNING: frozenset(
        {State.DONE, State.WAITING, State.PENDING, State.FAILED, State.DEAD, State.CANCELLED}
    ),
    State.WAITING: frozenset({State.PENDING, State.CANCELLED, State.FAILED}),
    **{state: frozenset() for state in TERMINAL},
    State.DEAD: frozenset({State.PENDING}),
}
"""The legal moves; docs/design/scripts.md tells who makes each, and a test compares the two."""


class Band(IntEnum):
    """Priority: a lower band is always served first. OPERATOR is that of chores alone."""

    OPERATOR = -1
    INTERACTIVE = 0
    BACKGROUND = 1
    BATCH = 2


class OnClose(StrEnum):
    """What happens when the last listening connection of a task closes."""

    CANCEL = "cancel"
    GRACE = "grace"
    """Nothing at once; cancelled when nobody listened for ``orphan_grace`` (Idempotency-Key)."""
    KEEP = "keep"
    """It runs on: there is no client's lease (``POST /task``, ``X-Cogrid-On-Close: keep``)."""


class Kind(StrEnum):
    """What a task asks for."""

    CHAT = "chat"
    GENERATE = "generate"
    EMBED = "embed"
    PULL = "pull"
    REMOVE = "remove"
    WARM = "warm"

    @property
    def chore(self) -> bool:
        """True for what an operator asks of one worker: it waits in that worker's own queue before
        everything else, takes no slot, never moves, and fails with its worker."""
        return self in CHORES


CHORES = frozenset({Kind.PULL, Kind.REMOVE, Kind.WARM})


class Reason(StrEnum):
    """Why a task was taken back from a worker or moved: a word for logs, events and answers."""

    DEAD_WORKER = "dead_worker"
    GHOST_PENDING = "ghost_pending"
    ZOMBIE_RUNNING = "zombie_running"
    RESTARTED = "restarted"
    NOT_READY = "not_ready"
    WORKER_FULL = "worker_full"
    BETTER_POOL = "better_pool"
    HANDED_BACK = "handed_back"
    ATTEMPT_FAILED = "attempt_failed"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Task:
    """The hash ``task:<id>``, as far as anybody but the scripts needs it.

    Stamps are Redis time in ms, None where it has not happened. ``queue`` is where the task is
    pending or was last. ``run`` is the number of the last claim (0: never claimed), ``n`` the
    last text entry of that run. ``needs``: what a worker must support (vision, tools, thinking).
    """

    id: TaskId
    kind: Kind
    state: State
    queue: Queue
    model: str
    domain: str
    user: str
    band: Band
    attempts: int
    recoveries: int
    run: int
    n: int
    token: Token | None
    worker: WorkerId | None
    avoid: WorkerId | None
    solo: bool
    streamed: bool
    reason: str
    submitted_at_ms: int
    queued_at_ms: int | None
    claimed_at_ms: int | None
    first_at_ms: int | None
    finished_at_ms: int | None
    error: str
    needs: tuple[str, ...] = ()
