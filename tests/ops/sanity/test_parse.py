"""What a host prints, made into facts."""

from __future__ import annotations

from cogrid.model.host import Role, Scope
from cogrid.ops.sanity.facts import Disk, EnvironmentFile, Stray
from cogrid.ops.sanity.parse import parse_look
from cogrid.ops.unit.seal import Origin
from tests.ops.sanity.saying import MARK, TEXT, UNIT, a_host, a_line, a_unit


def test_a_host_that_is_well() -> None:
    facts = parse_look(a_host(a_unit(journal=(a_line("waiting"),))), MARK)
    assert (facts.login, facts.root, facts.name, facts.system) == (
        "root", True, "esxi", "Linux x86_64",
    )  # fmt: skip
    assert facts.clock == (1780799147.25, 1780799147.25)
    assert facts.pythons == ((3, 11, 2), (3, 9, 2))
    assert (facts.memory_bytes, facts.memory_free_bytes) == (16_384_000_000, 8_192_000_000)
    assert facts.disks == (Disk("/", 102_400_000_000, 61_440_000_000),)
    assert (facts.gpu, facts.engines, facts.strays) == (False, ("ollama.service",), ())
    (unit,) = facts.units
    assert (unit.name, unit.scope, unit.role, unit.worker) == (
        UNIT, Scope.SYSTEM, Role.WORKER, "esxi",
    )  # fmt: skip
    assert unit.state.running
    assert (unit.text, unit.origin, unit.version) == (TEXT, Origin.INSTALLED, "0.1.0")
    assert unit.environment == ("A=1 2",)
    assert unit.files == (("/etc/cogrid/cogrid-worker@esxi.env", True),)
    assert (unit.user, unit.group, unit.workdir) == ("cogrid", "", "!/srv")
    assert unit.modes == (EnvironmentFile("/etc/cogrid/cogrid-worker@esxi.env", 0o600, "root"),)
    assert unit.readable
    assert [line.text for line in unit.journal] == ["waiting"]


def test_a_login_that_may_become_root() -> None:
    assert parse_look(a_host(who="ann\n1000\nsudo\n"), MARK).root
    assert not parse_look(a_host(who="ann\n1000\n\n"), MARK).root


def test_a_unit_that_says_the_mark_of_another_run_does_not_begin_a_part() -> None:
    text = f"{TEXT}\n0000 init\nnothing\n"
    facts = parse_look(a_host(a_unit(text=text)), MARK)
    assert facts.init == "systemd"
    assert (facts.units[0].text, facts.units[0].origin) == (text, Origin.EDITED)


def test_a_host_that_says_next_to_nothing() -> None:
    facts = parse_look(f"\n{MARK} clock\n\n{MARK} who\nann\n", MARK)
    assert (facts.login, facts.root, facts.clock, facts.units) == ("ann", False, (0.0, 0.0), ())
    assert parse_look("", MARK).login == ""


def test_a_bus_that_is_not_there_leaves_a_unit_without_a_role() -> None:
    unit = a_unit().split(f"\n{MARK} bus")[0]
    (facts,) = parse_look(a_host(unit), MARK).units
    assert (facts.role, facts.worker, facts.argv, facts.files) == (None, "", (), ())


def test_workers_that_nobody_keeps() -> None:
    facts = parse_look(a_host(stray="4711 ann worker.py\nnonsense\n"), MARK)
    assert facts.strays == (Stray(4711, "ann", "worker.py"),)
