"""What is wrong with one of cogrid's units on a host."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from cogrid.model.host import Host, Role, Scope
from cogrid.ops.sanity import commands
from cogrid.ops.sanity.check import HostCheck, broken, doubtful, fine
from cogrid.ops.sanity.facts import HostFacts, UnitFacts
from cogrid.ops.sanity.probe import Probe
from cogrid.ops.unit.explain import Explanation, Word, explain
from cogrid.ops.unit.seal import Origin
from cogrid.ops.unit.state import How

OTHERS = 0o077
"""Rights of everybody but the owner."""
WRONG_UNIT = {200: "no_directory", 203: "no_program", 216: "no_group", 217: "no_user"}
"""systemd's exit codes for what an installation would have set right."""
JOURNAL_LINES = 5
SYSTEMD = "systemd"


def judge_unit(
    host: Host, facts: HostFacts, unit: UnitFacts, probe: Probe | None = None
) -> Iterator[HostCheck]:
    """Whether it runs, and why not; whether it is as it was installed; who may read its secrets.
    probe: where it is a worker's and was tried."""
    yield _state(host, facts, unit, probe)
    yield from _text(host, unit)
    for file in unit.modes:
        if file.mode & OTHERS:
            yield broken(
                "secret_open",
                "unit",
                f"{file.path} may be read by others (mode {file.mode:o}), and it holds a password",
                commands.by_hand(host, shlex.join(("sudo", "chmod", "600", file.path))),
                unit.name,
            )


def runs(unit: UnitFacts) -> bool:
    """It is up, or coming up for the first time."""
    return explain(unit.state, unit.scope).word in (Word.RUNNING, Word.STARTING)


def judge_none(host: Host) -> HostCheck:
    """No unit at all."""
    return broken("no_unit", "unit", "no unit of cogrid is installed there", commands.install(host))


def _state(host: Host, facts: HostFacts, unit: UnitFacts, probe: Probe | None) -> HostCheck:
    told = explain(unit.state, unit.scope)
    if runs(unit) and not told.cure:
        return fine("unit", "unit", told.what, unit.name)
    kind = _kind(unit, told)
    if told.word in (Word.RUNNING, Word.STOPPING):
        there = told.cure if unit.scope is Scope.USER else f"sudo sh -c {shlex.quote(told.cure)}"
        return doubtful(kind, "unit", told.what, commands.by_hand(host, there), unit.name)
    goes_now = probe is not None and probe.trial is not None
    evidence = _journal(facts, unit) if probe is None or goes_now else probe.said
    what = f"{told.what}; tried now, it starts" if goes_now else told.what
    return broken(kind, "unit", what, _mend(host, unit, told, goes_now), unit.name, evidence)


def _kind(unit: UnitFacts, told: Explanation) -> str:
    if unit.state.gave_up:
        return "start_limit_hit"
    if told.word in (Word.FAILED, Word.RESTARTING) and unit.state.how is How.EXITED:
        return WRONG_UNIT.get(unit.state.status, "unit_failed")
    return f"unit_{told.word.replace(' ', '_')}"


def _mend(host: Host, unit: UnitFacts, told: Explanation, goes_now: bool) -> str:
    """goes_now: what kept it from starting is over."""
    start = commands.start(host, unit.name, unit.scope)
    if told.word is Word.MASKED:
        return commands.by_hand(host, f"sudo {told.cure}")
    if goes_now or told.word is Word.STOPPED:
        return start
    wrong = unit.state.how is How.EXITED and unit.state.status in WRONG_UNIT
    if wrong or told.word in (Word.BROKEN, Word.NOT_INSTALLED):
        role, worker = unit.role or Role.WORKER, unit.worker
        return commands.install(host, role=role, worker=worker, more=("--force",))
    if unit.role is Role.WORKER:
        return commands.trial(host)
    return commands.logs(host)


def _journal(facts: HostFacts, unit: UnitFacts) -> tuple[str, ...]:
    """Its own last lines, else systemd's about it; that there are none is another thing than that
    they cannot be read."""
    if not unit.readable:
        lacking = "that needs the group systemd-journal, or sudo"
        return (f"the system's journal cannot be read as {facts.login}: {lacking}",)
    own = [line for line in unit.journal if line.by != SYSTEMD]
    lines = tuple(line.text for line in (own or unit.journal)[-JOURNAL_LINES:])
    return lines or ("the journal has no line of it",)


def _text(host: Host, unit: UnitFacts) -> Iterator[HostCheck]:
    if not unit.text:
        return
    role = unit.role or Role.WORKER
    match unit.origin:
        case Origin.INSTALLED:
            extra = ", with drop-ins" if unit.state.drop_ins else ""
            yield fine("text", "unit", f"its file is as it was installed{extra}", unit.name)
        case Origin.EDITED:
            yield doubtful(
                "unit_edited",
                "unit",
                "its file was edited after it was installed; the next upgrade stops at that",
                commands.install(host, role=role, worker=unit.worker, more=("--dry-run",)),
                unit.name,
            )
        case Origin.FOREIGN:
            yield doubtful(
                "unit_foreign",
                "unit",
                "its file was not written by cogrid install-unit",
                commands.install(host, role=role, worker=unit.worker, more=("--dry-run",)),
                unit.name,
            )
