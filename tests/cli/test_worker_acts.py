"""``cogrid worker drain``, ``resume`` and ``forget`` as an operator types them."""

from __future__ import annotations

import io
import json
from datetime import datetime

import click
import pytest

from cogrid.cli.main import run
from cogrid.cli.until import until
from tests.cli.terminal import on_terminal
from tests.reaper.stage import Stage
from tests.store.dump import dump

OWN = "tasks:cpu:esxi"


@pytest.fixture
def esxi(stage: Stage) -> Stage:
    stage.worker("esxi")
    return stage


@pytest.mark.parametrize("verb", ["drain", "forget"])
def test_a_dry_run_shows_and_writes_nothing(
    esxi: Stage, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    esxi.submit("t1", OWN)
    if verb == "forget":
        esxi.let_pass(21)
    before = dump(esxi.redis)
    assert run(["worker", verb, "esxi", "--dry-run"]) == 0
    told = capsys.readouterr()
    assert "1 in tasks:cpu:esxi, which move to other workers" in told.out
    assert "nobody else serves gemma3:1b" in told.out
    assert run(["worker", verb, "esxi", "--dry-run", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["dry_run"], document["plan"]["waiting"]) == (1, True, 1)
    assert set(dump(esxi.redis)) == set(before)
    assert dump(esxi.redis)["worker:esxi"] == before["worker:esxi"]


def test_without_a_terminal_nobody_is_asked(
    esxi: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert run(["worker", "drain", "esxi"]) == 2
    assert "--yes" in capsys.readouterr().err
    assert esxi.redis.hget("worker:esxi", "wanted") is None


def test_on_a_terminal_no_is_no(esxi: Stage) -> None:
    code, shown = on_terminal("worker", "drain", "esxi", typed="n\n")
    assert (code, "Drain esxi? [y/N]" in shown) == (1, True)
    assert "nothing was done" in shown
    assert esxi.redis.hget("worker:esxi", "wanted") is None


def test_drain_waits_until_nothing_is_left(esxi: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["worker", "drain", "esxi", "--yes", "--until", "23:00"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("esxi is drained\nit resumes by itself at 20")
    assert "nothing runs, nothing waits" in told.err
    assert run(["worker", "drain", "esxi", "--yes", "--json"]) == 0
    told = capsys.readouterr()
    document = json.loads(told.out)
    assert (document["done"], document["until"], document["tasks"]) == (True, None, [])
    assert "@" in document["by"]
    assert told.err == ""


def test_a_limit_that_passes_is_exit_1(esxi: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    esxi.submit("t1", OWN)
    esxi.claim("esxi", OWN)
    assert run(["worker", "drain", "esxi", "--yes", "--timeout", "0s"]) == 1
    told = capsys.readouterr()
    assert told.out == "esxi still drains: the limit has passed\n"
    assert "1 running, 0 waiting" in told.err
    assert run(["worker", "drain", "esxi", "--yes", "--no-wait"]) == 0
    assert capsys.readouterr().out == "esxi drains\n"


def test_for_and_until_exclude_each_other(esxi: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["worker", "drain", "esxi", "--for", "3h", "--until", "23:00"]) == 2


def test_resume(esxi: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["worker", "resume", "esxi", "--yes"]) == 1
    assert "esxi was not asked to drain: it is ready" in capsys.readouterr().err
    run(["worker", "drain", "esxi", "--yes"])
    capsys.readouterr()
    assert run(["worker", "resume", "esxi", "--dry-run"]) == 0
    assert capsys.readouterr().out == "esxi (healthy) would take work again\n"
    assert esxi.renew("esxi").wish.state == "drain"
    assert run(["worker", "resume", "esxi", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] is True
    assert esxi.renew("esxi").wish.state == "run"


def test_forget(esxi: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["worker", "forget", "esxi", "--yes"]) == 1
    assert "esxi is alive" in capsys.readouterr().err
    esxi.let_pass(21)
    assert run(["worker", "forget", "esxi", "--yes"]) == 0
    assert capsys.readouterr().out == "esxi is forgotten\n"
    assert esxi.redis.exists("worker:esxi") == 0
    assert run(["worker", "forget", "esxi", "--yes"]) == 1
    assert "there is no worker 'esxi'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "seconds"), [("23:00", 3600), ("22:01", 60), ("22:00", 86_400), ("1:00", 10_800)]
)
def test_a_time_of_day_is_the_next_one(text: str, seconds: float) -> None:
    assert until(text, datetime(2026, 6, 7, 22, 0).astimezone()) == seconds


def test_what_is_no_time_of_day_is_refused() -> None:
    for text in ("24:00", "noon", "12", "12:60"):
        with pytest.raises(click.BadParameter, match="write one such as 23:00"):
            until(text)
