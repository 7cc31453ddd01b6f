"""Many hosts asked, and what is wrong with each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cogrid import __version__
from cogrid.errors import Exit, HostError
from cogrid.model.host import Host
from cogrid.ops.check import Verdict
from cogrid.ops.hosts.machines import ask_each
from cogrid.ops.sanity.as_unit import GRACE_S, SSH_S
from cogrid.ops.sanity.ask import LOOK_S, WORKERS_A_HOST, HostSeen, Wishes, ask_host
from cogrid.ops.sanity.check import HostCheck, broken
from cogrid.ops.sanity.on_host import judge_host
from cogrid.ops.sanity.on_probe import judge_bare, judge_probe
from cogrid.ops.sanity.on_unit import judge_none, judge_unit
from cogrid.ops.sanity.probe import BARE_S
from cogrid.remote.access import Access


@dataclass(frozen=True, slots=True)
class HostSanity:
    """asked: it could be asked. name: as it calls itself, null where it was not."""

    host: str
    asked: bool
    name: str | None
    checks: tuple[HostCheck, ...]

    @property
    def findings(self) -> tuple[HostCheck, ...]:
        """What does not pass."""
        return tuple(check for check in self.checks if check.verdict is not Verdict.PASS)


@dataclass(frozen=True, slots=True)
class Sanity:
    """version: of the cogrid that asked."""

    version: str
    hosts: tuple[HostSanity, ...]

    @property
    def exit_code(self) -> Exit:
        """5 where a host could not be asked, 3 where something was found, else 0."""
        if not all(host.asked for host in self.hosts):
            return Exit.SOME_HOSTS
        return Exit.FINDINGS if any(host.findings for host in self.hosts) else Exit.OK


def sanity(hosts: Iterable[Host], access: Access, wishes: Wishes) -> Sanity:
    """Asks all of them at once; one that is dead holds up none of the others."""
    each_s = wishes.limit_s + GRACE_S + SSH_S
    limit_s = access.connect_s + LOOK_S + max(BARE_S, WORKERS_A_HOST * each_s)
    answers = ask_each(hosts, lambda host: ask_host(host, access, wishes), limit_s)
    return Sanity(
        __version__,
        tuple(
            _seen(answer.value) if answer.value else _unseen(answer.host, answer.error)
            for answer in answers
        ),
    )


def _seen(seen: HostSeen) -> HostSanity:
    return HostSanity(seen.host.address, True, seen.facts.name, tuple(judge(seen)))


def _unseen(host: Host, error: HostError | None) -> HostSanity:
    message = error.message if error else f"{host.address} did not answer"
    hint = error.hint if error and error.hint else "is it up, and is that its address?"
    kind = f"ssh_{error.kind}" if error else "ssh_stopped"
    return HostSanity(host.address, False, None, (broken(kind, "ssh", message, hint),))


def judge(seen: HostSeen, here: str = __version__) -> Iterator[HostCheck]:
    """Everything about one host. here: the version of cogrid on this side."""
    yield from judge_host(seen)
    if not seen.facts.units and seen.facts.init == "systemd":
        yield judge_none(seen.host)
    tried = {(p.unit.scope, p.unit.name): p for p in seen.probes if p.unit}
    for unit in seen.facts.units:
        probe = tried.get((unit.scope, unit.name))
        yield from judge_unit(seen.host, seen.facts, unit, probe)
    for probe in seen.probes:
        yield from judge_probe(seen, probe, here)
    if seen.bare:
        yield from judge_bare(seen, seen.bare)
