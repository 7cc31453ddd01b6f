"""One host asked: what it says of itself, and what a worker there would find."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files

from cogrid.model.host import Host, Role, Scope
from cogrid.ops.sanity.facts import HostFacts
from cogrid.ops.sanity.parse import parse_look
from cogrid.ops.sanity.probe import Bare, Probe, probe_bare, probe_program, probe_unit
from cogrid.remote.access import Access
from cogrid.remote.connection import Connection, connect
from cogrid.remote.target import parse_target
from cogrid.store.address import Address

LOOK_S = 30.0
WORKERS_A_HOST = 3
"""So many are expected on one machine when the limit of a whole call is set."""
LOOK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Wishes:
    """limit_s: for the probes of one worker. workers: only these; () for all. redis: where this
    side finds Redis, and settings: its environment for a worker; both for hosts whose own settings
    cannot be had."""

    limit_s: float
    workers: tuple[str, ...] = ()
    redis: Address | None = field(default=None, repr=False)
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def means(self, worker: str) -> bool:
        """Whether this worker is to be tried."""
        return not self.workers or worker in self.workers


@dataclass(frozen=True, slots=True)
class HostSeen:
    """ahead_s: how far its clock is ahead of this side's: at least and at most. bare: where no
    worker was there to be tried."""

    host: Host
    facts: HostFacts
    ahead_s: tuple[float, float]
    probes: tuple[Probe, ...] = ()
    bare: Bare | None = None


def look(
    there: Connection,
    units: tuple[str, ...] = (),
    scope: str = Scope.SYSTEM,
    clock: Callable[[], float] = time.time,
) -> tuple[HostFacts, float, float]:
    """What the host says, and between which two instants of this side's clock. units: of that
    scope, to be looked at beside those of cogrid's making."""
    mark = secrets.token_hex(8)
    began_s = clock()
    script = files("cogrid.ops.sanity").joinpath("look.sh").read_text()
    result = there.run(script, mark, scope, *units, timeout_s=LOOK_S, limit_bytes=LOOK_BYTES)
    text = result.out.decode("utf-8", "surrogateescape")
    return parse_look(text, mark), began_s, clock()


def ask_host(host: Host, access: Access, wishes: Wishes) -> HostSeen:
    """Everything about one host. HostError where it could not be asked."""
    with connect(parse_target(host.address), access) as there:
        facts, began_s, ended_s = look(there)
        ahead_s = (facts.clock[1] - ended_s, facts.clock[0] - began_s)
        facts = replace(facts, units=tuple(u for u in facts.units if wishes.means(u.worker)))
        probes = tuple(
            probe_unit(there, facts, unit, wishes.limit_s, wishes.settings)
            for unit in facts.units
            if unit.role is Role.WORKER
        )
        if not probes and not facts.units and facts.programs:
            program = facts.programs[0]
            probes = (probe_program(there, host, program, wishes.limit_s, wishes.settings),)
        bare = None if probes else probe_bare(there, wishes.redis)
    return HostSeen(host, facts, ahead_s, probes, bare)
