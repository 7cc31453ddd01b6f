"""Hosts asked what keeps them from work: five of them, each with another fault."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from cogrid import __version__
from cogrid.cli.main import run
from cogrid.model.host import Scope
from cogrid.model.task import State
from cogrid.model.worker import WorkerState
from cogrid.rules.exit_code import exit_meaning
from tests.conftest import needs
from tests.hosts.carried import PLACE
from tests.hosts.fleet import ENGINE_PORT, Fleet, a_fleet, put_unit
from tests.hosts.host import Host
from tests.servers import VALKEY9
from tests.wait import until
from tests.worker.grid import Grid, a_grid

SERVER = "192.168.73.2"
PASSWORD = "a secret, 100%"
PLACES = {
    "sneng": "192.168.73.11",
    "snmod": "192.168.73.12",
    "snred": "192.168.73.13",
    "snlim": "192.168.73.14",
    "snclk": "192.168.73.15",
}
BARE = {"snbar": "192.168.73.16"}
"""An engine and cogrid's program are there, and no unit."""
GONE = "192.168.73.99"
LIMIT = """\
[Unit]
StartLimitIntervalSec=60
StartLimitBurst=2
[Service]
RestartSec=50ms
"""
"""What a unit of cogrid's never has by itself."""
FAILS = "Environment=COGRID_TIME_SCALE=none\n"
AHEAD_S = 600
CLOCK = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <sys/time.h>
typedef int (*gettime)(clockid_t, struct timespec *);
int clock_gettime(clockid_t which, struct timespec *now) {
    gettime real = (gettime)dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(which, now);
    if (which == CLOCK_REALTIME) now->tv_sec += AHEAD;
    return code;
}
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    needs(VALKEY9)
    with a_fleet(PLACES | BARE, SERVER, PASSWORD, tmp_path_factory.mktemp("fleet")) as made:
        with ThreadPoolExecutor(len(made.hosts)) as pool:
            list(pool.map(lambda host: _begin(made, host), made.hosts))
        yield made


def _begin(fleet: Fleet, host: Host) -> None:
    """Its engine and its worker, with the fault that it is named for."""
    if host.name in BARE:
        host.ssh("systemctl start ollama")
        return
    models = ("gemma3:1b", "llama3.2:1b") if host.name == "snmod" else ()
    settings = fleet.settings(host, PASSWORD, models=models)
    unit = put_unit(host, settings, LIMIT + FAILS if host.name == "snlim" else "").unit_name
    if host.name == "snclk":
        _set_ahead(host)
    if host.name == "snred":
        _lose(host, SERVER)
    engine = "" if host.name == "sneng" else "systemctl start ollama;"
    host.ssh(f"systemctl daemon-reload; {engine} systemctl enable --now --no-block {unit}")
    if host.name == "snlim":
        until(lambda: "too quickly" in host.ssh(f"journalctl -u {unit}"), 20, "the start limit")
        put_unit(host, settings, LIMIT)
        host.ssh("systemctl daemon-reload")


def _lose(host: Host, address: str) -> None:
    """What is sent there from now on is sent to nobody."""
    host.inside(
        "ip", "neighbour", "replace", address, "lladdr", "02:00:00:00:00:09", "dev", "eth0",
        "nud", "permanent",
    )  # fmt: skip


def _set_ahead(host: Host) -> None:
    """Every program there that begins from now on sees another time."""
    source, library = host.root / "opt/clock.c", host.root / "opt/clock.so"
    source.write_text(CLOCK.replace("AHEAD", str(AHEAD_S)))
    subprocess.run(("cc", "-shared", "-fPIC", "-o", library, source, "-ldl"), check=True)
    host.write("/etc/ld.so.preload", "/opt/clock.so\n")


# What the commands say.


Said = tuple[int, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Desk:
    """Where somebody sits who keeps the fleet."""

    fleet: Fleet
    capsys: pytest.CaptureFixture[str]

    def ask(self, *words: str, hosts: tuple[str, ...] = ()) -> tuple[int, str, str]:
        """A command about these hosts; its exit code and what it printed."""
        named = [word for name in hosts for word in ("--host", self.address(name))]
        code = run([*words, "--ssh-config", str(self.fleet.config), *named])
        out, err = self.capsys.readouterr()
        return code, out, err

    def told(self, *words: str, hosts: tuple[str, ...] = ()) -> Said:
        """The same as its document."""
        code, out, err = self.ask(*words, "--json", hosts=hosts)
        assert out, err
        return code, json.loads(out)

    def address(self, name: str) -> str:
        user, at, host = name.rpartition("@")
        return user + at + {**PLACES, **BARE, "gone": GONE}[host]

    def host(self, name: str) -> Host:
        return next(host for host in self.fleet.hosts if host.name == name)


@pytest.fixture
def desk(fleet: Fleet, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("COGRID_REDIS_URL", fleet.url)
    monkeypatch.setenv("COGRID_REDIS_PASSWORD", PASSWORD)
    monkeypatch.setenv("COGRID_TIME_SCALE", "1")
    return Desk(fleet, capsys)


def findings(document: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """By the host's own name, what does not pass."""
    return {
        host["name"]: [check for check in host["checks"] if check["verdict"] != "pass"]
        for host in document["hosts"]
    }


def test_each_fault_is_named_with_its_mend_and_some_are_mended(desk: Desk) -> None:
    code, document = desk.told("sanity", hosts=tuple(PLACES))
    found = findings(document)
    assert code == 3
    assert {name: [check["kind"] for check in checks] for name, checks in found.items()} == {
        "sneng": ["engine_down"],
        "snmod": ["model_missing"],
        "snred": ["redis_blocked"],
        "snlim": ["start_limit_hit"],
        "snclk": ["clock_off"],
    }
    mends = {name: checks[0]["mend"] for name, checks in found.items()}
    engine, limit = PLACES["sneng"], PLACES["snlim"]
    unit = "cogrid-worker@snlim.service"
    assert mends == {
        "sneng": f"cogrid host start --unit ollama.service --host {engine}",
        "snmod": "cogrid model pull llama3.2:1b --worker snmod",
        "snred": f"let it reach {desk.fleet.url} (firewall, bind, route); if the address is wrong: "
        f"cogrid install-unit --id snred --host {PLACES['snred']}",
        "snlim": f"cogrid host start --unit {unit} --host {limit}",
        "snclk": f"ssh -t {PLACES['snclk']} 'sudo timedatectl set-ntp true'",
    }
    assert "600 s ahead of Redis'" in found["snclk"][0]["what"]
    assert "start limit" in found["snlim"][0]["what"]
    assert PASSWORD not in json.dumps(document)
    for name in ("sneng", "snlim"):
        words = shlex.split(mends[name])[1:]
        code, out, err = desk.ask(*words, "--yes")
        assert code == 0, out + err
    again = findings(desk.told("sanity", hosts=("sneng", "snlim"))[1])
    assert again == {"sneng": [], "snlim": []}


def test_engine_and_models_are_asked_from_the_host_itself(desk: Desk) -> None:
    before = len(_requests(desk.host("snmod")))
    desk.told("sanity", hosts=("snmod",))
    after = _requests(desk.host("snmod"))[before:]
    assert [(each["model"], each["tokens"]) for each in after] == [("gemma3:1b", 1)]


def _requests(host: Host) -> list[dict[str, Any]]:
    """What the host's engine was asked."""
    url = f"http://127.0.0.1:{ENGINE_PORT}/fault/requests"
    ask = f"import urllib.request as web; print(web.urlopen('{url}').read().decode())"
    return list(json.loads(host.ssh(f'python3 -c "{ask}"'))["requests"])


def test_a_trial_shows_the_start_and_leaves_the_worker_that_runs_alone(desk: Desk) -> None:
    def registered() -> list[Any]:
        return desk.fleet.server.client.hmget("worker:snmod", "instance", "registered_at")

    until(lambda: desk.fleet.server.client.exists("worker:snmod"), 30, "the worker to register")
    before, events = registered(), desk.fleet.server.client.xlen("grid:events")
    code, out, _ = desk.ask("sanity", "--trial", "10", hosts=("snmod",))
    lines = out.splitlines()
    assert code == 3
    assert "[start] worker_id=snmod version=" in lines[0]
    assert any("[sanity] checking gemma3:1b ... OK" in line for line in lines)
    assert any("[redis] OK redis://" in line for line in lines)
    assert any("[trial] llama3.2:1b: missing" in line for line in lines)
    assert lines[-2:] == ["EXIT:3", f"it {exit_meaning(3).what}: {exit_meaning(3).cure}"]
    assert registered() == before
    assert desk.fleet.server.client.xlen("grid:events") == events
    code, document = desk.told("sanity", "--trial", "10", hosts=("snclk",))
    (tried,) = document["trials"]
    assert (code, tried["code"], tried["as_unit"], tried["error"]) == (0, 0, True, None)


@pytest.fixture
async def grid(fleet: Fleet, tmp_path: Path) -> AsyncIterator[Grid]:
    made = a_grid(fleet.server.url, tmp_path, 1.0)
    yield made
    made.store.close()
    await asyncio.sleep(0)


async def test_a_restart_drains_first_and_is_done_when_the_grid_has_seen_a_poll(
    desk: Desk, grid: Grid
) -> None:
    before = await grid.worker_is(WorkerState.READY, "snmod")
    await grid.submit("t1")
    await grid.in_state("t1", State.RUNNING)
    code, document = await asyncio.to_thread(
        desk.told, "host", "restart", "--yes", hosts=("snmod",)
    )
    (act,) = document["acts"]
    assert (code, act["worker"], act["was"], act["state"], act["done"]) == (
        0, "snmod", "running", "running", True,
    )  # fmt: skip
    task = await grid.task("t1")
    assert (task.state, task.attempts, task.recoveries) == (State.DONE, 0, 0)
    after = await grid.worker_is(WorkerState.READY, "snmod")
    assert after.instance != before.instance
    assert after.wish.state == "run"


def test_a_host_that_has_the_program_and_no_unit(desk: Desk) -> None:
    host = desk.host("snbar")
    pid = host.ssh(
        f"setsid {PLACE}/bin/cogrid worker run --engine demo </dev/null >&0 2>&0 & echo $!"
    )
    try:
        code, document = desk.told("sanity", hosts=("snbar",))
        found = {check["kind"]: check for check in findings(document)["snbar"]}
        assert (code, set(found)) == (3, {"no_unit", "by_hand"})
        assert found["by_hand"]["mend"] == f"cogrid install-unit --host {host.ip}"
        code, out, err = desk.ask("sanity", "--trial", "10", hosts=("snbar",))
    finally:
        host.ssh(f"kill {pid}")
    assert (code, "EXIT:0" in out.splitlines()) == (0, True)
    assert "no unit is installed there" in err
    assert desk.fleet.server.client.exists("worker:snbar") == 0


def test_what_would_be_done_is_shown_and_nothing_is_done(desk: Desk) -> None:
    pid = "systemctl show --property MainPID cogrid-worker@snclk.service"
    before = desk.host("snclk").ssh(pid)
    code, document = desk.told("host", "stop", "--dry-run", hosts=("snclk",))
    (act,) = document["acts"]
    assert (code, document["dry_run"], act["unit"], act["done"]) == (
        0, True, "cogrid-worker@snclk.service", False,
    )  # fmt: skip
    code, _, err = desk.ask("host", "stop", hosts=("snclk",))
    assert (code, "There is no terminal to ask on" in err) == (2, True)
    assert desk.host("snclk").ssh(pid) == before
    code, document = desk.told("host", "start", "--yes", "--unit", "none.service", hosts=("snclk",))
    assert code == 5
    assert "has no none.service" in document["troubles"][0]["message"]


def test_the_fleet_is_listed_and_a_dead_host_holds_nobody_up(desk: Desk) -> None:
    code, document = desk.told("host", "list", hosts=("snclk", "gone", "snmod"))
    assert code == 5
    first, gone, last = document["hosts"]
    assert (first["name"], gone["name"], last["name"]) == ("snclk", None, "snmod")
    assert GONE in gone["error"]
    (unit,) = last["units"]
    assert (unit["worker"], unit["state"], unit["version"], unit["origin"]) == (
        "snmod", "running", __version__, "as installed",
    )  # fmt: skip


def test_journals_are_merged_by_time_with_the_host_in_front(desk: Desk) -> None:
    for name, word in (("snmod", "one"), ("snclk", "two"), ("snmod", "three")):
        _say(desk.host(name), word)
    wanted = ["one", "two", "three"]

    def lines() -> list[dict[str, Any]]:
        words = ("host", "logs", "--unit", "cogrid-say.service")
        code, document = desk.told(*words, hosts=("snmod", "snclk"))
        assert code == 0
        return [line for line in document["lines"] if line["text"] in wanted]

    found = until(lambda: found if len(found := lines()) == 3 else None, 20, "three lines")
    assert found is not None
    assert [(line["host"], line["text"]) for line in found] == [
        (PLACES["snmod"], "one"), (PLACES["snclk"], "two"), (PLACES["snmod"], "three"),
    ]  # fmt: skip


def _say(host: Host, word: str) -> None:
    """As a unit whose name is as cogrid's are."""
    host.ssh(f"systemd-run --quiet --wait --collect --unit cogrid-say echo {word}")


def test_following_goes_on_without_a_dead_host_and_ends_cleanly(desk: Desk) -> None:
    lost, kept = desk.host("snclk"), desk.host("snmod")
    for host in (lost, kept):
        _say(host, "before")
    words = ("host", "logs", "--follow", "--lines", "9", "--ssh-config", str(desk.fleet.config))
    named = ("--host", lost.ip, "--host", kept.ip, "--host", GONE)
    process = subprocess.Popen(
        (sys.executable, "-m", "cogrid.cli.main", *words, *named),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        said, noted = Heard(process.stdout), Heard(process.stderr)
        try:
            _say(lost, "first")
            said.wait_for(f"{lost.ip}\t", "first")
            lost.cut()
            _say(kept, "second")
            said.wait_for(f"{kept.ip}\t", "second")
            noted.wait_for(GONE)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == 130
        finally:
            lost.heal()
            process.kill()
            process.wait()
        assert "Traceback" not in noted.to_its_end()
    until(lambda: not _follows(kept), 10, "journalctl to end there")


def _follows(host: Host) -> bool:
    """Whether somebody still reads its journal."""
    return bool(host.ssh("grep -lx journalctl /proc/[0-9]*/comm 2>/dev/null; true"))


class Heard:
    """Lines of a process, read as they come."""

    def __init__(self, stream: IO[str]) -> None:
        self._lines: list[str] = []
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in self._stream:
            self._lines.append(line.rstrip())

    def wait_for(self, begins: str, ends: str = "") -> None:
        """A line that has the one and ends in the other."""

        def came() -> bool:
            return any(begins in line and line.endswith(ends) for line in self._lines)

        until(came, 30, f"{begins} … {ends}")

    def to_its_end(self) -> str:
        """Everything, once the process has ended."""
        self._thread.join(10)
        return "\n".join(self._lines)


def test_what_a_login_may_not_read_is_said(desk: Desk) -> None:
    desk.host("snmod").login("ann")
    code, document = desk.told("host", "logs", hosts=("ann@snmod",))
    assert (code, document["lines"]) == (5, [])
    assert "cannot be read as ann" in document["troubles"][0]["message"]
    _, out, err = desk.ask("sanity", "--trial", "10", hosts=("ann@snmod",))
    assert "[redis] OK" in out
    assert "may not become the unit's user" in err
    assert PASSWORD not in out + err


def test_a_worker_that_somebody_started_by_hand_is_found(desk: Desk) -> None:
    host = desk.host("sneng")
    host.write("/srv/worker.py", "import time; time.sleep(600)")
    pid = host.ssh(
        "setsid python3 /srv/worker.py --redis redis://:s3cret@x </dev/null >&0 2>&0 & echo $!"
    )
    try:
        _, document = desk.told("sanity", "--timeout", "1s", hosts=("sneng",))
    finally:
        host.ssh(f"kill {pid}")
    (found,) = (check for check in findings(document)["sneng"] if check["kind"] == "by_hand")
    assert f"worker.py was started by hand as process {pid} of root" in found["what"]
    assert found["mend"] == f"cogrid install-unit --host {host.ip}"
    assert "s3cret" not in json.dumps(document)


def test_units_of_a_users_own_manager(desk: Desk) -> None:
    host = desk.host("snclk")
    host.login("bob")
    host.ssh("loginctl enable-linger bob; mkdir -p ~bob/.config/systemd/user ~bob/.config/cogrid")
    settings = desk.fleet.settings(host, PASSWORD, id="bobs", scope=Scope.USER, engine="demo")
    unit = put_unit(host, settings, home="/home/bob").unit_name
    host.ssh("chown -R bob: ~bob/.config")
    host.ssh(f"systemctl --user daemon-reload; systemctl --user enable -q {unit}", user="bob")
    named = ("bob@snclk",)
    one = ("--unit", unit, "--scope", "user", "--yes")
    code, document = desk.told("host", "start", *one, hosts=named)
    assert (code, document["acts"][0]["state"]) == (0, "running"), document
    _, document = desk.told("host", "list", hosts=named)
    assert [(u["scope"], u["worker"]) for u in document["hosts"][0]["units"]] == [
        ("system", "snclk"), ("user", "bobs"),
    ]  # fmt: skip
    code, out, err = desk.ask("sanity", "bobs", "--trial", "10", hosts=named)
    assert (code, "EXIT:0" in out, "[sanity] checking demo-echo ... OK" in out) == (0, True, True)
    assert "may not become" not in err
    code, document = desk.told("host", "stop", "--now", *one, hosts=named)
    assert (code, document["acts"][0]["state"]) == (0, "stopped")


def test_drift_is_told_with_the_lines_that_differ(desk: Desk) -> None:
    assert desk.told("drift", hosts=("snmod", "snclk"))[0] == 0
    host, path = desk.host("snclk"), "/etc/systemd/system/cogrid-worker@snclk.service"
    before = (host.root / path[1:]).read_text()
    host.write(path, before.replace("[Service]", "[Service]\nNice=5"))
    try:
        code, document = desk.told("drift", hosts=("snmod", "snclk", "snred"))
    finally:
        host.write(path, before)
        host.ssh("systemctl daemon-reload")
    (found,) = document["findings"]
    assert (code, found["kind"], found["evidence"]) == (3, "drift_unit", "+Nice=5")
    assert "cogrid-worker@snclk.service" in found["subject"]
