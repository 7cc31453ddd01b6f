"""``cogrid config show``, ``check`` and ``init`` as an operator types them."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path

import pytest

from cogrid.cli.main import run
from cogrid.config import Config, load
from cogrid.config.example import example
from cogrid.ops.settings import without_password

Said = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No configuration of this machine counts."""
    for name in [name for name in os.environ if name.startswith("COGRID_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_setting_has_its_source(
    alone: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    (alone / "cogrid.toml").write_text('[limits]\nlease_s = 25\n\n[worker]\npool = "gpu"\n')
    monkeypatch.setenv("COGRID_WORKER_POOL", "cpu")
    monkeypatch.setenv("COGRID_REDIS_PASSWORD", "hunter2")
    monkeypatch.setenv("COGRID_WORKER_ENGINE_KEY", "sk-hunter2")
    url = "redis://ada:pa%23ss@127.0.0.1:1/0"
    assert run(["config", "show", "--json", "--redis", url]) == 0
    told = capsys.readouterr().out
    assert "hunter2" not in told
    assert "pa%23ss" not in told
    document = json.loads(told)
    by_key = {row["key"]: (row["value"], row["source"]) for row in document["settings"]}
    assert by_key["limits.lease_s"] == (25, "cogrid.toml:2")
    assert by_key["limits.renew_s"] == (5, "default")
    assert by_key["worker.pool"] == ("cpu", "COGRID_WORKER_POOL")
    assert by_key["redis.password"] == ("***", "COGRID_REDIS_PASSWORD")
    assert by_key["worker.engine_key"] == ("***", "COGRID_WORKER_ENGINE_KEY")
    assert by_key["redis.url"] == ("redis://ada:***@127.0.0.1:1/0", "command line")
    assert (document["file"], document["time_scale"]) == ("cogrid.toml", 1)


def test_it_can_be_narrowed(alone: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COGRID_LIMITS_LEASE_S", "25")
    assert run(["config", "show", "--changed"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "key\tvalue\tsource",
        "limits.lease_s\t25\tCOGRID_LIMITS_LEASE_S",
    ]
    assert run(["config", "show", "routing"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "routing.pools\tgpu, cpu\tdefault",
        "routing.closed\t-\tdefault",
    ]
    capsys.readouterr()
    assert run(["config", "show", "rooting"]) == 1
    assert "did you mean routing?" in capsys.readouterr().err


def test_everything_that_is_wrong_is_said_at_once(alone: Path, capsys: Said) -> None:
    file = alone / "bad.toml"
    file.write_text('[limits]\nlease = 3\nrenew_s = "x"\n')
    assert run(["config", "check", str(file)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines()[1].startswith(f"{file}:2: limits.lease is unknown")
    assert run(["config", "check", str(file), "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert len(document["problems"]) == 2
    assert document["problems"][1].startswith(f"{file}:3: limits.renew_s")


def test_a_right_one_is_said_to_be(alone: Path, capsys: Said) -> None:
    assert run(["config", "check"]) == 0
    assert capsys.readouterr().out == "nothing is wrong (no file; defaults and environment)\n"
    (alone / "cogrid.toml").write_text("[limits]\nlease_s = 25\n")
    assert run(["config", "check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1, "file": "cogrid.toml", "problems": [],
    }  # fmt: skip


def test_init_writes_once_and_changes_nothing(alone: Path, capsys: Said) -> None:
    assert run(["config", "init"]) == 0
    file = alone / "cogrid" / "cogrid.toml"
    assert capsys.readouterr().out == f"wrote {file}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert not any(tomllib.loads(file.read_text()).values())
    assert load(str(file), {}) == Config(file=str(file))
    file.write_text("mine")
    assert run(["config", "init"]) == 1
    assert "is there already; nothing was written" in capsys.readouterr().err
    assert file.read_text() == "mine"


def test_the_example_can_be_commented_in(alone: Path) -> None:
    text = re.sub(r"^# (\w+ = .*)$", r"\1", example().partition("# Domains,")[0], flags=re.M)
    (alone / "all.toml").write_text(text)
    assert load("all.toml", {}) == Config(file="all.toml")
    assert "lease_s = 20.0" in text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:secret@h:1/0", "redis://:***@h:1/0"),
        ("redis://ada:se%40cret@[::1]:1/0", "redis://ada:***@[::1]:1/0"),
        ("unix://default:s@%2Ftmp", "unix://default:***@%2Ftmp"),
        ("redis://h:1/0", "redis://h:1/0"),
        ("redis://[bad", "***"),
    ],
)
def test_a_password_in_a_url_is_hidden(url: str, shown: str) -> None:
    assert without_password(url) == shown
