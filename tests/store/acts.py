"""Each transition once, in a state in which it writes all that it can: what is broken in the
middle, or measured, is taken from here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cogrid.model.names import Queue, TaskId, Token, WorkerId
from cogrid.model.task import Band, Kind, OnClose
from cogrid.model.worker import Offer, Wish, WorkerState
from cogrid.store.administration import forget_model, note, purge, requeue, revive
from cogrid.store.clients import attach, detach, limit, renew_clients
from cogrid.store.keys import Keys
from cogrid.store.passes import (
    begin_pass,
    drop_held,
    drop_queued,
    expire,
    fail_homeless,
    move,
    promote,
    reap,
    stamp_homes,
    tend,
)
from cogrid.store.script import Call
from cogrid.store.tasks import (
    INLINE_BYTES,
    Claim,
    Outcome,
    Submission,
    append,
    cancel,
    cancel_orphan,
    claim,
    finish,
    submit,
    withdraw,
)
from cogrid.store.workers import Held, Life, Who, forget, hello, renew, wish
from tests.build import NOW_MS
from tests.store import seed
from tests.store.seed import MODEL, OWN, SHARED, Seed
from tests.store.world import LIMITS, REPLICATION_ID, RUN_ID

T1, T2, ESXI = TaskId("t1"), TaskId("t2"), WorkerId("esxi")
TOKEN = Token("esxi1:1:1")
SHARED_QUEUE, OWN_QUEUE = Queue(SHARED), Queue(OWN)
NEXT = Claim(ESXI, "esxi1", 2, 2, ((OWN, False), (SHARED, True)), 90_000)
LARGE = b"x" * (INLINE_BYTES + 1)
USAGE = b'{"prompt_tokens":3,"completion_tokens":4}'


@dataclass(frozen=True, slots=True)
class Act:
    """seeds: the state before. call: the transition, for these keys."""

    seeds: tuple[Seed, ...]
    call: Callable[[Keys], Call[Any]]

    @property
    def script(self) -> str:
        return self.call(Keys()).name


def _submission(queue: Queue) -> Submission:
    return Submission(id=T1, kind=Kind.CHAT, model=MODEL, queue=queue, shared=SHARED_QUEUE,
                      body=seed.BODY, user="ada", follower="c1:1")  # fmt: skip


def _life(keys: Keys) -> Call[Any]:
    held = (Held(T1, TOKEN, 0, 30_000), Held(TaskId("gone"), Token("esxi1:2:1"), 0, 30_000))
    life = Life(WorkerState.READY, (Offer(MODEL),), ("cpu_inference",), 4, 5, 3, held, 20_000)
    return renew(keys, ESXI, "esxi1", "lock-esxi", life)


RUNNING = (seed.mark(), seed.worker(slots=4, tasks=("t1",)),
           seed.running("t1", followers="c1:1", recoveries=1))  # fmt: skip
DEAD = (seed.mark(), seed.worker(slots=4, lease_ms=-1, tasks=("t1",)))
CHORE: dict[str, Any] = {"kind": "pull", "band": -1, "client": 0, "max_attempts": 1}
DOING = (seed.mark(), seed.worker(slots=4), seed.running("t1", queue=OWN, **CHORE))
BOTH = (seed.pending("t2", turn=1), seed.pending("t3", turn=2, seq=2),
        seed.pending("t4", turn=3, seq=3))  # fmt: skip
GHOST = dict.fromkeys(("polled_at", "freed_at", "hello_at"), str(NOW_MS - 16_000))

ACTS: dict[str, Act] = {
    "submit": Act((seed.mark(),), lambda k: submit(k, _submission(SHARED_QUEUE))),
    "submit to a worker": Act(
        (seed.mark(), seed.worker()), lambda k: submit(k, _submission(OWN_QUEUE))
    ),
    "submit a large body": Act(
        (seed.mark(), lambda client, keys: client.set(keys.body_beside("t1", "7c"), LARGE, ex=60)),
        lambda k: submit(k, replace(_submission(SHARED_QUEUE), body=LARGE, ticket="7c")),
    ),
    "submit a chore": Act((seed.mark(), seed.worker()), lambda k: submit(k, replace(
        _submission(OWN_QUEUE), kind=Kind.PULL, band=Band.OPERATOR, on_close=OnClose.KEEP))),
    "claim a chore": Act(
        (seed.mark(), seed.worker(tasks=("r1",)), seed.running("r1"),
         seed.pending("t1", queue=OWN, **CHORE), seed.pending("t2")), lambda k: claim(k, NEXT)),
    "finish a chore": Act(DOING, lambda k: finish(
        k, ESXI, T1, TOKEN, Outcome("done", 1, b"a"))),
    "cancel a chore": Act(DOING, lambda k: cancel(k, T1, "by hand")),
    "reap a chore": Act((*DOING, seed.worker(lease_ms=-1)), lambda k: reap(
        k, T1, TOKEN, SHARED_QUEUE, "gone", "spent", RUN_ID, LIMITS)),
    "move a chore": Act(
        (seed.mark(), seed.worker(lease_ms=-1), seed.pending("t1", queue=OWN, **CHORE)),
        lambda k: move(k, T1, OWN_QUEUE, SHARED_QUEUE, "", RUN_ID, LIMITS)),
    "attach": Act(RUNNING, lambda k: attach(k, T1, "c2:1", 60_000)),
    "detach": Act(RUNNING, lambda k: detach(k, T1, "c1:1")),
    "renew clients": Act(RUNNING, lambda k: renew_clients(k, (T1,), 60_000)),
    "limit": Act((seed.mark(),), lambda k: limit(k, "abc", 10)),
    "hello": Act((seed.mark(),), lambda k: hello(
        k, Who(ESXI, "esxi1", "l", "esxi", "cpu", 2, "1", "demo"), 20_000)),
    "hello of a restart": Act(
        (*RUNNING, seed.worker("esxi", slots=4, revoked=("esxi1:9:1",))),
        lambda k: hello(k, Who(ESXI, "esxi2", "lock-esxi", "esxi", "cpu", 2, "1", "demo"), 20_000),
    ),
    "renew": Act(
        (seed.mark(), seed.worker(slots=4, state="starting", registered_at=None, claim=9,
                                  tasks=("t1", "t2"), revoked=("esxi1:3:1",)),
         seed.running("t1"), seed.running("t2", token="esxi1:3:2")),
        _life,
    ),
    "claim": Act((seed.mark(), seed.worker(slots=4), *BOTH), lambda k: claim(k, NEXT)),
    "append": Act(RUNNING, lambda k: append(k, T1, TOKEN, 1, (b"a", b"b"), 30_000)),
    "finish and claim": Act((*RUNNING, *BOTH), lambda k: finish(
        k, ESXI, T1, TOKEN, Outcome("done", 1, b"w", "stop", USAGE), NEXT)),
    "finish with another attempt": Act(RUNNING, lambda k: finish(
        k, ESXI, T1, TOKEN, Outcome("failed", message="m", retry=True, backoff_ms=1_000))),
    "finish with a failure": Act(RUNNING, lambda k: finish(
        k, ESXI, T1, TOKEN, Outcome("failed", message="m", code="c"))),
    "hand back": Act(RUNNING, lambda k: finish(k, ESXI, T1, TOKEN, Outcome("back"))),
    "confirm": Act(
        (seed.mark(), seed.worker(revoked=(TOKEN,)), seed.ended("t1", "cancelled", last_token="")),
        lambda k: finish(k, ESXI, T1, TOKEN, Outcome("lost", usage=USAGE)),
    ),
    "withdraw what runs": Act(
        (*RUNNING, seed.fields("task:t1", ticket="7c")), lambda k: withdraw(k, T1, "7c", "m")),
    "withdraw what has not come": Act((seed.mark(),), lambda k: withdraw(k, T1, "7c", "m")),
    "cancel what runs": Act(RUNNING, lambda k: cancel(k, T1, "by hand")),
    "cancel what is queued": Act((seed.mark(), *BOTH), lambda k: cancel(k, T2, "by hand")),
    "cancel what waits": Act(
        (seed.mark(), seed.worker(), seed.waiting("t1")), lambda k: cancel(k, T1, "by hand")
    ),
    "cancel an orphan": Act(
        (seed.mark(), seed.pending("t2"),
         lambda client, keys: client.zadd(keys.clients, {"t2": NOW_MS - 1})),
        lambda k: cancel_orphan(k, T2, "nobody listens", RUN_ID, 3_000),
    ),
    "begin a pass": Act((seed.mark(run_id="another"),), lambda k: begin_pass(
        k, RUN_ID, REPLICATION_ID, LIMITS)),
    "reap": Act((*DEAD, seed.running("t1", followers="c1:1")), lambda k: reap(
        k, T1, TOKEN, SHARED_QUEUE, "broken", "spent", RUN_ID, LIMITS)),
    "reap a zombie": Act(
        (seed.mark(), seed.worker(tasks=("t1",)), seed.running("t1", due_ms=0)),
        lambda k: reap(k, T1, TOKEN, SHARED_QUEUE, "broken", "spent", RUN_ID, LIMITS),
    ),
    "reap a broken stream": Act((*DEAD, seed.running("t1", texts=1)), lambda k: reap(
        k, T1, TOKEN, SHARED_QUEUE, "broken", "spent", RUN_ID, LIMITS)),
    "reap what is spent": Act((*DEAD, seed.running("t1", recoveries=3)), lambda k: reap(
        k, T1, TOKEN, SHARED_QUEUE, "broken", "spent", RUN_ID, LIMITS)),
    "move": Act(
        (seed.mark(), seed.fields("worker:esxi", **GHOST), seed.pending("t2", queue=OWN),
         seed.worker(**GHOST)),  # type: ignore[arg-type]
        lambda k: move(k, T2, OWN_QUEUE, SHARED_QUEUE, "evidence", RUN_ID, LIMITS),
    ),
    "promote": Act((seed.mark(), seed.worker(), seed.waiting("t1")),
                   lambda k: promote(k, T1, SHARED_QUEUE)),
    "expire": Act(
        (seed.mark(), seed.pending("t2", due_ms=0, queued_at=NOW_MS - 300_000)),
        lambda k: expire(k, T2, "too long", RUN_ID, LIMITS),
    ),
    "postpone": Act(
        (seed.mark(hold_ms=-1_000),
         seed.pending("t2", due_ms=-5_000, queued_at=NOW_MS - 305_000)),
        lambda k: expire(k, T2, "too long", RUN_ID, LIMITS),
    ),
    "fail the homeless": Act((seed.mark(), seed.home(ago_ms=9_000), seed.pending("t2")),
                             lambda k: fail_homeless(k, T2, "nobody", RUN_ID, LIMITS)),
    "stamp homes": Act((seed.mark(), seed.home("old", 40 * 86_400_000)),
                       lambda k: stamp_homes(k, (MODEL,))),
    "tend": Act((seed.mark(), *BOTH, seed.no_mark()), lambda k: tend(k, (SHARED_QUEUE,))),
    "drop from a queue": Act(
        (seed.mark(), *BOTH, lambda client, keys: client.zadd(keys.queue(SHARED), {"gone": 7})),
        lambda k: drop_queued(k, SHARED_QUEUE, (T2, TaskId("gone"))),
    ),
    "drop from a worker": Act(
        (*DEAD, seed.worker(lease_ms=-1, tasks=("t1", "gone")), seed.running("t1")),
        lambda k: drop_held(k, ESXI, (T1, TaskId("gone"))),
    ),
    "forget": Act((seed.mark(), seed.worker(lease_ms=-1, revoked=(TOKEN,))),
                  lambda k: forget(k, ESXI, False, "op")),
    "requeue what runs": Act(RUNNING, lambda k: requeue(k, T1, TOKEN, SHARED_QUEUE, "op")),
    "requeue what waits": Act(
        (seed.mark(), seed.worker(), seed.waiting("t1", due_ms=9_000)),
        lambda k: requeue(k, T1, None, SHARED_QUEUE, "op"),
    ),
    "revive": Act((seed.mark(), seed.ended("t1", "dead", recoveries=3)),
                  lambda k: revive(k, T1, SHARED_QUEUE, 10, 1_000, "op")),
    "purge": Act((seed.mark(), seed.ended("t1", "dead")), lambda k: purge(k, (T1,), True, 0)),
    "forget a model": Act((seed.mark(), seed.home()), lambda k: forget_model(k, MODEL)),
    "note": Act((seed.mark(),), lambda k: note(k, "task cancel by op")),
    "wish": Act((seed.mark(), seed.worker()), lambda k: wish(k, ESXI, Wish("drain", 0, "op"))),
}  # fmt: skip
