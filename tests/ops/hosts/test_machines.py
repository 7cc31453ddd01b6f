"""Which machines are meant."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from cogrid.errors import NotFoundError, UsageError
from cogrid.model.host import Host, Role
from cogrid.model.names import WorkerId
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import Worker
from cogrid.ops.hosts.machines import ask_each, look_up, meant
from cogrid.rules.hosts import Places

ESXI = Host("ann@192.168.0.41", id="esxi")
CORE = Host("ai-core")
REAPER = Host("ai-core", role=Role.REAPER)


def a_worker(name: str, host: str, address: str = "") -> Worker:
    return Worker(WorkerId(name), known=True, lease_until_ms=1, host=host, address=address)


GRID = Snapshot(
    1, (a_worker("nas", "nas.lan"), a_worker("gpu", "ai-core.lan"), a_worker("gpu2", "ai-core.lan"))
)


def no_grid() -> Snapshot:
    raise AssertionError("Redis need not be asked")


def no_look(names: Iterable[str]) -> dict[str, Places]:
    raise AssertionError(f"nothing is to be looked up: {names}")


def nowhere(names: Iterable[str]) -> dict[str, Places]:
    return {name: frozenset() for name in names}


def test_what_was_named_is_meant_and_the_grid_is_not_asked() -> None:
    assert meant((CORE,), (), (ESXI,), no_grid, no_look) == (CORE,)
    assert meant((CORE,), ("esxi",), (ESXI,), no_grid, no_look) == (CORE,), "workers of that host"
    assert meant((), ("esxi",), (ESXI, CORE), no_grid, nowhere) == (ESXI,)
    assert meant((), (), (ESXI, CORE), no_grid, no_look) == (ESXI, CORE)


def test_a_worker_is_found_by_the_name_that_its_machine_has_told() -> None:
    assert meant((), ("gpu",), (ESXI, CORE), lambda: GRID, nowhere) == (CORE,)
    assert meant((), ("nas",), (ESXI, CORE), lambda: GRID, nowhere) == (Host("nas.lan", id="nas"),)
    assert meant((), ("esxi", "gpu", "gpu2"), (ESXI, CORE), lambda: GRID, nowhere) == (ESXI, CORE)


def test_without_a_configuration_every_host_that_workers_have_told() -> None:
    found = meant((), (), (), lambda: GRID, nowhere)
    assert [host.address for host in found] == ["nas.lan", "ai-core.lan"]


def test_a_machine_whose_name_nobody_here_knows_is_asked_by_its_address() -> None:
    grid = Snapshot(1, (a_worker("nas", "nas", "10.0.0.9"), a_worker("gpu", "box", "192.168.0.41")))
    assert meant((), (), (), lambda: grid, nowhere) == (
        Host("10.0.0.9", id="nas"),
        Host("192.168.0.41", id="gpu"),
    )
    assert meant((), ("nas",), (ESXI,), lambda: grid, nowhere) == (Host("10.0.0.9", id="nas"),)
    assert meant((), ("gpu",), (ESXI,), lambda: grid, nowhere) == (ESXI,), "written down"


def test_names_are_looked_up_and_what_is_none_leads_nowhere(tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text("Host nas\n    HostName 10.0.0.9\n    Port 2222\n")
    found = look_up(("nas", "192.168.0.41", "no such", "-oProxyCommand=x"), config)
    assert found == {
        "nas": frozenset({("10.0.0.9", 2222)}),
        "192.168.0.41": frozenset({("192.168.0.41", 22)}),
    }


def test_nothing_to_ask_is_said() -> None:
    with pytest.raises(UsageError, match="there is no host to ask"):
        meant((), (), (), lambda: Snapshot(1), nowhere)
    with pytest.raises(NotFoundError, match="no worker 'nobody'"):
        meant((), ("nobody",), (), lambda: GRID, nowhere)
    with pytest.raises(UsageError, match="never told"):
        meant((), ("old",), (), lambda: Snapshot(1, (a_worker("old", ""),)), nowhere)


def test_who_waits_for_a_turn_has_the_time_of_one() -> None:
    def slow(host: Host) -> str:
        time.sleep(0.1)
        return host.address

    hosts = [Host(f"host{number}") for number in range(4)]
    answers = ask_each(hosts, slow, each_s=0.3, at_once=1)
    assert [answer.value for answer in answers] == [host.address for host in hosts]
    assert ask_each((), slow, each_s=0.4) == ()
