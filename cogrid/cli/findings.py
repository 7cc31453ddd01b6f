"""How findings are printed, whoever found them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cogrid.cli.output import note, print_json, print_line
from cogrid.errors import Exit

if TYPE_CHECKING:
    from cogrid.model.finding import Finding


def print_findings(
    findings: tuple[Finding, ...],
    as_json: bool,
    none: str,
    notes: Iterable[str] | None = None,
    **more: Any,
) -> int:
    """Each finding with its evidence and its mend, or the line ``none``; the exit code. notes: what
    could not be looked at. more: further fields of the document."""
    if as_json:
        told = {} if notes is None else {"notes": list(notes)}
        print_json({"findings": [asdict(finding) for finding in findings], **told, **more})
        return Exit.FINDINGS if findings else Exit.OK
    if not findings:
        print_line(none)
    for finding in findings:
        print_finding(finding)
    for each in notes or ():
        note(f"warning: {each}")
    return Exit.FINDINGS if findings else Exit.OK


def print_finding(finding: Finding) -> None:
    """One finding: what, the evidence, who suffers, and the command that mends it."""
    print_line(f"{finding.kind} {finding.subject}: {finding.what}")
    if finding.evidence:
        print_line(f"  evidence: {finding.evidence}")
    if finding.at_risk:
        print_line(f"  at risk:  {', '.join(finding.at_risk)}")
    if finding.mend:
        print_line(f"  mend:     {finding.mend}")
