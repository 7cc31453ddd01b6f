"""Every finding is brought about on a real server, and the command that it prints mends it.

What needs workers as processes (pulls, hung claim loops, names that two machines want) is in
``tests/e2e/test_mended.py``; ``test_no_kind_is_left_out`` holds both together.
"""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from cogrid.cli.main import run
from cogrid.model.names import Token
from tests.e2e.mended import BY_PROCESSES
from tests.mends import kinds
from tests.reaper.stage import MODEL, Stage, held

SHARED = f"tasks:cpu:shared:{MODEL}"
OWN = "tasks:cpu:esxi"
OTHER = "llama3.2:1b"


class Terminal(io.StringIO):
    """Somebody at a terminal who says yes to everything."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Case:
    """seed: brings it about. then: what living workers do afterwards. ask: who finds it. code: how
    the command ends; 1 where it finds the task over, which it was, and says so."""

    kind: str
    seed: Callable[[Stage], object]
    ask: str = "diagnose"
    then: Callable[[Stage], object] = lambda stage: None
    note: str = ""
    code: int = 0


def ghost(stage: Stage) -> None:
    stage.worker("esxi")
    stage.let_pass(17)
    stage.renew("esxi")


def dead_with_work(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("t1", OWN)
    stage.let_pass(21)
    stage.worker("ai-core", pool="gpu")


def gone(stage: Stage) -> None:
    stage.worker("esxi")
    stage.let_pass(21)


def left_behind(stage: Stage) -> None:
    """Its machine has left, and so has all that the grid had of that worker."""
    gone(stage)
    stage.sweep()
    assert run(["worker", "forget", "esxi", "--yes"]) == 0


def wedged(stage: Stage) -> None:
    stage.worker("esxi")
    stage.redis.hset("worker:esxi", "zombies", 3)


def zombie(stage: Stage) -> None:
    task = running(stage)
    stage.let_pass(40)
    stage.renew("esxi", held=(held(task, silent_s=40, allowed_s=30),))
    stage.poll("esxi")


def running(stage: Stage) -> Any:
    stage.worker("esxi", slots=2)
    stage.submit("t1")
    (task,) = stage.claim("esxi", SHARED)
    return task


def pending(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("t1")


def ended(stage: Stage) -> None:
    stage.finish("esxi", running(stage))


def behind(stage: Stage) -> None:
    stage.worker("esxi", OTHER)
    stage.submit("t1", OWN, "gone:1b")
    stage.submit("t2", OWN, OTHER)
    stage.let_pass(8)
    stage.renew("esxi")
    stage.poll("esxi")


def unclaimed(stage: Stage) -> None:
    pending(stage)
    stage.redis.delete(f"wake:{SHARED}")
    stage.redis.zadd("grid:queues", {SHARED: 1})
    stage.let_pass(31)
    stage.renew("esxi")
    stage.poll("esxi")


def woken(stage: Stage) -> None:
    assert stage.redis.zcard(f"wake:{SHARED}"), "nobody was woken"
    (task,) = stage.claim("esxi", SHARED)
    assert task.id == "t1"


def overdue(stage: Stage) -> None:
    stage.finish("esxi", running(stage), "failed", retry=True, backoff_ms=1)
    stage.let_pass(10)
    stage.renew("esxi")
    stage.poll("esxi")


def redis(*command: Any, after: Callable[[Stage], object] = pending) -> Callable[[Stage], object]:
    """After this the server is told that, past every script."""

    def seed(stage: Stage) -> None:
        after(stage)
        stage.redis.execute_command(*command)

    return seed


def two_queues(stage: Stage) -> None:
    pending(stage)
    stage.redis.zadd(OWN, {"t1": 1})
    stage.redis.zadd("grid:queues", {OWN: 1})


def kept(stage: Stage) -> None:
    ended(stage)
    stage.redis.hincrby("task:t1", "finished_at", -20_000)
    stage.redis.persist("task:t1")


def two_under_one_token(stage: Stage) -> None:
    task = running(stage)
    stage.submit("t2")
    stage.claim("esxi", SHARED)
    stage.redis.hset("task:t2", "token", task.token)


def slots(stage: Stage) -> None:
    task = running(stage)
    stage.redis.sadd("worker:esxi:revoked", "esxi-1:8:1", "esxi-1:9:1")
    assert Token(task.token) not in stage.redis.smembers("worker:esxi:revoked")


CASES = (
    Case("ghost_pending", ghost),
    Case("dead_worker", dead_with_work, "diagnose ghosts"),
    Case("leftover_hash", lambda s: s.redis.hset("worker:old", mapping={"worker_id": "old"})),
    Case("gone", gone),
    Case("no_home", left_behind, "spof", note="left with its machine"),
    Case("wedged", wedged),
    Case("zombie_running", zombie),
    Case("stuck_behind", behind),
    Case("stuck_unclaimed", unclaimed, then=woken),
    Case("stuck_overdue", overdue),
    Case("misplaced", redis("ZREM", SHARED, "t1"), note="pending nowhere"),
    Case("misplaced", two_queues, note="in two queues"),
    Case(
        "misplaced", redis("SREM", "worker:esxi:tasks", "t1", after=running), note="run by nobody"
    ),
    Case("misplaced", redis("SADD", "worker:esxi:tasks", "t1"), note="in a queue and held"),
    Case("not_due", redis("ZREM", "grid:due", "t1"), note="pending"),
    Case("not_due", redis("ZREM", "grid:due", "t1", after=running), note="running"),
    Case("no_task", redis("ZADD", SHARED, 1, "nobody"), note="in a queue"),
    Case("no_task", redis("ZADD", "grid:due", 1, "nobody"), note="due"),
    Case("no_task", redis("ZADD", "grid:clients", 1, "nobody"), note="wanted"),
    Case("over_and_listed", redis("ZADD", "grid:due", 1, "t1", after=ended), note="due"),
    Case("over_and_listed", redis("ZADD", "grid:clients", 1, "t1", after=ended), note="wanted"),
    Case(
        "log",
        redis("XADD", "task:t1:out", "99999999999999-0", "kind", "end", "state", "done"),
        code=1,
    ),
    Case("client_lease", redis("HDEL", "task:t1", "client"), note="one too many"),
    Case("client_lease", redis("ZREM", "grid:clients", "t1"), note="none"),
    Case("token", redis("HSET", "task:t1", "token", "esxi-1:1:1"), note="pending"),
    Case("token", redis("HDEL", "task:t1", "token", after=running), note="running"),
    Case("token_twice", two_under_one_token),
    Case("lifetime", redis("PEXPIRE", "task:t1", 50_000), note="open"),
    Case("lifetime", kept, note="over"),
    Case("body", redis("DEL", "task:t1:body")),
    Case("counts", redis("HSET", "task:t1", "recoveries", 9)),
    Case("empty_queue", redis("ZADD", "grid:queues", 1, OWN)),
    Case("queued_bytes", redis("HSET", "grid:totals", "queued_bytes", 7, after=gone)),
)


MEND_THEMSELVES = {
    "slots": (slots, "it takes nothing more until enough of them are over"),
    "unlisted_queue": (
        redis("ZREM", "grid:queues", SHARED),
        "the next claim of a worker that serves it lists it again",
    ),
}
"""Kinds without a command, and what they say instead."""


def ids(case: Case) -> str:
    return f"{case.kind} {case.note}".strip()


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_the_command_that_it_prints_mends_it(
    case: Case,
    stage: Stage,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case.seed(stage)
    found = findings(case, capsys)
    assert found, "it was not brought about"
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    name, *words = shlex.split(found[0]["mend"])
    assert name == "cogrid"
    assert run(words) == case.code, capsys.readouterr()
    case.then(stage)
    print(capsys.readouterr())
    assert findings(case, capsys) == []


def findings(case: Case, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Those of its kind."""
    capsys.readouterr()
    run([*case.ask.split(), "--json"])
    document = json.loads(capsys.readouterr().out)
    return [each for each in document["findings"] if each["kind"] == case.kind]


@pytest.mark.parametrize("kind", MEND_THEMSELVES)
def test_where_no_command_mends_it_the_finding_says_what_does(
    kind: str, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    seed, what = MEND_THEMSELVES[kind]
    case = Case(kind, seed)
    seed(stage)
    (found,) = findings(case, capsys)
    assert found["what"].endswith(f"; {what}")
    assert found["mend"] == ""
    stage.redis.delete("worker:esxi:revoked")
    stage.claim("esxi", SHARED)
    assert findings(case, capsys) == []


def test_a_ghost_is_mended_step_by_step(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for it goes first, then what it runs comes to its end, then it is struck off."""
    stage.worker("ai-core", pool="gpu")
    stage.worker("esxi", slots=2)
    stage.submit("t1", OWN)
    stage.submit("t2", OWN)
    (task,) = stage.claim("esxi", OWN)
    stage.let_pass(17)
    for name in ("esxi", "ai-core"):
        stage.renew(name)
    stage.poll("ai-core")
    case = Case("ghost_pending", ghost)
    said = []
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    while found := findings(case, capsys):
        said.append(found[0]["mend"])
        if said[-1] == "cogrid worker drain esxi":
            stage.finish("esxi", task)
            stage.let_pass(17)
            for name in ("esxi", "ai-core"):
                stage.renew(name)
            stage.poll("ai-core")
        else:
            assert run(shlex.split(said[-1])[1:]) == 0
    assert said == [
        "cogrid reaper --once",
        "cogrid worker drain esxi",
        "cogrid worker forget esxi --force",
    ]
    assert stage.task("t2")["queue"] == f"tasks:gpu:shared:{MODEL}"


def test_no_kind_is_left_out() -> None:
    here = {case.kind for case in CASES} | set(MEND_THEMSELVES)
    assert here | set(BY_PROCESSES) == kinds()
