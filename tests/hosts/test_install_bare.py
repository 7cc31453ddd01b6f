"""A host without cogrid is as it was after whatever goes wrong, and after what is refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from cogrid import __version__
from cogrid.errors import ConflictError, HostError, HostFault
from cogrid.model.host import Host as Named
from cogrid.model.host import Scope
from cogrid.ops.delivery.stage import stage
from cogrid.ops.install import steps, undoing
from cogrid.ops.install.fleet import look_at
from cogrid.ops.install.inspect import Job
from cogrid.ops.install.plan import Act
from cogrid.remote.answers import Asked
from cogrid.remote.connection import connect
from cogrid.store.address import Address
from tests.hosts.installing import (
    HERE,
    Site,
    a_job,
    a_site,
    as_user,
    cut_after,
    old_runs,
    old_workers,
    unheard,
    without_processes,
)
from tests.ops.delivery.build import UNPACK, a_wheel
from tests.wait import until

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


@pytest.fixture(scope="module")
def bare(fetched: dict[str, str]) -> Iterator[Site]:
    with a_site("instbare", "192.168.72.42", fetched) as site:
        site.host.login("ada", sudo="ALL=(ALL) NOPASSWD: ALL")
        site.host.login("bob")
        site.host.login("carl", sudo="ALL=(ALL) ALL")
        site.host.ssh("echo carl:right | chpasswd")
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
    with old_workers(bare):
        job = a_job(bare, bare.order(replace=True, wheels=sleepers))
        assert [step.act for step in job.plan.steps] == [*FIRST_STEPS, Act.END]
        if late:
            _stage(bare, job)
        before = without_processes(bare.fingerprint())
        try:
            for act in cuts:
                cut_after(bare, job, FIRST_STEPS.index(act) + 1)
                until(lambda: old_runs(bare.host), 30)
                assert without_processes(bare.fingerprint()) == before, act
        finally:
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
        (found,) = look_at([named], order, bare.host.access, bare.store, unheard)
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
        (found,) = look_at([bare.named()], order, bare.host.access, bare.store, unheard)
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


@pytest.mark.parametrize("who", ["nobody allowed it", "nobody is there to ask", "wrong password"])
def test_without_the_right_to_sudo_nothing_is_touched(bare: Site, who: str) -> None:
    user = "bob" if who == "nobody allowed it" else "carl"
    before = bare.fingerprint()
    access = replace(bare.host.access, config=as_user(bare.host, user))
    if who == "wrong password":
        never = Asked(
            password=lambda _host, _wrong: None,
            passphrase=lambda _file, _wrong: None,
            sudo=lambda _host, wrong: None if wrong else "n0t-it",
        )
        access = replace(access, asked=never)
    (found,) = look_at([bare.named()], bare.order(), access, bare.store, unheard)
    assert isinstance(found, Job), found
    (objection,) = found.plan.objections
    assert "sudo" in objection.what
    assert objection.cure
    assert "n0t-it" not in repr(found)
    assert bare.fingerprint() == before


def test_a_dead_host_holds_up_no_other(bare: Site, sleepers: Path) -> None:
    hosts = [Named("192.168.72.250"), bare.named(), Named(f"nobody@{bare.host.ip}")]
    began_s = time.monotonic()
    found = look_at(hosts, bare.order(wheels=sleepers), bare.host.access, bare.store, unheard)
    assert time.monotonic() - began_s < 20
    dead, fine, stranger = found
    assert isinstance(fine, Job)
    assert fine.plan.is_todo
    assert not isinstance(dead, Job)
    assert "192.168.72.250" in dead.error.message
    assert not isinstance(stranger, Job)
    assert isinstance(stranger.error, HostError)
    assert stranger.error.kind is HostFault.LOGIN


def _stage(site: Site, job: Job) -> None:
    assert job.bundle
    with connect(site.host.target, site.host.access) as connection:
        stage(connection, job.bundle, job.scope)


def test_where_every_packet_is_lost_the_host_takes_it_back_by_itself(
    bare: Site, sleepers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection stands for hours then; only silence tells."""
    monkeypatch.setattr(undoing, "GRACE_S", 2.0)
    job = a_job(bare, bare.order(wheels=sleepers))
    before = without_processes(bare.fingerprint())
    folder = bare.host.root / "var/lib/cogrid-install"
    with connect(bare.host.target, bare.host.access) as connection:
        work = undoing.Undoing(connection, job.scope)
        work.begin()
        work.step(steps.add_user("cogrid"))
        work.step(steps.place("unit", "/etc/cogrid/x"))
        assert "cogrid:" in (bare.host.root / "etc/passwd").read_text()
        bare.host.cut()
        until(lambda: not folder.exists(), 30, "the guard to take it back")
        bare.host.heal()
        with pytest.raises(undoing.StepError, match="the host had heard nothing for 2 s"):
            work.still("unit")
    assert without_processes(bare.fingerprint()) == before


def test_two_installations_do_not_meet_on_one_host(bare: Site, sleepers: Path) -> None:
    with connect(bare.host.target, bare.host.access) as one:
        first = undoing.Undoing(one, Scope.SYSTEM)
        first.begin()
        with connect(bare.host.target, bare.host.access) as two:
            second = undoing.Undoing(two, Scope.SYSTEM)
            with pytest.raises(ConflictError, match="another installation is at work there"):
                second.begin()
        first.step(steps.add_user("cogrid"))
        first.back()
    assert "cogrid:" not in (bare.host.root / "etc/passwd").read_text()


def test_what_a_reboot_broke_off_is_taken_back_by_the_next_one(bare: Site) -> None:
    before = without_processes(bare.fingerprint())
    with connect(bare.host.target, bare.host.access) as connection:
        work = undoing.Undoing(connection, Scope.SYSTEM)
        work.begin()
        work.step(steps.add_user("cogrid"))
        # As a power cut leaves it: the list is there, and nobody goes through it.
        bare.host.ssh("systemctl kill --signal=KILL cogrid-install")
    with connect(bare.host.target, bare.host.access) as connection:
        again = undoing.Undoing(connection, Scope.SYSTEM)
        again.begin()
        assert "cogrid:" not in (bare.host.root / "etc/passwd").read_text()
        again.keep()
    assert without_processes(bare.fingerprint()) == before
