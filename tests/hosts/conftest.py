"""Fixtures: hosts with systemd and sshd."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator

import pytest

from tests.hosts.host import Host, bring_up
from tests.hosts.installing import UNIT, First, Site, a_site


@pytest.fixture
def host() -> Iterator[Callable[[str, str], Host]]:
    """Brings up hosts for one test: ``host("esxi", "192.168.71.41")``.

    Tests that can share one take ``bring_up`` in a fixture of their module.
    """
    with contextlib.ExitStack() as hosts:
        yield lambda name, ip: hosts.enter_context(bring_up(name, ip))


@pytest.fixture(scope="session")
def box() -> Iterator[Host]:
    """One host for all tests of SSH itself; each makes its own users and its own sshd there."""
    with bring_up("sshbox", "192.168.71.41") as one:
        one.ssh("sed -i 's/pam_unix.so/pam_unix.so nodelay/' /etc/pam.d/common-auth")
        yield one


@pytest.fixture(scope="session")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment for ``gather``: what one test has fetched, the next one finds."""
    return {**os.environ, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture(scope="session")
def first(fetched: dict[str, str]) -> Iterator[First]:
    """A bare host on which one command has made a worker; all that needs a real one shares it."""
    with a_site("install", "192.168.72.41", fetched) as site:
        for module in ("redis", "pip"):
            assert "No module" in site.host.ssh(f"python3 -c 'import {module}' 2>&1 || :")
        began_s = time.monotonic()
        done = site.cli("install-unit", "--id", "esxi", "--engine", "demo", "--yes", "--json")
        yield First(site, done, time.monotonic() - began_s)


@pytest.fixture
def site(first: First) -> Iterator[Site]:
    """The worker esxi runs there as that left it; afterwards it does so again."""
    unit = first.site.host.root / "etc/systemd/system" / UNIT
    before = unit.read_text()
    yield first.site
    changed = not unit.exists() or unit.read_text() != before
    if changed or first.site.unit("ActiveState") != "active":
        first.site.install(force=True, replace=True)
