"""The command line as a whole: help, errors, exit codes, pipes, and what it loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cogrid.cli.main import COMMANDS, run
from tests.servers import Server, free_port

HEAVY = ("redis", "paramiko", "httpx", "starlette", "uvicorn", "msgspec", "prometheus_client")


def cogrid(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command as an operator's shell would."""
    env = {**os.environ, **more}
    return subprocess.run(
        [sys.executable, "-m", "cogrid.cli.main", *words],
        check=False, capture_output=True, text=True, env=env, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: cogrid {name}")


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("status", "--help")])
def test_help_loads_nothing_heavy(words: tuple[str, ...]) -> None:
    code = (
        "import sys; from cogrid.cli.main import run; "
        f"run({list(words)!r}); print(sorted(set(sys.modules) & set({HEAVY!r})), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stderr.strip() == "[]"


def test_a_wrong_option_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status", "--colour"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "No such option" in told.err
    assert "see cogrid status --help" in told.err


def test_an_error_is_a_document_where_json_was_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"
    assert run(["status", "--json", "--redis", url]) == 4
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == 1
    assert told["error"]["exit_code"] == 4
    assert url in told["error"]["message"]
    assert told["error"]["hint"]


def test_a_server_that_is_away_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"
    for words in (["status"], ["diagnose", "ghosts"], ["spof"]):
        assert run([*words, "--redis", url]) == 4
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.startswith(f"cogrid: Redis at {url} cannot be reached")
        assert "Traceback" not in told.err


def test_an_empty_grid(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status", "--json", "--redis", server.url]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["workers"], told["queues"]) == (1, [], [])
    assert told["tasks"]["pending"] == 0
    assert told["redis"]["flavour"] == "valkey"
    assert run(["status", "--check", "--redis", server.url]) == 3, "no reaper has ever run"
    capsys.readouterr()
    assert run(["diagnose", "ghosts", "--redis", server.url]) == 0
    assert run(["spof", "--redis", server.url]) == 0
    assert "no worker has told of a model yet" in capsys.readouterr().out


def test_reading_writes_nothing(server: Server) -> None:
    server.client.hset("worker:esxi", mapping={"worker_id": "esxi", "pool": "cpu"})
    before = {key: server.client.dump(key) for key in server.client.scan_iter()}
    for words in (["status"], ["diagnose", "ghosts"], ["spof"]):
        run([*words, "--redis", server.url])
    assert {key: server.client.dump(key) for key in server.client.scan_iter()} == before


def test_a_left_over_hash_is_shown_as_dead(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.client.hset(
        "worker:esxi", mapping={"worker_id": "esxi", "registered_at": "2026-06-07T02:25:47Z"}
    )
    run(["status", "--json", "--redis", server.url])
    (worker,) = json.loads(capsys.readouterr().out)["workers"]
    assert (worker["id"], worker["health"]) == ("esxi", "dead")
    assert worker["registered_at"] == "2026-06-07T02:25:47Z"
    assert run(["diagnose", "ghosts", "--json", "--redis", server.url]) == 3
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["subject"] == "esxi"


def test_text_from_a_worker_is_never_a_control_sequence(server: Server) -> None:
    server.client.hset("worker:esxi", mapping={"host": "\x1b[31m[bold]evil\n", "pool": "cpu"})
    done = cogrid("status", "--redis", server.url)
    assert "\x1b" not in done.stdout
    assert "\\x1b[31m[bold]evil\\n" in done.stdout


def test_a_pipe_that_closes_early_is_a_quiet_end(server: Server) -> None:
    program = f"{sys.executable} -m cogrid.cli.main status --redis {server.url}"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {program} 2>/dev/null | head -1"],
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.startswith("worker\thealth\tpool")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is of Linux")
def test_an_answer_that_cannot_be_written_is_a_failure(server: Server) -> None:
    program = f"{sys.executable} -m cogrid.cli.main status --redis {server.url} >/dev/full"
    done = subprocess.run(
        ["bash", "-c", program], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "cannot write the answer" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_ascii_terminal_gets_escapes_instead_of_an_error(server: Server) -> None:
    server.client.hset("worker:esxi", mapping={"host": "サーバー", "pool": "cpu"})
    done = cogrid("status", "--redis", server.url, PYTHONIOENCODING="ascii", LC_ALL="C")
    assert done.returncode == 0
    assert "\\u30b5" in done.stdout


def test_an_unknown_command_says_what_may_have_been_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["statu"]) == 2
    assert "command 'statu' is unknown; did you mean status?" in capsys.readouterr().err


def test_a_message_of_click_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion"]) == 2
    told = capsys.readouterr().err
    assert "bash, zsh, fish" in told
    assert "\\" not in told
