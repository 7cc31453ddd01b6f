"""Hosts that swallow everything: each phase has its deadline, and nobody waits for the dead."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogrid.errors import HostError, HostFault
from cogrid.remote.access import Access
from cogrid.remote.connection import connect
from cogrid.remote.fan_out import ask_all
from cogrid.remote.target import Target
from tests.hosts.host import Host, bring_up
from tests.hosts.way import access
from tests.wait import until

LIMIT_S = 5.0
MUTE, FULL, CUT, OTHER = 2301, 2302, 2303, 2304
LISTENERS = f"""
import socket, time
mute = socket.create_server(("", {MUTE}), backlog=64)
full = socket.create_server(("", {FULL}), backlog=0)
fill = [socket.socket() for _ in range(4)]
for one in fill:
    one.setblocking(False)
    one.connect_ex(("127.0.0.1", {FULL}))
time.sleep(1000)
"""


@pytest.fixture(scope="module")
def gone() -> Iterator[Host]:
    """A host whose answers are dropped on their way, with listeners that are as bad."""
    with bring_up("sshgone", "192.168.71.43") as one:
        one.sshd(CUT, "PidFile none\nMaxStartups 200\nLoginGraceTime 600")
        yield one


@pytest.fixture(scope="module")
def bad(box: Host) -> Host:
    """The box with one port that takes connections and says nothing, and one that takes none."""
    box.write("/etc/listeners.py", LISTENERS)
    box.ssh("systemd-run --quiet /usr/bin/python3 /etc/listeners.py")
    box.ssh(f"until ss -Hltn sport = :{FULL} | grep -q .; do sleep 0.05; done")
    box.sshd(OTHER, "PidFile none\nMaxStartups 200")
    return box


def way(box: Host, config: str = "", limit_s: float = LIMIT_S) -> Access:
    known = f"IdentityFile {box.key}\nUserKnownHostsFile {box.place}/known_hosts\nUser root\n"
    return access(box.place, config + "\nHost *\n" + known, connect_s=limit_s)


@pytest.mark.parametrize(
    ("port", "said"),
    [
        (MUTE, "takes connections and says nothing within 0.5 s"),
        (FULL, "did not answer within 0.5 s"),
    ],
)
def test_each_phase_has_its_deadline(bad: Host, port: int, said: str) -> None:
    began = time.monotonic()
    with pytest.raises(HostError) as raised:
        connect(Target(bad.ip, port=port), way(bad, limit_s=0.5))
    assert time.monotonic() - began < 4
    assert raised.value.kind is HostFault.TIMEOUT
    assert f"{bad.ip}:{port} {said}" in raised.value.message


def test_what_is_no_sshd(box: Host) -> None:
    box.ssh(
        "systemd-run --quiet --unit=other --property=Type=simple /usr/bin/python3 -c "
        '\'import socket; s = socket.create_server(("", 2305))\n'
        'while True: c, _ = s.accept(); c.send(b"-ERR unknown command\\r\\n"); c.recv(1)\''
    )
    until(lambda: box.ssh("ss -Hltn sport = :2305"))
    with pytest.raises(HostError) as raised:
        connect(Target(box.ip, port=2305), way(box, limit_s=1))
    assert raised.value.kind is HostFault.NOT_SSH
    assert "is no SSH server: it begins with -ERR unknown command" in raised.value.message


def test_name_without_an_address(box: Host) -> None:
    with pytest.raises(HostError) as raised:
        connect(Target("no-such-host.invalid"), way(box, limit_s=2))
    assert raised.value.kind is HostFault.ADDRESS


def test_eight_dead_of_forty_take_one_time_limit(bad: Host, gone: Host) -> None:
    gone.inside("ip", "route", "add", "blackhole", "192.168.71.1/32")
    dead = [Target(gone.ip), Target(gone.ip, port=CUT)]
    dead += [Target(bad.ip, port=MUTE)] * 3 + [Target(bad.ip, port=FULL)] * 3
    live = [Target(bad.ip, user="root", port=OTHER)] * 32
    targets = [target for n in range(8) for target in (dead[n], *live[n * 4 : n * 4 + 4])]
    known = way(bad, f"Host {bad.ip}\n    HostKeyAlias {bad.ip}\n")

    def ask(target: Target) -> str:
        with connect(target, known) as connection:
            return connection.run("hostname").text

    began = time.monotonic()
    try:
        answers = ask_all(targets, ask, limit_s=60)
    finally:
        gone.inside("ip", "route", "del", "blackhole", "192.168.71.1/32")
    took_s = time.monotonic() - began
    for target, answer in zip(targets, answers, strict=True):
        if target.port == OTHER:
            assert answer == bad.name
        else:
            assert isinstance(answer, HostError)
            assert answer.kind is HostFault.TIMEOUT
    assert LIMIT_S < took_s < 2 * LIMIT_S


def test_cut_off_while_a_command_runs(gone: Host) -> None:
    with connect(gone.target, gone.access) as connection:
        gone.cut()
        try:
            began = time.monotonic()
            with pytest.raises(HostError) as raised:
                connection.run("sleep 5", timeout_s=1)
            assert raised.value.kind is HostFault.TIMEOUT
            assert time.monotonic() - began < 10
        finally:
            gone.heal()
    until(gone.greets, 20)


def test_cut_off_in_the_middle_of_a_file(gone: Host, tmp_path: Path) -> None:
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(400 << 20)
    there = gone.root / "etc/kept"
    with connect(gone.target, gone.access) as connection:
        connection.put("/etc/kept", b"old", mode=0o644)
        timer = threading.Timer(0.3, gone.cut)
        timer.start()
        try:
            with pytest.raises(HostError) as raised:
                connection.put("/etc/kept", big, mode=0o644, timeout_s=1.5)
            assert raised.value.kind is HostFault.TIMEOUT
        finally:
            timer.join()
            gone.heal()
    assert there.read_bytes() == b"old"
    until(lambda: not list(there.parent.glob("kept.*")), 20, "the half of a file to go")


def test_limit_of_the_whole_call(bad: Host) -> None:
    known = way(bad)
    targets = [Target(bad.ip, port=OTHER), Target(bad.ip, port=MUTE), Target(bad.ip, port=OTHER)]

    def ask(target: Target) -> str:
        with connect(target, known) as connection:
            return connection.run("sleep 4721").text

    began = time.monotonic()
    answers = ask_all(targets, ask, limit_s=2)
    assert time.monotonic() - began < 5
    assert [a.kind for a in answers if isinstance(a, HostError)] == [HostFault.STOPPED] * 3
    assert bad.ssh("pgrep -fc '[s]leep 4721' || true") == "0"
