"""A finding: something wrong, the evidence in numbers, and the command that mends it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """kind: a word such as ``ghost_pending`` or ``single_home``. subject: id of the worker, model
    or task. what: one sentence. evidence: numbers in words. mend: a cogrid command line that the
    operator can paste, or "". at_risk: models or tasks that suffer."""

    kind: str
    subject: str
    what: str
    evidence: str
    mend: str
    at_risk: tuple[str, ...] = ()
