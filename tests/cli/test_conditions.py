"""Every command that asks Redis, in every condition: its exit code is that of docs/commands.md, and
with ``--json`` there is one valid document on standard output."""

from __future__ import annotations

import inspect
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from cogrid.cli.main import run
from cogrid.cli.reference import commands
from tests.cli.test_reads import standing
from tests.conftest import needs
from tests.reaper.stage import MODEL, Stage
from tests.servers import VALKEY9, free_port, launch
from tests.test_layers import ROOT
from tests.wait import until

OTHER = "llama3.2:1b"
ROW = re.compile(r"^\| (.+) \| (\d+) \|$", re.MULTILINE)
TABLE = {text: int(code) for text, code in ROW.findall((ROOT / "docs/commands.md").read_text())}


def code(says: str) -> int:
    """The exit code of the one row that says so."""
    (found,) = (number for text, number in TABLE.items() if says in text)
    return found


FINE = code("the answer was given, and nothing is wrong")
FAILED = code("what was asked for failed, does not exist, or must not be done")
FOUND = code("something was found")
ATTENTION = code("`status --check`: a worker")
NO_WAY = code("there is no answer, or no way")
USAGE = code("a wrong option, argument or configuration")
UNASKED = code("a question that nobody can be asked")
AWAY = code("cannot be reached, or refuses what is needed")
INTERRUPTED = code("interrupted (Ctrl-C)")

Prepare = Callable[[Stage], None]


def nothing(stage: Stage) -> None:
    pass


def a_gone_worker(stage: Stage) -> None:
    stage.worker("old")
    stage.redis.zadd(stage.keys.workers, {"old": 1})


def a_draining_worker(stage: Stage) -> None:
    stage.redis.hset(stage.keys.worker("esxi"), "wanted", '{"state":"drain","by":"ada"}')


def a_model_left_behind(stage: Stage) -> None:
    stage.redis.zadd(stage.keys.models, {"gone:7b": 1})


def a_dead_letter(stage: Stage) -> None:
    stage.submit("dead1", f"tasks:cpu:shared:{MODEL}", max_recoveries=0)
    stage.claim("esxi", f"tasks:cpu:shared:{MODEL}")
    stage.redis.zadd(stage.keys.due, {"dead1": 1})
    stage.sweep()
    assert stage.task("dead1")["state"] == "dead"
    stage.redis.hincrby("task:dead1", "finished_at", -60_000)
    stage.renew("esxi")


def an_old_end(stage: Stage) -> None:
    stage.redis.hincrby("task:done1", "finished_at", -60_000)


def a_key(stage: Stage) -> None:
    assert run(["key", "new", "--label", "webui", "--redis", stage.store.shown]) == 0


@dataclass(frozen=True)
class Case:
    """well: the code on a grid that is well. empty: on one where there is nothing. asks: without
    ``--yes`` somebody is asked. local: Redis is not."""

    well: int = FINE
    empty: int = FINE
    prepare: Prepare = nothing
    asks: bool = False
    local: bool = False


def act(empty: int = FAILED, prepare: Prepare = nothing) -> Case:
    return Case(empty=empty, prepare=prepare, asks=True)


CASES: dict[str, Case] = {
    "status": Case(),
    "status --check": Case(ATTENTION, ATTENTION),  # nothing is kept on disk
    "diagnose": Case(),
    "spof": Case(),
    "spof --fix --dry-run": Case(),
    "explain wait1": Case(empty=FAILED),
    "events": Case(),
    "usage": Case(),
    "task list": Case(),
    "task show wait1": Case(empty=FAILED),
    "task cancel wait1 --yes": act(),
    "task cancel --all --dry-run": Case(),
    "task requeue run1 --yes": act(),
    "task requeue run1 --dry-run": Case(empty=FAILED),
    "task purge done1 --yes": act(prepare=an_old_end),
    "task purge --all --dry-run": Case(),
    "dead list": Case(),
    "dead retry dead1 --yes": act(prepare=a_dead_letter),
    "dead retry --all --dry-run": Case(prepare=a_dead_letter),
    "dead purge --all --yes": act(FINE, a_dead_letter),
    "queue list": Case(),
    "model list": Case(),
    "model list --drift": Case(),
    f"model pull {OTHER} --worker esxi --dry-run": Case(empty=FAILED),
    f"model remove {MODEL} --worker esxi --dry-run": Case(empty=FAILED),
    "model forget gone:7b --yes": act(prepare=a_model_left_behind),
    "model forget gone:7b --dry-run": Case(empty=FAILED, prepare=a_model_left_behind),
    f"model warm {MODEL} --dry-run": Case(empty=FAILED),
    "route hello": Case(empty=NO_WAY),
    "worker list": Case(),
    "worker show esxi": Case(empty=FAILED),
    "worker why-idle esxi": Case(empty=FAILED),
    "worker drain esxi --yes --no-wait": act(),
    "worker drain esxi --dry-run": Case(empty=FAILED),
    "worker resume esxi --yes --timeout 0s": act(prepare=a_draining_worker),
    "worker resume esxi --dry-run": Case(empty=FAILED, prepare=a_draining_worker),
    "worker forget old --yes": act(prepare=a_gone_worker),
    "worker forget old --dry-run": Case(empty=FAILED, prepare=a_gone_worker),
    "reaper --dry-run": Case(),
    "reaper --once": Case(),
    "doctor": Case(FOUND, FOUND),
    "drill ghost --dry-run": Case(),
    "key list": Case(),
    "key new --label webui": Case(),
    "key revoke webui": Case(empty=FAILED, prepare=a_key),
    "config show": Case(local=True),
    "config check": Case(local=True),
}
ELSEWHERE = {"up", "coordinator run", "worker run"}
"""Daemons; they have tests as processes."""
OF_HOSTS = {"host", "drift", "sanity", "install-unit", "uninstall-unit"}
"""These ask hosts over SSH: test_host_conditions."""
EVERY = list(CASES)


def test_every_command_that_asks_redis_is_here() -> None:
    missing = set()
    for words, command in commands():
        name = " ".join(words)
        told = inspect.getsource(inspect.unwrap(command.callback or nothing))
        if re.search(r"open_(store|view)\(", told) and words[0] not in OF_HOSTS:
            missing |= {name} - {case[: len(name)] for case in EVERY} - ELSEWHERE
    assert missing == set()


def well(stage: Stage) -> None:
    """Two workers on two hosts with the same models; a task that waits, one that runs, one done."""
    stage.worker("esxi", MODEL, OTHER, slots=2)
    stage.worker("ai-core", MODEL, OTHER, pool="gpu", slots=2)
    queue = f"tasks:gpu:shared:{MODEL}"
    stage.submit("done1", queue)
    (task,) = stage.claim("ai-core", queue)
    stage.finish("ai-core", task, finish_reason="stop")
    stage.submit("run1", queue, streamed=False)
    stage.claim("ai-core", queue)
    stage.submit("wait1", queue)
    stage.sweep()


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.setenv("COGRID_TIME_SCALE", "1")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return Asked(capsys)


class Asked:
    """Runs a command in this process; what stands on standard output is one document."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, words: str, *more: str) -> tuple[int, dict[str, Any]]:
        self._capsys.readouterr()
        found = run([*words.split(), "--json", *more])
        told = self._capsys.readouterr()
        return found, one_document(told.out)


def one_document(text: str) -> dict[str, Any]:
    assert text.endswith("\n")
    assert text.count("\n") == 1
    found: dict[str, Any] = json.loads(text)
    assert next(iter(found)) == "schema"
    assert found["schema"] == 1
    return found


def assert_error(found: dict[str, Any], number: int) -> None:
    assert found["error"]["exit_code"] == number
    assert found["error"]["message"]


@pytest.mark.parametrize("words", EVERY)
def test_all_is_well(stage: Stage, words: str, asked: Asked) -> None:
    well(stage)
    CASES[words].prepare(stage)
    number, found = asked(words)
    assert number == CASES[words].well, found
    if number == FINE:
        assert not isinstance(found.get("error"), dict)


@pytest.mark.parametrize("words", EVERY)
def test_an_empty_grid(stage: Stage, words: str, asked: Asked) -> None:
    number, found = asked(words)
    assert number == CASES[words].empty, found
    if number == FAILED and "tasks" not in found and not words.startswith("route"):
        assert_error(found, FAILED)


@pytest.mark.parametrize("words", EVERY)
def test_redis_is_away(words: str, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"
    monkeypatch.setenv("COGRID_REDIS_URL", url)
    number, found = asked(words)
    if CASES[words].local:
        assert number == FINE
        return
    assert number == AWAY
    assert url in json.dumps(found)
    if words != "doctor":
        assert_error(found, AWAY)
        assert found["error"]["hint"]


@pytest.mark.parametrize("words", EVERY)
def test_an_option_that_is_none(words: str, asked: Asked) -> None:
    number, found = asked(words, "--colour")
    assert number == USAGE
    assert_error(found, USAGE)


@pytest.mark.parametrize(
    "words",
    [
        "explain", "task show", "worker show", "worker why-idle", "worker drain", "key new",
        "key revoke", "model pull", "route", "chat", "drill", "diagnose everything", "drill flood",
        "explain no-id", "task show no/id", "task list --state gone", "task list --limit few",
        "task cancel --yes", "task requeue --older-than soon --yes", "events --since soon",
        "usage --since soon", "dead purge --yes", "worker drain esxi --for 1h --until 23:00 --yes",
        "spof --model m --without esxi", "spof --yes", "reaper --once --dry-run",
        "key new --label= --per-minute -1", "config check /none/such.toml", "status --redis ftp://x",
    ],
)  # fmt: skip
def test_an_argument_that_is_wrong(stage: Stage, words: str, asked: Asked) -> None:
    before = standing(stage)
    number, found = asked(words)
    assert number == USAGE, found
    if not words.startswith("config"):
        assert_error(found, USAGE)
    assert standing(stage) == before


@pytest.mark.parametrize("words", EVERY)
def test_interrupted(
    stage: Stage, words: str, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    well(stage)
    CASES[words].prepare(stage)
    before = standing(stage)

    def interrupted(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    if CASES[words].local:
        monkeypatch.setattr("cogrid.config.load", interrupted)
        monkeypatch.setattr("cogrid.config.load_effective", interrupted)
    else:
        monkeypatch.setattr("cogrid.store.client.Store._send", interrupted)
    number, found = asked(words)
    assert number == INTERRUPTED
    assert_error(found, INTERRUPTED)
    assert standing(stage) == before


@pytest.mark.parametrize("words", [words for words, case in CASES.items() if case.asks])
def test_nobody_is_there_to_ask(stage: Stage, words: str, asked: Asked) -> None:
    well(stage)
    CASES[words].prepare(stage)
    before = standing(stage)
    number, found = asked(words.replace(" --yes", ""))
    assert number == UNASKED
    assert_error(found, UNASKED)
    assert "--yes" in found["error"]["hint"]
    assert standing(stage) == before


@pytest.fixture(scope="module")
def crowd() -> Iterator[Stage]:
    """A grid that is well, of a thousand workers, and a user who may do nothing."""
    needs(VALKEY9)
    server = launch(VALKEY9, acl=("user default on nopass ~* &* +@all", "user nobody on >pw +ping"))
    made = Stage(server)
    made.settle()
    for number in range(1_000):
        made.worker(f"w{number:04}", MODEL)
    well(made)
    yield made
    made.close()
    server.close()


READING = [words for words, case in CASES.items() if not case.asks and case.prepare is nothing]


@pytest.mark.parametrize("words", [words for words in READING if words != "reaper --once"])
def test_a_thousand_workers(
    crowd: Stage, words: str, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COGRID_REDIS_URL", crowd.store.shown)
    crowd.redis.delete(crowd.keys.api_keys)
    freshen(crowd)
    number, found = asked(words)
    assert number == CASES[words].well, str(found)[:500]
    if words in ("status", "worker list"):
        assert len(found["workers"]) == 1_002


def freshen(stage: Stage) -> None:
    """Nobody has been silent, whatever the tests before took."""
    now_ms = stage.store.read(_clock())
    stage.redis.hset(stage.keys.reaper, "last_pass", now_ms)
    pipe = stage.redis.pipeline()
    pipe.hset(stage.keys.task("wait1"), "queued_at", now_ms)
    for queue in stage.redis.zrange(stage.keys.queues, 0, -1):
        pipe.zadd(stage.keys.queues, {queue: now_ms})
    for name in stage.redis.zrange(stage.keys.workers, 0, -1):
        pipe.zadd(stage.keys.workers, {name: now_ms + 20_000})
        stamps = dict.fromkeys(("polled_at", "beat_at"), now_ms)
        pipe.hset(stage.keys.worker(name.decode()), mapping=stamps)
    pipe.execute()


def _clock() -> Any:
    from cogrid.store.clock import read_clock

    return read_clock()


@pytest.mark.parametrize("words", EVERY)
def test_rights_are_refused(
    crowd: Stage, words: str, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("URL", crowd.store.shown), ("USERNAME", "nobody"), ("PASSWORD", "pw")):
        monkeypatch.setenv(f"COGRID_REDIS_{name}", value)
    number, found = asked(words)
    if CASES[words].local:
        assert number == FINE
    elif words == "doctor":
        assert number == FOUND
        assert "ACL SETUSER nobody +" in json.dumps(found)
    else:
        assert number == AWAY
        assert_error(found, AWAY)
        assert "ACL SETUSER nobody +" in json.dumps(found)


WARNED = """
import sys, warnings
from cogrid.cli import output
from cogrid.cli.main import run

printed = output.print_json

def print_json(value):
    warnings.warn("this is old", DeprecationWarning)
    printed(value)

output.print_json = print_json
for words in sys.stdin.read().splitlines():
    print("code", run([*words.split(), "--json"]), flush=True)
"""


def test_warnings_of_python_stay_beside_the_answer(stage: Stage) -> None:
    well(stage)
    done = subprocess.run(
        [sys.executable, "-c", WARNED],
        input="\n".join(READING), capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == 2 * len(READING)
    for words, text, ended in zip(READING, lines[::2], lines[1::2], strict=True):
        one_document(f"{text}\n")
        assert ended == f"code {CASES[words].well}", words
    assert "DeprecationWarning: this is old" in done.stderr


@pytest.mark.parametrize(
    ("words", "shows"),
    [
        ("status --watch", '"workers"'),
        ("events --follow", '"kind"'),
        ("worker drain ai-core --yes", ""),
        ("worker forget old --yes", ""),
    ],
)
def test_what_goes_on_ends_with_a_signal(stage: Stage, words: str, shows: str) -> None:
    """A document a line, or one; and the last says that it was interrupted."""
    well(stage)
    a_gone_worker(stage)
    stage.submit("old1", "tasks:cpu:shared:gone", "gone")
    stage.redis.sadd(stage.keys.worker_tasks("old"), "run1")  # so that somebody must be waited for
    before = looks(stage)
    process = subprocess.Popen(
        [sys.executable, "-m", "cogrid.cli.main", *words.split(), "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    seen = process.stdout.readline() if shows else ""
    assert shows in seen
    if not shows:
        until(lambda: looks(stage) > before + 10, what=f"{words} to wait")
    process.send_signal(signal.SIGINT)
    rest, told = process.communicate(timeout=30)
    documents = [one_document(f"{line}\n") for line in (seen + rest).splitlines()]
    assert process.returncode == INTERRUPTED, told
    assert_error(documents[-1], INTERRUPTED)
    assert len(documents) == 1 or shows
    assert "Traceback" not in told


def looks(stage: Stage) -> int:
    """How often the server was asked for a sorted set."""
    asked = stage.redis.info("commandstats").get("cmdstat_zrange", {})
    return int(asked.get("calls", 0))


def test_chat_is_a_client_of_the_coordinator(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one, see test_asking."""
    url = f"http://127.0.0.1:{free_port()}"
    number, found = asked(f"chat --url {url} hello")
    assert number == AWAY
    assert_error(found, AWAY)
    assert url in found["error"]["message"]

    def interrupted(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cogrid.ops.ask.ask", interrupted)
    number, found = asked(f"chat --url {url} hello")
    assert number == INTERRUPTED
    assert_error(found, INTERRUPTED)
