"""The unit files: understood by systemd without a word, and true to the code they start."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from cogrid.model.limits import Limits
from tests.conftest import missing

UNITS = sorted((Path(__file__).parents[1] / "systemd").glob("*.service"))


def lines(unit: Path, key: str) -> list[str]:
    """The values of one key."""
    said = unit.read_text().splitlines()
    return [line.partition("=")[2] for line in said if line.startswith(f"{key}=")]


def test_each_role_has_a_unit() -> None:
    assert [unit.name for unit in UNITS] == [
        "cogrid-coordinator.service",
        "cogrid-reaper.service",
        "cogrid-worker@.service",
    ]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_has_nothing_to_say_of_it(unit: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        missing("systemd-analyze", "apt-get install systemd")
    copy = tmp_path / unit.name.replace("@", "@esxi")
    # The program is not installed on this machine; the rest of the line stays.
    copy.write_text(unit.read_text().replace("/opt/cogrid/current/bin/cogrid", "/bin/true"))
    told = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)],
        check=False,
        capture_output=True,
        text=True,
    )
    ours = [line for line in told.stderr.splitlines() if unit.name.split(".")[0][:10] in line]
    assert (told.returncode, ours) == (0, [])


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_boot_race_cannot_reach_the_start_limit(unit: Path) -> None:
    assert lines(unit, "StartLimitIntervalSec") == ["0"]
    head = unit.read_text().partition("[Service]")[0]
    assert "StartLimitIntervalSec" in head, "systemd ignores it under [Service]"


def test_a_worker_has_longer_to_stop_than_it_drains() -> None:
    (unit,) = (unit for unit in UNITS if "worker" in unit.name)
    assert float(lines(unit, "TimeoutStopSec")[0]) > Limits().drain_timeout_s
    assert float(lines(unit, "WatchdogSec")[0]) > 2 * Limits().block_s, "a turn may block so long"
