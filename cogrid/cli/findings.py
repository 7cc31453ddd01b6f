"""How findings are printed, whoever found them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogrid.cli.output import print_line
from cogrid.errors import Exit

if TYPE_CHECKING:
    from cogrid.model.finding import Finding


def print_findings(findings: tuple[Finding, ...], none: str) -> None:
    """Each finding with its evidence and its mend, or the line ``none``."""
    if not findings:
        print_line(none)
    for finding in findings:
        print_finding(finding)


def code_of(findings: tuple[Finding, ...]) -> Exit:
    """The exit code where something was found, or nothing."""
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
