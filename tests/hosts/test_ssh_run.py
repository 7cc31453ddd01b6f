"""Commands on hosts: their outputs, their ends, and whatever shell and login scripts are there."""

from __future__ import annotations

import math
import signal
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogrid.errors import HostError, HostFault
from cogrid.remote.connection import Connection, connect
from cogrid.remote.target import Target
from tests.hosts.host import Host
from tests.hosts.way import access
from tests.wait import until

MIB = 1 << 20
NOISY = """
printf '\\033[31mWelcome\\033[0m\\n'; echo active; echo '{"status": "active"}'
echo 'warning: something' >&2
"""


@pytest.fixture
def root(box: Host) -> Iterator[Connection]:
    with connect(box.target, box.access) as connection:
        yield connection


def running(box: Host, what: str) -> str:
    """How many processes of the host have these words in their command line."""
    return box.ssh(f"pgrep -fc '[{what[0]}]{what[1:]}' || true")


# Outputs.


def test_both_outputs_at_once(root: Connection) -> None:
    script = (
        'fill() { head -c "$1" /dev/zero | tr "\\0" "$2"; }; fill "$1" o & fill "$1" e >&2; wait'
    )
    result = root.run(script, str(10 * MIB), limit_bytes=1000)
    assert result.code == 0
    assert result.cut
    note = b"\n[... 10,484,760 bytes left out ...]\n"
    assert result.out == b"o" * 500 + note + b"o" * 500
    assert result.err == b"e" * 500 + note + b"e" * 500


def test_one_line_of_3_mib(root: Connection) -> None:
    result = root.run(f"head -c {3 * MIB} /dev/zero | tr '\\0' x", limit_bytes=4 * MIB)
    assert (result.code, result.cut) == (0, False)
    assert result.out == b"x" * 3 * MIB


@pytest.mark.parametrize(
    ("script", "left"),
    [
        ("yes endless", "yes endless"),
        ("sleep 4711", "sleep 4711"),
        ("echo before; sleep 4712 & exit 0", "sleep 4712"),
        ("trap '' TERM HUP INT; sleep 4713; sleep 4713", "sleep 4713"),
        ("yes stubborn | (trap '' TERM; cat)", "yes stubborn"),
    ],
)
def test_what_never_ends(box: Host, root: Connection, script: str, left: str) -> None:
    began = time.monotonic()
    with pytest.raises(HostError) as raised:
        root.run(script, timeout_s=0.5)
    assert time.monotonic() - began < 6
    error = raised.value
    assert (error.host, error.kind) == (box.ip, HostFault.TIMEOUT)
    assert f"`{script}` on {box.ip}:22 took longer than 0.5 s" in error.message
    assert running(box, left) == "0"
    if not left.startswith("yes"):  # a flood may take its connection with it
        assert root.run("echo still here").text == "still here"


def test_ctrl_c_ends_it_there(box: Host, root: Connection) -> None:
    main = threading.main_thread().ident or 0
    timer = threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        root.run("sleep 4714")
    timer.join()
    assert running(box, "sleep 4714") == "0"


def test_without_an_end(root: Connection) -> None:
    assert root.run("echo there", timeout_s=math.inf).text == "there"


def test_closed_outputs_are_not_the_end(root: Connection) -> None:
    began = time.process_time()
    assert root.run("exec >&- 2>&-; sleep 1; exit 7").code == 7
    assert time.process_time() - began < 0.5, "it spun while it waited"


def test_ended_by_a_signal(root: Connection) -> None:
    assert root.run("kill -9 $$").code == -1


def test_lines_as_they_come(root: Connection) -> None:
    lines: list[tuple[str, float]] = []
    began = time.monotonic()
    root.run(
        "echo one; sleep 1; printf two", on_line=lambda line: lines.append((line, time.monotonic()))
    )
    assert [line for line, _ in lines] == ["one", "two"]
    assert lines[1][1] - lines[0][1] > 0.8
    assert lines[0][1] - began < lines[1][1] - lines[0][1] + 5


def test_words_byte_for_byte(root: Connection) -> None:
    words = [
        "",
        " ",
        "a b",
        "'\"\\$(id)`id`!!%s\t",
        "two\nlines\n",
        "-n",
        "ä€\x81",
        "*",
        "\x88\x81",
    ]
    result = root.run("""for word; do printf '%s\\0' "$word"; done""", *words)
    assert result.out.decode().split("\0")[:-1] == words


def test_stdin_is_all_that_was_given(root: Connection) -> None:
    data = bytes(range(256)) * 20_000
    assert root.run("cat", stdin=data, limit_bytes=len(data)).out == data
    assert root.run('read -r first; echo "$first"; wc -c', stdin=b"line\nrest").text == "line\n4"
    assert root.run("wc -c").text == "0"
    assert root.run("true", stdin=data).code == 0, "what is not read does not matter"


def test_same_words_in_every_locale(box: Host) -> None:
    box.sshd(2231, "SetEnv LANG=ja_JP.UTF-8 LC_ALL=de_DE.UTF-8 LANGUAGE=de\nPidFile none")
    way = access(box.place, f"UserKnownHostsFile {box.place}/known_hosts\nIdentityFile {box.key}")
    with connect(Target(box.ip, user="root", port=2231), way) as connection:
        assert connection.run("echo $LC_ALL").text == "C"


# Shells and login scripts.


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh", "/bin/tcsh", "/usr/bin/fish"])
def test_every_login_shell(box: Host, shell: str) -> None:
    user = shell.rpartition("/")[2] + "er"
    box.login(user, shell=shell, sudo="ALL=(ALL) NOPASSWD: ALL")
    with connect(Target(box.ip, user=user), box.access) as connection:
        words = ["it's", '$HOME "!x" \\n', "*"]
        assert connection.run('printf "%s|" "$@"', *words).text == "|".join(words) + "|"
        assert connection.run("cat; id -un; exit 5", stdin=b"in ", root=True).text == "in root"


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("/bin/bash", ".bashrc"),
        ("/bin/tcsh", ".cshrc"),
        ("/usr/bin/fish", ".config/fish/config.fish"),
    ],
)
def test_chatty_login_scripts(box: Host, shell: str, file: str) -> None:
    user = "noisy" + shell.rpartition("/")[2]
    box.login(user, shell=shell, sudo="ALL=(ALL) NOPASSWD: ALL")
    script = NOISY if shell != "/bin/tcsh" else "echo active\n"
    path = box.root / "home" / user / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script + ("read\n" if shell == "/bin/bash" else ""))
    with connect(Target(box.ip, user=user), box.access) as connection:
        if shell == "/bin/bash":  # it eats a line of stdin, and had better get none of ours
            path.write_text(script + 'read -t 0.2 line; echo "got $line"\n')
        result = connection.run("echo inactive; cat", stdin=b"data\n")
        assert (result.out, result.err) == (b"inactive\ndata\n", b"")
        connection.put(f"/home/{user}/file", b"\x00content", mode=0o600)
    assert (box.root / f"home/{user}/file").read_bytes() == b"\x00content"


def test_banner_and_no_sftp(box: Host) -> None:
    box.write("/etc/ssh/banner", "active\n" * 200)
    lines = "Banner /etc/ssh/banner\nSubsystem sftp /bin/false\nPidFile none"
    box.sshd(2232, lines)
    way = access(box.place, f"UserKnownHostsFile {box.place}/known_hosts\nIdentityFile {box.key}")
    with connect(Target(box.ip, user="root", port=2232), way) as connection:
        assert connection.run("systemctl is-active no-such.service || true").text == "inactive"
        connection.put("/etc/by-sh", b"x", mode=0o644)
        assert connection.run("cat /etc/by-sh").out == b"x"


@pytest.mark.parametrize("shell", ["/usr/sbin/nologin", "/bin/false"])
def test_login_without_a_shell(box: Host, shell: str) -> None:
    user = "no" + shell.rpartition("/")[2]
    box.login(user, shell=shell)
    with (
        connect(Target(box.ip, user=user), box.access) as connection,
        pytest.raises(HostError) as raised,
    ):
        connection.run("echo hi")
    assert raised.value.kind is HostFault.SHELL
    said = "not available" if shell.endswith("nologin") else "nothing"
    assert said in raised.value.message


def test_connection_that_breaks(box: Host, root: Connection) -> None:
    with pytest.raises(HostError) as raised:
        root.run("kill -9 $PPID")
    assert raised.value.kind is HostFault.LOST
    with pytest.raises(HostError) as raised:
        root.run("echo again")
    assert raised.value.kind is HostFault.LOST


# Files.


def test_put(box: Host, root: Connection, tmp_path: Path) -> None:
    box.login("owner")
    data = bytes(range(256)) * 10_000
    (tmp_path / "local").write_bytes(data)
    path = "/etc/it's $HOME"
    root.put(path, b"first", mode=0o600)
    root.put(path, tmp_path / "local", mode=0o640, owner="owner:owner")
    there = box.root / path.lstrip("/")
    assert there.read_bytes() == data
    assert stat.S_IMODE(there.stat().st_mode) == 0o640
    assert root.run('stat -c %U:%G "$1"', path).text == "owner:owner"
    assert left(there) == []


def left(file: Path) -> list[str]:
    """Temporary files beside it."""
    return [path.name for path in file.parent.iterdir() if path.name.startswith(file.name + ".")]


def test_put_that_is_cut_off(box: Host, root: Connection, tmp_path: Path) -> None:
    """The old file stays; what came had its mode before it had content."""
    there = box.root / "etc/cut"
    root.put("/etc/cut", b"old", mode=0o644)
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(400 * MIB)
    seen: set[int] = set()

    def watch() -> None:
        until(lambda: left(there))
        name = left(there)[0]
        until(lambda: there.with_name(name).stat().st_size > 0)
        seen.add(stat.S_IMODE(there.with_name(name).stat().st_mode))

    watcher = threading.Thread(target=watch)
    watcher.start()
    with pytest.raises(HostError) as raised:
        root.put("/etc/cut", big, mode=0o640, timeout_s=1)
    watcher.join()
    assert raised.value.kind is HostFault.TIMEOUT
    assert seen == {0o640}
    assert there.read_bytes() == b"old"
    assert left(there) == []


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/none/file", "its folder is not there"),
        ("/etc", "it is a folder"),
        ("/root/file", "its folder cannot be written to"),
        ("/usr/file", "its folder cannot be written to"),
        ("/small/file", "the content cannot be written"),
    ],
)
def test_put_that_cannot_be(box: Host, path: str, why: str) -> None:
    if not (box.root / "home/plain").exists():
        box.login("plain")
    box.ssh(
        "mkdir -p /small && mountpoint -q /small || mount -t tmpfs -o size=64k,mode=777 t /small"
    )
    with (
        connect(Target(box.ip, user="plain"), box.access) as connection,
        pytest.raises(HostError) as raised,
    ):
        connection.put(path, b"x" * 100_000, mode=0o600)
    assert raised.value.kind is HostFault.FILE
    assert raised.value.message.startswith(f"{path} cannot be written on {box.ip}:22: {why}")
    assert box.ssh("ls /small") == ""
