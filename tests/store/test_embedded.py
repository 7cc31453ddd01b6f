"""The embedded server: its life, its lock, its secrets, and what is left of a killed owner."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from cogrid.errors import CogridError, UnreachableError, UsageError
from cogrid.store import embedded_process
from cogrid.store.embedded import Embedded
from cogrid.store.embedded_files import Address
from tests.conftest import needs
from tests.servers import ONCE, VALKEY9, free_port
from tests.wait import until

OWNER = """
import sys
from pathlib import Path
from cogrid.store.embedded import Embedded
with Embedded.start(Path(sys.argv[1])) as server:
    print(server.url, server.owned, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def state() -> Iterator[Path]:
    """A state directory with a short path, a space and a letter that is not ASCII."""
    needs(VALKEY9)
    with tempfile.TemporaryDirectory(prefix="cogrid-") as directory:
        yield Path(directory) / "my stäte"


@pytest.fixture
def owner(state: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that owns the server; it stops it when its input ends."""
    command = (sys.executable, "-c", OWNER, str(state))
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().endswith("True\n")
        yield process


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def pid_of(url: str) -> int:
    with redis.Redis.from_url(url) as client:
        return int(client.info("server")["process_id"])


def gone(pid: int) -> bool:
    """True when the process has ended, though nobody may have read its exit status yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_it_keeps_its_data_over_a_stop(state: Path) -> None:
    with Embedded.start(state) as first, redis.Redis.from_url(first.url) as client:
        client.set("kept", "1")
        assert client.config_get("appendfsync") == {"appendfsync": "everysec"}
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    assert not first.running
    with Embedded.start(state) as second, redis.Redis.from_url(second.url) as client:
        assert client.get("kept") == b"1"


def test_it_listens_on_its_socket_only_and_to_its_owner_only(state: Path) -> None:
    with Embedded.start(state) as server, redis.Redis.from_url(server.url) as client:
        assert client.config_get("port") == {"port": "0"}
        assert mode(state / "valkey") == 0o700
        assert mode(state / "valkey" / "sock") == 0o700
        with pytest.raises(UsageError, match="this machine only"):
            server.network_url("10.0.0.1")


def test_on_an_address_it_asks_for_a_password_that_it_keeps(state: Path) -> None:
    port = free_port()
    with Embedded.start(state, listen=f"127.0.0.1:{port}") as server:
        assert len(server.password) >= 40
        assert pid_of(server.network_url("127.0.0.1")) == pid_of(server.url)
        with (
            redis.Redis(port=port, retry=ONCE) as stranger,
            pytest.raises(redis.AuthenticationError),
        ):
            stranger.ping()
        command_line = Path(f"/proc/{pid_of(server.url)}/cmdline")
        if command_line.exists():
            assert server.password not in command_line.read_text()
    assert mode(state / "valkey" / "password") == 0o600
    assert mode(state / "valkey" / "valkey.conf") == 0o600
    with Embedded.start(state, listen=f"127.0.0.1:{port}") as again:
        assert again.password == server.password


def test_a_given_password_may_have_any_characters(state: Path) -> None:
    secret = 'a "quoted" \\x41 pass:wörd@/'
    with Embedded.start(state, f"127.0.0.1:{free_port()}", password=secret) as server:
        assert pid_of(server.network_url("127.0.0.1")) == pid_of(server.url)
        with Embedded.start(state) as joined:
            assert joined.password == secret


def test_a_second_start_uses_the_first_ones_server_and_leaves_it(
    state: Path, owner: subprocess.Popen[str]
) -> None:
    with Embedded.start(state) as joined:
        assert not joined.owned
        pid = pid_of(joined.url)
    with Embedded.start(state) as again:
        assert pid_of(again.url) == pid
    owner.communicate("")
    assert gone(pid)


def test_a_second_start_waits_for_the_first_one_to_go(
    state: Path, owner: subprocess.Popen[str]
) -> None:
    with Embedded.start(state) as joined:
        pid = pid_of(joined.url)
        owner.kill()
        until(lambda: gone(pid), what="the server to follow its owner")
    with Embedded.start(state) as heir:
        assert heir.owned


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a process to its parent")
def test_a_killed_owner_takes_its_server_along_and_loses_nothing(
    state: Path, owner: subprocess.Popen[str]
) -> None:
    with Embedded.start(state) as joined, redis.Redis.from_url(joined.url) as client:
        pid = pid_of(joined.url)
        client.set("kept", "1")
    owner.kill()
    owner.wait()
    with Embedded.start(state) as heir, redis.Redis.from_url(heir.url) as client:
        assert heir.owned
        assert client.get("kept") == b"1"
    assert gone(pid)


def test_a_server_that_was_left_behind_is_ended_and_its_data_kept(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a system that cannot tie the server to its owner."""
    left = Embedded.start(state)
    with redis.Redis.from_url(left.url) as client:
        client.set("kept", "1")
    pid = pid_of(left.url)
    assert left._lock is not None
    left._lock.close()  # what the end of the process does
    with Embedded.start(state) as heir, redis.Redis.from_url(heir.url) as client:
        assert heir.owned
        assert pid_of(heir.url) != pid
        assert client.get("kept") == b"1"
    left.stop()


def test_ctrl_c_in_the_terminal_does_not_reach_it(state: Path) -> None:
    with Embedded.start(state) as server:
        assert os.getpgid(pid_of(server.url)) != os.getpgid(0)


def test_an_end_of_its_own_is_seen(state: Path) -> None:
    with Embedded.start(state) as server:
        assert server.running
        os.kill(pid_of(server.url), signal.SIGKILL)
        until(lambda: not server.running, what="the server's end")


def test_a_taken_port_is_a_sentence(state: Path) -> None:
    with Embedded.start(state / "a", f"127.0.0.1:{free_port()}") as first:
        assert first.address is not None
        with pytest.raises(UnreachableError, match=r"ended at its start: .*listening") as failed:
            Embedded.start(state / "b", f"127.0.0.1:{first.address.port}")
    assert "valkey.log" in failed.value.hint
    with Embedded.start(state / "b"):
        pass  # the failed start has given up the lock


def test_an_owner_that_never_gets_ready_is_a_sentence(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Embedded.start(state) as server:
        os.kill(pid_of(server.url), signal.SIGKILL)
        monkeypatch.setattr(embedded_process, "START_S", 0.1)
        with pytest.raises(UnreachableError, match="another process owns"):
            Embedded.start(state)


def test_without_a_binary_for_this_machine_the_cure_is_told(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(CogridError, match="no embedded Valkey") as failed:
        Embedded.start(state)
    assert "COGRID_REDIS_URL" in failed.value.hint


def test_a_path_too_long_for_a_socket_is_refused(state: Path) -> None:
    with pytest.raises(UsageError, match="too long for a unix socket") as failed:
        Embedded.start(state / ("x" * 100))
    assert "XDG_STATE_HOME" in failed.value.hint


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("0.0.0.0", "0.0.0.0", 6379),
        ("127.0.0.1:7000", "127.0.0.1", 7000),
        ("::1", "::1", 6379),
        ("[::1]:7000", "::1", 7000),
        ("nas.local:1", "nas.local", 1),
    ],
)
def test_addresses(text: str, host: str, port: int) -> None:
    assert Address.parse(text) == Address(host, port)


@pytest.mark.parametrize("text", [":6379", "host:", "host:0", "host:65536", "host:x", "[]:1"])
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match=r"no valid port|names no address"):
        Address.parse(text)
