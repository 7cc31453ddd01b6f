"""What is not the same on all machines: cogrid, engines, models, units."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cogrid import __version__
from cogrid.errors import Exit
from cogrid.model.finding import Finding
from cogrid.model.host import Host, Role
from cogrid.model.snapshot import Snapshot
from cogrid.ops.hosts.listing import look_at
from cogrid.ops.hosts.logs import Trouble, of_error
from cogrid.ops.hosts.machines import ask_each
from cogrid.ops.sanity import commands
from cogrid.ops.sanity.ask import LOOK_S
from cogrid.ops.sanity.facts import HostFacts, UnitFacts
from cogrid.ops.unit.difference import difference
from cogrid.ops.unit.seal import unsealed
from cogrid.remote.access import Access
from cogrid.rules.drift import drift as model_drift

Seen = Mapping[Host, HostFacts]


@dataclass(frozen=True, slots=True)
class Drift:
    """findings: what differs, who has which, and the command that makes it the same. troubles:
    hosts that could not be asked."""

    findings: tuple[Finding, ...]
    troubles: tuple[Trouble, ...] = ()

    @property
    def exit_code(self) -> Exit:
        """5 where a host could not be asked, 3 where something differs, else 0."""
        if self.troubles:
            return Exit.SOME_HOSTS
        return Exit.FINDINGS if self.findings else Exit.OK


def drift(hosts: Iterable[Host], access: Access, snapshot: Snapshot) -> Drift:
    """Asks each machine once; engines and models are as the workers tell the grid."""
    answers = ask_each(hosts, lambda host: look_at(host, access), LOOK_S + access.connect_s)
    seen = {answer.host: answer.value for answer in answers if answer.value}
    troubles = tuple(of_error(answer.host, answer.error) for answer in answers if answer.error)
    return Drift(differences(seen, snapshot), troubles)


def differences(seen: Seen, snapshot: Snapshot, here: str = __version__) -> tuple[Finding, ...]:
    """Everything that differs. here: the version of cogrid on this side."""
    return (
        *_versions(seen, here),
        *_engines(snapshot),
        *model_drift(snapshot),
        *_texts(seen),
    )


def _versions(seen: Seen, here: str) -> Iterable[Finding]:
    """Of cogrid, on hosts and here."""
    found: dict[str, list[Host]] = {}
    for host, facts in seen.items():
        for version in sorted({unit.version for unit in facts.units if unit.version}):
            found.setdefault(version, []).append(host)
    others = [version for version in found if version != here]
    if not others:
        return
    told = [f"{here} here", *(f"{v} on {_names(found[v])}" for v in sorted(found))]
    wrong = [host for host in seen if any(host in found[version] for version in others)]
    words = [word for host in wrong for word in ("--host", host.address)]
    mend = shlex.join(("cogrid", "install-unit", "--upgrade", *words))
    yield Finding(
        "drift_cogrid",
        "cogrid",
        f"cogrid is not of one version: {_names(wrong)} should have {here}",
        "; ".join(told),
        mend,
        tuple(host.address for host in wrong),
    )


def _engines(snapshot: Snapshot) -> Iterable[Finding]:
    """Of one kind of engine: ``ollama 0.9.3`` and ``ollama 0.9.1``."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for worker in snapshot.workers:
        kind, _, version = worker.engine.partition(" ")
        if version and worker.lease_until_ms:
            kinds.setdefault(kind, {}).setdefault(version, []).append(worker.id)
    for kind, versions in sorted(kinds.items()):
        if len(versions) > 1:
            groups = _by_size(versions)
            rest = tuple(worker for _, workers in groups[1:] for worker in workers)
            told = "; ".join(f"{version} on {', '.join(ids)}" for version, ids in groups)
            what = f"{kind} is not of one version: most have {groups[0][0]}"
            yield Finding("drift_engine", kind, what, told, "", rest)


def _texts(seen: Seen) -> Iterable[Finding]:
    """Units of one role, their names and what was chosen for each left out of the comparison."""
    for role in Role:
        texts: dict[str, list[str]] = {}
        owners: dict[str, tuple[Host, UnitFacts]] = {}
        for host, facts in seen.items():
            for unit in facts.units:
                if unit.role is role and unit.text:
                    texts.setdefault(plain(unit), []).append(f"{unit.name} on {host.address}")
                    owners.setdefault(plain(unit), (host, unit))
        groups = _by_size(texts)
        for text, where in groups[1:]:
            host, unit = owners[text]
            yield Finding(
                "drift_unit",
                where[0],
                f"the unit of {', '.join(where)} is not as that of {', '.join(groups[0][1])}",
                "; ".join(_changed(groups[0][0], text)),
                commands.install(host, role=role, worker=unit.worker, more=("--dry-run",)),
                tuple(where),
            )


CHOSEN = ("ExecStart=", "User=", "WorkingDirectory=", "RestartSec=", "ProtectHome=")
"""Lines that an installation is told, so that they may well differ."""


def plain(unit: UnitFacts) -> str:
    """The unit's text without comments, without what was chosen for it, and with ``%i`` where its
    worker's id stands as a word."""
    lines = (line.strip() for line in unsealed(unit.text).splitlines())
    kept = (line for line in lines if line and line[0] not in "#;" and not line.startswith(CHOSEN))
    text = "".join(f"{line}\n" for line in kept)
    named = rf"(?<![\w.]){re.escape(unit.worker)}(?![\w-])"
    return re.sub(named, "%i", text) if unit.worker else text


def _changed(old: str, new: str) -> tuple[str, ...]:
    """The lines that one has and the other has not."""
    lines = difference("unit", old, new)
    return tuple(line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---"))


def _by_size(groups: Mapping[str, list[str]]) -> list[tuple[str, list[str]]]:
    """The largest group first: what most have is taken for what is meant."""
    return sorted(groups.items(), key=lambda each: (-len(each[1]), each[0]))


def _names(hosts: Iterable[Host]) -> str:
    return ", ".join(host.address for host in hosts)
