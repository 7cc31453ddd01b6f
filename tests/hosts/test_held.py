"""Two runs on one machine do not take each other's hosts down."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.hosts import host
from tests.hosts.host import bring_up, held

NAME, ADDRESS = "heldbox", "192.168.79.41"
HOLD = f"""
from tests.hosts.host import held
with held("{NAME}"):
    print("held", flush=True)
    input()
"""


@pytest.fixture(autouse=True)
def _no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is brought up or taken down here."""

    def run(*_: object, **__: object) -> None:
        raise AssertionError("a host was touched")

    monkeypatch.setattr(host, "_possible", lambda: None)
    monkeypatch.setattr("tests.hosts.host.subprocess.run", run)


def test_a_host_of_a_living_run_is_refused_and_that_of_a_dead_one_is_free() -> None:
    with subprocess.Popen(
        (sys.executable, "-c", HOLD), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        says = rf"the test host {NAME} is in use by another run, process {other.pid}"
        with pytest.raises(pytest.fail.Exception, match=says), bring_up(NAME, ADDRESS):
            pass
        other.kill()
        other.wait()
        with pytest.raises(AssertionError, match="a host was touched"), bring_up(NAME, ADDRESS):
            pass


def test_two_hosts_of_one_address_are_refused_as_well() -> None:
    says = f"the test host {ADDRESS} is in use"
    with held(ADDRESS), pytest.raises(pytest.fail.Exception, match=says), bring_up(NAME, ADDRESS):
        pass
    with held(ADDRESS), held(NAME):
        pass
