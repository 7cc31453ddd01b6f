"""Engine, models and Redis, asked from the host itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import TypeVar

import msgspec

from cogrid.engine.find import USUAL_PORTS
from cogrid.model.host import Host
from cogrid.model.trial import Trial
from cogrid.ops.sanity.as_unit import Ran, run_as_login, run_as_unit
from cogrid.ops.sanity.facts import HostFacts, UnitFacts
from cogrid.remote.connection import Connection
from cogrid.store.address import Address, read_authorities

T = TypeVar("T")
ANSWER_S = 2.0
"""For an engine or Redis to answer a host that has no cogrid yet."""
BARE_S = 30.0
SAID_LINES = 5
_BARE = """\
for python in python3 python3.14 python3.13 python3.12 python3.11; do
    command -v "$python" >/dev/null 2>&1 && exec "$python" -
done
exit 127
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """A worker tried out. unit: None where only its program is there. trial: None where it printed
    none; ran says why."""

    unit: UnitFacts | None
    ran: Ran
    trial: Trial | None

    @property
    def said(self) -> tuple[str, ...]:
        """What it printed, the last SAID_LINES lines."""
        lines = f"{self.ran.out}\n{self.ran.err}".splitlines()
        return tuple(line for line in lines if line.strip())[-SAID_LINES:]


class BareEngine(msgspec.Struct, frozen=True):
    """An engine that answers on one of the usual ports."""

    url: str = ""
    kind: str = ""
    version: str = ""


class BareRedis(msgspec.Struct, frozen=True):
    """error: why it cannot be used from there. ahead_s: that clock before Redis'."""

    error: str | None = None
    ahead_s: float | None = None


class Bare(msgspec.Struct, frozen=True):
    """The same of a host without a worker's unit, at the address that this side uses."""

    engine: BareEngine = BareEngine()
    redis: BareRedis | None = None


def probe_unit(
    there: Connection,
    facts: HostFacts,
    unit: UnitFacts,
    limit_s: float,
    settings: Mapping[str, str],
) -> Probe:
    """The worker's start up to the end of its probes, by the cogrid that its unit runs."""
    ran = run_as_unit(there, facts, unit, (*unit.argv, *_quiet(limit_s)), limit_s, settings)
    return Probe(unit, ran, _decoded(ran.out.strip().rpartition("\n")[2], Trial))


def probe_program(
    there: Connection, host: Host, program: str, limit_s: float, settings: Mapping[str, str]
) -> Probe:
    """The same of a host that has cogrid and no worker's unit, as whom we log in."""
    words = (*as_worker(host, program), *_quiet(limit_s))
    ran = run_as_login(there, words, limit_s, settings)
    return Probe(None, ran, _decoded(ran.out.strip().rpartition("\n")[2], Trial))


def as_worker(host: Host, program: str) -> tuple[str, ...]:
    """The command of the worker that this host is to be."""
    options = (("--id", host.id), ("--engine", host.engine), ("--models", ",".join(host.models)))
    given = (word for option, text in options if text for word in (option, text))
    return (program, "worker", "run", *given)


def _quiet(limit_s: float) -> tuple[str, ...]:
    return ("--trial", f"{limit_s:g}", "--json", "--log-level", "warning")


def probe_bare(there: Connection, redis: Address | None) -> Bare | None:
    """None where there is no Python that could look."""
    engines = tuple(f"http://127.0.0.1:{port}" for port in USUAL_PORTS)
    program = bare_program(engines, redis, ANSWER_S)
    result = there.run(_BARE, stdin=program.encode(), timeout_s=BARE_S)
    return _decoded(result.text.rpartition("\n")[2], Bare)


def bare_program(engines: tuple[str, ...], redis: Address | None, limit_s: float) -> str:
    """What a Python there reads from its stdin, so that a password is in no list of processes.
    limit_s: for each answer. UsageError where the server's authorities cannot be read here."""
    place = {**asdict(redis), "authorities": read_authorities(redis.ca_file)} if redis else None
    asked = json.dumps({"limit_s": limit_s, "engines": engines, "redis": place})
    program = files("cogrid.ops.sanity").joinpath("bare.py").read_text()
    return program.replace("ASKED: Any = None", f"ASKED: Any = json.loads({asked!r})")


def _decoded(text: str, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(text, type=kind)
    except ValueError:
        return None
