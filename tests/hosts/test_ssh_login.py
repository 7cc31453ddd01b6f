"""Getting in, as people's machines and configurations really are (design, section 10)."""

from __future__ import annotations

import logging
import os
import subprocess
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogrid.errors import HostError, HostFault
from cogrid.remote.connection import connect
from cogrid.remote.fan_out import ask_all
from cogrid.remote.target import Target, parse_target
from tests.hosts.host import Host
from tests.hosts.way import Person, access, make_key
from tests.wait import until

RSA_ONLY = 2201
OLD_KEYS = 2202
FEW_TRIES = 2203


@pytest.fixture(scope="module", autouse=True)
def _sshds(box: Host) -> None:
    box.ssh("ssh-keygen -q -t rsa -b 2048 -N '' -f /etc/ssh/ssh_host_rsa_key")
    box.sshd(RSA_ONLY, "HostKey /etc/ssh/ssh_host_rsa_key\nHostKeyAlgorithms ssh-rsa\nPidFile none")
    box.sshd(
        OLD_KEYS,
        "HostKey /etc/ssh/ssh_host_ed25519_key\nPubkeyAcceptedAlgorithms ssh-rsa\nPidFile none",
    )
    box.sshd(FEW_TRIES, "HostKey /etc/ssh/ssh_host_ed25519_key\nMaxAuthTries 3\nPidFile none")


@pytest.fixture(scope="module")
def ann(box: Host) -> str:
    box.login("ann")
    return "ann"


def known(box: Host, directory: Path, *ports: int) -> None:
    """The directory's known_hosts knows the box, at these ports too."""
    _, kind, key = (box.place / "known_hosts").read_text().split()
    names = [box.ip, *(f"[{box.ip}]:{port}" for port in ports)]
    (directory / "known_hosts").write_text("".join(f"{name} {kind} {key}\n" for name in names))


def lets_in(box: Host, user: str, line: str) -> None:
    """Adds a key to those that let this user in."""
    home = "/root" if user == "root" else f"/home/{user}"
    with (box.root / f"{home}/.ssh/authorized_keys".lstrip("/")).open("a") as file:
        file.write(line)


def refused(target: Target, way: object) -> HostError:
    began = time.monotonic()
    with pytest.raises(HostError) as raised:
        connect(target, way)  # type: ignore[arg-type]
    assert time.monotonic() - began < 8, "it took longer than the time limit of a phase"
    assert raised.value.host == target.name
    assert raised.value.exit_code == 5
    assert raised.value.hint
    return raised.value


# Algorithms.


def test_ed25519_only(box: Host) -> None:
    with connect(box.target, box.access) as connection:
        assert connection.run("hostname").text == box.name
        assert (connection.user, connection.address, connection.port) == ("root", box.ip, 22)
        assert connection.notes == ()


def test_host_key_of_a_past_age(box: Host) -> None:
    error = refused(Target(box.ip, port=RSA_ONLY), box.access)
    assert error.kind is HostFault.ALGORITHM
    assert f"{box.ip}:{RSA_ONLY} and this side have no host key algorithm" in error.message
    assert "(it offers ssh-rsa)" in error.message


def test_user_key_of_a_past_age(box: Host, tmp_path: Path) -> None:
    lets_in(box, "root", make_key(tmp_path / "old", kind="rsa"))
    known(box, tmp_path, OLD_KEYS)
    way = access(tmp_path, f"IdentityFile {tmp_path}/old\nIdentitiesOnly yes\nUser root")
    error = refused(Target(box.ip, port=OLD_KEYS), way)
    assert error.kind is HostFault.ALGORITHM
    assert f"{tmp_path}/old (ssh-rsa)" in error.message
    assert "signature algorithm" in error.message
    with connect(Target(box.ip), way) as connection:  # the same key by a newer signature
        assert connection.run("echo in").text == "in"


def test_an_old_host_among_good_ones(box: Host) -> None:
    targets = [box.target, Target(box.ip, port=RSA_ONLY), box.target]

    def ask(target: Target) -> str:
        with connect(target, box.access) as connection:
            return connection.run("echo fine").text

    first, old, last = ask_all(targets, ask, limit_s=20)
    assert (first, last) == ("fine", "fine")
    assert isinstance(old, HostError)
    assert old.kind is HostFault.ALGORITHM


# Keys.


def test_full_agent_and_one_named_key(box: Host, ann: str, tmp_path: Path, agent: Path) -> None:
    lets_in(box, ann, make_key(tmp_path / "good"))
    known(box, tmp_path, FEW_TRIES)
    fill(agent, tmp_path, 8)
    config = f"IdentityFile {tmp_path}/good\nUser {ann}\nIdentityAgent {agent}\n"
    target = Target(box.ip, port=FEW_TRIES)
    with connect(target, access(tmp_path, config + "IdentitiesOnly yes")) as connection:
        assert connection.run("id -un").text == ann
    stranger = config.replace(f"User {ann}", "User nobody-here") + "IdentitiesOnly yes"
    error = refused(target, access(tmp_path, stranger))
    assert f"it was offered {tmp_path}/good, and took none" in error.message

    (tmp_path / "good").unlink()
    (tmp_path / "good.pub").unlink()
    error = refused(target, access(tmp_path, config))
    assert error.kind is HostFault.LOGIN
    assert "hung up on ann after 3 keys" in error.message
    assert "IdentitiesOnly yes" in error.hint


def test_key_in_the_agent_only(box: Host, ann: str, tmp_path: Path, agent: Path) -> None:
    lets_in(box, ann, make_key(tmp_path / "good"))
    known(box, tmp_path, FEW_TRIES)
    fill(agent, tmp_path, 5)
    add(agent, tmp_path / "good")
    (tmp_path / "good").unlink()  # the public half stays and says which of the agent's is meant
    config = f"IdentityFile {tmp_path}/good\nUser {ann}\nIdentityAgent {agent}\nIdentitiesOnly yes"
    with connect(Target(box.ip, port=FEW_TRIES), access(tmp_path, config)) as connection:
        assert connection.run("id -un").text == ann


def test_wrong_user(box: Host, tmp_path: Path) -> None:
    known(box, tmp_path)
    way = access(tmp_path, f"IdentityFile {box.key}\nIdentitiesOnly yes")
    error = refused(Target(box.ip, user="nobody-here"), way)
    assert error.kind is HostFault.LOGIN
    assert "refuses the user nobody-here" in error.message
    assert f"it was offered {box.key}, and took none" in error.message
    assert f"ssh-copy-id nobody-here@{box.ip}" in error.hint


@pytest.mark.parametrize("form", ["OPENSSH", "PEM"])
def test_locked_key(box: Host, ann: str, tmp_path: Path, form: str) -> None:
    word = "correct horse"
    lets_in(box, ann, make_key(tmp_path / "locked", kind="rsa", passphrase=word))
    if form == "PEM":
        change = ["ssh-keygen", "-q", "-p", "-m", "PEM", "-P", word, "-N", word]
        subprocess.run([*change, "-f", tmp_path / "locked"], check=True, capture_output=True)
    known(box, tmp_path)
    config = f"IdentityFile {tmp_path}/locked\nUser {ann}\nIdentitiesOnly yes"
    target = Target(box.ip)

    error = refused(target, access(tmp_path, config))
    assert error.kind is HostFault.PASSPHRASE
    assert f"{tmp_path}/locked needs a passphrase, and there is no terminal" in error.message
    assert f"ssh-add {tmp_path}/locked" in error.hint

    wrong = Person(["one", "two", "three"])
    error = refused(target, access(tmp_path, config, asked=wrong.asked))
    assert error.kind is HostFault.PASSPHRASE
    assert f"{tmp_path}/locked did not open with any of the passphrases" in error.message
    assert wrong.heard[:3] == ["passphrase locked", *["passphrase locked, was wrong"] * 2]

    right = Person(["one", word])
    with connect(target, access(tmp_path, config, asked=right.asked)) as connection:
        assert connection.run("id -un").text == ann


def test_agent_that_is_gone(box: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "gone"))
    known(box, tmp_path)
    config = f"Host *\nIdentityFile {box.key}\nUser root\nIdentityAgent SSH_AUTH_SOCK"
    with connect(Target(box.ip), access(tmp_path, config)) as connection:
        assert connection.run("id -un").text == "root"
        (note,) = connection.notes
    assert f"the ssh agent at {tmp_path}/gone does not answer (No such file or directory)" in note


def test_no_key_at_all(box: Host, tmp_path: Path) -> None:
    known(box, tmp_path)
    error = refused(Target(box.ip), access(tmp_path, f"IdentityFile {tmp_path}/none\nUser root"))
    assert error.kind is HostFault.LOGIN
    assert f"there is no key to log in to {box.ip}:22 with as root" in error.message


def test_broken_key_file(box: Host, tmp_path: Path) -> None:
    known(box, tmp_path)
    (tmp_path / "bad").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END")
    error = refused(Target(box.ip), access(tmp_path, f"IdentityFile {tmp_path}/bad\nUser root"))
    assert f"{tmp_path}/bad is no private key that can be used" in error.message


def test_password_only_from_a_person(box: Host, tmp_path: Path) -> None:
    box.login("pat")
    box.ssh("echo 'pat:open sesame' | chpasswd")
    known(box, tmp_path)
    config = f"IdentityFile {tmp_path}/none\nUser pat"
    assert refused(Target(box.ip), access(tmp_path, config)).kind is HostFault.LOGIN
    pat = Person(["wrong", "open sesame"])
    with connect(Target(box.ip), access(tmp_path, config, asked=pat.asked)) as connection:
        assert connection.run("id -un").text == "pat"
    place = f"pat@{box.ip}:22"
    assert pat.heard == [f"password {place}", f"password {place}, was wrong"]


def test_secrets_are_nowhere(
    box: Host, ann: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Passphrase and password, right and wrong: in no log at its most talkative, no traceback."""
    words = ["wrong-phrase-4711", "right-phrase-4711", "wrong-word-4711"]
    make_key(tmp_path / "secret", passphrase=words[1])
    known(box, tmp_path)
    person = Person([*words])
    config = f"IdentityFile {tmp_path}/secret\nUser {ann}\nIdentitiesOnly yes"
    caplog.set_level(logging.DEBUG)
    logging.getLogger("paramiko").setLevel(logging.DEBUG)
    try:
        error = refused(Target(box.ip), access(tmp_path, config, asked=person.asked))
    finally:
        logging.getLogger("paramiko").setLevel(logging.CRITICAL)
    assert person.words == []
    assert "paramiko" in caplog.text
    shown = "".join(traceback.format_exception(error)) + repr(person.asked) + caplog.text
    assert "4711" not in shown.replace(str(tmp_path), "")


# IPv6.


def test_ipv6_with_a_zone(box: Host) -> None:
    said = subprocess.run(
        ["ip", "-n", box.name, "-6", "-brief", "addr", "show", "eth0", "scope", "link"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    address = said.split()[2].partition("/")[0]
    target = parse_target(f"root@[{address}%cogrid0]:22")
    config = box.place / "ssh_config"
    assert config.exists()
    until(lambda: "tentative" not in said, what="the address to be usable")
    error = refused(target, box.access)
    assert error.kind is HostFault.HOST_KEY  # reached; under this address it is not known
    assert f"[{address}%cogrid0]:22" in error.message


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Path]:
    """The socket of an agent of the test's own."""
    socket = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    try:
        until(socket.exists)
        yield socket
    finally:
        process.terminate()
        process.wait()


def add(agent: Path, *keys: Path) -> None:
    env = {**os.environ, "SSH_AUTH_SOCK": str(agent)}
    subprocess.run(["ssh-add", "-q", *map(str, keys)], env=env, check=True)


def fill(agent: Path, directory: Path, count: int) -> None:
    """Gives an agent keys that let nobody in."""
    keys = [directory / f"other{number}" for number in range(count)]
    for key in keys:
        make_key(key)
    add(agent, *keys)
