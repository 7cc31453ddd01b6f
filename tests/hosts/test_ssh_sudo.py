"""Acting as root: decided by exit codes before anything is touched; no secret is shown."""

from __future__ import annotations

import logging
import threading
import traceback

import pytest

from cogrid.errors import HostError, HostFault
from cogrid.remote.connection import Connection, connect
from cogrid.remote.target import Target
from tests.hosts.host import Host
from tests.hosts.way import Person, access
from tests.wait import until

PASSWORD = "Tr0ub4dor&3"
LOCALES = 2241
"""Where the server sets other languages."""


@pytest.fixture(scope="module", autouse=True)
def _users(box: Host) -> None:
    box.ssh("echo 'Defaults lecture=always' >/etc/sudoers.d/lecture")
    for user, rule in {
        "free": "ALL=(ALL) NOPASSWD: ALL",
        "asks": "ALL=(ALL) ALL",
        "term": "ALL=(ALL) NOPASSWD: ALL",
        "termasks": "ALL=(ALL) ALL",
        "some": "ALL=(ALL) NOPASSWD: /usr/bin/systemctl",
        "someasks": "ALL=(ALL) /usr/bin/systemctl",
        "mixed": "ALL=(ALL) NOPASSWD: /usr/bin/systemctl, PASSWD: ALL",
        "none": "",
    }.items():
        box.login(user, sudo=rule)
    names = "asks term termasks someasks mixed none"
    box.ssh(f'for user in {names}; do echo "$user:{PASSWORD}"; done | chpasswd')
    box.write(
        "/etc/sudoers.d/ttys", "Defaults:term requiretty\nDefaults:termasks requiretty\n", 0o440
    )
    box.sshd(LOCALES, "SetEnv LANG=ja_JP.UTF-8 LC_ALL=de_DE.UTF-8\nPidFile none")


def login(box: Host, user: str, person: Person | None = None, port: int = 0) -> Connection:
    config = f"IdentityFile {box.key}\nUserKnownHostsFile {box.place}/known_hosts"
    way = access(box.place, config, asked=person.asked if person else None)
    return connect(Target(box.ip, user=user, port=port), way)


@pytest.mark.parametrize("port", [22, LOCALES])
def test_without_a_password(box: Host, port: int) -> None:
    with login(box, "free", port=port) as connection:
        result = connection.run("id -u; cat", stdin=b"x", root=True)
        assert (result.out, result.err) == (b"0\nx", b"")
        connection.put("/etc/by-free", b"x", mode=0o600, root=True)
    assert (box.root / "etc/by-free").stat().st_uid == 0


def test_root_needs_no_sudo(box: Host) -> None:
    with login(box, "root") as connection:
        assert connection.run("id -u", root=True).text == "0"


def test_asked_once_for_a_connection(box: Host) -> None:
    person = Person(["wrong", PASSWORD])
    with login(box, "asks", person) as connection:
        for _ in range(2):
            assert connection.run("id -u; cat", stdin=b"x", root=True).out == b"0\nx"
        assert connection.run("id -un").text == "asks"
    place = f"sudo asks@{box.ip}:22"
    assert person.heard == [place, f"{place}, was wrong"]


@pytest.mark.parametrize(
    ("user", "words", "why"),
    [
        ("asks", None, "sudo needs a password, or does not know asks at all"),
        ("asks", [], "sudo needs a password, and none was given"),
        ("asks", ["a", "b", "c"], "sudo refused every password, or does not know asks at all"),
        ("none", None, "sudo needs a password, or does not know none at all"),
        ("none", [PASSWORD] * 3, "sudo refused every password, or does not know none at all"),
        ("term", None, "sudo demands a terminal (requiretty)"),
        ("termasks", [PASSWORD], "sudo demands a terminal (requiretty)"),
        ("some", None, "sudo allows only certain commands, and not a shell"),
        ("some", [PASSWORD], "sudo allows only certain commands, and not a shell"),
        ("someasks", [PASSWORD], "sudo allows only certain commands, and not a shell"),
        ("mixed", None, "sudo needs a password, or does not know mixed at all"),
    ],
)
@pytest.mark.parametrize("port", [22, LOCALES])
def test_refused(box: Host, user: str, words: list[str] | None, why: str, port: int) -> None:
    person = None if words is None else Person([*words])
    with login(box, user, person, port) as connection:
        with pytest.raises(HostError) as raised:
            connection.put("/etc/never", b"x", mode=0o600, root=True)
        assert connection.run("echo goes on").text == "goes on"
    error = raised.value
    assert error.kind is HostFault.SUDO
    assert error.message.startswith(f"{user} cannot act as root on {box.ip}:{port or 22}: {why}")
    assert error.hint
    assert PASSWORD not in f"{error.message}{error.hint}"
    assert not (box.root / "etc/never").exists()


def test_no_sudo_there(box: Host) -> None:
    box.login("bare")
    with login(box, "bare") as connection:
        box.ssh("mv /usr/bin/sudo /usr/bin/sudo.away")
        try:
            with pytest.raises(HostError, match="there is no sudo"):
                connection.run("id", root=True)
        finally:
            box.ssh("mv /usr/bin/sudo.away /usr/bin/sudo")


def test_mixed_rights_and_the_password(box: Host) -> None:
    with login(box, "mixed", Person([PASSWORD])) as connection:
        assert connection.run("id -u", root=True).text == "0"


def test_ended_as_root(box: Host) -> None:
    with (
        login(box, "asks", Person([PASSWORD])) as connection,
        pytest.raises(HostError) as raised,
    ):
        connection.run("sleep 4715", root=True, timeout_s=1)
    assert raised.value.kind is HostFault.TIMEOUT
    assert box.ssh("pgrep -fc '[s]leep 4715' || true") == "0"


def test_password_is_nowhere(box: Host, caplog: pytest.LogCaptureFixture) -> None:
    """Not for another user of the host while it is used, nor in anything that this side shows."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("paramiko").setLevel(logging.DEBUG)
    try:
        with login(box, "asks", Person([PASSWORD])) as connection:
            run = threading.Thread(target=connection.run, args=("sleep 59",), kwargs={"root": True})
            run.start()
            until(lambda: box.ssh("pgrep -fc '^[s]leep 59' || true") != "0")
            seen = box.ssh("ps -eo args; cat /proc/[0-9]*/cmdline | tr '\\0' ' '", user="free")
            box.ssh("pkill -f '^[s]leep 59'")
            run.join()
            shown = repr(connection) + repr(vars(connection))
            with pytest.raises(HostError) as raised:
                connection.run("sleep 9", root=True, timeout_s=0.2)
    finally:
        logging.getLogger("paramiko").setLevel(logging.CRITICAL)
    shown += "".join(traceback.format_exception(raised.value))
    assert "sudo" in seen
    for text in (seen, shown, caplog.text):
        assert PASSWORD not in text
