"""What ``doctor`` and ``status`` find is mended by what they say, until both find nothing."""

from __future__ import annotations

import asyncio
import re
import shlex
from typing import Any

from tests.e2e.grid import MODEL, Grid
from tests.e2e.overlap import scaled
from tests.wait import until_async

COGRID = re.compile(r"cogrid( [a-z-]+)+")
SETTING = re.compile(r"(?:CONFIG SET|set) ((?:appendonly|maxmemory-policy) [a-z]+)")
PATIENCE_S = 40.0
LESS_BYTES = 64_000_000


@scaled
async def test_doctor_and_status_until_they_find_nothing(grid: Grid) -> None:
    """A bare server, which may drop tasks and keeps nothing; a secret that others can read."""
    grid.patient()
    grid.redis.config_set("maxmemory", LESS_BYTES)
    grid.redis.config_set("maxmemory-policy", "allkeys-lru")
    engine = await grid.engine(MODEL)
    file = grid.directory / "cogrid.toml"
    file.write_text('[client]\napi_key = "secret"\n')
    file.chmod(0o644)
    listen = grid.url.removeprefix("http://")
    grid.more |= {"COGRID_CONFIG": str(file), "COGRID_COORDINATOR_LISTEN": listen}

    found = await _checks(grid)
    assert {area for area, _ in found} == {
        "configuration", "redis", "reaper", "workers", "coordinator",
    }  # fmt: skip
    warned = (await grid.cogrid("status", "--json")).json["warnings"]
    assert len(warned) == 3, warned
    for text in (*found.values(), *warned):
        _set(grid, text)
    chmod = shlex.split(found["configuration", "warn"])
    assert await (await asyncio.create_subprocess_exec(*chmod)).wait() == 0
    for area, verdict, words in (
        ("reaper", "fail", "reaper --daemon"),
        ("coordinator", "fail", "coordinator run"),
        ("workers", "warn", "worker run"),
    ):
        assert _command(found[area, verdict]) == words.split()
        env = {"COGRID_WORKER_ENGINE": engine.url, "COGRID_WORKER_ID": "esxi"}
        grid.daemon(area, words.split(), env)
    await grid.up("esxi")

    async def nothing_is_found() -> bool:
        """On a busy machine a round trip may be slow, or a pass late, and that is said."""
        return (await grid.cogrid("doctor")).code == 0

    await until_async(nothing_is_found, PATIENCE_S, "doctor to find nothing")
    status = await grid.cogrid("status", "--check", "--json")
    assert (status.code, status.json["warnings"]) == (0, [])

    grid.daemons["workers"].kill()
    await until_async(lambda: grid.health("esxi") == "dead", 15, "esxi to be dead")
    mend = (await _checks(grid))["workers", "fail"]
    assert mend == "start it again there, or: cogrid worker forget esxi"
    done = await grid.on_terminal(*_command(mend), typed="y\n")
    assert done.code == 0, done.out
    assert (await _checks(grid))["workers", "warn"] == "cogrid worker run, beside an engine"


async def _checks(grid: Grid) -> dict[tuple[str, str], str]:
    """What does not pass: area and verdict, and the mend."""
    said: Any = (await grid.cogrid("doctor", "--json")).json["checks"]
    wrong = [each for each in said if each["verdict"] != "pass"]
    found: dict[tuple[str, str], str] = {}
    for each in wrong:
        key = each["area"], each["verdict"]
        found[key] = "; ".join(filter(None, (found.get(key), each["mend"])))
    return found


def _command(mend: str) -> list[str]:
    """The words behind ``cogrid`` of the first command in a text."""
    found = COGRID.search(mend)
    assert found, mend
    return found.group().split()[1:]


def _set(grid: Grid, text: str) -> None:
    """What it tells the server's operator to set."""
    for setting in SETTING.findall(text):
        grid.redis.config_set(*setting.split())
