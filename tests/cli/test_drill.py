"""``cogrid drill`` as an operator types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from cogrid.cli.main import run
from tests.reaper.stage import Stage
from tests.servers import Server
from tests.wait import until


def test_a_dry_run_says_how_long_and_writes_nothing(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.redis.flushall()
    assert run(["drill", "ghost", "--dry-run"]) == 0
    assert "within 17 s another has its task" in capsys.readouterr().out
    assert run(["drill", "dead", "--dry-run", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["bound_s"], document["expected"], document["ok"]) == (22, "dead_worker", False)
    assert stage.redis.dbsize() == 0


def test_a_drill_that_nothing_answers_is_exit_1(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COGRID_REDIS_URL", server.url)
    monkeypatch.setenv("COGRID_TIME_SCALE", "0.02")
    assert run(["drill", "zombie", "--yes"]) == 1
    told = capsys.readouterr()
    assert told.out.startswith("drill zombie: NOT recovered within ")
    assert "no reaper is at work" in told.err
    assert "no reaper is running: cogrid reaper --daemon" in told.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cleans_up(server: Server, number: signal.Signals) -> None:
    env = {**os.environ, "COGRID_REDIS_URL": server.url, "COGRID_TIME_SCALE": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "cogrid.cli.main", "drill", "ghost", "--yes"],
        env=env, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until(lambda: server.client.exists("grid:due"), what="the drill's task")
    os.kill(process.pid, number)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in told
    assert server.client.exists("grid:workers", "grid:due", "grid:models", "grid:finished") == 0
