"""What ssh_config says, read by OpenSSH's client and, where there is none, by paramiko."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from cogrid.errors import HostError, HostFault
from cogrid.remote import ssh_config
from cogrid.remote.settings import read, route
from cogrid.remote.target import Target
from cogrid.remote.tokens import expand, tokens
from tests.conftest import missing

CONFIG = """
Host w1
    HostName 10.0.0.9
    Port 2222
    User ann
    IdentityFile ~/.ssh/%h_%r
    IdentitiesOnly yes
    IdentityAgent none
    AddressFamily inet6
    ConnectTimeout 7
    UserKnownHostsFile {0}/one {0}/two
    GlobalKnownHostsFile none
    StrictHostKeyChecking accept-new
    HashKnownHosts yes
Host w2
    ProxyCommand ssh -W %h:%p -l %r 'b%%1'
    HostKeyAlias the-w2
    IdentityAgent {0}/agent-%p
Host w3
    ProxyJump jan@b1:2200,b2
Host b1
    ProxyJump b0
    ProxyCommand none
Host b2
    ProxyJump elsewhere
Host direct
    ProxyJump none
    ProxyCommand none
Host ring1
    ProxyJump ring2
Host ring2
    ProxyJump ring1
"""


def needs_ssh() -> None:
    if shutil.which("ssh") is None:
        missing("an ssh client", "apt-get install openssh-client")


@pytest.fixture(params=["ssh", "paramiko"])
def config(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "paramiko":
        monkeypatch.setattr(shutil, "which", lambda _name: None)
    else:
        needs_ssh()
    file = tmp_path / "ssh_config"
    file.write_text(CONFIG.format(tmp_path))
    return file


def test_every_setting(config: Path) -> None:
    w1 = read(Target("w1"), config)
    home = Path.home()
    assert w1.place == "w1 (10.0.0.9:2222)"
    assert (w1.host_name, w1.port, w1.user) == ("10.0.0.9", 2222, "ann")
    assert w1.identities == (home / ".ssh/10.0.0.9_ann",)
    assert w1.identities_only
    assert w1.agent is None
    assert w1.family is socket.AF_INET6
    assert w1.connect_s == 7
    assert w1.known_hosts == (config.parent / "one", config.parent / "two")
    assert w1.global_known_hosts == ()
    assert (w1.accept_new, w1.hash_new) == (True, True)
    assert (w1.known_as, w1.also_known_as) == ("[10.0.0.9]:2222", "10.0.0.9")


def test_what_was_named_wins(config: Path) -> None:
    w1 = read(Target("w1", user="kim", port=23), config)
    assert (w1.user, w1.port) == ("kim", 23)


def test_defaults(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    plain = read(Target("fe80::1%eth0"), config)
    assert plain.host_name == "fe80::1%eth0"
    assert plain.place == "[fe80::1%eth0]:22"
    assert plain.known_as == "fe80::1%eth0"
    assert plain.also_known_as == ""
    assert Path.home() / ".ssh/id_ed25519" in plain.identities
    assert Path.home() / ".ssh/known_hosts" in plain.known_hosts
    assert Path("/etc/ssh/ssh_known_hosts") in plain.global_known_hosts
    assert plain.agent == Path("/run/agent")
    assert not plain.identities_only
    assert not plain.accept_new
    assert plain.connect_s == 0
    assert plain.user


def test_a_way_that_is_none_is_none(config: Path) -> None:
    direct = read(Target("direct"), config)
    assert (direct.jumps, direct.proxy_command) == ((), "")


def test_tokens_in_values(config: Path) -> None:
    w2 = read(Target("w2", user="ann", port=23), config)
    assert w2.proxy_command == "ssh -W w2:23 -l ann 'b%1'"
    assert w2.agent == config.parent / "agent-23"
    assert (w2.known_as, w2.also_known_as) == ("the-w2", "")


def test_route_over_jump_hosts_with_their_own_settings(config: Path) -> None:
    hops = route(Target("w3"), config)
    assert [(hop.name, hop.port) for hop in hops] == [
        ("b0", 22),
        ("b1", 2200),
        ("b2", 22),
        ("w3", 22),
    ]
    assert hops[1].user == "jan"
    assert hops[2].jumps == ()


def test_jump_hosts_in_a_circle(config: Path) -> None:
    with pytest.raises(HostError, match="lead to each other in a circle") as raised:
        route(Target("ring1"), config)
    assert raised.value.kind is HostFault.ADDRESS


def test_broken_configuration(tmp_path: Path) -> None:
    needs_ssh()
    config = tmp_path / "ssh_config"
    config.write_text("Host w1\n    Prot 2222\n")
    with pytest.raises(HostError, match="the ssh configuration for w1 cannot be used") as raised:
        read(Target("w1"), config)
    assert "ssh -G w1" in raised.value.hint


def test_include_is_never_left_out(config: Path, tmp_path: Path) -> None:
    (tmp_path / "more").write_text("Host w9\n    HostName 10.0.0.99\n")
    config.write_text(f"Include {tmp_path}/more\n")
    if shutil.which("ssh") is None:
        with pytest.raises(HostError, match="it uses Include"):
            read(Target("w9"), config)
    else:
        assert read(Target("w9"), config).host_name == "10.0.0.99"


def test_ssh_that_hangs(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_config, "_READ_S", 0.1)
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda _name: str(slow))
    with pytest.raises(HostError, match=r"took longer than 0\.1 s") as raised:
        read(Target("w1"), config)
    assert not isinstance(raised.value.__cause__, subprocess.TimeoutExpired)


def test_every_token() -> None:
    words = tokens(name="w1", host_name="10.0.0.9", port=2222, user="ann", alias="", jump="b1,b2")
    assert expand("%n %h %p %r %k %j %% %x", words) == "w1 10.0.0.9 2222 ann w1 b1,b2 % %x"
    assert expand("%%h", words) == "%h"
    assert len(expand("%C", words)) == 40
