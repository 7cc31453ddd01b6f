"""What is removed from a host: all of it is shown before, and nothing else goes."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from cogrid.model.host import Host
from cogrid.ops.install import removal
from cogrid.ops.install.given import Seen
from cogrid.ops.install.grid import Grid
from cogrid.ops.install.removal import Removal, There, carry_out, plan_removal
from cogrid.ops.unit.render import render
from cogrid.ops.unit.state import parse_state
from cogrid.remote.connection import Connection
from cogrid.remote.session import Result
from tests.ops.install.build import UP, a_login, some_settings

KEPT = "/var/lib/cogrid/worker-esxi"
AUTHORITIES = "/etc/cogrid/redis-ca.pem"


def removed(seen: Seen | None = None, *, known: bool = False, **fields: Any) -> Removal:
    """The worker esxi, alone on its host."""
    settings = some_settings(id="esxi")
    usual: dict[str, Any] = {
        "text": render(settings).unit_text,
        "environment": settings.environment_path,
        "drop_ins": "",
        "others": (),
        "base": "/opt/cogrid",
        "state": parse_state(UP),
        "authorities": AUTHORITIES,
        "kept": (KEPT,),
    }
    there = There(**{**usual, **fields})
    host = Host("192.168.0.41")
    return plan_removal(
        host, host.address, settings, a_login(), there, seen or Seen(), known=known, force=False
    )


def test_all_that_goes_is_shown() -> None:
    found = removed()
    assert found.steps == (
        "stop and disable cogrid-worker@esxi.service",
        "remove /etc/systemd/system/cogrid-worker@esxi.service",
        "remove /etc/cogrid/cogrid-worker@esxi.env",
        f"remove {KEPT}",
        f"remove {AUTHORITIES}",
        "remove cogrid itself from /opt/cogrid",
    )
    assert found.beside == (KEPT, AUTHORITIES)
    assert removed(kept=(), authorities="").beside == ()


def test_what_other_units_use_stays() -> None:
    found = removed(others=("/etc/systemd/system/cogrid-reaper.service",))
    assert found.beside == (KEPT,)
    assert f"remove {AUTHORITIES}" not in found.steps


GONE: dict[str, Any] = {"text": "", "environment": "", "kept": (), "authorities": ""}


def test_what_an_interrupted_one_has_left_is_removed() -> None:
    assert removed(known=True, **GONE).steps == (
        "remove cogrid itself from /opt/cogrid",
        "strike esxi off the grid",
    )
    assert removed(**GONE, base="").steps == ()


def test_a_worker_that_is_no_units_is_left_alone() -> None:
    alive = Seen(alive=True, host="esxi", polls=True, instance="one")
    assert removed(alive, known=True, **GONE).steps == ()


class Here:
    """This machine, with a systemctl that only says yes."""

    def __init__(self, place: Path) -> None:
        program = place / "bin" / "systemctl"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        self._env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}

    def run(self, script: str, *words: str, **_: Any) -> Result:
        done = subprocess.run(
            ("sh", "-c", script, "sh", *words), check=False, capture_output=True, env=self._env
        )
        return Result(done.returncode, done.stdout, done.stderr, False)


def test_what_was_shown_is_what_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unit, environment = tmp_path / "units/esxi.service", tmp_path / "etc/esxi.env"
    kept, authorities = tmp_path / "state/worker-esxi", tmp_path / "etc/redis-ca.pem"
    for file in (unit, environment, kept / "lock", authorities, tmp_path / "cogrid/current"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n")
    monkeypatch.setattr(removal, "_paths", lambda *_: (str(unit), str(environment)))
    monkeypatch.setattr(removal, "_kept_by", lambda *_: (str(kept), str(tmp_path / "none")))
    monkeypatch.setattr(removal, "authorities_path", lambda *_: str(authorities))
    monkeypatch.setattr(removal, "base_of", lambda *_: str(tmp_path / "cogrid"))
    here = cast(Connection, Here(tmp_path))
    there = removal._there(here, some_settings(id="esxi"), a_login())
    assert (there.text, there.environment) == ("x\n", str(environment))
    assert (there.authorities, there.kept) == (str(authorities), (str(kept),))
    assert there.base == str(tmp_path / "cogrid")

    job = replace(removed(), everything=False, beside=(*there.kept, there.authorities))
    carry_out(here, job, cast(Grid, None), lambda _line: None)
    left = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.iterdir())
    assert left == ["bin", "cogrid", "units"]
