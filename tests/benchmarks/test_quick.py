"""The bench's pieces at tiny counts: that they work, never how fast."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import quick
from benchmarks.load import Asking, load
from benchmarks.mock_answers import Answer, Asked, asked, ollama_answer, openai_answer
from benchmarks.mock_engine import serve
from benchmarks.table import number, render, row


def test_what_is_asked_is_read_out_of_the_body() -> None:
    body = b'{"model": "mock-20ms", "stream": true, "max_tokens": 7}'
    assert asked(body, streams=False) == Asked(7, 20, True)
    assert asked(b'{"model":"mock","options":{"num_predict":3}}', streams=True) == Asked(3, 0, True)


@pytest.mark.parametrize("make", [openai_answer, ollama_answer])
@pytest.mark.parametrize("streamed", [True, False])
def test_an_answer_has_as_many_tokens_as_were_asked_for(
    make: Callable[[Asked], Answer], streamed: bool
) -> None:
    answer = make(Asked(5, 0, streamed))
    assert answer.whole.count(b"^") == 5
    assert len(answer.pieces) == (5 if streamed else 0)


@pytest.mark.parametrize("streamed", [True, False])
async def test_the_load_counts_what_the_engine_says(streamed: bool) -> None:
    async with serve(0, "openai") as port:
        url = f"http://127.0.0.1:{port}"
        loaded = await load(Asking(url, clients=3, requests=10, tokens=8, streamed=streamed))
    assert (loaded.requests, loaded.tokens, loaded.errors) == (10, 80, 0)
    assert 0 < loaded.first_p50_ms <= loaded.p50_ms <= loaded.p99_ms


async def test_a_wrong_answer_is_an_error() -> None:
    async with serve(0, "openai") as port:
        url = f"http://127.0.0.1:{port}/nowhere"
        loaded = await load(Asking(url, clients=1, requests=2, tokens=8, streamed=False))
    assert loaded.errors == 2
    assert loaded.trouble.startswith("status 404, 0 tokens of 8")


def test_a_goal_is_held_on_its_own_side() -> None:
    assert row("a", [1.0, 9.0, 2.0], "ms", 3.0, most=True).holds is True
    assert row("a", [1.0, 9.0, 2.0], "x", 3.0).holds is False
    assert row("a", [1.0], "x").holds is None
    table = render([row("a", [1234.0], "x", 1500.0)])
    assert "1,234 x" in table
    assert "MISSED" in table
    assert number(0.1234) == "0.123"


def test_every_figure_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(quick, "RESULTS", tmp_path / "results" / "quick.json")
    monkeypatch.setenv("COGRID_TIME_SCALE", "1")
    quick.main(["--scale", "0.01", "--repeats", "1"])
    rows = json.loads(quick.RESULTS.read_bytes())["rows"]
    assert [line["name"] for line in rows] == [
        "cogrid: one at a time, added p50",
        "cogrid: first token, added p50",
        "cogrid: 32 at a time",
        "cogrid: 16 streams",
        "cogrid: 16 streams, 20 ms",
        "no-op tasks",
        *(["no-op tasks, embedded server"] if shutil.which("redis-server") else []),
        "a pass, 1,000 running, none due",
        "100 due, longest command",
        "route, 20 workers x 20 models",
        "domain of a prompt of 100 kB",
    ]
    assert all(line["value"] > 0 for line in rows)
    assert "16 streams, 20 ms" in capsys.readouterr().out
