"""Units on real hosts: what they are given arrives, and they come back from everything."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import time
from ast import literal_eval
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cogrid.model.host import Role, Scope
from cogrid.model.task import State, Task
from cogrid.model.worker import Worker, WorkerState
from cogrid.ops.unit.command import words
from cogrid.ops.unit.explain import Word, explain
from cogrid.ops.unit.render import Rendered, render
from cogrid.ops.unit.settings import UnitSettings
from cogrid.ops.unit.state import SHOW, UnitState, parse_state
from cogrid.ops.unit.variables import variables
from tests.conftest import needs
from tests.hosts.carried import PLACE, carry_cogrid
from tests.hosts.host import Host, bring_up
from tests.ops.unit.strange import workers
from tests.servers import VALKEY9, Server, launch
from tests.wait import until, until_async
from tests.worker.grid import Grid, a_grid

ADDRESS = "192.168.75.41"
SERVER = "192.168.75.2"
PASSWORD = "p%1 $HOME\"'\\s"
SCALE = 0.1
CALM = 0.3
"""The scale where a reaper must be quick enough not to doubt itself."""
WATCHDOG_S = 9
SHORT_S = 3
COLD_PORT = 11499
WAIT_S = 45.0
"""For what takes a second or two on a machine that has nothing else to do."""
EACH = 20
"""Units that are started side by side with values of every kind."""

_TELL = """\
#!/usr/bin/python3
import os, sys
place = os.environb[b"COGRID_WORKER_STATE_DIR"]
told = [list(map(os.fsencode, sys.argv)), os.getcwdb(), dict(os.environb)]
with open(place + b"/new", "w") as file:
    file.write(ascii(told))
os.rename(place + b"/new", place + b"/told")
"""
USERS = {"DOM\\user": 1801, "50%": 1802, "ubuntu": 1803}


@dataclass(frozen=True, slots=True)
class Site:
    """A host with cogrid, and a server that both it and this machine reach."""

    host: Host
    server: Server

    @property
    def url(self) -> str:
        """The server, as the host sees it; without its password."""
        return f"redis://{SERVER}:{self.server.port}/0"

    def settings(self, name: str, **fields: object) -> UnitSettings:
        """Of a worker with the demonstration for its engine."""
        made = UnitSettings(id=name, redis_url=self.url, redis_password=PASSWORD, engine="demo")
        return replace(made, **fields)  # type: ignore[arg-type]

    def put(self, made: UnitSettings, **drop_in: str) -> Rendered:
        """Its files on the host, with a drop-in for its [Service]."""
        files = render(made)
        self.host.write(files.unit_path, files.unit_text)
        (self.host.root / "etc/cogrid").mkdir(exist_ok=True)
        self.host.write(files.environment_path, files.environment_text, 0o600)
        if drop_in:
            (self.host.root / f"{files.unit_path[1:]}.d").mkdir(exist_ok=True)
            lines = "".join(f"{key}={value}\n" for key, value in drop_in.items())
            self.host.write(f"{files.unit_path}.d/test.conf", f"[Service]\n{lines}")
        return files

    def state(self, unit: str) -> UnitState:
        """What its systemd says of a unit."""
        return parse_state(self.host.ssh(f"systemctl {' '.join(SHOW)} {unit}"))

    @contextlib.contextmanager
    def started(self, *files: Rendered) -> Iterator[None]:
        """Enabled and started; gone at the end."""
        units = " ".join(each.unit_name for each in files)
        self.host.ssh(f"systemctl enable -q {units} && systemctl start --no-block {units}")
        try:
            yield
        finally:
            self.host.ssh(f"systemctl kill -s KILL {units}; systemctl disable --now -q {units}")
            self.server.client.flushall()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    needs(VALKEY9)
    with bring_up("units", ADDRESS) as host, _address(SERVER):
        carry_cogrid(host)
        server = launch(VALKEY9, password=PASSWORD, settings={"bind": SERVER})
        try:
            yield Site(host, server)
        finally:
            server.close()


@contextlib.contextmanager
def _address(address: str) -> Iterator[None]:
    """One more of this machine's on the hosts' network, so that a host can lose the server and not
    this test."""
    words = (f"{address}/24", "dev", "cogrid0")
    subprocess.run(("ip", "address", "replace", *words), check=True)
    yield
    subprocess.run(("ip", "address", "del", *words), check=True)


@pytest.fixture
async def grid(site: Site, tmp_path: Path) -> AsyncIterator[Grid]:
    made = a_grid(site.server.url, tmp_path, SCALE)
    yield made
    made.store.close()
    await asyncio.sleep(0)


async def polling(
    grid: Grid, name: str, since: Worker | None = None, wait_s: float = WAIT_S
) -> Worker:
    """The worker once it claims, as another process than ``since``."""

    async def polls() -> Worker | None:
        now = await grid.worker(name)
        is_new = now and now.polled_at_ms and (not since or now.instance != since.instance)
        return now if is_new else None

    found = await until_async(polls, wait_s, f"{name} to poll")
    assert found
    return found


# Every value that a unit is given.


@given(
    many=st.lists(
        workers(), min_size=EACH, max_size=EACH,
        unique_by=(lambda each: each.id, lambda each: each.unit_name, lambda each: each.program[0]),
    )
)  # fmt: skip
@settings(
    max_examples=2,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
    database=None,
)
def test_whatever_a_unit_is_given_arrives_byte_for_byte(
    site: Site, many: list[UnitSettings]
) -> None:
    made = [replace(each, scope=Scope.SYSTEM) for each in many]
    with _users(site.host), _units(site, made) as names:
        site.host.ssh(f"systemctl daemon-reload && systemctl start --no-block {' '.join(names)}")
        for each in made:
            _assert_told(site.host, each)


@contextlib.contextmanager
def _users(host: Host) -> Iterator[None]:
    passwd = host.root / "etc/passwd"
    before = passwd.read_text()
    lines = (f"{name}:x:{number}:100::/:/bin/sh\n" for name, number in USERS.items())
    passwd.write_text(before + "".join(lines))
    yield
    passwd.write_text(before)


@contextlib.contextmanager
def _units(site: Site, made: list[UnitSettings]) -> Iterator[list[str]]:
    root = site.host.root
    files = []
    for each in made:
        program = root / each.program[0].lstrip("/")
        program.write_text(_TELL)
        program.chmod(0o755)
        if each.workdir:
            (root / each.workdir.lstrip("/")).mkdir(exist_ok=True)
        # What it says of itself is another test's.
        files.append(site.put(each, Type="exec"))
    yield [file.unit_name for file in files]
    site.host.ssh("systemctl stop " + " ".join(file.unit_name for file in files))
    for file in files:
        (root / file.unit_path[1:]).unlink()
        (root / f"{file.unit_path[1:]}.d/test.conf").unlink()
        (root / f"{file.unit_path[1:]}.d").rmdir()


def _assert_told(host: Host, made: UnitSettings) -> None:
    file = host.root / f"var/lib/cogrid/worker-{made.id}/told"
    until(file.exists, WAIT_S, f"{made}\n{render(made).unit_text}")
    argv, cwd, env = literal_eval(file.read_text())
    assert tuple(map(os.fsdecode, argv)) == words(made)
    assert os.fsdecode(cwd) == (made.workdir or "/")
    seen = {name: env.get(name.encode()) for name, _ in variables(made)}
    assert seen == {name: value.encode() for name, value in variables(made)}
    user = {**USERS, "root": 0}.get(made.user)
    assert user is None or file.stat().st_uid == user
    file.unlink()


def test_sh_reads_an_environment_file_as_systemd_does(site: Site) -> None:
    hard = "`id` $(id) ${HOME} \\\\ \\n \" ' % ! ~ # ;"
    files = site.put(site.settings("sh", environment=(("HARD", hard),)))
    script = f'set -a; . {files.environment_path}; printf "%s|" "$HARD" "$COGRID_REDIS_PASSWORD"'
    assert site.host.ssh(script) == f"{hard}|{PASSWORD}|"


# It comes back.


async def test_what_is_killed_or_hangs_is_back_soon_and_what_is_busy_is_left_alone(
    site: Site, grid: Grid
) -> None:
    """The killed one is as installed. The one that hangs has its task moved before its watchdog
    fires. One runs for many times its watchdog's patience, one waits as long for its model."""
    scaled = {"Environment": f"COGRID_TIME_SCALE={CALM} COGRID_DEMO_DELAY_MS=2000"}
    short = scaled | {"WatchdogSec": str(SHORT_S)}
    killed = site.put(site.settings("killed"))
    hung = site.put(site.settings("hung", restart_s=1), **scaled, WatchdogSec=str(WATCHDOG_S))
    busy = site.put(site.settings("busy"), **short)
    cold = site.put(site.settings("cold", engine=f"http://127.0.0.1:{COLD_PORT}"), **short)
    reaper = site.put(replace(site.settings(""), role=Role.REAPER, engine=""), **scaled)
    with _cold_engine(site.host), site.started(killed, hung, busy, cold, reaper):
        before = {name: await polling(grid, name) for name in ("killed", "hung", "busy", "cold")}
        await grid.submit("t1", model="demo-echo", queue="tasks:cpu:hung", streamed=False)
        await until_async(lambda: _runs_on(grid, "hung"), WAIT_S, "the task to run")
        site.host.ssh(f"systemctl kill -s KILL {killed.unit_name}")
        killed_at = time.monotonic()
        site.host.ssh(f"systemctl kill -s STOP {hung.unit_name}")
        hung_at = time.monotonic()
        await until_async(lambda: _runs_on(grid, "busy"), WAIT_S, "the task to move")
        assert await stands(grid, before["hung"]), "its task was moved only after its restart"
        await polling(grid, "hung", before["hung"])
        assert WATCHDOG_S / 2 < time.monotonic() - hung_at < 15
        await polling(grid, "killed", before["killed"], wait_s=15 - (time.monotonic() - killed_at))
        assert time.monotonic() - killed_at > 10, "RestartSec=10"
        assert await _runs_on(grid, "busy"), "it ran all the time"
        await grid.worker_is(WorkerState.READY, "cold")
        states = [site.state(each.unit_name) for each in (hung, busy, cold, reaper)]
        assert [state.restarts for state in states] == [1, 0, 0, 0]
    log = site.host.ssh(f"journalctl -o cat -u {hung.unit_name}")
    assert "Watchdog timeout" in log
    assert "Fatal Python error: Aborted" in log, "where it hung is told"


@contextlib.contextmanager
def _cold_engine(host: Host) -> Iterator[None]:
    """One whose model takes longer to load than a watchdog has patience."""
    words = f"-m cogrid.engine.fault --port {COLD_PORT} --load-s {4 * SHORT_S}"
    host.ssh(f"systemd-run -q -u cold-engine -E PYTHONPATH={PLACE}/lib /usr/bin/python3 {words}")
    yield
    host.ssh("systemctl stop cold-engine")


async def _runs_on(grid: Grid, name: str) -> Task | None:
    task = await grid.task("t1")
    return task if (task.state, task.worker) == (State.RUNNING, name) else None


async def test_after_a_reboot_it_waits_for_a_server_that_is_away_and_then_polls(
    site: Site, grid: Grid
) -> None:
    """Every role starts by itself; what is sent to the server is lost on its way for 2 minutes (at
    the test's scale), for which no watchdog fires."""
    fast = {"Environment": f"COGRID_TIME_SCALE={SCALE}", "WatchdogSec": str(WATCHDOG_S)}
    worker = site.put(site.settings("reboots"), **fast)
    others = [
        site.put(replace(site.settings(""), role=role, engine=""), **fast)
        for role in (Role.COORDINATOR, Role.REAPER)
    ]
    units = [each.unit_name for each in (worker, *others)]
    with site.started(worker, *others):
        before = await polling(grid, "reboots")
        with _lost(site.host, SERVER):
            lost_at = time.monotonic()
            _reboot(site.host)
            until(lambda: all(site.state(unit).running for unit in units), WAIT_S, "to be up")
            await asyncio.sleep(lost_at + 120 * SCALE - time.monotonic())
            states = [site.state(unit) for unit in units]
            assert [(state.running, state.restarts) for state in states] == [(True, 0)] * 3
            assert await stands(grid, before)
        back_at = time.monotonic()
        await polling(grid, "reboots", before, wait_s=20)
        assert time.monotonic() - back_at < 20
        assert [site.state(unit).restarts for unit in units] == [0, 0, 0]
        assert explain(site.state(worker.unit_name)).word is Word.RUNNING


async def stands(grid: Grid, before: Worker) -> bool:
    """No other process than that one has its name."""
    now = await grid.worker(before.id)
    return now is None or now.instance == before.instance


def _reboot(host: Host) -> None:
    ask = "cat /proc/sys/kernel/random/boot_id"
    boot = host.ssh(ask)
    host.ssh("systemctl reboot", check=False)
    until(lambda: host.ssh(ask, check=False) not in ("", boot), WAIT_S, "the host to be back")


@contextlib.contextmanager
def _lost(host: Host, address: str) -> Iterator[None]:
    """Everything that the host sends there goes to a machine that is not there."""
    nobody = "02:00:00:00:00:99"
    host.inside(
        "ip", "neigh", "replace", address, "lladdr", nobody, "dev", "eth0", "nud", "permanent"
    )
    yield
    host.inside("ip", "neigh", "del", address, "dev", "eth0")


async def test_it_gets_the_time_that_its_drain_takes(site: Site, grid: Grid) -> None:
    """A unit that was installed before its drain was made longer."""
    times = f"COGRID_TIME_SCALE={SCALE} COGRID_DEMO_DELAY_MS=400"
    files = site.put(site.settings("drains"), Environment=times, TimeoutStopSec="1")
    with site.started(files):
        await polling(grid, "drains")
        await grid.submit("t1", model="demo-echo", queue="tasks:cpu:drains")
        await grid.in_state("t1", State.RUNNING)
        site.host.ssh(f"systemctl stop {files.unit_name}")
        state = site.state(files.unit_name)
        assert (state.active, state.result) == ("inactive", "success")
        assert (await grid.task("t1")).state is State.DONE


# In the scope of a user.


async def test_a_users_unit_outlives_the_login(site: Site, grid: Grid) -> None:
    site.host.login("ada")
    files = render(site.settings("hers", scope=Scope.USER))
    home = site.host.root / "home/ada"
    for path, text in (
        (files.unit_path, files.unit_text),
        (files.environment_path, files.environment_text),
    ):
        file = home / path.removeprefix("~/")
        file.parent.mkdir(parents=True)
        file.write_text(text)
    site.host.ssh("loginctl enable-linger ada && chown -R ada: ~ada/.config")
    call = "XDG_RUNTIME_DIR=/run/user/$(id -u) systemctl --user"
    until(lambda: site.host.ssh(f"{call} is-system-running", user="ada", check=False) == "running")
    site.host.ssh(f"{call} enable --now --quiet {files.unit_name}", user="ada")
    await polling(grid, "hers")
    state = parse_state(site.host.ssh(f"{call} {' '.join(SHOW)} {files.unit_name}", user="ada"))
    assert state.running
    assert state.path == f"/home/ada/{files.unit_path.removeprefix('~/')}"
    # The system's manager knows none of that name.
    assert not site.state(files.unit_name).installed
    site.host.ssh(f"{call} disable --now --quiet {files.unit_name}", user="ada")
    site.host.ssh("loginctl disable-linger ada")
    site.server.client.flushall()


# What it may do there, and what it may not.


async def test_it_is_shut_in_and_still_sees_what_it_must(site: Site, grid: Grid) -> None:
    files = site.put(site.settings("shut"), Environment=f"COGRID_TIME_SCALE={SCALE}")
    with site.started(files):
        worker = await polling(grid, "shut")
        assert int(str(worker.report["memory_bytes"])) > 0
        pid = site.state(files.unit_name).pid
        status = site.host.ssh(f"cat /proc/{pid}/status")
        assert "NoNewPrivs:\t1" in status
        assert "CapEff:\t0000000000000000" in status
        assert "Seccomp:\t2" in status
        inside = f"nsenter -t {pid} -m sh -c"
        # The GPU's devices are seen (a worker tells its pool by them), homes are not.
        assert site.host.ssh(f"{inside} 'ls /dev/null /home'") == "/dev/null\n\n/home:"
        assert site.host.ssh(f"stat -c %a:%U {files.environment_path}") == "600:root"
        place = site.host.root / "var/lib/cogrid/worker-shut"
        assert sorted(file.name for file in place.iterdir()) == ["worker-shut.lock"]
    log = site.host.ssh(f"journalctl -o cat -u {files.unit_name}")
    assert "[register] worker_id=shut" in log
    assert PASSWORD not in log


@pytest.mark.parametrize(
    ("change", "exit_code", "cure"),
    [
        ({"program": ("/opt/gone/cogrid",)}, "203/EXEC", "ExecStart="),
        ({"workdir": "/nowhere"}, "200/CHDIR", "WorkingDirectory="),
        ({"user": "nobodyatall"}, "217/USER", "make the user"),
    ],
)
def test_why_it_is_not_started_is_told(
    site: Site, change: dict[str, object], exit_code: str, cure: str
) -> None:
    files = site.put(site.settings("wrong", **change))
    site.host.ssh(f"systemctl daemon-reload; systemctl start {files.unit_name}", check=False)
    said = explain(site.state(files.unit_name))
    site.host.ssh(f"systemctl stop {files.unit_name}")
    assert said.word is Word.RESTARTING
    assert f"(exit code {exit_code})" in said.what
    assert cure in said.cure


def test_a_missing_environment_file_and_a_used_up_start_limit_are_told(site: Site) -> None:
    files = site.put(site.settings("limit", program=("/opt/gone/cogrid",)), RestartSec="10ms")
    limit = "[Unit]\nStartLimitIntervalSec=100\nStartLimitBurst=3\n"
    file = f"{files.unit_path}.d/test.conf"
    site.host.write(file, limit + (site.host.root / file[1:]).read_text())
    site.host.ssh(f"systemctl daemon-reload; systemctl start {files.unit_name}", check=False)
    until(lambda: site.state(files.unit_name).gave_up, WAIT_S, "systemd to give up")
    said = explain(site.state(files.unit_name))
    assert "(start limit): it was not started: systemd could not execute" in said.what
    site.host.ssh(f"systemctl reset-failed {files.unit_name}; rm {files.environment_path}")
    site.host.ssh(f"systemctl start {files.unit_name}", check=False)
    until(lambda: site.state(files.unit_name).result == "resources", WAIT_S)
    assert "EnvironmentFile=" in explain(site.state(files.unit_name)).cure
