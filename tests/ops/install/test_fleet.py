"""Many hosts at once: what becomes of each when Redis goes away, and at Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from cogrid.errors import Exit
from cogrid.model.host import Host, Scope
from cogrid.ops.install import fleet
from cogrid.ops.install.apply import NotDoneError
from cogrid.ops.install.fleet import HostInstall, install
from cogrid.ops.install.inspect import Job
from cogrid.ops.install.plan import Plan
from cogrid.remote.access import Access
from cogrid.remote.target import Target
from cogrid.store.client import Store
from cogrid.store.refusal import StoreError
from tests.ops.install.build import NEW, a_login, a_look, an_order, planned, some_settings
from tests.wait import until

ORDER = an_order()
PLAN: Plan = planned(a_look(), NEW)


def a_job(name: str) -> Job:
    return Job(Host(name), name, PLAN, a_login(), some_settings())


class There:
    """A connection to a host of that name."""

    def __init__(self, target: Target, _access: object = None) -> None:
        self.name = target.name

    def __enter__(self) -> There:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class Grid:
    """Redis, which some hosts find gone."""

    def __init__(self, *_: object) -> None:
        return None

    def __enter__(self) -> Grid:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def tell(self, what: str, _worker: str) -> None:
        if " on cut " in what:
            raise StoreError("Redis is gone", "start it", code="", passing=True)


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(fleet, "connect", There)
    monkeypatch.setattr(fleet, "Grid", Grid)
    monkeypatch.setattr(fleet, "inspect", lambda _there, host, *_: a_job(host.address))
    monkeypatch.setattr(fleet, "carry_out", lambda *_: None)
    return monkeypatch


def run(*names: str, say: Callable[[str, str], None] = lambda *_: None) -> fleet.Install:
    jobs = tuple(a_job(name) for name in names)
    return install(jobs, ORDER, Access(), cast(Callable[[], Store], lambda: None), say)


def test_redis_that_goes_away_is_one_hosts_failure(faked: pytest.MonkeyPatch) -> None:
    done = run("one", "cut", "two")
    assert [(host.host, host.state) for host in done.hosts] == [
        ("one", "installed"), ("cut", "failed"), ("two", "installed"),
    ]  # fmt: skip
    assert done.hosts[1].error == "Redis is gone"
    assert done.exit_code is Exit.SOME_HOSTS


def test_only_what_is_at_work_is_taken_back_at_ctrl_c(faked: pytest.MonkeyPatch) -> None:
    """Not what is done, nor where another installation was met."""
    back: list[tuple[str, Scope]] = []
    heard: list[tuple[str, str]] = []
    moved_on: set[str] = set()
    over = threading.Event()
    main = threading.main_thread().ident
    assert main

    def carry_out(there: There, *_: Any) -> None:
        if there.name == "busy":
            raise NotDoneError("begin", "another installation is at work there")
        if there.name == "still":
            moved_on.add("still")
            over.wait(10)

    class Undoing:
        def __init__(self, there: There, scope: Scope) -> None:
            self._who = (there.name, scope)

        def back(self) -> None:
            back.append(self._who)

    def result(host: str, plan: object, state: str) -> HostInstall:
        moved_on.add(f"{state}: {host}")
        return HostInstall(host, None, state)

    def failed(shown: HostInstall, *_: Any) -> HostInstall:
        return result(shown.host, None, "failed")

    faked.setattr(fleet, "_of", result)
    faked.setattr(fleet, "_failed", failed)
    faked.setattr(fleet, "carry_out", carry_out)
    faked.setattr(fleet, "Undoing", Undoing)

    def interrupt() -> None:
        until(lambda: {"still", "installed: done", "failed: busy"} <= moved_on)
        signal.pthread_kill(main, signal.SIGINT)

    def said(host: str, line: str) -> None:
        heard.append((host, line))

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run("done", "still", "busy", say=said)
    finally:
        over.set()
    assert back == [("still", Scope.SYSTEM)]
    assert heard == [("still", "interrupted; what was begun is taken back")]


def test_time_that_is_over_takes_nothing_from_what_is_done(faked: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    done: list[str] = []

    def carry_out(*_: Any) -> None:
        if done:
            over.wait(10)
        done.append("first")

    faked.setattr(fleet, "carry_out", carry_out)
    faked.setattr(fleet, "_unit_s", lambda _limits: 0.25)
    try:
        found = run("host", "host")
    finally:
        over.set()
    assert [(host.state, host.step) for host in found.hosts] == [
        ("installed", None), ("failed", None),
    ]  # fmt: skip
