"""Completion: what a shell is offered, how long it waits, and what it loads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cogrid.cli.main import run
from tests.cli.test_main import HEAVY
from tests.conftest import missing
from tests.reaper.stage import Stage
from tests.servers import Server, free_port

COLON = "hf.co/LiquidAI/LFM2.5-1.2B-JP-GGUF:Q4_K_M"


def offered(*words: str, **env: str) -> list[str]:
    """What is offered for the last word."""
    done = subprocess.run(
        [sys.executable, "-m", "cogrid.cli.main"],
        check=False, capture_output=True, text=True, timeout=60,
        env={
            **os.environ, "_COGRID_COMPLETE": "bash_complete", **env,
            "COMP_WORDS": "\n".join(("cogrid", *words)), "COMP_CWORD": str(len(words)),
        },
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return [line.partition(",")[2] for line in done.stdout.split()]


@pytest.fixture
def grid(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Its server has ten times as long as an operator's: this machine may be busy."""
    monkeypatch.setenv("COGRID_TIME_SCALE", "10")
    stage.worker("esxi", "gemma3:1b", COLON)
    stage.worker("ai-core", "gemma3:1b", pool="gpu")
    stage.sweep()
    for task in ("aa1", "aa2", "bb1"):
        stage.submit(task)
    return stage


def test_commands_and_options() -> None:
    assert offered("wor") == ["worker"]
    assert set(offered("worker", "d")) == {"drain"}
    assert "--timeout" in offered("worker", "drain", "--t")
    assert offered("task", "list", "--state", "pen") == ["pending"]


def test_names_of_the_grid(grid: Stage) -> None:
    assert offered("worker", "drain", "") == ["ai-core", "esxi"]
    assert offered("worker", "show", "e") == ["esxi"]
    assert offered("chat", "--model", "ge") == ["gemma3:1b"]
    assert offered("spof", "--model", "hf.co/L") == [COLON]
    assert offered("explain", "aa") == ["aa1", "aa2"]
    assert offered("task", "cancel", "aa1", "b") == ["bb1"]
    assert offered("task", "cancel", "--worker", "es") == ["esxi"]


def test_options_say_which_grid(grid: Stage, server: Server) -> None:
    nowhere = f"redis://127.0.0.1:{free_port()}"
    assert offered("worker", "show", "e", COGRID_REDIS_URL=nowhere) == []
    words = ("worker", "show", "--redis", server.url, "e")
    assert offered(*words, COGRID_REDIS_URL=nowhere) == ["esxi"]


def test_a_server_that_says_nothing_is_not_waited_for(
    grid: Stage, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COGRID_TIME_SCALE", "1")
    before = time.monotonic()
    offered("wor")
    without_s = time.monotonic() - before
    server.pause()
    try:
        before = time.monotonic()
        assert offered("worker", "show", "e") == []
        assert time.monotonic() - before < without_s + 5
    finally:
        server.resume()


def test_a_wrong_configuration_is_no_error_text() -> None:
    assert offered("worker", "show", "e", COGRID_LIMITS_LEASE_S="two") == []


def test_a_name_of_a_command_loads_nothing_heavy() -> None:
    code = (
        "import sys, atexit; from cogrid.cli.main import run; "
        f"atexit.register(lambda: print(sorted(set(sys.modules) & set({HEAVY!r})), "
        "file=sys.stderr)); run([])"
    )
    env = {"_COGRID_COMPLETE": "bash_complete", "COMP_WORDS": "cogrid task c", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60,
        env={**os.environ, **env},
    )  # fmt: skip
    assert done.stdout.split() == ["plain,cancel"]
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("cogrid wor", ["worker"]),
        ("cogrid worker drain ", ["ai-core", "esxi"]),
        ("cogrid chat --model gemma3:", ["1b"]),
        ("cogrid chat --model=gemma3:", ["1b"]),
        ("cogrid spof --model hf.co/LiquidAI/LFM2.5-1.2B-JP-GGUF:Q4", ["Q4_K_M"]),
    ],
)
def test_bash_is_offered_what_goes_on_behind_a_colon(
    grid: Stage, line: str, reply: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["completion", "bash"]) == 0
    program = tmp_path / "cogrid"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m cogrid.cli.main "$@"\n')
    program.chmod(0o755)
    script = (
        f"{capsys.readouterr().out}\nCOMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}\n"
        f"_cogrid_completion {program}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    )
    done = subprocess.run(
        ["bash", "-c", script], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == reply
    assert done.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_reads_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_COGRID_COMPLETE={shell}_complete" in script
    if shutil.which(shell) is None:
        if shell == "bash":
            missing("bash")
        return
    done = subprocess.run(
        [shell, "-n"], input=script, check=False, capture_output=True, text=True, timeout=30
    )
    assert done.stderr == ""
