"""Units that are to be started, stopped or restarted: which, and what hangs on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from cogrid.model.host import Host, Role, Scope
from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import Health
from cogrid.ops.hosts.logs import Trouble
from cogrid.ops.hosts.machines import ask_each
from cogrid.ops.sanity.ask import LOOK_S, look
from cogrid.ops.sanity.facts import HostFacts, UnitFacts
from cogrid.ops.unit.explain import explain
from cogrid.remote.access import Access
from cogrid.remote.connection import connect
from cogrid.remote.target import parse_target
from cogrid.rules.leaving import Leaving, leaving


class Verb(StrEnum):
    """What is done to a unit."""

    START = "start"
    STOP = "stop"
    RESTART = "restart"


@dataclass(frozen=True, slots=True)
class Choice:
    """units: names, also of units that are not cogrid's, such as an engine's; () for all of
    cogrid's. role: only these, "" for all."""

    units: tuple[str, ...] = ()
    role: str = ""
    scope: str = Scope.SYSTEM


@dataclass(frozen=True, slots=True)
class Act:
    """One unit of one host. worker: the id it runs, null where it is none that the grid knows as
    alive. state: systemd's word for the unit, before. runs, waiting: the worker's tasks. only_here:
    its models that nobody else could serve meanwhile."""

    host: str
    unit: str
    scope: str
    worker: str | None
    state: str
    runs: int = 0
    waiting: int = 0
    only_here: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """acts: in the order of the hosts. troubles: hosts that could not be asked, and those that have
    no such unit."""

    verb: Verb
    acts: tuple[Act, ...]
    troubles: tuple[Trouble, ...]


def plan_acts(
    hosts: Iterable[Host],
    access: Access,
    verb: Verb,
    choice: Choice,
    grid: tuple[Snapshot, Limits] | None,
) -> Plan:
    """What would be done. grid: what the workers have to do now; None where that is not asked."""

    def ask(host: Host) -> HostFacts:
        with connect(parse_target(host.address), access) as there:
            return look(there, choice.units, choice.scope)[0]

    acts: list[Act] = []
    troubles: list[Trouble] = []
    for answer in ask_each(hosts, ask, LOOK_S + access.connect_s):
        if answer.value is None:
            error = answer.error
            assert error is not None
            troubles.append(Trouble(answer.host.address, error.message, error.hint or None))
            continue
        found = [_act(answer.host, unit, verb, grid) for unit in chosen(answer.value, choice)]
        acts += found
        troubles += [] if found else [_none(answer.host, choice)]
    return Plan(verb, tuple(acts), tuple(troubles))


def chosen(facts: HostFacts, choice: Choice) -> tuple[UnitFacts, ...]:
    """The units of this host that are meant; one that is not installed is none."""
    return tuple(
        unit
        for unit in facts.units
        if unit.state.installed
        and (unit.name in choice.units if choice.units else True)
        and (not choice.role or unit.role == choice.role)
    )


def _act(host: Host, unit: UnitFacts, verb: Verb, grid: tuple[Snapshot, Limits] | None) -> Act:
    state = explain(unit.state).word
    going = _going(unit, *grid) if grid and verb is not Verb.START else None
    if going is None:
        return Act(host.address, unit.name, unit.scope, unit.worker or None, state)
    return Act(
        host.address,
        unit.name,
        unit.scope,
        going.worker,
        state,
        len(going.runs),
        going.waiting,
        going.only_here,
    )


def _going(unit: UnitFacts, snapshot: Snapshot, limits: Limits) -> Leaving | None:
    worker = snapshot.worker(unit.worker) if unit.role is Role.WORKER else None
    found = leaving(worker, snapshot, limits) if worker else None
    return None if found is None or found.health is Health.DEAD else found


def _none(host: Host, choice: Choice) -> Trouble:
    if choice.units:
        what, cure = ", ".join(choice.units), "cogrid host list shows cogrid's own units there"
    else:
        what = f"unit of cogrid{f' ({choice.role})' if choice.role else ''}"
        cure = f"cogrid install-unit --host {host.address} makes it a worker"
    return Trouble(host.address, f"{host.address} has no {what}", cure)
