"""Which machines a command goes to."""

from __future__ import annotations

import pytest

from cogrid.model.host import Host
from cogrid.model.worker import Worker
from cogrid.rules.hosts import chosen, listed, machines, spellings, told_address
from tests.build import a_worker

ESXI = Host("ops@192.168.0.41", id="esxi", pool="cpu")
CORE = Host("ai-core")
CORE_REAPER = Host("ai-core", role="reaper")
ALL = (ESXI, CORE, CORE_REAPER)


def test_a_name_of_the_configuration_brings_what_stands_there() -> None:
    assert chosen(["esxi"], False, ALL) == (ESXI,)
    assert chosen(["ops@192.168.0.41"], False, ALL) == (ESXI,)
    assert chosen(["ai-core"], False, ALL) == (CORE, CORE_REAPER)


def test_any_other_name_is_an_address() -> None:
    assert chosen(["192.168.0.41", "ops@[::1]:22"], False, ALL) == (
        Host("192.168.0.41"),
        Host("ops@[::1]:22"),
    )


def test_each_is_meant_once_and_in_order() -> None:
    assert chosen(["b", "a", "b", "esxi"], False, ALL) == (Host("b"), Host("a"), ESXI)
    assert chosen(["b", "esxi"], True, ALL) == (*ALL, Host("b"))
    assert chosen([], False, ALL) == ()


def test_a_list_has_comments_and_empty_lines() -> None:
    assert listed("# all\n\n a \nuser@b:22  # the big one\n\n") == ("a", "user@b:22")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("192.168.0.41", "192.168.0.41"),
        ("2001:0db8::0041", "2001:db8::41"),
        ("::ffff:192.168.0.41", "192.168.0.41"),
        ("169.254.7.7", "169.254.7.7"),
        ("127.0.0.1", ""),
        ("::1", ""),
        ("::ffff:127.0.0.1", ""),
        ("0.0.0.0", ""),
        ("fe80::1%eth0", ""),
        ("224.0.0.1", ""),
        ("-oProxyCommand=reboot", ""),
        ("esxi", ""),
        ("", ""),
    ],
)
def test_an_address_that_other_machines_can_use(said: str, told: str) -> None:
    assert told_address(said) == told


def at(address: str, port: int = 22) -> frozenset[tuple[str, int]]:
    return frozenset({(address, port)})


def told(worker: str, host: str, address: str = "") -> Worker:
    return a_worker(worker, host=host, address=address)


def shown(wanted: list[Host | Worker], leads: dict[str, frozenset[tuple[str, int]]]) -> list[str]:
    return [f"{host.id} {host.address}" for host in machines(wanted, leads)]


def test_a_machine_is_named_by_its_name_where_that_leads_anywhere_else_by_its_address() -> None:
    workers: list[Host | Worker] = [told("esxi", "pve", "192.168.0.41"), told("gpu", "core")]
    known = {"pve": at("10.8.0.7"), "192.168.0.41": at("192.168.0.41")}
    assert shown(workers, known) == ["esxi pve", "gpu core"]
    assert shown(workers, known | {"pve": frozenset()}) == ["esxi 192.168.0.41", "gpu core"]
    assert shown([told("esxi", "pve", "127.0.0.1")], {}) == ["esxi pve"]


def test_a_machine_is_one_however_it_is_spelt() -> None:
    one = {"pve": at("192.168.0.41"), "192.168.0.41": at("192.168.0.41")}
    by_name, by_address = told("a", "pve", "192.168.0.41"), told("b", "pve.lan", "192.168.0.41")
    assert shown([by_name, by_address], one) == ["a pve"]
    assert shown([by_address, by_name], one) == ["b 192.168.0.41"]
    assert shown([by_address, told("c", "pve.lan")], {}) == ["b 192.168.0.41"]
    assert shown([told("c", "pve.lan"), by_address], {}) == ["c 192.168.0.41"]
    assert shown([Host("ops@pve", id="x"), by_address], one | {"ops@pve": one["pve"]}) == [
        "x ops@pve"
    ]


def test_machines_behind_one_address_are_several() -> None:
    leads = {"a": at("10.0.0.1", 2201), "b": at("10.0.0.1", 2202)}
    assert shown([told("a", "a"), told("b", "b")], leads) == ["a a", "b b"]


def test_hosts_that_were_written_down_stay_as_they_are() -> None:
    assert machines((CORE, CORE_REAPER), {"ai-core": at("10.0.0.2")}) == (CORE, CORE_REAPER)


def test_what_is_to_be_looked_up() -> None:
    workers = (told("a", "pve", "192.168.0.41"), told("b", "pve", "127.0.0.1"), ESXI)
    assert spellings(workers) == ("pve", "192.168.0.41", "ops@192.168.0.41")
