"""Fixtures of the whole suite: servers, time, and the check that no key is left behind."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import fakeredis
import pytest

from tests.key_leaks import leaks
from tests.servers import KINDS, VALKEY9, Kind, Pool, Server, foreign_urls, launch, pool

CI = os.environ.get("CI") == "true"
SCALE = float(os.environ.get("COGRID_TEST_SCALE", "0.1"))
"""All time limits are multiplied by this, but for tests marked ``defaults`` or ``proof``."""


SKIPS = os.environ.get("COGRID_TEST_SKIPS", "")
"""A file to which the run adds what it skipped and why: tests/run.sh ends with the whole list."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So a shell starts what runs in its background, and every process of a test would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def missing(service: str, cure: str = "") -> NoReturn:
    """Ends the test because a service is not there: skipped locally, failed where CI=true."""
    reason = f"{service} is not here" + (f" ({cure})" if cure else "")
    if CI:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def needs(kind: Kind) -> None:
    """Goes on only where this kind of server is installed."""
    if kind.binary is None:
        missing(kind.service, kind.cure)


@pytest.fixture(autouse=True)
def scale(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """The factor on every time limit; processes that a test starts get it as COGRID_TIME_SCALE."""
    node = request.node
    real = node.get_closest_marker("defaults") or node.get_closest_marker("proof")
    factor = 1.0 if real else SCALE
    monkeypatch.setenv("COGRID_TIME_SCALE", f"{factor:g}")
    return factor


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """A daemon that a test runs in this process takes the log over; the next test has its own."""
    yield
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if type(handler.formatter).__module__ == "cogrid.cli.logs":
            root.removeHandler(handler)
            root.setLevel(logging.WARNING)


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    """A command that a test runs in this process may take signals over; the next test's Ctrl-C
    would go there."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def servers() -> Iterator[Pool]:
    """The servers that the session's tests share."""
    with pool() as shared:
        yield shared


@pytest.fixture
def server(servers: Pool, request: pytest.FixtureRequest) -> Iterator[Server]:
    """The default server (Valkey 9.1), empty; what the test leaves in it is checked.

    A test that changes its settings, its users or its life takes ``own_server`` instead.
    """
    needs(VALKEY9)
    yield from _checked(servers.get(VALKEY9.name), request)


@pytest.fixture(params=[*(kind.name for kind in KINDS), *foreign_urls()])
def every_server(servers: Pool, request: pytest.FixtureRequest) -> Iterator[Server]:
    """Each kind of server in turn, empty; what the test leaves in it is checked."""
    for kind in KINDS:
        if kind.name == request.param:
            needs(kind)
    yield from _checked(servers.get(request.param), request)


def _checked(server: Server, request: pytest.FixtureRequest) -> Iterator[Server]:
    yield server
    if request.node.get_closest_marker("leaves_keys") is None:
        found = leaks(server.client)
        assert not found, "left behind in the server: " + ", ".join(found)


@pytest.fixture
def own_server() -> Iterator[Callable[..., Server]]:
    """Starts servers for this test alone: ``own_server(REDIS7, tls=True)``, see ``launch``."""
    started: list[Server] = []

    def start(kind: Kind = VALKEY9, **options: Any) -> Server:
        needs(kind)
        started.append(launch(kind, **options))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture
def fake_server() -> fakeredis.FakeServer:
    """A server inside this process: ``fakeredis.FakeRedis(server=fake_server)``, or
    ``fakeredis.FakeAsyncRedis``; both see the same data."""
    return fakeredis.FakeServer(server_type="valkey", version=(8, 1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says which servers the run had, so that a short list of skips is not taken for a full run."""
    terminalreporter.section("servers")
    for kind in KINDS:
        state = kind.binary or f"not here: {kind.cure}"
        terminalreporter.line(f"{kind.service}: {state}")
    for url in foreign_urls():
        terminalreporter.line(url)
    if SKIPS:
        with open(SKIPS, "a") as file:
            file.writelines(f"{line}\n" for line in _skipped(terminalreporter))


def _skipped(terminalreporter: pytest.TerminalReporter) -> Iterator[str]:
    for report in terminalreporter.stats.get("skipped", []):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        yield f"{report.nodeid}: {why}"
