"""The way to a host: aliases, jump hosts, ProxyCommand, each hop with its own settings."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cogrid.errors import HostError, HostFault
from cogrid.remote.connection import connect
from cogrid.remote.target import Target, parse_target
from tests.hosts.host import Host, bring_up
from tests.hosts.way import access, make_key

HERE = "192.168.71.1"


@pytest.fixture(scope="module")
def far() -> Iterator[Host]:
    """A host that this machine cannot reach directly."""
    with bring_up("sshfar", "192.168.71.42") as one:
        one.sshd(2222, "PidFile none")
        one.inside("ip", "route", "add", "blackhole", f"{HERE}/32")
        yield one


@pytest.fixture
def two(box: Host, tmp_path: Path) -> str:
    """The box as two jump hosts, each with an user, a key and a port of its own."""
    for user in ("jan", "kim"):
        if not (box.root / "home" / user).exists():
            box.login(user)
        line = make_key(tmp_path / user)
        (box.root / f"home/{user}/.ssh/authorized_keys").write_text(line)
    if not box.greets(2221):
        box.sshd(2221, "PidFile none\nAllowUsers kim")
    return f"""
Host b1
    HostName {box.ip}
    User jan
    IdentityFile {tmp_path}/jan
Host b2
    HostName {box.ip}
    Port 2221
    User kim
    IdentityFile {tmp_path}/kim
"""


def know(directory: Path, *hosts: Host) -> None:
    lines = []
    for host in hosts:
        _, kind, key = (host.place / "known_hosts").read_text().split()
        lines += [f"{name} {kind} {key}\n" for name in (host.ip, f"[{host.ip}]:22*")]
        lines += [f"[{host.ip}]:{port} {kind} {key}\n" for port in (2221, 2222)]
    (directory / "known_hosts").write_text("".join(lines))


def w1(far: Host, how: str) -> str:
    return f"Host w1\n    HostName {far.ip}\n    Port 2222\n    User root\n    {how}\n"


def test_direct_way_is_closed(far: Host) -> None:
    began = time.monotonic()
    with pytest.raises(HostError) as raised:
        connect(far.target, access(far.place, "", connect_s=0.5))
    assert raised.value.kind is HostFault.TIMEOUT
    assert f"{far.ip}:22 did not answer within 0.5 s" in raised.value.message
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("jumps", ["b1", "b1,b2", "ssh://b2,jan@b1:22"])
def test_jump_hosts(box: Host, far: Host, two: str, tmp_path: Path, jumps: str) -> None:
    know(tmp_path, box, far)
    config = two + w1(far, f"ProxyJump {jumps}") + f"    IdentityFile {far.key}\n"
    with connect(Target("w1"), access(tmp_path, config)) as connection:
        assert connection.run("hostname; id -un").text == f"{far.name}\nroot"
        assert (connection.address, connection.port) == (far.ip, 2222)
    # The first jump host may need one itself.
    config = config.replace("Host b1\n", "Host b1\n    ProxyJump b2\n")
    if jumps == "b1":
        with connect(Target("w1"), access(tmp_path, config)) as connection:
            assert connection.run("hostname").text == far.name


def test_proxy_command(box: Host, far: Host, two: str, tmp_path: Path) -> None:
    know(tmp_path, box, far)
    file = tmp_path / "ssh_config"
    config = two + w1(far, f"ProxyCommand ssh -q -F {file} -W %h:%p b2")
    with connect(parse_target("w1"), access(tmp_path, config + f"IdentityFile {far.key}")) as one:
        assert one.run("hostname").text == far.name


def test_jump_host_that_is_down(far: Host, tmp_path: Path) -> None:
    down = "Host b1\n    HostName 127.0.0.1\n    Port 1\n"
    with pytest.raises(HostError) as raised:
        connect(Target("w1"), access(tmp_path, down + w1(far, "ProxyJump b1")))
    error = raised.value
    assert (error.host, error.kind) == ("w1", HostFault.UNREACHABLE)
    assert error.message == (
        "w1 was not reached, since its jump host failed: "
        "b1 (127.0.0.1:1) cannot be reached: Connection refused"
    )


def test_jump_host_that_does_not_let_us_in(box: Host, far: Host, two: str, tmp_path: Path) -> None:
    know(tmp_path, box, far)
    config = two.replace("User jan", "User jim") + w1(far, "ProxyJump b1")
    with pytest.raises(HostError, match=r"its jump host failed: b1 \(.*\) refuses the user jim"):
        connect(Target("w1"), access(tmp_path, config))


def test_target_that_the_jump_host_cannot_reach(
    box: Host, far: Host, two: str, tmp_path: Path
) -> None:
    know(tmp_path, box, far)
    config = two + w1(far, "ProxyJump b1").replace("Port 2222", "Port 1")
    with pytest.raises(HostError) as raised:
        connect(Target("w1"), access(tmp_path, config))
    assert raised.value.kind is HostFault.UNREACHABLE
    assert f"w1 ({far.ip}:1) could not be reached from the jump host" in raised.value.message
    assert f"nc -vz {far.ip} 1" in raised.value.hint


def test_proxy_command_that_fails(far: Host, tmp_path: Path) -> None:
    config = w1(far, "ProxyCommand echo no way to %h port %p >&2")
    with pytest.raises(HostError) as raised:
        connect(Target("w1"), access(tmp_path, config))
    assert raised.value.kind is HostFault.UNREACHABLE
    assert f"ended without a connection: no way to {far.ip} port 2222" in raised.value.message


def test_everything_is_closed(box: Host, two: str, tmp_path: Path) -> None:
    know(tmp_path, box)
    config = two + f"Host w2\n    HostName {box.ip}\n    ProxyJump b1,b2\n    User root\n"
    way = access(tmp_path, config + f"    IdentityFile {box.key}\n")
    with ExitStack() as opened:
        for _ in range(3):
            opened.enter_context(connect(Target("w2"), way)).run(":")
    assert box.ssh("pgrep -c -u jan sshd || true") == "0"
