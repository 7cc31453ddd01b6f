"""How findings are printed, whoever found them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogrid.cli.output import print_gap, print_line, print_prose
from cogrid.errors import Exit

if TYPE_CHECKING:
    from cogrid.model.finding import Finding


HANG = 12
"""Where what is said of a finding begins."""


def print_findings(findings: tuple[Finding, ...], none: str) -> None:
    """Each finding with its evidence and its mend, or the line ``none``."""
    if not findings:
        print_line(none)
    for number, finding in enumerate(findings):
        if number:
            print_gap()
        print_finding(finding)


def code_of(findings: tuple[Finding, ...]) -> Exit:
    """The exit code where something was found, or nothing."""
    return Exit.FINDINGS if findings else Exit.OK


def print_finding(finding: Finding) -> None:
    """One finding: what, the evidence, who suffers, and the command that mends it."""
    head = f"{finding.kind} {finding.subject}:"
    print_prose(f"{head} {finding.what}", HANG, bold=len(head))
    if finding.evidence:
        print_prose(f"  evidence: {finding.evidence}", HANG)
    if finding.at_risk:
        print_prose(f"  at risk:  {', '.join(finding.at_risk)}", HANG)
    if finding.mend:
        print_prose(f"  mend:     {finding.mend}", whole=True)
