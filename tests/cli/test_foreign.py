"""A server that cogrid shares with others: however many keys they have, a command looks at no more
of them than its one bounded scan."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from typing import Any

import pytest

from cogrid.cli.main import run
from cogrid.store.client import Store
from cogrid.store.worker_hashes import SCAN_KEYS, SCAN_STEP
from tests.cli.test_conditions import CASES, READING, well
from tests.conftest import needs
from tests.reaper.stage import MODEL, Stage
from tests.servers import REDIS7, launch

ACTS = [words for words, case in CASES.items() if case.asks and words.startswith("task cancel")]
FORBIDDEN = {"keys", "randomkey", "dbsize", "sort", "flushall", "flushdb", "dump", "debug"}
A_PIECE = 100_000
SLOW_US = 100_000
"""A walk through millions of keys takes longer, anything that cogrid asks for much less."""


@pytest.fixture(
    scope="module",
    params=[100_000, pytest.param(5_000_000, marks=pytest.mark.proof)],
    ids=lambda number: f"{number:_}",
)
def shared(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """A grid that is well among so many keys of others; some have names like ours."""
    needs(REDIS7)
    server = launch(
        REDIS7,
        settings={"enable-debug-command": "yes", "slowlog-log-slower-than": str(SLOW_US)},
    )
    made = Stage(server)
    try:
        populate(made, request.param)
        made.settle()
        well(made)
        yield made
    finally:
        made.close()
        server.close()


def populate(stage: Stage, number: int) -> None:
    """The server does it in pieces that a client waits for."""
    for at in range(0, number, A_PIECE):
        stage.redis.execute_command("DEBUG", "POPULATE", A_PIECE, f"foreign{at}", 10)
    for job in range(100):
        stage.redis.rpush(f"worker:{job}:jobs", "a")
        stage.redis.set(f"worker:job-{job}", "b")


class Watched:
    """What one command asked of the server. trips: round trips; of them scans: those with SCAN."""

    def __init__(self, stage: Stage, patch: pytest.MonkeyPatch) -> None:
        self._redis: Any = stage.redis
        self._patch = patch

    def run(self, words: str) -> None:
        self.trips = self.scans = 0
        send = Store._send

        def counted(store: Store, commands: Any) -> list[Any]:
            self.trips += 1
            self.scans += any(command[0] == "SCAN" for command in commands)
            return send(store, commands)

        self._redis.config_resetstat()
        self._redis.slowlog_reset()
        with self._patch.context() as counting:
            counting.setattr(Store, "_send", counted)
            run(words.split())
        stats = self._redis.info("commandstats")
        self.calls = {name.removeprefix("cmdstat_"): s["calls"] for name, s in stats.items()}


@pytest.fixture
def watched(
    shared: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Watched:
    monkeypatch.setenv("COGRID_TIME_SCALE", "1")
    monkeypatch.setenv("COGRID_REDIS_URL", shared.store.shown)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return Watched(shared, monkeypatch)


@pytest.mark.parametrize("words", [words for words in READING if words != "reaper --once"] + ACTS)
def test_no_command_walks_through_what_others_have(
    shared: Stage, words: str, watched: Watched
) -> None:
    watched.run(words)
    assert not FORBIDDEN & set(watched.calls)
    assert watched.calls.get("scan", 0) <= SCAN_KEYS // SCAN_STEP
    assert shared.redis.slowlog_get() == []


def test_status_takes_the_trips_of_an_empty_server_and_its_one_scan(
    shared: Stage, stage: Stage, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.submit(f"wait{time.time_ns()}", f"tasks:gpu:shared:{MODEL}")
    watched.run("status")
    assert watched.scans == SCAN_KEYS // SCAN_STEP
    well(stage)
    monkeypatch.setenv("COGRID_REDIS_URL", stage.store.shown)
    alone = Watched(stage, monkeypatch)
    alone.run("status")
    assert alone.scans == 1
    assert alone.trips - alone.scans == watched.trips - watched.scans


def test_a_scan_that_was_cut_short_is_said(
    shared: Stage, watched: Watched, capsys: pytest.CaptureFixture[str]
) -> None:
    watched.run("status --json")
    assert "cut short after 10,000 keys" in capsys.readouterr().out
