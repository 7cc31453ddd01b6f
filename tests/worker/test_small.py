"""The watchdog's feed and the drill's switch."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

import pytest

from cogrid.notify import Notify
from cogrid.worker.drill import HANG_ENV, Hang


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_hears_what_it_asked_for(tmp_path: Path, abstract: bool) -> None:
    name = f"@cogrid-{tmp_path}" if abstract else str(tmp_path / "n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f"\0{name[1:]}" if abstract else name)
        listener.settimeout(5)
        notify = Notify({"NOTIFY_SOCKET": name})
        notify.ready()
        for _ in range(100):
            notify.alive()
        notify.stopping()
        notify.stopping(131.5)
        notify.close()
        assert [listener.recv(100) for _ in range(4)] == [
            b"READY=1",
            b"WATCHDOG=1",
            b"STOPPING=1",
            b"STOPPING=1\nEXTEND_TIMEOUT_USEC=131500000",
        ]


def test_what_systemd_has_no_room_for_now_is_told_with_the_next_feed(tmp_path: Path) -> None:
    name = str(tmp_path / "n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(name)
        listener.settimeout(5)
        notify = Notify({"NOTIFY_SOCKET": name})
        others = 0
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    other.sendto(b"X=1", name)
                    others += 1
        notify.ready()
        for _ in range(others):
            assert listener.recv(100) == b"X=1"
        notify.alive()
        assert [listener.recv(100) for _ in range(2)] == [b"READY=1", b"WATCHDOG=1"]
        notify.close()


def test_without_systemd_or_with_a_dead_one_nothing_happens(tmp_path: Path) -> None:
    for env in ({}, {"NOTIFY_SOCKET": str(tmp_path / "gone")}):
        notify = Notify(env)
        notify.ready()
        notify.alive()
        notify.close()
        notify.alive()


def test_the_switch_is_a_file(tmp_path: Path) -> None:
    assert not Hang({}).on()
    hang = Hang({HANG_ENV: str(tmp_path / "hang")})
    assert not hang.on()
    (tmp_path / "hang").touch()
    assert hang.on()
