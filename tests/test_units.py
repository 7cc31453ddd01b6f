"""The unit files: understood by systemd without a word, and true to the code they start."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cogrid.coordinator.serve import GRACE_S, LAST_S
from cogrid.model.host import Role, Scope
from cogrid.model.limits import Limits
from cogrid.ops.unit.file import UnitFile, parse_unit
from cogrid.ops.unit.render import OF_THE_SYSTEM, render, template
from cogrid.ops.unit.settings import UnitSettings
from cogrid.worker.life import SUPERSEDED
from tests.conftest import missing

MOST_EXPOSED = 20
"""What systemd-analyze may call a unit, in tenths: 2.0."""
ROLES = tuple(Role)


def shipped(role: Role) -> UnitFile:
    return parse_unit(template(role))


def a_unit(role: Role, scope: Scope = Scope.SYSTEM) -> str:
    """As it is written to a host, but with a program that this machine has."""
    worker = "esxi" if role is Role.WORKER else ""
    settings = UnitSettings(role, scope, id=worker, user="root", program=("/bin/true",))
    return render(settings).unit_text


def analyze(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze") is None:
        missing("systemd-analyze", "apt-get install systemd")
    return subprocess.run(
        ("systemd-analyze", *words),
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **env},
    )


def verified(directory: Path, name: str, text: str, scope: Scope) -> tuple[int, str]:
    """What systemd has to say of it."""
    (directory / name).write_text(text)
    home = {"XDG_RUNTIME_DIR": str(directory)}
    told = analyze(f"--{scope}", "verify", "--man=no", str(directory / name), **home)
    # It also speaks of units of this machine that the target would bring with it.
    ours = [line for line in told.stderr.splitlines() if "cogrid" in line or str(directory) in line]
    return told.returncode, "\n".join(ours)


def test_there_is_a_template_for_each_role_in_the_folder_and_in_the_package() -> None:
    top = Path(__file__).parents[1] / "systemd"
    names = {"cogrid-coordinator.service", "cogrid-reaper.service", "cogrid-worker@.service"}
    assert {unit.name for unit in top.iterdir()} == names
    for role in ROLES:
        name = f"cogrid-{role}{'@' if role is Role.WORKER else ''}.service"
        assert template(role) == (top / name).read_text()


@pytest.mark.parametrize("role", ROLES)
def test_systemd_has_nothing_to_say_of_a_template(role: Role, tmp_path: Path) -> None:
    text = template(role).replace("/opt/cogrid/current/bin/cogrid", "/bin/true")
    name = f"cogrid-{role}{'@esxi' if role is Role.WORKER else ''}.service"
    assert verified(tmp_path, name, text, Scope.SYSTEM) == (0, "")


@pytest.mark.parametrize("scope", tuple(Scope))
@pytest.mark.parametrize("role", ROLES)
def test_systemd_has_nothing_to_say_of_what_is_rendered(
    role: Role, scope: Scope, tmp_path: Path
) -> None:
    assert verified(tmp_path, f"cogrid-{role}.service", a_unit(role, scope), scope) == (0, "")


def test_what_systemd_has_to_say_is_heard(tmp_path: Path) -> None:
    text = a_unit(Role.REAPER).replace("RestartSec=", "RestartSecs=")
    code, said = verified(tmp_path, "cogrid-reaper.service", text, Scope.SYSTEM)
    assert code == 0
    assert "Unknown key" in said


@pytest.mark.parametrize("role", ROLES)
def test_it_may_do_little_beside_its_work(role: Role, tmp_path: Path) -> None:
    for name, text in (("shipped", template(role)), ("rendered", a_unit(role))):
        unit = tmp_path / f"{name}.service"
        unit.write_text(text)
        told = analyze(
            "security", "--offline=yes", f"--threshold={MOST_EXPOSED}", "--no-pager", str(unit)
        )
        assert told.returncode == 0, told.stdout


@pytest.mark.parametrize("role", ROLES)
def test_every_limit_on_what_it_may_do_has_its_reason(role: Role) -> None:
    unit = shipped(role)
    (service,) = (section for section in unit.sections if section.name == "Service")
    keys = [entry.key for entry in service.entries]
    first = keys.index("NoNewPrivileges")
    unexplained = [
        entry.key
        for before, entry in zip(
            service.entries[first - 1 :], service.entries[first:], strict=False
        )
        if not any(line.startswith("# ") for line in entry.above)
        and (before.key, entry.key) not in TOGETHER
    ]
    assert unexplained == []


TOGETHER = {
    ("CapabilityBoundingSet", "AmbientCapabilities"),
    ("ProtectClock", "ProtectHostname"),
    ("ProtectKernelLogs", "ProtectKernelModules"),
    ("ProtectKernelModules", "ProtectKernelTunables"),
    ("ProtectKernelTunables", "ProtectControlGroups"),
    ("LockPersonality", "MemoryDenyWriteExecute"),
    ("MemoryDenyWriteExecute", "SystemCallArchitectures"),
    ("SystemCallFilter", "SystemCallFilter"),
    ("SystemCallFilter", "SystemCallErrorNumber"),
}
"""Lines that share one reason."""


@pytest.mark.parametrize("role", ROLES)
def test_a_boot_race_cannot_reach_the_start_limit(role: Role) -> None:
    unit = shipped(role)
    # systemd ignores it under [Service].
    assert unit.values("Unit", "StartLimitIntervalSec") == ("0",)
    assert (
        unit.values("Unit", "Wants") == unit.values("Unit", "After") == ("network-online.target",)
    )
    assert unit.last("Service", "Restart") == "always"
    assert unit.last("Service", "RestartSec") == "10"


@pytest.mark.parametrize("role", ROLES)
def test_what_hangs_is_noticed_and_replaced_at_once(role: Role) -> None:
    unit = shipped(role)
    assert unit.last("Service", "Type") == "notify"
    watchdog_s = float(unit.last("Service", "WatchdogSec"))
    # The longest that any of the loops may go without a turn: an answer of Redis that never comes.
    assert 4 * Limits().ghost_after_s == watchdog_s > 4 * (Limits().block_s + 2)
    assert float(unit.last("Service", "TimeoutAbortSec")) <= 10
    assert unit.last("Service", "LimitCORE") == "0"


def test_what_runs_is_finished_before_systemd_loses_its_patience() -> None:
    worker, coordinator = shipped(Role.WORKER), shipped(Role.COORDINATOR)
    assert float(worker.last("Service", "TimeoutStopSec")) > Limits().drain_timeout_s + 20
    assert float(coordinator.last("Service", "TimeoutStopSec")) > GRACE_S + 5 * LAST_S


def test_a_superseded_worker_stays_down() -> None:
    prevented = [shipped(role).last("Service", "RestartPreventExitStatus") for role in ROLES]
    assert prevented == [str(SUPERSEDED), "", ""]


@pytest.mark.parametrize("role", ROLES)
def test_lines_come_at_once_and_into_the_journal(role: Role) -> None:
    unit = shipped(role)
    assert any("PYTHONUNBUFFERED=1" in line for line in unit.values("Service", "Environment"))
    assert unit.last("Service", "StandardOutput") == "journal"
    assert unit.last("Service", "StandardError") == "journal"


@pytest.mark.parametrize("role", ROLES)
def test_in_a_users_scope_nothing_is_left_that_only_the_systems_manager_can_do(role: Role) -> None:
    unit = parse_unit(a_unit(role, Scope.USER))
    keys = {entry.key for section in unit.sections for entry in section.entries}
    assert not keys & OF_THE_SYSTEM
    assert unit.last("Install", "WantedBy") == "default.target"
    assert not re.search(r"/etc/cogrid|/var/lib", unit.text)
    assert "NoNewPrivileges" in keys
