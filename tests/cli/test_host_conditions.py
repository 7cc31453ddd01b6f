"""The commands that go to hosts, in every condition: exit codes as in docs/commands.md, and with
``--json`` one valid document on standard output, or one a line."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from cogrid.cli.reference import commands
from cogrid.model.host import Host
from cogrid.ops.hosts.follow import Follower
from cogrid.ops.hosts.logs import LogWishes, Trouble
from cogrid.remote.access import Access
from tests.cli.machine import ENGINE, Machine, write_config
from tests.cli.test_conditions import (
    AWAY,
    FAILED,
    FINE,
    INTERRUPTED,
    OF_HOSTS,
    UNASKED,
    USAGE,
    WARNED,
    Asked,
    asked,
    assert_error,
    code,
    one_document,
    well,
)
from tests.cli.test_reads import standing
from tests.conftest import needs
from tests.reaper.stage import Stage
from tests.servers import VALKEY9, free_port, launch

__all__ = ["asked"]

SOME_HOSTS = code("some hosts could not be asked over SSH")
NO_HOST = code("no host was named")
REACHED = "redis://192.0.2.7:6379/0"
"""Redis as hosts would reach it; nobody asks it before a host was reached."""


@dataclass(frozen=True)
class Case:
    """well: the code for a machine that is well; None: only a real one can be installed, and
    tests/hosts has such. away: the code where Redis is, and the host is there. asks: without
    ``--yes`` somebody is asked."""

    well: int | None = FINE
    away: int | None = FINE
    asks: bool = False


CASES = {
    "host list": Case(),
    "host logs": Case(),
    f"host start --unit {ENGINE} --yes": Case(asks=True),
    f"host start --unit {ENGINE} --dry-run": Case(),
    f"host stop --unit {ENGINE} --yes": Case(away=AWAY, asks=True),
    f"host stop --unit {ENGINE} --now --yes": Case(asks=True),
    f"host restart --unit {ENGINE} --yes": Case(away=AWAY, asks=True),
    f"host restart --unit {ENGINE} --dry-run": Case(away=AWAY),
    "drift": Case(away=AWAY),
    "sanity": Case(),
    "sanity --trial 1": Case(),
    f"install-unit --redis {REACHED} --yes": Case(None, None),
    f"install-unit --redis {REACHED} --dry-run": Case(None, None),
    "uninstall-unit --yes": Case(None, None),
    "uninstall-unit --dry-run": Case(None, None),
}
EVERY = list(CASES)
ON_A_MACHINE = [words for words, case in CASES.items() if case.well is not None]
FOLLOW = "host logs --follow"


def test_every_command_that_goes_to_hosts_is_here() -> None:
    found = {" ".join(words) for words, _ in commands() if words[0] in OF_HOSTS}
    assert found == {name for name in found if any(case.startswith(name) for case in EVERY)}
    assert len(found) == 9


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with closing(Machine(tmp_path)) as made:
        yield made


def at(machine: Machine) -> tuple[str, ...]:
    return ("--host", machine.address, "--ssh-config", str(machine.config))


@pytest.mark.parametrize("words", ON_A_MACHINE)
def test_all_is_well(stage: Stage, machine: Machine, words: str, asked: Asked) -> None:
    well(stage)
    number, found = asked(words, *at(machine))
    assert number == CASES[words].well, found
    assert "error" not in found
    assert not found.get("troubles")


@pytest.mark.parametrize("words", EVERY)
def test_a_host_that_cannot_be_reached(
    stage: Stage, config: Path, words: str, asked: Asked
) -> None:
    well(stage)
    before = standing(stage)
    host = f"127.0.0.1:{free_port()}"
    number, found = asked(words, "--host", host, "--ssh-config", str(config))
    assert number == SOME_HOSTS, found
    assert f"{host} cannot be reached: Connection refused" in json.dumps(found)
    assert "error" not in found, "the other hosts would have an answer"
    assert standing(stage) == before


def test_the_other_hosts_are_shown(machine: Machine, asked: Asked) -> None:
    number, found = asked("host list", *at(machine), "--host", f"127.0.0.1:{free_port()}")
    assert number == SOME_HOSTS
    assert [bool(host["error"]) for host in found["hosts"]] == [False, True]


@pytest.mark.parametrize("words", EVERY)
def test_an_empty_grid_names_no_host(stage: Stage, config: Path, words: str, asked: Asked) -> None:
    number, found = asked(words, "--ssh-config", str(config))
    assert number == NO_HOST
    assert_error(found, NO_HOST)
    assert "--host" in found["error"]["hint"]


@pytest.mark.parametrize("words", EVERY)
def test_redis_is_away(
    machine: Machine, words: str, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"
    monkeypatch.setenv("COGRID_REDIS_URL", url)
    if CASES[words].away is not None:
        number, found = asked(words, *at(machine))
        assert number == CASES[words].away, found
        if number == AWAY:
            assert_error(found, AWAY)
            assert url in found["error"]["message"]
    if "install-unit" not in words:  # which hosts there are, it would say
        number, found = asked(words, "--ssh-config", str(machine.config))
        assert number == AWAY
        assert_error(found, AWAY)


@pytest.fixture(scope="module")
def refusing() -> Iterator[str]:
    """The URL of a server whose user may do nothing."""
    needs(VALKEY9)
    server = launch(VALKEY9, acl=("user default on nopass ~* &* +@all", "user nobody on >pw +ping"))
    yield server.url
    server.close()


@pytest.mark.parametrize("words", ON_A_MACHINE)
def test_rights_are_refused(
    machine: Machine, refusing: str, words: str, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("URL", refusing), ("USERNAME", "nobody"), ("PASSWORD", "pw")):
        monkeypatch.setenv(f"COGRID_REDIS_{name}", value)
    number, found = asked(words, *at(machine))
    assert number == CASES[words].away, found
    if number == AWAY:
        assert_error(found, AWAY)
        assert "ACL SETUSER nobody +" in json.dumps(found)


@pytest.mark.parametrize(
    "words",
    [
        *(f"{words} --colour" for words in EVERY), "host list --host a@", "host list --host x:y",
        "host list --hosts-from /none/such", "host list --all", "host list --ssh-config /none/such",
        "host logs --since soon", "host logs --lines 0", "host stop --timeout soon --yes",
        "host start --role king", "host restart --at-once 0", "drift esxi", "sanity --trial 0",
        "sanity --timeout soon", "install-unit", "install-unit --host a --slots 0",
        "install-unit --host a --host b --id c", "uninstall-unit --host a --host b --id c",
        "install-unit --host 127.0.0.1:9 --yes",  # Redis is for this machine only
    ],
)  # fmt: skip
def test_an_argument_that_is_wrong(stage: Stage, words: str, asked: Asked) -> None:
    before = standing(stage)
    number, found = asked(words)
    assert number == USAGE, found
    assert_error(found, USAGE)
    assert standing(stage) == before


@pytest.mark.parametrize("words", [words for words, case in CASES.items() if case.asks])
def test_nobody_is_there_to_ask(stage: Stage, machine: Machine, words: str, asked: Asked) -> None:
    number, found = asked(words.replace(" --yes", ""), *at(machine))
    assert number == UNASKED
    assert_error(found, UNASKED)
    assert "--yes" in found["error"]["hint"]
    assert machine.engine == {}, "systemctl was called"


@pytest.fixture
def interrupting() -> Iterator[str]:
    """The address of a host that takes connections and says nothing; then somebody types Ctrl-C."""
    listener = socket.create_server(("127.0.0.1", 0))
    main = threading.main_thread().ident or 0
    connected = []

    def accept() -> None:
        with suppress(OSError):
            connected.append(listener.accept()[0])
            signal.pthread_kill(main, signal.SIGINT)

    listener.settimeout(20)  # closing it would not end an accept
    thread = threading.Thread(target=accept)
    thread.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    thread.join()
    for each in connected:
        each.close()
    listener.close()


@pytest.mark.parametrize("words", [*EVERY, FOLLOW])
def test_interrupted(
    stage: Stage, config: Path, interrupting: str, words: str, asked: Asked
) -> None:
    before = standing(stage)
    number, found = asked(words, "--host", interrupting, "--ssh-config", str(config))
    assert number == INTERRUPTED
    assert_error(found, INTERRUPTED)
    assert standing(stage) == before


def test_warnings_of_python_stay_beside_the_answer(stage: Stage, machine: Machine) -> None:
    listed = [" ".join((words, *at(machine))) for words in ON_A_MACHINE]
    done = subprocess.run(
        [sys.executable, "-c", WARNED],
        input="\n".join(listed), capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2 * len(listed)
    for text, ended in zip(lines[::2], lines[1::2], strict=True):
        one_document(f"{text}\n")
        assert ended == f"code {FINE}"
    assert "DeprecationWarning: this is old" in done.stderr


def test_what_is_followed_is_a_document_a_line(machine: Machine) -> None:
    """The lines, then a host that cannot be asked, and at Ctrl-C that it was interrupted."""
    closed = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        [sys.executable, "-m", "cogrid.cli.main", *FOLLOW.split(), "--json", *at(machine),
         "--host", closed],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    heard = [one_document(process.stdout.readline()) for _ in range(3)]
    process.send_signal(signal.SIGINT)
    rest, told = process.communicate(timeout=30)
    assert process.returncode == INTERRUPTED
    assert_error(one_document(rest), INTERRUPTED)
    assert sorted(found.get("text") or found["message"] for found in heard) == [
        f"{closed} cannot be reached: Connection refused", "begins", "is up",
    ]  # fmt: skip
    assert told.strip() == ""


def test_a_worker_that_nobody_knows(stage: Stage, config: Path, asked: Asked) -> None:
    number, found = asked("sanity nobody", "--ssh-config", str(config))
    assert number == FAILED
    assert_error(found, FAILED)


@pytest.mark.parametrize("words", ["host list", "sanity", "drift", "host logs"])
def test_a_worker_that_says_no_host_takes_no_other_answer(
    stage: Stage, machine: Machine, words: str, asked: Asked
) -> None:
    """Every host that a worker has told is asked; one has told what cannot be one."""
    well(stage)
    stage.redis.hset(stage.keys.worker("esxi"), "host", machine.address)
    stage.redis.hset(stage.keys.worker("ai-core"), "host", "[old] gpu-1\x1b[2J\n")
    number, found = asked(words, "--ssh-config", str(machine.config))
    assert number == SOME_HOSTS, found
    assert "ai-core has told a name of its machine that is none" in json.dumps(found)
    seen = {"host list": "esxi.service", "sanity": "logged in as", "host logs": "is up"}
    assert seen.get(words, "") in json.dumps(found)


def test_what_is_followed_there_is_told_as_well() -> None:
    with Follower((Host("a b", id="esxi"),), Access(), LogWishes()) as follower:
        heard = next(follower.heard())
    assert isinstance(heard, Trouble)
    assert heard.message.startswith("esxi has told a name of its machine that is none")
