"""Fixtures: hosts with systemd and sshd."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

import pytest

from tests.hosts.host import Host, bring_up


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
