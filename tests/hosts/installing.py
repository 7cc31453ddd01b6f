"""A host that is installed, broken and looked at by tests, and the server that it joins."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cogrid.config import Config, load
from cogrid.errors import HostError, HostFault
from cogrid.model.host import Host as Named
from cogrid.model.worker import Worker
from cogrid.ops.install.apply import NotDoneError, carry_out
from cogrid.ops.install.fleet import Install, install, look_at
from cogrid.ops.install.given import Wishes
from cogrid.ops.install.grid import Grid
from cogrid.ops.install.inspect import Job, inspect
from cogrid.ops.install.order import Order
from cogrid.remote.access import Access
from cogrid.remote.connection import Connection, connect
from cogrid.store.address import parse_address
from cogrid.store.client import Store
from cogrid.store.snapshot import read_snapshot
from tests.conftest import needs
from tests.hosts.host import Host, bring_up
from tests.servers import VALKEY9, Server, launch
from tests.wait import until

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
    ! -name cogrid-bundle.json \( -type d -printf '%p %u:%g %m\n' -o -type l -printf '%p -> %l\n' \
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
        found = look_at([self.named(**fields)], order, access, self.store, unheard)
        return install(found, order, access, self.store, unheard)

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


def unheard(_host: str, _line: str) -> None:
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


OLD_UNIT = """\
[Service]
ExecStart=/usr/bin/python3 /srv/worker.py
Restart=always
[Install]
WantedBy=multi-user.target
"""


def a_job(site: Site, order: Order, **fields: Any) -> Job:
    with connect(site.host.target, site.host.access) as connection, site.grid() as grid:
        job = inspect(connection, site.named(**fields), order, grid, lambda _line: None)
    assert job.plan.objections == ()
    return job


def cut_after(site: Site, job: Job, number: int) -> None:
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


@contextlib.contextmanager
def old_workers(site: Site) -> Iterator[None]:
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


def old_runs(host: Host) -> bool:
    return host.ssh("systemctl is-active coordinator-worker", check=False) == "active"


def without_processes(fingerprint: str) -> str:
    """Without the numbers of processes: a unit that was started anew has another one."""
    return "\n".join(line for line in fingerprint.splitlines() if not line.startswith("MainPID="))


def as_user(host: Host, user: str) -> Path:
    config = host.place / f"ssh_config.{user}"
    config.write_text((host.place / "ssh_config").read_text().replace("User root", f"User {user}"))
    return config


@dataclass(frozen=True, slots=True)
class First:
    """The first installation, by the command."""

    site: Site
    done: subprocess.CompletedProcess[str]
    took_s: float
