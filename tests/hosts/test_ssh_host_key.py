"""Host keys: only the host that is known gets anything."""

from __future__ import annotations

import dataclasses
import stat
import subprocess
from pathlib import Path

import pytest

from cogrid.errors import HostError, HostFault
from cogrid.remote.connection import connect
from cogrid.remote.target import Target
from tests.hosts.host import Host
from tests.hosts.way import Person, access, make_key

PORT = 2211
ED25519, ECDSA, RSA = "ssh-ed25519", "ecdsa-sha2-nistp256", "ssh-rsa"


@pytest.fixture(scope="module", autouse=True)
def _sshd(box: Host) -> None:
    """One with all types of key, on a port of its own."""
    for kind, bits in (("ed25519", ""), ("ecdsa", ""), ("rsa", "-b 2048")):
        box.ssh(f"ssh-keygen -q -t {kind} {bits} -N '' -C '' -f /etc/ssh/test_{kind}")
    keys = "".join(f"HostKey /etc/ssh/test_{kind}\n" for kind in ("ed25519", "ecdsa", "rsa"))
    box.sshd(PORT, keys + "PidFile none\nLogLevel DEBUG1")


def key(box: Host, kind: str) -> str:
    """Its public key of this type, as in known_hosts."""
    names = {ED25519: "ed25519", ECDSA: "ecdsa", RSA: "rsa"}
    text = (box.root / f"etc/ssh/test_{names[kind]}.pub").read_text()
    return " ".join(text.split()[:2])


def fingerprint(line: str) -> str:
    """What ssh-keygen says of a key."""
    done = subprocess.run(
        ["ssh-keygen", "-lf", "-"], input=line, capture_output=True, text=True, check=True
    )
    return done.stdout.split()[1]


def way(box: Host, directory: Path, known: str = "") -> tuple[Target, Path]:
    file = directory / "known_hosts"
    if known:
        file.write_text(known)
    return Target(box.ip, user="root", port=PORT), file


def config(box: Host) -> str:
    return f"IdentityFile {box.key}\nIdentitiesOnly yes"


def test_unknown_is_refused(box: Host, tmp_path: Path) -> None:
    target, file = way(box, tmp_path)
    with pytest.raises(HostError) as raised:
        connect(target, access(tmp_path, config(box)))
    error = raised.value
    assert error.kind is HostFault.HOST_KEY
    shown = f"{ED25519} {fingerprint(key(box, ED25519))}"
    assert error.message == f"the host key of {box.ip}:{PORT} is not known: {shown}"
    assert "--accept-new" in error.hint
    assert f"ssh -p {PORT} root@{box.ip}" in error.hint
    assert not file.exists()


@pytest.mark.parametrize("hashed", ["no", "yes"])
def test_accept_new(box: Host, tmp_path: Path, hashed: str) -> None:
    target, file = way(box, tmp_path)
    strict = access(tmp_path, config(box) + f"\nHashKnownHosts {hashed}")
    with connect(target, dataclasses.replace(strict, accept_new=True)) as connection:
        (note,) = connection.notes
    assert f"{box.ip}:{PORT} was not known; accepted its host key {ED25519} SHA256:" in note
    assert (box.ip in file.read_text()) is (hashed == "no")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = subprocess.run(
        ["ssh-keygen", "-F", f"[{box.ip}]:{PORT}", "-f", file], capture_output=True, check=False
    )
    assert found.returncode == 0, "OpenSSH finds it too"
    with connect(target, strict) as connection:
        assert connection.notes == ()


def test_a_person_accepts(box: Host, tmp_path: Path) -> None:
    target, file = way(box, tmp_path)
    no = Person()
    with pytest.raises(HostError):
        connect(target, access(tmp_path, config(box), asked=no.asked))
    assert no.heard == [f"{box.ip}:{PORT} {ED25519} {fingerprint(key(box, ED25519))}"]
    assert not file.exists()
    with connect(target, access(tmp_path, config(box), asked=Person(yes=True).asked)):
        assert key(box, ED25519) in file.read_text()


def test_changed_is_refused_and_gets_nothing(box: Host, tmp_path: Path) -> None:
    old = " ".join(make_key(tmp_path / "old").split()[:2])
    name = f"[{box.ip}]:{PORT}"
    target, file = way(box, tmp_path, f"# mine\n{name} {old}\n")
    yes = Person(["secret"], yes=True)
    eager = access(tmp_path, config(box), asked=yes.asked)
    mark = box.ssh("journalctl --no-pager -q -n 0 --show-cursor").split("cursor: ")[1]
    with pytest.raises(HostError) as raised:
        connect(target, dataclasses.replace(eager, accept_new=True))
    error = raised.value
    assert error.kind is HostFault.HOST_KEY
    assert f"{box.ip}:{PORT} shows another host key" in error.message
    assert f"{ED25519} {fingerprint(key(box, ED25519))}" in error.message
    assert f"{file} line 2 has {ED25519} {fingerprint(old)}" in error.message
    assert error.hint.endswith(f"ssh-keygen -f {file} -R '{name}'")
    assert yes.heard == []
    assert file.read_text() == f"# mine\n{name} {old}\n"
    heard = box.ssh(f"journalctl --no-pager -q --after-cursor '{mark}'")
    assert "Connection from" in heard
    assert "userauth-request" not in heard

    subprocess.run(error.hint.rpartition("then: ")[2], shell=True, check=True, capture_output=True)
    with connect(target, dataclasses.replace(eager, accept_new=True)):
        assert old not in file.read_text()


@pytest.mark.parametrize("kind", [ECDSA, RSA])
def test_known_by_another_of_its_keys(box: Host, tmp_path: Path, kind: str) -> None:
    target, _ = way(box, tmp_path, f"[{box.ip}]:{PORT} {key(box, kind)}\n")
    with connect(target, access(tmp_path, config(box))) as connection:
        assert connection.run("echo in").text == "in"


def test_hashed_and_several_files(box: Host, tmp_path: Path) -> None:
    target, file = way(box, tmp_path, f"[{box.ip}]:{PORT} {key(box, ECDSA)}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", file], check=True, capture_output=True)
    assert box.ip not in file.read_text()
    file.rename(tmp_path / "my other hosts")
    two = f'UserKnownHostsFile {tmp_path}/none "{tmp_path}/my other hosts"\n'
    with connect(target, access(tmp_path, two + config(box))) as connection:
        assert connection.run("echo in").text == "in"


def test_revoked(box: Host, tmp_path: Path) -> None:
    line = key(box, ED25519)
    target, file = way(box, tmp_path, f"[{box.ip}]:{PORT} {line}\n@revoked * {line}\n")
    with pytest.raises(HostError, match=f"a host key that {file} line 2 revokes"):
        connect(target, access(tmp_path, config(box)))


CERTIFIED = {"ed25519": 2212, "ecdsa": 2213, "rsa": 2214}
OVER = 10
"""A port so much higher has a certificate that is over."""


@pytest.fixture(scope="module")
def authority(box: Host, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Has vouched for the box: its public key."""
    ca = tmp_path_factory.mktemp("ca") / "ca"
    line = make_key(ca)
    for kind, port in CERTIFIED.items():
        certify(box, ca, kind, port)
        certify(box, ca, kind, port + OVER, "-V", "20200101:20200102")
    return " ".join(line.split()[:2])


def certify(box: Host, ca: Path, kind: str, port: int, *options: str) -> None:
    """An sshd with a certificate for the box's address and for esxi."""
    public = ca.with_name(f"{port}.pub")
    public.write_bytes((box.root / f"etc/ssh/test_{kind}.pub").read_bytes())
    argv = ["ssh-keygen", "-q", "-s", str(ca), "-I", "box", "-h", "-n", f"{box.ip},esxi"]
    subprocess.run([*argv, *options, str(public)], check=True, capture_output=True)
    box.write(f"/etc/ssh/{port}-cert.pub", public.with_name(f"{port}-cert.pub").read_text())
    lines = f"HostKey /etc/ssh/test_{kind}\nHostCertificate /etc/ssh/{port}-cert.pub\n"
    box.sshd(port, lines + "PidFile none")


@pytest.mark.parametrize("kind", CERTIFIED)
def test_authority(box: Host, authority: str, tmp_path: Path, kind: str) -> None:
    """A certificate counts when its authority is known, for this host, now."""
    port = CERTIFIED[kind]
    other = " ".join(make_key(tmp_path / "other").split()[:2])

    def log_in(known: str, more: str = "", port: int = port) -> tuple[str, ...]:
        way(box, tmp_path, known)
        target = Target(box.ip, user="root", port=port)
        with connect(target, access(tmp_path, f"{more}\n{config(box)}")) as connection:
            return connection.notes

    name = f"[{box.ip}]:{port}"
    assert log_in(f"@cert-authority {name} {authority}\n") == ()
    assert log_in(f"@cert-authority * {authority}\n", "HostKeyAlias ESXi") == ()
    for known, more, why in (
        (f"@cert-authority {name} {other}\n", "", "its certificate is by another authority"),
        (f"@cert-authority esxi {authority}\n", "", "is not known: "),
        (f"@cert-authority * {authority}\n", "HostKeyAlias ai-core", "its certificate is for "),
        (f"@cert-authority * {authority}\n@revoked * {authority}\n", "", "is not known: "),
    ):
        with pytest.raises(HostError, match=why):
            log_in(known, more)
    anybody = f"@cert-authority * {authority}\n"
    with pytest.raises(HostError, match="its certificate is over or not valid yet"):
        log_in(anybody, port=port + OVER)
    # A host that is known by itself needs no authority.
    plain = key(box, {"ed25519": ED25519, "ecdsa": ECDSA, "rsa": RSA}[kind])
    assert log_in(f"{anybody}[{box.ip}]:{port + OVER} {plain}\n", port=port + OVER) == ()


def test_alias_for_its_key(box: Host, tmp_path: Path) -> None:
    target, _ = way(box, tmp_path, f"the-box {key(box, ED25519)}\n")
    with connect(target, access(tmp_path, config(box) + "\nHostKeyAlias the-box")):
        pass


def test_known_hosts_that_cannot_be_written(box: Host, tmp_path: Path) -> None:
    (tmp_path / "known_hosts").mkdir()
    target, file = way(box, tmp_path)
    with pytest.raises(HostError, match=f"{file} cannot be read: Is a directory"):
        connect(target, access(tmp_path, config(box)))
    blocked = tmp_path / "file" / "known_hosts"
    (tmp_path / "file").write_text("")
    eager = access(tmp_path, config(box) + f"\nUserKnownHostsFile {blocked}")
    with pytest.raises(HostError) as raised:
        connect(target, dataclasses.replace(eager, accept_new=True))
    assert raised.value.kind is HostFault.HOST_KEY
    assert str(blocked) in raised.value.message
