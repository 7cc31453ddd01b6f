"""``cogrid task cancel|requeue|purge``, ``cogrid dead retry|purge`` as an operator types them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cogrid.cli.main import run
from tests.reaper.stage import MODEL, Stage
from tests.store.checker import violations
from tests.store.dump import dump

OWN = "tasks:cpu:esxi"
GPU = f"tasks:gpu:shared:{MODEL}"
Said = pytest.CaptureFixture[str]


@pytest.fixture
def grid(stage: Stage) -> Stage:
    stage.worker("esxi", slots=2)
    stage.worker("ai-core", pool="gpu")
    return stage


@pytest.fixture
def letter(grid: Stage) -> Stage:
    """cb305e3a is a dead letter: its only recovery was not allowed."""
    grid.submit("cb305e3a", OWN, max_recoveries=0)
    grid.claim("esxi", OWN)
    grid.let_pass(21)
    grid.sweep()
    grid.worker("ai-core", pool="gpu")
    assert grid.task("cb305e3a")["state"] == "dead"
    return grid


def document(capsys: Said) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["schema"] == 1
    return found


def reasons(grid: Stage, edge: str) -> list[str]:
    events = [fields for _, fields in grid.redis.xrange("grid:events")]
    return [e[b"reason"].decode() for e in events if e[b"edge"] == edge.encode()]


def test_cancel_ends_what_waits_and_what_runs(grid: Stage, capsys: Said) -> None:
    grid.submit("aa1", OWN)
    grid.submit("aa2", OWN)
    grid.claim("esxi", OWN)
    assert run(["task", "cancel", "aa1", "aa2", "--yes", "--json"]) == 0
    found = document(capsys)
    assert [(t["id"], t["state"], t["done"], t["result"]) for t in found["tasks"]] == [
        ("aa1", "running", True, "cancelled"),
        ("aa2", "pending", True, "cancelled"),
    ]
    assert (found["verb"], found["dry_run"]) == ("task cancel", False)
    assert grid.end("aa1")["message"] == f"cancelled by the operator ({found['by']})"
    assert reasons(grid, "operator") == [f"task cancel: 2 tasks (aa1, aa2) by {found['by']}"]
    assert violations(grid.redis) == []


def test_filters_narrow_and_the_plan_writes_nothing(grid: Stage, capsys: Said) -> None:
    grid.submit("old", OWN)
    grid.let_pass(5)
    grid.submit("new", OWN)
    grid.submit("other", model="llama3.2:1b")
    before = {key: found.value for key, found in dump(grid.redis).items()}
    words = ["task", "cancel", "--model", MODEL, "--older-than", "4s"]
    assert run([*words, "--dry-run", "--json"]) == 0
    found = document(capsys)
    assert [t["id"] for t in found["tasks"]] == ["old"]
    assert (found["dry_run"], found["by"], found["fitting"]) == (True, None, 1)
    assert {key: found.value for key, found in dump(grid.redis).items()} == before
    assert run([*words, "--yes"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "task\twas\tmodel\tuser\tresult\tqueue",
        f"old\tpending\t{MODEL}\tada\tcancelled\t-",
    ]
    assert grid.task("new")["state"] == grid.task("other")["state"] == "pending"


def test_a_limit_takes_the_oldest_and_says_so(grid: Stage, capsys: Said) -> None:
    for name in ("aa1", "aa2", "aa3"):
        grid.submit(name, OWN)
        grid.let_pass(1)
    assert run(["task", "cancel", "--all", "--limit", "2", "--yes"]) == 0
    told = capsys.readouterr()
    assert "2 of 3 that fit" in told.err
    assert [grid.task(name)["state"] for name in ("aa1", "aa2", "aa3")] == [
        "cancelled", "cancelled", "pending",
    ]  # fmt: skip


def test_nothing_named_is_a_usage_error(grid: Stage, capsys: Said) -> None:
    assert run(["task", "cancel", "--yes"]) == 2
    assert "--all" in capsys.readouterr().err


def test_one_that_is_over_is_said_to_be(grid: Stage, capsys: Said) -> None:
    grid.submit("aa1", OWN)
    run(["task", "cancel", "aa1", "--yes"])
    capsys.readouterr()
    assert run(["task", "cancel", "aa1", "--yes"]) == 1
    assert "it is over already: cancelled" in capsys.readouterr().out
    assert run(["task", "cancel", "zz", "--yes"]) == 1
    assert "there is no task zz" in capsys.readouterr().err


def test_a_run_is_taken_back_and_goes_to_another(grid: Stage, capsys: Said) -> None:
    grid.submit("aa1", OWN, streamed=False)
    (handed,) = grid.claim("esxi", OWN)
    grid.say(handed)
    assert run(["task", "requeue", "aa1", "--yes", "--json"]) == 0
    (task,) = document(capsys)["tasks"]
    assert (task["result"], task["queue"]) == ("goes again", "tasks:gpu:ai-core")
    assert "recoveries" not in grid.task("aa1")
    assert [each.id for each in grid.claim("ai-core", "tasks:gpu:ai-core")] == ["aa1"]
    assert violations(grid.redis) == []


def test_what_a_client_has_seen_is_not_run_again(grid: Stage, capsys: Said) -> None:
    grid.submit("aa1", OWN)
    grid.submit("aa2", GPU)
    (handed,) = grid.claim("esxi", OWN)
    grid.say(handed)
    assert run(["task", "requeue", "aa1", "aa2", "--yes"]) == 1
    told = capsys.readouterr().out
    assert "text was sent to its client already" in told
    assert f"it waits in {GPU}" in told
    assert grid.task("aa1")["state"] == "running"


def test_a_back_off_is_ended(grid: Stage, capsys: Said) -> None:
    grid.submit("aa1", OWN)
    (handed,) = grid.claim("esxi", OWN)
    grid.finish("esxi", handed, "failed", message="busy", retry=True, backoff_ms=30_000)
    assert grid.task("aa1")["state"] == "waiting"
    assert run(["task", "requeue", "--state", "waiting", "--yes"]) == 0
    assert grid.task("aa1")["queue"] == "tasks:gpu:ai-core"
    assert grid.task("aa1")["state"] == "pending"


def test_a_dead_letter_is_tried_again(letter: Stage, capsys: Said) -> None:
    assert run(["dead", "retry", "cb30", "--yes", "--json"]) == 0
    (task,) = document(capsys)["tasks"]
    assert (task["state"], task["result"], task["queue"]) == ("dead", "goes again", GPU)
    (handed,) = letter.claim("ai-core", GPU)
    assert (handed.id, handed.body, handed.recoveries) == ("cb305e3a", b"{}", 0)
    letter.finish("ai-core", handed, finish_reason="stop")
    assert letter.end("cb305e3a")["state"] == "done"
    assert letter.redis.zcard("grid:dead") == 0
    assert violations(letter.redis) == []


def test_a_letter_that_nobody_can_serve_stays_one(letter: Stage, capsys: Said) -> None:
    letter.let_pass(21)
    assert run(["dead", "retry", "--all", "--yes"]) == 1
    assert f"no worker can serve {MODEL} now: it stays a dead letter" in capsys.readouterr().out
    assert letter.task("cb305e3a")["state"] == "dead"


def test_letters_and_ended_tasks_are_dropped_apart(letter: Stage, capsys: Said) -> None:
    letter.submit("aa1", GPU)
    run(["task", "cancel", "aa1", "--yes"])
    capsys.readouterr()
    assert run(["task", "purge", "--all", "--yes"]) == 1
    assert "it ended only now" in capsys.readouterr().out
    letter.redis.hincrby("task:aa1", "finished_at", -10_001)
    assert run(["task", "purge", "cb305e3a", "aa1", "--yes"]) == 1
    told = capsys.readouterr().out
    assert "it is dead: cogrid dead purge drops such" in told
    assert letter.task("aa1") == {}
    letter.redis.hincrby("task:cb305e3a", "finished_at", -10_001)
    assert run(["dead", "purge", "--older-than", "10s", "--yes"]) == 0
    assert letter.task("cb305e3a") == {}
    assert letter.redis.exists("grid:dead", "grid:finished", "task:cb305e3a:body") == 0
    assert run(["dead", "purge", "--all", "--yes"]) == 0
    assert capsys.readouterr().out.endswith("no task fits\n")
