"""Every command that reads, in every condition: one document, the exit code that docs/commands.md
promises, nothing written, and every word from others as plain data."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rich.cells import cell_len

from cogrid.cli.main import run
from tests.cli.terminal import on_terminal
from tests.reaper.stage import MODEL, Stage
from tests.servers import Server, free_port
from tests.store.dump import dump

TASK = "cb305e3a0000"
READS: dict[str, int] = {
    "status": 0,
    "status --check": 3,
    "status --worker esxi": 0,
    "status --pool cpu --model gemma3:1b": 0,
    "diagnose": 3,
    "diagnose all": 3,
    "diagnose ghosts": 3,
    "diagnose zombies": 0,
    "diagnose dead": 0,
    "diagnose stuck": 3,
    "diagnose consistency": 0,
    "spof": 3,
    "spof --model gemma3:1b": 3,
    "spof --without ai-core": 3,
    "spof --without-host esxi": 0,
    "explain cb30": 0,
    "task list": 0,
    "task list --state done --state dead": 0,
    "task show cb30": 0,
    "dead list": 0,
    "queue list": 0,
    "events": 0,
    "events --task cb30 --worker esxi --kind submitted --since 1h": 0,
    "usage": 0,
    "usage --since 1d": 0,
    "worker list": 0,
    "worker list --pool gpu": 0,
    "worker show esxi": 0,
    "worker why-idle esxi": 3,
    "worker why-idle ai-core": 0,
    "model list": 0,
    "model list --drift": 0,
    "route hello": 0,
}
"""Command -> exit code in the incident, before any reaper acts."""

NAMES_WHAT_IS_NOT = {
    "status --worker esxi",
    "status --pool cpu --model gemma3:1b",
    "spof --model gemma3:1b",
    "spof --without ai-core",
    "spof --without-host esxi",
    "explain cb30",
    "task show cb30",
    "worker show esxi",
    "worker why-idle esxi",
    "worker why-idle ai-core",
    "route hello",
}
"""On an empty grid these fail: what they name does not exist."""

EVERY = list(READS)


def the_incident(stage: Stage) -> None:
    """esxi has registered and never polled; its task waits; ai-core lacks the model."""
    stage.hello("esxi", "llama3.2:1b", MODEL)
    stage.renew("esxi")
    stage.worker("ai-core", "llama3.2:1b", pool="gpu", slots=2)
    stage.submit(TASK, "tasks:cpu:esxi", why="domain general: no rule matched")
    stage.submit("done1", "tasks:gpu:shared:llama3.2:1b", "llama3.2:1b")
    (task,) = stage.claim("ai-core", "tasks:gpu:shared:llama3.2:1b")
    stage.say(task)
    stage.finish("ai-core", task, usage=b'{"prompt_tokens":7,"completion_tokens":5}')
    stage.let_pass(17)
    stage.renew("esxi")
    stage.renew("ai-core")
    stage.poll("ai-core")


@pytest.fixture
def incident(stage: Stage) -> Stage:
    the_incident(stage)
    return stage


def standing(stage: Stage) -> dict[str, Any]:
    """Everything in the server, but for how long what ends by itself has left."""
    return {key: (k.kind, k.ttl_ms < 0, k.value) for key, k in dump(stage.redis).items()}


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The one document on stdout; nothing else may be there."""
    told = capsys.readouterr().out
    assert told.endswith("\n")
    assert told.count("\n") == 1
    found: dict[str, Any] = json.loads(told)
    assert found["schema"] == 1
    return found


@pytest.mark.parametrize("words", EVERY)
def test_in_the_incident(incident: Stage, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = standing(incident)
    assert run([*words.split(), "--json"]) == READS[words]
    assert not isinstance(document(capsys).get("error"), dict)
    assert run(words.split()) == READS[words]
    told = capsys.readouterr()
    assert told.out
    assert "\x1b" not in told.out
    assert standing(incident) == before, "a read has written"


@pytest.mark.parametrize("words", EVERY)
def test_on_an_empty_grid(stage: Stage, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = 1 if words in NAMES_WHAT_IS_NOT else 3 if words == "status --check" else 0
    assert run([*words.split(), "--json"]) == code
    found = document(capsys)
    if words.startswith("route"):
        assert found["queue"] is None
    elif code == 1:
        assert found["error"]["exit_code"] == 1
        assert found["error"]["hint"]


@pytest.mark.parametrize("words", EVERY)
def test_where_the_server_is_away(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"
    assert run([*words.split(), "--redis", url, "--json"]) == 4
    assert url in document(capsys)["error"]["message"]


@pytest.mark.parametrize("words", EVERY)
def test_a_wrong_option(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words.split(), "--json", "--colour"]) == 2
    assert document(capsys)["error"]["exit_code"] == 2


@pytest.fixture
def limited(own_server: Callable[..., Server]) -> Iterator[Stage]:
    """A server with users of few rights."""
    server = own_server(
        acl=(
            "user default on nopass ~* &* +@all",
            "user nobody on >secret ~* +ping",
            "user quiet on >secret ~* +@all -info -scan -eval",
        )
    )
    stage = Stage(server)
    stage.settle()
    the_incident(stage)
    yield stage
    stage.close()
    server.close()


def test_rights_that_are_missing_are_named(
    limited: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COGRID_TIME_SCALE", "1")
    monkeypatch.setenv("COGRID_REDIS_PASSWORD", "secret")
    monkeypatch.setenv("COGRID_REDIS_USERNAME", "nobody")
    url = limited.store.shown
    for words in EVERY:
        assert run([*words.split(), "--redis", url, "--json"]) == 4, words
        told = document(capsys)["error"]
        assert "ACL SETUSER nobody +" in " ".join((told["hint"], *told.get("problems", ()))), words
    monkeypatch.setenv("COGRID_REDIS_USERNAME", "quiet")
    for words, code in READS.items():
        assert run([*words.split(), "--redis", url, "--json"]) == code, words
        found = document(capsys)
        looked_for = {"status": ("info", "scan"), "diagnose": ("scan",)}
        for right in looked_for.get(words, ()):
            said = f"user quiet may not run {right}: ACL SETUSER quiet +{right}"
            assert said in found["problems"], words


HOSTILE = "\x1b[31m[/red]x\n[old] gpu-1\t\u202e"
SHOWN = "\\x1b[31m[/red]x\\n[old] gpu-1\\t\\u202e"


def test_text_from_others_is_never_a_control_sequence(
    incident: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    models = json.dumps([{"name": HOSTILE, "state": "failed", "reason": HOSTILE}])
    incident.redis.hset("worker:esxi", mapping={"models": models, "host": HOSTILE})
    incident.redis.hset(f"task:{TASK}", mapping={"user": HOSTILE, "why": HOSTILE, "model": HOSTILE})
    for words in EVERY:
        run(words.split())
        told = capsys.readouterr()
        for text in (told.out, told.err):
            assert "\x1b" not in text, words
            assert "\u202e" not in text, words
    run(["worker", "show", "esxi"])
    assert f"host\t{SHOWN}\n" in capsys.readouterr().out
    run(["explain", TASK])
    assert f"routed because: {SHOWN}\n" in capsys.readouterr().out


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize(
    "words", ["status", "worker list", "task list", "model list", "queue list"]
)
def test_no_name_is_cut_off_on_any_terminal(incident: Stage, words: str, columns: int) -> None:
    host = "日本のサーバー-" + "a" * 30
    incident.redis.hset("worker:esxi", "host", host)
    code, told = on_terminal(*words.split(), columns=columns)
    assert code == 0
    assert "…" not in told
    names = {"status": ("esxi", host), "worker list": ("esxi", host), "task list": (TASK,),
             "model list": (host,), "queue list": ("tasks:cpu:esxi",)}[words]  # fmt: skip
    bare = "".join(told.split())
    for name in names:
        # It may be folded over lines, and other cells stand between its pieces then.
        assert all(bare.count(char) >= name.count(char) for char in set(name)), told


def test_columns_line_up_by_what_they_show(incident: Stage) -> None:
    incident.redis.hset("worker:esxi", "host", "サーバー")
    _, told = on_terminal("worker", "list", columns=200)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", told).splitlines()
    heads = next(line for line in lines if line.startswith("WORKER"))
    rows = [line for line in lines if line.startswith(("esxi", "ai-core"))]
    assert len(rows) == 2
    for row in rows:
        assert cell_len(row[: row.index("0/")]) == heads.index("SLOTS")


@pytest.mark.parametrize("env", [
    {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "cp1252"},
    {"NO_COLOR": "1"}, {"TERM": "dumb"},
])  # fmt: skip
def test_terminals_of_every_kind(incident: Stage, env: dict[str, str]) -> None:
    incident.redis.hset("worker:esxi", "host", "サーバー")
    code, told = on_terminal("worker", "list", columns=200, cues=(), **env)
    assert code == 0
    assert "Traceback" not in told
    colours = any(f"\x1b[{n}m" in told for n in (31, 32, 33))
    assert not colours or "NO_COLOR" not in env
    if "PYTHONIOENCODING" in env:
        assert "\\u30b5" in told


def test_a_pipe_that_closes_early_and_a_full_disk(incident: Stage) -> None:
    for words in ("worker list", "events", "model list", "task list"):
        program = f"{sys.executable} -m cogrid.cli.main {words}"
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {program} | head -1; {program} >/dev/full"],
            check=False, capture_output=True, text=True, timeout=60, env=dict(os.environ),
        )  # fmt: skip
        assert done.returncode == 1, words
        assert done.stderr == "cogrid: cannot write the answer: No space left on device\n"


def test_one_row_a_line_in_a_pipe(incident: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    incident.redis.hset("worker:esxi", "host", "a\nb")
    run(["worker", "list"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert {line.count("\t") for line in lines} == {11}


def test_watch_prints_a_document_a_line(
    incident: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", sleep)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert run(["status", "--watch", "--json", "--worker", "esxi"]) == 130
    *lines, last = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert [[w["id"] for w in json.loads(line)["workers"]] for line in lines] == [["esxi"]] * 3
    assert json.loads(last)["error"]["exit_code"] == 130
