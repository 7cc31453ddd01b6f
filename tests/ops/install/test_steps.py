"""What takes a step back, run on this machine in a directory of the test's own."""

from __future__ import annotations

import contextlib
import json
import secrets
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, cast

import pytest

from cogrid.model.host import Scope
from cogrid.ops.delivery import stage
from cogrid.ops.install import steps
from cogrid.ops.install.undoing import Step
from cogrid.remote.connection import Connection
from cogrid.remote.session import Result
from tests.ops.delivery.build import a_python

TEXT = resources.files("cogrid.ops.delivery").joinpath("on_host.py").read_text()
NAME = f"0.1.0-{secrets.token_hex(8)}"
"""In no other process of this machine, where they are killed by it."""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """What the host keeps of an installation."""
    place = tmp_path / "notes"
    (place / "kept").mkdir(parents=True)
    return place


def undo(step: Step, notes: Path) -> None:
    """From a file, as the guard does it."""
    words = " ".join(map(shlex.quote, step.words))
    file = notes / "01-undo"
    file.write_text(f'T="{notes}"\ndrop_folders() {{ :; }}\nset -- {words}\n{step.undo}')
    done = subprocess.run(("sh", str(file)), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@contextlib.contextmanager
def a_process(*words: str, program: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        words, executable=program, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as one:
        try:
            yield one
        finally:
            one.kill()


def test_only_what_works_on_the_installation_is_killed(tmp_path: Path, notes: Path) -> None:
    base = tmp_path / "cogrid"
    (base / "versions" / NAME / "bin").mkdir(parents=True)
    log = base / "versions" / NAME / "log"
    log.touch()
    (notes / "kept/fresh").touch()
    act: dict[str, Any] = {"act": "stage", "base": str(base), "name": NAME, "version": "0.1.0"}
    act |= {"wheels": {}, "pip": "", "needed_bytes": 0, "everyone": False, "stall_s": 60}
    request, other = json.dumps(act), json.dumps({**act, "name": f"{NAME}0"})
    python = sys.executable
    with (
        a_process("tail", "-f", str(log), program="/usr/bin/tail") as tail,
        a_process(python, "-c", "input()", request, program=python) as names_it,
        a_process(python, "-I", "-c", f"input()\n{TEXT}", other, program=python) as another,
        a_process(f"{base}/versions/{NAME}/bin/python", "60", program="/usr/bin/sleep") as pip,
        a_process(python, "-I", "-c", TEXT, request, program=python) as stages,
    ):
        undo(steps.install(str(base), NAME, stage.staging(str(base), NAME)), notes)
        assert [one.wait(10) for one in (pip, stages)] == [-9, -9]
        assert [one.poll() for one in (tail, names_it, another)] == [None] * 3
    assert not (base / "versions").exists()


def test_what_was_there_before_stays_and_so_does_what_runs_it(tmp_path: Path, notes: Path) -> None:
    base = tmp_path / "cogrid"
    (base / "versions" / NAME).mkdir(parents=True)
    with a_process(f"{base}/versions/{NAME}/bin/python", "60", program="/usr/bin/sleep") as worker:
        undo(steps.install(str(base), NAME, stage.staging(str(base), NAME)), notes)
        assert worker.poll() is None
    assert (base / "versions" / NAME).is_dir()


@pytest.mark.parametrize(("scope", "base"), [(Scope.SYSTEM, stage.SYSTEM), (Scope.USER, "")])
def test_the_process_that_stages_is_known_by_its_last_word(scope: Scope, base: str) -> None:
    heard: list[str] = []

    class There:
        def run(self, *words: str, **_: Any) -> Result:
            heard.extend(words)
            return Result(0, b'{"base": "/opt/cogrid"}\n', b"", cut=False)

    there = cast(Connection, There())
    stage._act(there, scope, a_python(), "stage", {"name": NAME, "version": "0.1.0"})
    assert heard[-1].startswith(stage.staging(base, NAME))
