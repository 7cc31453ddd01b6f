"""What ``cogrid up`` refuses before it starts anything."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogrid.cli.free_port import check_free
from cogrid.cli.main import run
from cogrid.errors import CogridError, UsageError
from tests.servers import free_port


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which another program listens."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield int(other.getsockname()[1])


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cogrid"


def test_a_port_that_is_taken_is_refused_and_a_free_one_is_not(taken: int) -> None:
    check_free("127.0.0.1", free_port(), "no cure")
    with pytest.raises(CogridError, match=f"127.0.0.1:{taken}: Address already in use") as told:
        check_free("127.0.0.1", taken, "the cure")
    assert told.value.hint == "the cure"


@pytest.mark.parametrize("address", ["192.0.2.77", "no-such-name.invalid"])
def test_an_address_that_is_not_this_machines_is_told_as_that_and_not_as_taken(
    address: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match=f"cannot listen on {address}:"):
        check_free(address, free_port(), "another port")
    assert run(["up", "--listen", address]) == 2
    told = capsys.readouterr().err
    assert "name an address of this machine" in told
    assert "is cogrid up running already" not in told
    assert list(home.iterdir()) == []


def test_a_taken_coordinator_port_starts_nothing_and_leaves_the_other_grids_files(
    taken: int, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    (home / "coordinator_url").write_text("http://127.0.0.1:1\n")
    monkeypatch.setenv("COGRID_COORDINATOR_LISTEN", f"127.0.0.1:{taken}")
    assert run(["up", "--demo"]) == 1
    told = capsys.readouterr()
    assert "is up" not in told.out
    assert f"cannot listen on 127.0.0.1:{taken}" in told.err
    assert "COGRID_COORDINATOR_LISTEN" in told.err
    assert {path.name for path in home.iterdir()} == {"coordinator_url"}


def test_a_taken_port_of_the_server_is_named_with_its_cures(
    taken: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COGRID_COORDINATOR_LISTEN", f"127.0.0.1:{free_port()}")
    assert run(["up", "--listen", f"127.0.0.1:{taken}"]) == 1
    told = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1:{taken}" in told
    assert "COGRID_REDIS_URL" in told
