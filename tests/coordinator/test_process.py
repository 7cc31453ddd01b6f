"""The coordinator as a process: what it tells systemd."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from cogrid.coordinator.live import Live
from cogrid.model.limits import Limits
from cogrid.store.address import parse_address
from cogrid.store.async_client import AsyncStore
from cogrid.store.outage import Outage
from tests.notified import WAIT_S, hear, listening
from tests.servers import Server, free_port


@contextmanager
def a_coordinator(url: str) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket]]:
    with listening() as listener:
        env = {
            **os.environ, "COGRID_REDIS_URL": url, "NOTIFY_SOCKET": listener.getsockname(),
            "COGRID_TIME_SCALE": "0.1", "COGRID_COORDINATOR_LISTEN": f"127.0.0.1:{free_port()}",
        }  # fmt: skip
        words = (sys.executable, "-m", "cogrid.cli.main", "coordinator", "run")
        with subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL) as process:
            try:
                yield process, listener
            finally:
                process.kill()


def test_it_is_up_when_it_listens_and_its_reader_feeds_the_watchdog(server: Server) -> None:
    with a_coordinator(server.url) as (process, listener):
        hear(listener, b"READY=1")
        assert hear(listener, b"STATUS=").startswith(b"STATUS=http://127.0.0.1:")
        for _ in range(2):
            hear(listener, b"WATCHDOG=1")
        process.send_signal(signal.SIGTERM)
        assert hear(listener, b"STOPPING=1") == b"STOPPING=1"
        assert process.wait(WAIT_S) == 0


def test_without_a_server_it_is_up_too_and_goes_on_feeding() -> None:
    with a_coordinator(f"redis://127.0.0.1:{free_port()}/0") as (_, listener):
        hear(listener, b"READY=1")
        for _ in range(2):
            hear(listener, b"WATCHDOG=1")


async def test_a_reader_that_has_no_pause_turns_all_the_same(server: Server) -> None:
    store = AsyncStore(parse_address(server.url))
    live = Live(store, Limits(), "c1", Outage("nothing"))
    turns = 0

    def turned() -> None:
        nonlocal turns
        turns += 1

    live.turned = turned
    hints = [("t2",), ("t3",), ()]

    async def take_hints(hint: str, most: int) -> tuple[str, ...]:
        return hints.pop(0)

    store.take_hints = take_hints  # type: ignore[method-assign]
    try:
        await live._take("inbox", "t1")
    finally:
        store.close()
    assert turns == 3
