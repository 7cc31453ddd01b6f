"""A real host becomes a worker by one command, and is as it was after whatever goes wrong."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from cogrid import __version__
from cogrid.config import Config, load
from cogrid.engine.demo import MODEL
from cogrid.errors import HostError, HostFault
from cogrid.model.chat import Dialect, Request, encode_request
from cogrid.model.host import Host as Named
from cogrid.model.names import TaskId, shared_queue
from cogrid.model.task import Kind, OnClose, State
from cogrid.model.worker import Worker
from cogrid.ops.delivery.stage import stage
from cogrid.ops.install.apply import NotDoneError, carry_out
from cogrid.ops.install.fleet import Install, install, look_at
from cogrid.ops.install.grid import Grid
from cogrid.ops.install.inspect import Job, inspect
from cogrid.ops.install.order import Order
from cogrid.ops.install.plan import Act, Wishes
from cogrid.remote.access import Access
from cogrid.remote.answers import Asked
from cogrid.remote.connection import Connection, connect
from cogrid.store.address import Address, parse_address
from cogrid.store.client import Store
from cogrid.store.snapshot import read_snapshot
from cogrid.store.task_hashes import read_tasks
from cogrid.store.tasks import Submission, submit
from tests.conftest import needs
from tests.hosts.host import Host, bring_up
from tests.ops.delivery.build import UNPACK, a_wheel
from tests.servers import VALKEY9, Server, launch
from tests.wait import until

pytestmark = pytest.mark.timeout(300)
"""The first one waits for a real installation, which takes a minute on a busy machine."""

HERE = "192.168.72.1"
"""This machine's address on the hosts' network."""
PASSWORD = "s3cret 100%$x"
SCALE = "0.2"
UNIT = "cogrid-worker@esxi.service"
ENVIRONMENT = "/etc/cogrid/cogrid-worker@esxi.env"
FINGERPRINT = r"""
ls -A /opt /var/lib /usr/local /etc
find /var/lib/cogrid* -printf '%p %u %m\n' 2>/dev/null | sort
find /opt/cogrid /home /root /srv /etc/cogrid /etc/systemd/system \
    \( -type d -printf '%p %u:%g %m\n' -o -type l -printf '%p -> %l\n' \
       -o -printf '%p %u:%g %m %s %T@\n' \) 2>/dev/null | grep -v '/\.ssh\|__pycache__' | sort
find /etc -maxdepth 1 -name 'passwd' -o -maxdepth 1 -name 'group' -o -maxdepth 1 -name 'shadow' |
    sort | xargs sha256sum
systemctl show --property=Id,ActiveState,SubState,UnitFileState,MainPID,NRestarts \
    cogrid-worker@esxi.service coordinator-worker.service
systemctl list-units --all --plain --no-legend 'cogrid*.service' 'run-*.service' | cut -d' ' -f1
ps -eo stat,args | grep '[w]orker.py' | sort
loginctl list-users --no-legend 2>/dev/null | grep -c linger
"""
"""Everything that an installation could leave behind: files, users, units, processes."""


@dataclass(frozen=True, slots=True)
class Site:
    """A host, and a server that both it and this machine reach."""

    host: Host
    server: Server
    cache: dict[str, str]

    @property
    def url(self) -> str:
        """The server as the host is to know it, without its password."""
        return f"redis://{HERE}:{self.server.port}/0"

    @property
    def env(self) -> dict[str, str]:
        """Of a command here."""
        return {
            "COGRID_REDIS_URL": self.url,
            "COGRID_REDIS_PASSWORD": PASSWORD,
            "COGRID_TIME_SCALE": SCALE,
            "COGRID_CONFIG": "/dev/null",
        }

    @property
    def config(self) -> Config:
        return load(None, self.env)

    def order(self, **fields: Any) -> Order:
        wishes = Wishes(**{key: fields.pop(key) for key in ("force", "replace") if key in fields})
        config = self.config
        address = parse_address(self.url, None, PASSWORD)
        return Order(fields.pop("redis", address), config, wishes, **fields)

    def named(self, **fields: Any) -> Named:
        return Named(self.host.ip, **{"id": "esxi", "engine": "demo", **fields})

    def store(self) -> Store:
        return Store.connect(parse_address(self.url, None, PASSWORD), "")

    def grid(self) -> Grid:
        return Grid(self.store(), self.config.limits)

    def worker(self) -> Worker | None:
        store = self.store()
        with contextlib.closing(store):
            return store.read(read_snapshot(store.keys, info=False, stray=True)).worker("esxi")

    def fingerprint(self) -> str:
        return self.host.ssh(FINGERPRINT, check=False)

    def unit(self, what: str = "MainPID") -> str:
        return self.host.ssh(f"systemctl show --value --property={what} {UNIT}")

    def install(self, access: Access | None = None, **fields: Any) -> Install:
        """By the library; what an operator agreed to is done."""
        order = self.order(
            **{k: fields.pop(k) for k in ("force", "replace", "redis") if k in fields}
        )
        access = access or self.host.access
        found = look_at([self.named(**fields)], order, access, self.store, _unheard)
        return install(found, order, access, self.store, _unheard)

    def cli(self, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """By the command, as a process of its own."""
        return subprocess.run(
            self.words(*words), capture_output=True, text=True, timeout=100, check=False,
            env={**os.environ, **self.cache, **self.env}, stdin=subprocess.DEVNULL, **more,
        )  # fmt: skip

    def words(self, verb: str, *words: str) -> list[str]:
        config = ("--ssh-config", str(self.host.place / "ssh_config"))
        return [
            sys.executable,
            "-m",
            "cogrid.cli.main",
            verb,
            "--host",
            self.host.ip,
            *config,
            *words,
        ]


def _unheard(_host: str, _line: str) -> None:
    pass


@contextlib.contextmanager
def a_site(name: str, ip: str, cache: dict[str, str]) -> Iterator[Site]:
    needs(VALKEY9)
    with bring_up(name, ip) as host:
        host.ssh(
            "rm -rf /usr/lib/python3/dist-packages/pip* /usr/share/python-wheels /usr/bin/pip*"
        )
        server = launch(VALKEY9, password=PASSWORD, settings={"bind": f"127.0.0.1 {HERE}"})
        try:
            yield Site(host, server, cache)
        finally:
            server.close()


# From a bare host to a worker. All that needs a real cogrid there shares this one.


@dataclass(frozen=True, slots=True)
class First:
    """The first installation, by the command."""

    site: Site
    done: subprocess.CompletedProcess[str]
    took_s: float


@pytest.fixture(scope="module")
def first(fetched: dict[str, str]) -> Iterator[First]:
    with a_site("install", "192.168.72.41", fetched) as site:
        for module in ("redis", "pip"):
            assert "No module" in site.host.ssh(f"python3 -c 'import {module}' 2>&1 || :")
        began_s = time.monotonic()
        done = site.cli("install-unit", "--id", "esxi", "--engine", "demo", "--yes", "--json")
        yield First(site, done, time.monotonic() - began_s)


@pytest.fixture
def site(first: First) -> Iterator[Site]:
    """The worker esxi runs there as the first installation left it; afterwards it does so again."""
    unit = first.site.host.root / "etc/systemd/system" / UNIT
    before = unit.read_text()
    yield first.site
    if (
        not unit.exists()
        or unit.read_text() != before
        or first.site.unit("ActiveState") != "active"
    ):
        first.site.install(force=True, replace=True)


def test_a_bare_host_polls_after_one_command(first: First) -> None:
    site, done = first.site, first.done
    assert done.returncode == 0, done.stderr
    (host,) = json.loads(done.stdout)["hosts"]
    assert (host["unit"], host["state"], host["error"]) == (UNIT, "installed", None)
    assert first.took_s < 90
    worker = site.worker()
    assert worker
    assert worker.polled_at_ms > 0
    assert site.unit("ActiveState") == "active"
    assert site.unit("UnitFileState") == "enabled"
    assert site.host.ssh(f"stat -c '%a %U' {ENVIRONMENT}") == "600 root"
    # Only its own environment has what it needs.
    assert "No module" in site.host.ssh("python3 -c 'import redis' 2>&1 || :")
    assert PASSWORD not in done.stdout + done.stderr


def test_the_same_again_changes_and_restarts_nothing(site: Site) -> None:
    before, process = site.fingerprint(), site.unit()
    done = site.cli("install-unit", "--id", "esxi", "--engine", "demo", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    (host,) = json.loads(done.stdout)["hosts"]
    assert (host["state"], host["steps"], host["diff"]) == ("nothing to do", [], [])
    assert (site.unit(), site.fingerprint()) == (process, before)


def test_changed_settings_restart_once_and_what_runs_is_finished_first(site: Site) -> None:
    task = _long_task(site)
    (host,) = site.install(slots=2).hosts
    assert host.state == "installed", host
    assert "drain esxi, which runs 1 task" in host.steps
    assert _state(site, task) is State.DONE
    worker = site.worker()
    assert worker
    assert (worker.slots, worker.wish.state) == (2, "run")
    starts = site.host.ssh(f"journalctl -q -o cat -u {UNIT} | grep -c '^Started'")
    assert site.install(slots=2).hosts[0].state == "nothing to do"
    assert site.host.ssh(f"journalctl -q -o cat -u {UNIT} | grep -c '^Started'") == starts


def test_drop_ins_stay_and_what_was_edited_is_shown_and_kept(site: Site) -> None:
    host, path = site.host, f"/etc/systemd/system/{UNIT}"
    host.ssh(f"mkdir {path}.d")
    host.write(f"{path}.d/gpu.conf", "[Service]\nEnvironment=CUDA_VISIBLE_DEVICES=1\n")
    text = (host.root / path[1:]).read_text()
    host.write(path, text.replace("RestartSec=10", "RestartSec=3"))
    host.ssh("systemctl daemon-reload")
    before = site.fingerprint()
    done = site.cli("install-unit", "--id", "esxi", "--engine", "demo", "--slots", "2", "--yes")
    assert done.returncode == 5
    assert "-RestartSec=3" in done.stdout
    assert f"{path} was edited by hand" in done.stdout
    assert site.fingerprint() == before
    (result,) = site.install(slots=2, force=True).hosts
    assert result.state == "installed", result
    assert "RestartSec=10" in (host.root / path[1:]).read_text()
    environ = host.ssh(f"tr '\\0' '\\n' </proc/{site.unit()}/environ")
    assert "CUDA_VISIBLE_DEVICES=1" in environ
    assert f"stays as it is: {path}.d/gpu.conf" in result.notes
    host.ssh(f"rm -r {path}.d && systemctl daemon-reload")


CHANGE_STEPS = [
    Act.UNIT, Act.DRAIN, Act.REPLACE, Act.FREEZE, Act.START, Act.ACTIVE, Act.POLLED,
]  # fmt: skip


def test_wherever_the_connection_breaks_the_old_worker_runs_on(site: Site) -> None:
    """Every step of a change, each cut after it. Before the start its process stays the same."""
    with _old_workers(site):
        job = _job(site, site.order(replace=True), slots=3)
        assert [step.act for step in job.plan.steps] == [*CHANGE_STEPS, Act.END]
        before = _without_process(site.fingerprint())
        for number, act in enumerate(CHANGE_STEPS, start=1):
            process = site.unit()
            _cut_after(site, job, number)
            until(lambda: site.unit("ActiveState") == "active" and _old_runs(site.host), 30)
            assert (site.unit() != process) is (number > CHANGE_STEPS.index(Act.START))
            assert _without_process(site.fingerprint()) == before, act
            _no_wish_left(site)


def test_ctrl_c_takes_back_what_was_begun(site: Site) -> None:
    before = _without_process(site.fingerprint())
    words = site.words("install-unit", "--id", "esxi", "--engine", "demo", "--slots", "4", "--yes")
    with subprocess.Popen(
        words, env={**os.environ, **site.cache, **site.env}, stderr=subprocess.PIPE, text=True,
        stdout=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        lines = process.stderr
        assert lines
        until(lambda: next(lines).startswith(f"{site.host.ip}: restart {UNIT}"), 60)
        process.send_signal(signal.SIGINT)
        said = lines.read()
        assert process.wait(60) == 130
    assert f"{site.host.ip}: interrupted; what was begun is taken back" in said
    until(lambda: site.unit("ActiveState") == "active", 30)
    assert _without_process(site.fingerprint()) == before
    _no_wish_left(site)


def test_a_worker_that_does_not_start_is_taken_back_with_its_last_words(site: Site) -> None:
    """What keeps it from starting is found by no check before."""
    before = _without_process(site.fingerprint())
    place = f"/run/systemd/system/{UNIT}.d"
    line = "ExecStartPre=/bin/sh -c 'echo no luck today; exit 3'"
    site.host.ssh(f"mkdir {place}; cat >{place}/x.conf <<'END'\n[Service]\n{line}\nEND")
    site.host.ssh("systemctl daemon-reload")
    (host,) = site.install(slots=2).hosts
    site.host.ssh(f"rm -r {place}; systemctl daemon-reload; systemctl restart {UNIT}")
    assert (host.state, host.step) == ("failed", "active")
    assert host.error
    assert "it was taken back: the host is as it was" in host.error
    assert "no luck today" in host.journal
    assert _without_process(site.fingerprint()) == before


# Secrets.


def test_no_secret_is_seen_by_others_on_either_side(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    secrets = {"redis": PASSWORD, "sudo": "sud0-pw", "phrase": "phr4se-pw", "api": "sk-api-k3y"}
    host = site.host
    host.login("carol", sudo="ALL=(ALL) ALL")
    host.login("mallory")
    host.ssh(f"echo 'carol:{secrets['sudo']}' | chpasswd")
    key = _locked_key(host, "carol", secrets["phrase"], tmp_path)
    watch = _watched(host)
    asked = Asked(
        password=lambda _h, _w: None,
        passphrase=lambda _f, wrong: None if wrong else secrets["phrase"],
        sudo=lambda _h, wrong: None if wrong else secrets["sudo"],
    )
    config = tmp_path / "ssh_config"
    usual = (host.place / "ssh_config").read_text()
    config.write_text(usual.replace("User root", "User carol").replace(str(host.key), str(key)))
    access = replace(host.access, asked=asked, config=config)
    with_key = {**site.env, "COGRID_WORKER_ENGINE_KEY": secrets["api"]}
    order = replace(site.order(), config=load(None, with_key))
    found = look_at([site.named(slots=2, user="cogrid")], order, access, site.store, print)
    done = install(found, order, access, site.store, print)
    assert done.hosts[0].state == "installed", done
    assert site.host.ssh(f"grep -c {secrets['api']} {ENVIRONMENT}") == "1"
    seen = _look_around(host, watch)
    said = capfd.readouterr()
    ours = "\n".join((said.out, said.err, caplog.text, repr(found), repr(done), repr(access)))
    for name, secret in secrets.items():
        assert secret.partition(" ")[0] not in seen, f"the {name} secret is readable there"
        assert secret.partition(" ")[0] not in ours, f"the {name} secret is shown here"


# What the user's own manager runs.


def test_a_user_without_any_right_has_a_worker_of_their_own(site: Site) -> None:
    host = site.host
    host.login("dora")
    before = site.fingerprint()
    access = replace(host.access, config=_as_user(host, "dora"))
    fields = {"scope": "user", "id": "doras"}
    (refused,) = site.install(access, **fields).hosts
    assert [each.what for each in refused.objections] == [
        "its units end with the last login, since lingering is off for that user"
    ]
    assert site.fingerprint() == before
    host.ssh("loginctl enable-linger dora")
    until(
        lambda: host.ssh("systemctl is-active user@$(id -u dora).service", check=False) == "active"
    )
    (done,) = site.install(access, **fields).hosts
    assert done.state == "installed", done
    assert site.install(access, **fields).hosts[0].state == "nothing to do"
    path = "/home/dora/.config/cogrid/cogrid-worker@doras.env"
    assert host.ssh(f"stat -c '%a %U' {path}") == "600 dora"
    done_ = site.cli(
        "uninstall-unit", "--ssh-config", str(access.config), "--scope", "user", "--id", "doras",
        "--yes",
    )  # fmt: skip
    assert done_.returncode == 0, done_.stderr
    left = host.ssh("find /home/dora -path '*cogrid*'")
    assert left == ""
    host.ssh("loginctl disable-linger dora; userdel -r dora 2>/dev/null || :", check=False)


# Away again.


def test_an_uninstalled_unit_leaves_only_what_is_not_its_own(site: Site) -> None:
    host, path = site.host, f"/etc/systemd/system/{UNIT}"
    host.ssh(f"mkdir -p {path}.d && echo '[Service]' >{path}.d/mine.conf")
    other = "/etc/systemd/system/cogrid-worker@two.service"
    host.write(other, "[Service]\nExecStart=/opt/cogrid/current/bin/cogrid worker run --id two\n")
    shown = site.cli("uninstall-unit", "--id", "esxi", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert f"remove {path}" in shown.stdout
    assert site.unit("ActiveState") == "active"
    done = site.cli("uninstall-unit", "--id", "esxi", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["hosts"]
    assert result["state"] == "removed"
    assert result["left"] == [
        f"{path}.d: not cogrid's",
        "/opt/cogrid: used by cogrid-worker@two.service",
    ]
    assert site.worker() is None
    assert host.ssh("ls -d /etc/cogrid /var/lib/cogrid 2>/dev/null", check=False) == ""
    assert host.ssh(f"ls -d {path}*") == f"{path}.d"
    again = site.cli("uninstall-unit", "--id", "esxi", "--yes", "--json")
    assert json.loads(again.stdout)["hosts"][0]["state"] == "nothing to do"
    host.ssh(f"rm -r {path}.d {other}; systemctl daemon-reload")


# A host on which nothing of ours ever runs: a cogrid that only says that it is up.


SLEEPER = f"""\
import os, socket, sys, time
def main():
    if "--version" in sys.argv:
        print("cogrid, version {__version__}")
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
    time.sleep(600)
"""
OLD_UNIT = """\
[Service]
ExecStart=/usr/bin/python3 /srv/worker.py
Restart=always
[Install]
WantedBy=multi-user.target
"""


@pytest.fixture(scope="module")
def bare(fetched: dict[str, str]) -> Iterator[Site]:
    with a_site("instbare", "192.168.72.42", fetched) as site:
        site.host.login("ada", sudo="ALL=(ALL) NOPASSWD: ALL")
        site.host.login("bob")
        yield site


@pytest.fixture(scope="module")
def sleepers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheels of a cogrid that does nothing, and of a pip that unpacks."""
    place = tmp_path_factory.mktemp("wheels")
    files = {
        "cogrid/cli/__init__.py": "",
        "cogrid/cli/main.py": SLEEPER,
        **{f"cogrid/{name}/__init__.py": "" for name in ("coordinator", "worker", "reaper")},
    }
    a_wheel(place, "cogrid", __version__, files=files, program="cogrid.cli.main:main")
    a_wheel(place, "pip", "99.0", files={"pip/__main__.py": UNPACK})
    return place


FIRST_STEPS = [
    Act.USER, Act.INSTALL, Act.ENVIRONMENT, Act.UNIT, Act.SWITCH, Act.REPLACE, Act.FREEZE,
    Act.ENABLE, Act.START, Act.ACTIVE, Act.POLLED,
]  # fmt: skip


@pytest.mark.parametrize("cuts", [FIRST_STEPS[:5], FIRST_STEPS[5:-1]], ids=["early", "late"])
def test_wherever_the_connection_breaks_a_bare_host_is_bare_again(
    bare: Site, sleepers: Path, cuts: list[Act]
) -> None:
    """Every step of a first installation, each cut after it. For the late ones cogrid lies there
    already, unused: that saves time, and it must stay, too."""
    late = cuts[0] is not FIRST_STEPS[0]
    with _old_workers(bare):
        job = _job(bare, bare.order(replace=True, wheels=sleepers))
        assert [step.act for step in job.plan.steps] == [*FIRST_STEPS, Act.END]
        if late:
            _stage(bare, job)
        before = _without_process(bare.fingerprint())
        for act in cuts:
            _cut_after(bare, job, FIRST_STEPS.index(act) + 1)
            until(lambda: _old_runs(bare.host), 30)
            assert _without_process(bare.fingerprint()) == before, act
    bare.host.ssh("rm -rf /opt/cogrid")


@dataclass(frozen=True, slots=True)
class Lack:
    """What is wrong with a host, or with what is wanted there; and what is said of it."""

    what: tuple[str, ...]
    breaks: str = ":"
    mends: str = ":"
    redis: Address | None = None
    fields: dict[str, Any] = field(default_factory=dict)


LACKS = {
    "closed, noexec, no Redis, no engine": Lack(
        (
            "the file system at /opt/cogrid is mounted noexec, so no program there can run",
            "ada may not enter or read the working directory /srv/closed",
            f"Redis at {HERE}:1 cannot be reached from there: Connection refused",
            "no engine answers there on the usual ports",
        ),
        "mkdir /opt/cogrid && mount -t tmpfs -o noexec none /opt/cogrid; mkdir -m 700 /srv/closed",
        "umount /opt/cogrid && rmdir /opt/cogrid /srv/closed",
        Address(HERE, 1),
        {"workdir": "/srv/closed", "user": "ada", "engine": ""},
    ),
    "no user, no directory, a full disk, itself": Lack(
        (
            "there is no user nobody-here",
            "the working directory /srv/gone does not exist there",
            "the disk at /opt/cogrid has 9 MB free and 17 MB are needed",
            "the Redis URL names redis.lan:6379, which on that host means the host itself",
        ),
        "mkdir /opt/cogrid && mount -t tmpfs -o size=9m none /opt/cogrid;"
        " echo 127.0.0.1 redis.lan >>/etc/hosts",
        "umount /opt/cogrid && rmdir /opt/cogrid; sed -i /redis.lan/d /etc/hosts",
        Address("redis.lan"),
        {"workdir": "/srv/gone", "user": "nobody-here"},
    ),
    "a path that no unit can hold": Lack(
        ("the working directory '~/x' is no absolute path that a unit can name",),
        fields={"workdir": "~/x"},
    ),
    "no systemd": Lack(
        ("there is no systemd as init (its first process is systemd)",),
        "mv /run/systemd/system /run/systemd/away",
        "mv /run/systemd/away /run/systemd/system",
    ),
    "no Python": Lack(
        ("/usr/bin/perl is no Python that runs there",), fields={"python": "/usr/bin/perl"}
    ),
}


@pytest.mark.parametrize("lack", LACKS.values(), ids=LACKS)
def test_what_a_host_lacks_is_refused_before_anything_is_touched(
    bare: Site, sleepers: Path, lack: Lack
) -> None:
    bare.host.ssh(lack.breaks)
    try:
        before = bare.fingerprint()
        order = bare.order(wheels=sleepers, redis=lack.redis or bare.order().redis)
        named = bare.named(**lack.fields)
        (found,) = look_at([named], order, bare.host.access, bare.store, _unheard)
        assert isinstance(found, Job), found
        assert {each.what for each in found.plan.objections} == set(lack.what)
        assert all(each.cure for each in found.plan.objections)
        assert bare.fingerprint() == before
    finally:
        bare.host.ssh(lack.mends)


def test_an_old_python_is_refused_before_anything_is_touched(bare: Site, sleepers: Path) -> None:
    """What is there says that it is 3.9, and nothing else is there."""
    bare.host.write("/srv/old-python", OLD_PYTHON, 0o755)
    bare.host.ssh(
        "mkdir /srv/new && mv /usr/bin/python3* /srv/new/ && mv /usr/local/bin/python3* /srv/new/"
        " 2>/dev/null; cp /srv/old-python /usr/bin/python3",
        check=False,
    )
    try:
        before = bare.fingerprint()
        order = bare.order(wheels=sleepers)
        (found,) = look_at([bare.named()], order, bare.host.access, bare.store, _unheard)
        assert isinstance(found, Job), found
        (objection,) = found.plan.objections
        assert "is 3.9.2, cogrid needs 3.11" in objection.what
        assert bare.fingerprint() == before
    finally:
        bare.host.ssh(
            "rm /usr/bin/python3; mv /srv/new/* /usr/bin/; rm -r /srv/new /srv/old-python"
        )


OLD_PYTHON = """\
#!/bin/sh
exec "$(ls /srv/new/python3.1[1-9] | head -1)" -E -s -c '
import platform, sys
sys.version_info = (3, 9, 2)
exec(sys.argv[1])' "$4"
"""


@pytest.mark.parametrize("user", ["bob", "carl"])
def test_without_the_right_to_sudo_nothing_is_touched(bare: Site, user: str) -> None:
    """bob may nothing; carl needs a password that nobody is there to give."""
    if user == "carl":
        bare.host.login("carl", sudo="ALL=(ALL) ALL")
    before = bare.fingerprint()
    access = replace(bare.host.access, config=_as_user(bare.host, user))
    (found,) = look_at([bare.named()], bare.order(), access, bare.store, _unheard)
    assert isinstance(found, Job), found
    (objection,) = found.plan.objections
    assert "sudo" in objection.what
    assert objection.cure
    assert bare.fingerprint() == before


def test_a_dead_host_holds_up_no_other(bare: Site, sleepers: Path) -> None:
    hosts = [Named("192.168.72.250"), bare.named(), Named(f"nobody@{bare.host.ip}")]
    began_s = time.monotonic()
    found = look_at(hosts, bare.order(wheels=sleepers), bare.host.access, bare.store, _unheard)
    assert time.monotonic() - began_s < 20
    dead, fine, stranger = found
    assert isinstance(fine, Job)
    assert fine.plan.is_todo
    assert not isinstance(dead, Job)
    assert "192.168.72.250" in dead.error.message
    assert not isinstance(stranger, Job)
    assert isinstance(stranger.error, HostError)
    assert stranger.error.kind is HostFault.LOGIN


# How hosts are broken, and looked at.


def _job(site: Site, order: Order, **fields: Any) -> Job:
    with connect(site.host.target, site.host.access) as connection, site.grid() as grid:
        job = inspect(connection, site.named(**fields), order, grid, lambda _line: None)
    assert job.plan.objections == ()
    return job


def _cut_after(site: Site, job: Job, number: int) -> None:
    """Carry it out, and lose the connection after so many steps, for good."""
    shown = [step.what for step in job.plan.steps]

    def gone() -> Connection:
        raise HostError("cut", host=site.host.ip, kind=HostFault.UNREACHABLE)

    with connect(site.host.target, site.host.access) as connection, site.grid() as grid:

        def tell(line: str) -> None:
            if line == shown[number]:
                connection.close()

        with pytest.raises(NotDoneError, match="takes everything back within") as caught:
            carry_out(connection, job, grid, tell, gone)
    assert caught.value.step == job.plan.steps[number].act
    folder = site.host.root / "var/lib/cogrid-install"
    until(lambda: not folder.exists(), 40, "the guard to take it back")


def _stage(site: Site, job: Job) -> None:
    assert job.bundle
    with connect(site.host.target, site.host.access) as connection:
        stage(connection, job.bundle, job.scope)


@contextlib.contextmanager
def _old_workers(site: Site) -> Iterator[None]:
    """Two workers of before: a unit, and one that somebody has started in a session and left."""
    host = site.host
    host.ssh("mkdir -p /srv")
    host.write("/srv/worker.py", "import time\ntime.sleep(600)\n")
    host.write("/etc/systemd/system/coordinator-worker.service", OLD_UNIT)
    host.ssh("systemctl daemon-reload; systemctl enable --now -q coordinator-worker")
    by_hand = host.ssh("setsid python3 /srv/worker.py --hand </dev/null >/dev/null 2>&1 & echo $!")
    try:
        yield
    finally:
        host.ssh(f"kill {by_hand}; systemctl disable --now -q coordinator-worker", check=False)
        host.ssh("rm -r /etc/systemd/system/coordinator-worker.service /srv/worker.py")


def _old_runs(host: Host) -> bool:
    return host.ssh("systemctl is-active coordinator-worker", check=False) == "active"


def _without_process(fingerprint: str) -> str:
    """Without the numbers of processes: a unit that was started anew has another one."""
    return "\n".join(line for line in fingerprint.splitlines() if not line.startswith("MainPID="))


def _no_wish_left(site: Site) -> None:
    worker = site.worker()
    assert worker
    assert worker.wish.state != "drain"


def _as_user(host: Host, user: str) -> Path:
    config = host.place / f"ssh_config.{user}"
    config.write_text((host.place / "ssh_config").read_text().replace("User root", f"User {user}"))
    return config


def _long_task(site: Site) -> TaskId:
    """A task of some seconds, at work on esxi."""
    task = TaskId(f"long{time.monotonic_ns()}")
    words = {"model": MODEL, "messages": [{"role": "user", "content": "word " * 150}]}
    body = encode_request(Request(Kind.CHAT, Dialect.OPENAI, MODEL, words))
    shared = shared_queue("cpu", MODEL)
    made = Submission(task, Kind.CHAT, MODEL, shared, shared, body, "ada", on_close=OnClose.KEEP)
    with contextlib.closing(site.store()) as store:
        assert store.do(submit(store.keys, made)).status == "new"
    until(lambda: _state(site, task) is State.RUNNING, 20)
    return task


def _state(site: Site, task: TaskId) -> State | None:
    with contextlib.closing(site.store()) as store:
        found = store.read(read_tasks(store.keys, (task,)))[task]
    return found.state if found else None


def _locked_key(host: Host, user: str, phrase: str, tmp_path: Path) -> Path:
    """A key with a passphrase that lets the user in, and no other does."""
    key = tmp_path / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", phrase, "-f", str(key)], check=True)
    home = host.root / "home" / user / ".ssh"
    (home / "authorized_keys").write_text(key.with_suffix(".pub").read_text())
    return key


def _watched(host: Host) -> str:
    """Somebody without rights looks at processes and files meanwhile; where that is noted."""
    host.write("/srv/watch", WATCH, 0o755)
    host.ssh("setsid runuser -u mallory -- sh /srv/watch </dev/null >/dev/null 2>&1 &")
    return "/tmp/mallory.seen"


WATCH = """\
while :; do
    cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'
    find /tmp /var/tmp /run /opt /etc /var/lib/cogrid* -newer /srv/watch -type f -size -100k \
        -exec cat {} + 2>/dev/null
done | grep -aE --line-buffered 's3cre[t]|sud0-p[w]|phr4se-p[w]|sk-api-k3[y]' >/tmp/mallory.seen
"""


def _look_around(host: Host, seen: str) -> str:
    """All that mallory has seen, and can read now."""
    host.ssh("pkill -u mallory; rm -f /srv/watch", check=False)
    script = f"""
cat {seen}
runuser -u mallory -- sh -c 'systemctl cat {UNIT}; systemctl show {UNIT}; ps -efww; journalctl;
    grep -rasE "s3cre[t]|sud0-p[w]|phr4se-p[w]|sk-api-k3[y]" \\
        /etc /opt/cogrid/current/bin /tmp /run /var/log' 2>/dev/null
rm -f {seen}
"""
    return host.ssh(script, check=False)
