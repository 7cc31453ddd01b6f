"""One thing that was looked at on one host."""

from __future__ import annotations

from dataclasses import dataclass

from cogrid.ops.check import Verdict


@dataclass(frozen=True, slots=True)
class HostCheck:
    """kind: a word that stays the same, such as ``engine_down``. area: ssh, host, clock, unit,
    version, engine, model, redis. subject: the unit, worker, model or place, "" for the host
    itself. what: a sentence with the numbers. evidence: further lines, such as the journal's last.
    mend: the command that mends it, or what to do; null where nothing is to be done.
    """

    kind: str
    area: str
    verdict: Verdict
    what: str
    subject: str = ""
    mend: str | None = None
    evidence: tuple[str, ...] = ()


def fine(kind: str, area: str, what: str, subject: str = "") -> HostCheck:
    """Nothing to do."""
    return HostCheck(kind, area, Verdict.PASS, what, subject)


def doubtful(
    kind: str, area: str, what: str, mend: str, subject: str = "", evidence: tuple[str, ...] = ()
) -> HostCheck:
    """It works; this should be done."""
    return HostCheck(kind, area, Verdict.WARN, what, subject, mend, evidence)


def broken(
    kind: str, area: str, what: str, mend: str, subject: str = "", evidence: tuple[str, ...] = ()
) -> HostCheck:
    """It does not work until this is done."""
    return HostCheck(kind, area, Verdict.FAIL, what, subject, mend, evidence)
