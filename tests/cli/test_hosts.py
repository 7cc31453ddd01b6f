"""``sanity``, ``host`` and ``drift`` as an operator types them, where no host needs to be there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cogrid.cli.main import run
from tests.reaper.stage import Stage

NOWHERE = "127.0.0.1:9"
"""Nobody listens there."""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ssh_config with nothing of the person who runs the test."""
    monkeypatch.setenv("COGRID_TIME_SCALE", "1")
    path = tmp_path / "ssh_config"
    path.write_text("Host *\n  IdentitiesOnly yes\n  IdentityAgent none\n")
    return path


def asked(config: Path, *words: str) -> int:
    return run([*words, "--ssh-config", str(config)])


@pytest.mark.parametrize(
    "words",
    [
        ("sanity",), ("sanity", "--trial", "5"), ("host", "list"), ("host", "logs"), ("drift",),
        ("host", "restart", "--yes"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_host_that_cannot_be_asked_is_5_and_said(
    words: tuple[str, ...], config: Path, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(config, *words, "--host", NOWHERE) == 5
    told = capsys.readouterr()
    assert NOWHERE in told.out + told.err
    assert "refused" in told.out + told.err
    assert asked(config, *words, "--host", NOWHERE, "--json") == 5
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert NOWHERE in json.dumps(document)


def test_without_a_host_the_workers_of_the_grid_say_where_they_are(
    config: Path, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(config, "sanity", "--json") == 2
    assert "there is no host to ask" in json.loads(capsys.readouterr().out)["error"]["message"]
    stage.worker("esxi")
    stage.redis.hset("worker:esxi", "host", "host-that-is-not.invalid")
    for words in (("sanity",), ("sanity", "esxi")):
        assert asked(config, *words, "--json") == 5
        (host,) = json.loads(capsys.readouterr().out)["hosts"]
        assert (host["host"], host["asked"]) == ("host-that-is-not.invalid", False)
    assert asked(config, "sanity", "nobody") == 1
    assert "there is no worker 'nobody'" in capsys.readouterr().err


def test_what_needs_redis_says_what_does_without(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COGRID_REDIS_URL", "redis://127.0.0.1:9/0")
    assert asked(config, "host", "stop", "--host", NOWHERE, "--yes") == 4
    assert "--now does it without" in capsys.readouterr().err
    assert asked(config, "host", "stop", "--host", NOWHERE, "--yes", "--now") == 5
    assert "refused" in capsys.readouterr().err
    assert asked(config, "sanity", "--host", NOWHERE) == 5
