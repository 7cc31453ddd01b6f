"""A program run on a host with settings of this side: none of them is in a message."""

from __future__ import annotations

import subprocess
from typing import Any, cast

from cogrid.ops.sanity.as_unit import run_as_login
from cogrid.remote.connection import Connection
from cogrid.remote.session import Result, named

PASSWORD = "p w'$%"


class Here:
    """This machine; names are what messages would call what was run."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def run(self, script: str, *words: str, **_: Any) -> Result:
        self.names.append(named(script))
        done = subprocess.run(("sh", "-c", script, "sh", *words), check=False, capture_output=True)
        return Result(done.returncode, done.stdout, done.stderr, False)


def test_a_setting_reaches_the_program_and_no_message() -> None:
    here = Here()
    words = ("sh", "-c", 'echo "$COGRID_REDIS_PASSWORD"; exit 3')
    settings = {"COGRID_REDIS_PASSWORD": PASSWORD}
    ran = run_as_login(cast(Connection, here), words, 5, settings)
    assert (ran.out, ran.code, ran.as_unit) == (f"{PASSWORD}\n", 3, False)
    assert here.names == ["# a program, run as this login"]
