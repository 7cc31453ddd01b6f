"""Text that came from elsewhere is shown literally by every command: it is no markup, no control
sequence, no line end, and turns nothing around."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import pytest

from cogrid.cli.main import run
from tests.cli.streams import STYLE, written
from tests.cli.test_conditions import CASES, well
from tests.reaper.stage import MODEL, Stage

H = "[old] gpu-1[/red]x :skull:\x1b]0;t\x07\x1b[2J\n\r\x85\x9b2J\u202e\u2066\u00ad"
SHOWN = r"[old] gpu-1[/red]x :skull:\x1b]0;t\x07\x1b[2J\n\r\x85\x9b2J\u202e\u2066\xad"
SHORT = "[b]\x1b[2J\n\u202e"
"""A digest is cut on a terminal."""
ACTS = {"worker forget old --yes", "worker resume esxi --yes --timeout 0s"}
"""These wait for workers that the test does not play."""


def hostile(stage: Stage) -> None:
    """Everything that a worker, an engine, a client or another program can write says H."""
    keys, redis = stage.keys, stage.redis
    offers = [
        {"name": MODEL, "digest": SHORT, "supports": ["chat"], "loaded": True, "size_bytes": 9},
        {"name": H, "state": "failed", "reason": H, "digest": SHORT, "supports": [H]},
    ]
    told = {
        "host": H, "engine": H, "version": H, "models": json.dumps(offers), "pool": "cpu",
        "registered_at": H, "report": json.dumps({"gpu": H, H: H}),
        "wanted": json.dumps({"state": "run", "by": H}),
    }  # fmt: skip
    redis.hset(keys.worker("esxi"), mapping=told)
    now_ms = round(time.time() * 1000)
    redis.zadd(keys.workers, {H: now_ms + 20_000})
    redis.hset(keys.worker(H), mapping={**told, "pool": H, "state": H, "instance": H})
    redis.hset(keys.worker("left-over"), mapping={**told, "supports": json.dumps([H])})
    stage.submit("other1", model=H)
    for task in ("wait1", "run1", "done1", "other1"):
        said = {"user": H, "why": H, "domain": H, "error": H, "reason": H, "code": H}
        redis.hset(keys.task(task), mapping={**said, "avoid": H})
    redis.zadd(keys.models, {H: now_ms})
    edges = ("submitted", "claimed", "moved", "reaped", "registered", "refused", "done", H)
    for edge in edges:
        redis.xadd(
            keys.events,
            {"edge": edge, "task": "wait1", "worker": H, "token": H, "reason": H, "at_ms": now_ms},
        )
    day = time.strftime("%Y-%m-%d", time.gmtime(now_ms / 1000))
    redis.hset(keys.usage(day), "\t".join((H, "k", H, H, "requests")), 1)
    redis.expire(keys.usage(day), 1000)
    redis.hset(keys.api_keys, "0" * 64, json.dumps({"id": "0" * 12, "label": H, "created_at": H}))


def assert_literal(text: str, words: str) -> None:
    assert STYLE.sub("", text).replace("\n", "").replace("\t", "").isprintable(), words
    bare = STYLE.sub("", text)
    assert bare.count("gpu-1") == bare.count(SHOWN), f"{words}: {bare}"


@pytest.mark.leaves_keys
@pytest.mark.parametrize("columns", [0, 5000], ids=["pipe", "terminal"])
@pytest.mark.parametrize("words", [words for words in CASES if words not in ACTS])
def test_it_is_shown_literally(
    stage: Stage, words: str, columns: int, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    well(stage)
    CASES[words].prepare(stage)
    hostile(stage)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    capsys.readouterr()
    with written(monkeypatch, columns) as told:
        run(words.split())
        out = told()
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert_literal(out, words)
    assert_literal(err, words)
    if words.split()[0] in ("status", "diagnose", "explain", "events", "usage"):
        assert SHOWN in out, words


@pytest.mark.leaves_keys
@pytest.mark.parametrize("words", [words for words in CASES if words not in ACTS])
def test_json_has_it_as_it_is_and_shows_nothing_of_it(
    stage: Stage, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    well(stage)
    CASES[words].prepare(stage)
    hostile(stage)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    capsys.readouterr()
    run([*words.split(), "--json"])
    (line,) = capsys.readouterr().out.splitlines()
    assert line.isprintable()
    if "gpu-1" in line:
        assert has(json.loads(line)), words


def has(found: Any) -> bool:
    if isinstance(found, dict):
        return any(map(has, (*found, *found.values())))
    return (
        any(map(has, found)) if isinstance(found, list) else isinstance(found, str) and H in found
    )
