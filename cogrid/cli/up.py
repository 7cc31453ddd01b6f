"""``cogrid up``: the whole grid on one machine; the one command that starts all daemons.

The server (embedded, unless one is configured), the coordinator and each worker are processes of
their own, tied to this one: they end with it, even after ``kill -9``. The reaper is a thread here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cogrid import __version__
from cogrid.cli.free_port import check_free
from cogrid.cli.options import with_config, with_log
from cogrid.cli.output import note, print_line
from cogrid.errors import CogridError, UnreachableError
from cogrid.signals import Told

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.store.embedded import Embedded

STOP_S = 10.0
"""How long a child may take to end beyond its own drain."""
RESTART_S = 1.0
"""The pause before a child that ended is started again; doubled up to RESTART_MOST_S."""
RESTART_MOST_S = 30.0
SUPERSEDED = 75
"""A worker whose name was taken over; it is not started again (EX_TEMPFAIL of sysexits.h)."""

COORDINATOR_PORT_CURE = (
    "is cogrid up running already? else choose another port: "
    "COGRID_COORDINATOR_LISTEN=127.0.0.1:8701 cogrid up"
)
SERVER_PORT_CURE = (
    "choose another port with --listen ADDRESS:PORT, or use the server that is there: "
    "set COGRID_REDIS_URL"
)


@click.command()
@click.option("--demo", is_flag=True, help="Two built-in workers whose model needs no engine.")
@click.option(
    "--listen",
    metavar="ADDRESS[:PORT]",
    help="Open the grid to the network on this address, with a password and an API key. PORT is "
    "that of the embedded server (6379); the coordinator's is coordinator.listen's.",
)
@with_config
@with_log
def command(config: Config, demo: bool, listen: str | None) -> None:
    """Run the whole grid on this machine until it is interrupted.

    An embedded Valkey unless a Redis URL is configured, the coordinator, the reaper, and a worker
    for the engine that is found here.

    \b
    cogrid up
    cogrid up --demo
    cogrid up --listen 192.168.0.10
    """
    stopping = Told()
    stopping.on_signals(signal.SIGTERM, signal.SIGINT)
    with contextlib.ExitStack() as stack:
        _run(config, demo, listen, stopping, stack)


def _run(
    config: Config,
    demo: bool,
    listen: str | None,
    stopping: Told,
    stack: contextlib.ExitStack,
) -> None:
    from cogrid.config import state_dir

    home = state_dir(config, os.environ)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    address = _coordinator_address(config, listen)
    _check_coordinator_port(address)
    server = _server(config, home, listen, stack)
    if server is not None:
        config = replace(config, redis=replace(config.redis, url=server.url, password=""))
    key = _api_key(config, home) if listen else ""
    children = _children(config, demo, address)
    stack.callback(_stop, children, config.limits.drain_timeout_s)
    _start_reaper(config, stopping, stack)
    for child in children:
        child.start()
    _await_ready(address, children, stopping)
    if not stopping.is_set():
        _leave_address(home, address, stack)
        _tell(address, key, server, listen)
    tended = [*_server_as_child(server), *children]
    while not stopping.wait(0.2):
        for child in tended:
            child.tend()


def _server(
    config: Config, home: Path, listen: str | None, stack: contextlib.ExitStack
) -> Embedded | None:
    """The embedded server, or None where another one is configured."""
    if config.redis.url:
        return None
    from cogrid.store.embedded import Embedded
    from cogrid.store.embedded_files import Address

    try:
        return stack.enter_context(Embedded.start(home, listen=listen))
    except UnreachableError:
        if listen:
            taken = Address.parse(listen)
            check_free(taken.host, taken.port, SERVER_PORT_CURE)
        raise


def _check_coordinator_port(address: str) -> None:
    """Whoever listens there already would be taken for the coordinator: another ``cogrid up``, or
    another program."""
    host, _, port = address.rpartition(":")
    check_free(host.removeprefix("[").removesuffix("]"), int(port), COORDINATOR_PORT_CURE)


def _coordinator_address(config: Config, listen: str | None) -> str:
    """The coordinator's own port on the address that is opened."""
    if not listen:
        return config.coordinator.listen
    from cogrid.store.embedded_files import Address

    host = Address.parse(listen).host
    port = config.coordinator.listen.rpartition(":")[2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _api_key(config: Config, home: Path) -> str:
    """The key that clients of the opened grid use; made once, kept readable by the owner only."""
    from cogrid.cli.connect import UP_KEY, open_store
    from cogrid.ops.keys import know_key, new_secret

    path = home / UP_KEY
    if path.exists():
        secret = path.read_text().strip()
    else:
        secret = new_secret()
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secret + "\n")
    store = open_store(config)
    know_key(store, secret, "cogrid up", trusted=True)
    store.close()
    return secret


@dataclass(slots=True)
class Child:
    """A process that is kept running. launch: starts it, tied to this one. Times are monotonic
    seconds."""

    name: str
    launch: Callable[[], subprocess.Popen[bytes]]
    process: subprocess.Popen[bytes] | None = None
    pause_s: float = RESTART_S
    started_at: float = 0.0
    again_at: float = 0.0
    given_up: bool = False

    def start(self) -> None:
        """Start it."""
        self.started_at = time.monotonic()
        self.process = self.launch()

    def tend(self) -> None:
        """Start it again, after a pause, where it has ended."""
        if self.process is None or self.given_up:
            return
        code = self.process.poll()
        if code is None:
            return
        if code == SUPERSEDED:
            self.given_up = True
            note(f"{self.name} was superseded by another process of its name; not started again")
        elif not self.again_at:
            if time.monotonic() - self.started_at > RESTART_MOST_S:
                self.pause_s = RESTART_S
            self.again_at = time.monotonic() + self.pause_s
            note(f"{self.name} ended with {code}; started again in {self.pause_s:g} s")
        elif time.monotonic() >= self.again_at:
            self.pause_s = min(2 * self.pause_s, RESTART_MOST_S)
            self.again_at = 0.0
            self.start()

    def ask_to_stop(self) -> None:
        """SIGTERM, where it runs."""
        if self.process and self.process.poll() is None:
            self.process.terminate()

    def wait(self, deadline: float) -> None:
        """Wait for its end; kill it when the deadline (monotonic) has passed."""
        if self.process is None:
            return
        try:
            self.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            note(f"{self.name} does not end; killed")
            self.process.kill()
            self.process.wait()


def _launch(words: tuple[str, ...], env: dict[str, str]) -> subprocess.Popen[bytes]:
    """A command of cogrid as a process that is tied to this one."""
    from cogrid.store.embedded_process import TETHER

    program = (sys.executable, "-m", "cogrid.cli.main", *words)
    return subprocess.Popen(
        (sys.executable, str(TETHER), str(os.getpid()), *program),
        env=env,
        stdin=subprocess.DEVNULL,
        # Ctrl-C on the terminal is for this process, which then ends its children in order.
        start_new_session=True,
    )


def _server_as_child(server: Embedded | None) -> list[Child]:
    """The embedded server, where it is ours, among what is kept running."""
    if server is None or not server.owned:
        return []
    return [Child("the embedded server", server.start_again, server.process)]


def _children(config: Config, demo: bool, address: str) -> list[Child]:
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    if config.redis.url:
        env["COGRID_REDIS_URL"] = config.redis.url
    if config.redis.prefix:
        env["COGRID_REDIS_PREFIX"] = config.redis.prefix
    if config.file:
        env["COGRID_CONFIG"] = config.file
    log = ("--log-format", config.log.format, "--log-level", config.log.level)
    coordinator = ("coordinator", "run", "--listen", address)
    workers = [
        (f"worker {name}", ("worker", "run", "--id", name, "--pool", "cpu", "--engine", "demo"))
        for name in ("demo-1", "demo-2")
    ]
    own = [("worker", ("worker", "run"))]
    return [
        Child(name, partial(_launch, (*words, *log), env))
        for name, words in (("coordinator", coordinator), *(workers if demo else own))
    ]


def _stop(children: list[Child], drain_s: float) -> None:
    """Workers first, so that the coordinator can hand on what they finish."""
    for group in (children[1:], children[:1]):
        for child in group:
            child.ask_to_stop()
        deadline = time.monotonic() + drain_s + STOP_S
        for child in group:
            child.wait(deadline)


def _start_reaper(config: Config, stopping: Told, stack: contextlib.ExitStack) -> None:
    from cogrid.cli.connect import open_store
    from cogrid.reaper.loop import run

    thread = threading.Thread(
        target=lambda: run(open_store(config), config.limits, config.routing, stopping),
        name="reaper",
        daemon=True,
    )
    thread.start()
    stack.callback(thread.join, STOP_S)
    stack.callback(stopping.set)


def _await_ready(address: str, children: list[Child], stopping: Told) -> None:
    """Until the coordinator accepts connections; a child that cannot start ends everything."""
    host, _, port = address.rpartition(":")
    while not stopping.wait(0.05):
        with contextlib.suppress(OSError):
            socket.create_connection((_reachable(host), int(port)), 1).close()
            return
        first = children[0].process
        if first is not None and first.poll() is not None:
            raise CogridError(
                f"the coordinator ended with {first.returncode} before it accepted connections",
                "its last lines, above, have the cause",
            )


def _reachable(host: str) -> str:
    bare = host.removeprefix("[").removesuffix("]")
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bare, bare)


def _leave_address(home: Path, address: str, stack: contextlib.ExitStack) -> None:
    """Say in the state directory where the coordinator is, for ``cogrid chat`` of this user."""
    from cogrid.cli.connect import UP_URL

    host, _, port = address.rpartition(":")
    path = home / UP_URL
    path.write_text(f"http://{_in_url(_reachable(host))}:{port}\n")
    stack.callback(path.unlink, missing_ok=True)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _tell(address: str, key: str, server: Embedded | None, listen: str | None) -> None:
    """The line that makes another machine a worker holds no secret: it is run here, where the
    server's password is, and takes that there over SSH."""
    from cogrid.cli.own_address import name_for_others

    host, _, port = address.rpartition(":")
    shown = f"http://{name_for_others(host)}:{port}"
    print_line(f"cogrid {__version__} is up")
    print_line(f"  OpenAI clients   {shown}/v1")
    print_line(f"  Ollama clients   {shown}")
    print_line('  ask it           cogrid chat "hello"')
    print_line("  look at it       cogrid status")
    if key:
        print_line(f"  API key          {key}")
    if listen and server:
        print_line("  another machine  cogrid install-unit --host USER@MACHINE")
