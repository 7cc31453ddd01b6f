"""The worker that is installed on a host, started beside the one that runs, and cut in time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cogrid.errors import Exit
from cogrid.model.host import Host, Role
from cogrid.ops.hosts.machines import Answer, ask_each
from cogrid.ops.sanity import commands
from cogrid.ops.sanity.as_unit import GRACE_S, SSH_S, Ran, run_as_login, run_as_unit
from cogrid.ops.sanity.ask import LOOK_S, WORKERS_A_HOST, Wishes, look
from cogrid.ops.sanity.facts import HostFacts, UnitFacts
from cogrid.ops.sanity.probe import as_worker
from cogrid.remote.access import Access
from cogrid.remote.connection import Connection, connect
from cogrid.remote.target import parse_target
from cogrid.rules.exit_code import exit_meaning

EXIT = "EXIT:"


@dataclass(frozen=True, slots=True)
class TriedHost:
    """One worker tried out, or why it was not. unit: null where only its program is there. lines:
    everything it printed. code: with which it ended; meaning says what that is, cure what to do.
    as_unit: it ran as the unit's user with the unit's settings; else as whom we log in, with this
    side's. error, hint: why it was not tried, else null."""

    host: str
    unit: str | None
    code: int | None
    meaning: str | None
    cure: str | None
    lines: tuple[str, ...] = ()
    as_unit: bool = True
    error: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Trials:
    """In the order of the hosts."""

    trials: tuple[TriedHost, ...]

    @property
    def exit_code(self) -> Exit:
        """5 where a host was not tried, 3 where a worker would not have come to work, else 0."""
        if any(tried.error for tried in self.trials):
            return Exit.SOME_HOSTS
        return Exit.FINDINGS if any(tried.code for tried in self.trials) else Exit.OK


def try_out(
    hosts: Iterable[Host], access: Access, wishes: Wishes, on_line: Callable[[str, str], None]
) -> Trials:
    """Tries them on all hosts at once. on_line: called with a host and a line as it comes, from
    several threads."""

    def ask(host: Host) -> tuple[TriedHost, ...]:
        with connect(parse_target(host.address), access) as there:
            facts = look(there)[0]
            units = [unit for unit in facts.units if _is_meant(unit, wishes)]
            if units:
                return tuple(_try(host, there, facts, unit, wishes, on_line) for unit in units)
            if facts.programs and not facts.units:
                return (_try_program(host, there, facts.programs[0], wishes, on_line),)
            return (_none(host),)

    each_s = wishes.limit_s + GRACE_S + SSH_S
    answers = ask_each(hosts, ask, access.connect_s + LOOK_S + WORKERS_A_HOST * each_s)
    return Trials(tuple(tried for answer in answers for tried in _told(answer)))


def _is_meant(unit: UnitFacts, wishes: Wishes) -> bool:
    return unit.role is Role.WORKER and wishes.means(unit.worker)


def _try(
    host: Host,
    there: Connection,
    facts: HostFacts,
    unit: UnitFacts,
    wishes: Wishes,
    on_line: Callable[[str, str], None],
) -> TriedHost:
    limit_s = wishes.limit_s
    words = (*unit.argv, "--trial", f"{limit_s:g}")
    hear = _hearing(host, on_line)
    ran = run_as_unit(there, facts, unit, words, limit_s, wishes.settings, hear, merged=True)
    return _tried(host, unit.name, ran)


def _try_program(
    host: Host,
    there: Connection,
    program: str,
    wishes: Wishes,
    on_line: Callable[[str, str], None],
) -> TriedHost:
    limit_s = wishes.limit_s
    words = (*as_worker(host, program), "--trial", f"{limit_s:g}")
    hear = _hearing(host, on_line)
    ran = run_as_login(there, words, limit_s, wishes.settings, hear, merged=True)
    return _tried(host, None, ran)


def _hearing(host: Host, on_line: Callable[[str, str], None]) -> Callable[[str], None]:
    def hear(line: str) -> None:
        if not line.startswith(EXIT):
            on_line(host.address, line)

    return hear


def _tried(host: Host, unit: str | None, ran: Ran) -> TriedHost:
    meaning = exit_meaning(ran.code)
    name = f" ({meaning.name})" if meaning.name else ""
    return TriedHost(
        host=host.address,
        unit=unit,
        code=ran.code,
        meaning=f"it {meaning.what}{name}",
        cure=meaning.cure or None,
        lines=tuple(f"{ran.out}\n{ran.err}".strip().splitlines()),
        as_unit=ran.as_unit,
    )


def _none(host: Host) -> TriedHost:
    error = f"no worker is installed on {host.address}"
    hint = commands.install(host)
    return TriedHost(host.address, None, None, None, None, error=error, hint=hint)


def _told(answer: Answer[tuple[TriedHost, ...]]) -> tuple[TriedHost, ...]:
    if answer.value:
        return answer.value
    error, address = answer.error, answer.host.address
    message = error.message if error else f"{address} did not answer"
    hint = error.hint or None if error else None
    return (TriedHost(address, None, None, None, None, error=message, hint=hint),)
