"""``cogrid reaper`` as an operator meets it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from cogrid.cli.main import run
from tests.reaper.stage import MODEL, Stage
from tests.servers import Server

GPU = f"tasks:gpu:shared:{MODEL}"


@pytest.fixture
def stuck(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A dead worker with a waiting task, and a reaper at work."""
    monkeypatch.setenv("COGRID_REDIS_URL", server.url)
    monkeypatch.setenv("COGRID_TIME_SCALE", "1")
    stage = Stage(server)
    stage.settle()
    stage.worker("esxi")
    stage.submit("cb305e3a", "tasks:cpu:esxi")
    stage.let_pass(21)
    stage.worker("ai-core", pool="gpu")
    yield stage
    stage.close()


def test_bare_it_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reaper"]) == 0
    assert "--dry-run" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [("--once", "--daemon"), ("--dry-run", "--once"), ("--daemon", "--json")]
)
def test_what_excludes_each_other_is_a_usage_error(words: tuple[str, ...]) -> None:
    assert run(["reaper", *words]) == 2


def test_once_prints_a_line_a_task_and_exits_0(
    stuck: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reaper", "--once"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith(
        "[reaper] REQUEUE task=cb305e3a worker_id=esxi reason=dead_worker evidence="
    )
    assert told.out.endswith(f"queue={GPU} homes=ai-core\n")
    assert told.out.count("\n") == 1
    assert told.err == ""
    assert run(["reaper", "--once"]) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "nothing to do\n")


def test_once_says_that_no_reaper_runs(
    stuck: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck.redis.hset("grid:reaper", "last_pass", 1)

    def sleep(_: float) -> None:
        stuck.redis.hset("grid:reaper", "hold_until", 0)

    monkeypatch.setattr("time.sleep", sleep)
    assert run(["reaper", "--once"]) == 0
    told = capsys.readouterr()
    assert told.err.startswith("no reaper is running (last pass ")
    assert told.err.endswith("passes take nothing back for the first 20 s\n")
    assert told.err.count("\n") == 1
    assert "task=cb305e3a" in told.out


def test_once_as_json_is_one_document(stuck: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reaper", "--once", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["dry_run"], told["problems"]) == (1, False, [])
    (act,) = told["acts"]
    assert act["evidence"].startswith("lease ran out 1.")
    assert act["line"].startswith("[reaper] REQUEUE task=cb305e3a")
    del act["evidence"], act["line"]
    assert act == {
        "act": "requeue", "task": "cb305e3a", "worker": "esxi", "reason": "dead_worker",
        "queue": GPU, "homes": ["ai-core"], "message": None, "hint": None,
    }  # fmt: skip


def test_a_failure_names_the_cure(stuck: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stuck.sweep()
    stuck.let_pass(28)
    assert run(["reaper", "--once"]) == 0
    told = capsys.readouterr()
    assert told.out == (
        "[reaper] FAIL task=cb305e3a: no alternative worker can serve model 'gemma3:1b' "
        "(reason=dead_worker); single point of failure\n"
    )
    assert "ollama pull gemma3:1b" in told.err


def test_a_dry_run_writes_nothing(stuck: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reaper", "--dry-run"]) == 0
    assert f"queue={GPU}" in capsys.readouterr().out
    assert stuck.task("cb305e3a")["queue"] == "tasks:cpu:esxi"


def test_a_server_that_is_not_there_is_exit_4(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COGRID_REDIS_URL", "redis://127.0.0.1:1/0")
    for word in ("--once", "--dry-run"):
        assert run(["reaper", word]) == 4
        assert "cannot be reached" in capsys.readouterr().err
