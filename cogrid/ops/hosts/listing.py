"""The machines of the fleet, and what cogrid runs on each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cogrid.errors import Exit, HostError
from cogrid.model.host import Host
from cogrid.ops.hosts.machines import ask_each
from cogrid.ops.sanity.ask import LOOK_S, look
from cogrid.ops.sanity.facts import HostFacts, UnitFacts
from cogrid.ops.unit.explain import explain
from cogrid.remote.access import Access
from cogrid.remote.connection import connect
from cogrid.remote.target import parse_target


@dataclass(frozen=True, slots=True)
class UnitRow:
    """role: null for a command that is not cogrid's. worker: the id it runs, null for other roles.
    state: a word, such as running or failed. restarts: since it was last started by
    somebody. version: of the cogrid that it runs, null where that did not say."""

    unit: str
    scope: str
    role: str | None
    worker: str | None
    state: str
    restarts: int
    origin: str
    version: str | None


@dataclass(frozen=True, slots=True)
class HostRow:
    """name: as it calls itself. error, hint: why it could not be asked, else null."""

    host: str
    name: str | None
    login: str | None
    units: tuple[UnitRow, ...]
    error: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class HostList:
    """In the order in which they were named."""

    hosts: tuple[HostRow, ...]

    @property
    def exit_code(self) -> Exit:
        """5 where a host could not be asked."""
        return Exit.SOME_HOSTS if any(row.error for row in self.hosts) else Exit.OK


def host_list(hosts: Iterable[Host], access: Access) -> HostList:
    """Asks each machine once."""
    answers = ask_each(hosts, lambda host: look_at(host, access), LOOK_S + access.connect_s)
    return HostList(
        tuple(
            _row(answer.host, answer.value)
            if answer.value
            else HostRow(answer.host.address, None, None, (), *_why(answer.host, answer.error))
            for answer in answers
        )
    )


def look_at(host: Host, access: Access) -> HostFacts:
    """What it says of itself. HostError."""
    with connect(parse_target(host.address), access) as there:
        return look(there)[0]


def _row(host: Host, facts: HostFacts) -> HostRow:
    units = tuple(_unit(unit) for unit in facts.units)
    return HostRow(host.address, facts.name, facts.login, units)


def _unit(unit: UnitFacts) -> UnitRow:
    return UnitRow(
        unit.name,
        unit.scope,
        unit.role,
        unit.worker or None,
        explain(unit.state).word,
        unit.state.restarts,
        unit.origin,
        unit.version or None,
    )


def _why(host: Host, error: HostError | None) -> tuple[str, str | None]:
    if error is None:
        return f"{host.address} did not answer", None
    return error.message, error.hint or None
