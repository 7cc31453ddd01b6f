"""The reaper as a process: it tells systemd, works without a server at first, and ends cleanly."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.notified import WAIT_S, hear, listening
from tests.servers import Server, free_port
from tests.wait import until


@pytest.fixture
def systemd() -> Iterator[socket.socket]:
    with listening() as listener:
        yield listener


def start(url: str, listener: socket.socket) -> subprocess.Popen[str]:
    env = {
        **os.environ, "COGRID_REDIS_URL": url, "NOTIFY_SOCKET": listener.getsockname(),
        "COGRID_TIME_SCALE": "0.05",
    }  # fmt: skip
    words = (sys.executable, "-m", "cogrid.cli.main", "reaper", "--daemon")
    return subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True)


def end(daemon: subprocess.Popen[str]) -> str:
    daemon.send_signal(signal.SIGTERM)
    _, said = daemon.communicate(timeout=WAIT_S)
    return said


def test_it_runs_until_it_is_told_to_end(server: Server, systemd: socket.socket) -> None:
    daemon = start(server.url, systemd)
    try:
        assert systemd.recv(1000) == b"READY=1"
        assert b"WATCHDOG=1" in systemd.recv(1000)
        until(lambda: server.client.hget("grid:reaper", "last_pass"), WAIT_S)
    finally:
        said = end(daemon)
    assert daemon.returncode == 0
    assert "[start] reaper redis=" in said
    assert said.rstrip().endswith("[stop] reaper")
    assert hear(systemd, b"STOPPING") == b"STOPPING=1"


def test_it_is_ready_before_the_server_is(systemd: socket.socket) -> None:
    daemon = start(f"redis://127.0.0.1:{free_port()}/0", systemd)
    try:
        assert b"READY=1" in systemd.recv(1000)
        assert b"WATCHDOG=1" in systemd.recv(1000)
    finally:
        said = end(daemon)
    assert daemon.returncode == 0
    assert said.count("cannot be reached") == 1


def test_a_newer_cogrid_ends_it_with_a_sentence(server: Server, systemd: socket.socket) -> None:
    server.client.hset("grid:reaper", "schema", 2)
    daemon = start(server.url, systemd)
    _, said = daemon.communicate(timeout=WAIT_S)
    assert daemon.returncode == 4
    assert "Redis holds the data of a newer cogrid (schema 2, here 1)" in said
    assert "install the newer version here too" in said
