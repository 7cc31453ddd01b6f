"""One thing that a check-up looks at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """PASS: nothing to do. WARN: it works, and something should be done. FAIL: it does not."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """area: configuration, redis, reaper, coordinator, workers, versions, clock, engine, here.
    what: a sentence with the numbers. mend: what to do, null where nothing is to be done."""

    area: str
    verdict: Verdict
    what: str
    mend: str | None = None


def passed(area: str, what: str) -> Check:
    """Nothing to do."""
    return Check(area, Verdict.PASS, what)


def warned(area: str, what: str, mend: str) -> Check:
    """It works; this should be done."""
    return Check(area, Verdict.WARN, what, mend)


def failed(area: str, what: str, mend: str) -> Check:
    """It does not work until this is done."""
    return Check(area, Verdict.FAIL, what, mend)
