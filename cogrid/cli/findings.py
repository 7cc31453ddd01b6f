"""How findings are printed, whoever found them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from cogrid.cli.output import print_json, print_line
from cogrid.errors import Exit

if TYPE_CHECKING:
    from cogrid.model.finding import Finding


def print_findings(findings: tuple[Finding, ...], as_json: bool, none: str) -> int:
    """Each finding with its evidence and its mend, or the line ``none``; the exit code."""
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    elif not findings:
        print_line(none)
    for finding in () if as_json else findings:
        print_line(f"{finding.kind} {finding.subject}: {finding.what}")
        print_line(f"  evidence: {finding.evidence}")
        if finding.at_risk:
            print_line(f"  at risk:  {', '.join(finding.at_risk)}")
        if finding.mend:
            print_line(f"  mend:     {finding.mend}")
    return Exit.FINDINGS if findings else Exit.OK
