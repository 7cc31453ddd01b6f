"""What the state of a unit means, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cogrid.model.host import Scope
from cogrid.ops.unit.state import How, UnitState
from cogrid.rules.exit_code import Meaning, exit_meaning, signal_meaning


class Word(StrEnum):
    """A unit's state in one word or two."""

    RUNNING = "running"
    STARTING = "starting"
    STOPPING = "stopping"
    RESTARTING = "restarting"
    STOPPED = "stopped"
    FAILED = "failed"
    BROKEN = "cannot be loaded"
    MASKED = "masked"
    NOT_INSTALLED = "not installed"


@dataclass(frozen=True, slots=True)
class Explanation:
    """word: the state. what: a sentence with the cause. cure: what to do there, "" where nothing
    is wrong."""

    word: Word
    what: str
    cure: str = ""


def explain(state: UnitState, scope: Scope = Scope.SYSTEM) -> Explanation:
    """The state in words. scope: whose manager was asked, so that the cure names the right one."""
    call = "systemctl" if scope is Scope.SYSTEM else "systemctl --user"
    unit = state.unit
    if state.load == "masked":
        return Explanation(
            Word.MASKED, f"{unit} is masked: nothing starts it", f"{call} unmask {unit}"
        )
    if state.load in ("bad-setting", "error"):
        trouble = state.trouble or "systemd cannot read its file"
        cure = f"systemd-analyze verify {state.path or unit} names the line"
        return Explanation(Word.BROKEN, f"{unit} cannot be loaded: {trouble}", cure)
    if not state.installed:
        where = "this machine's manager" if scope is Scope.SYSTEM else "this user's manager"
        return Explanation(Word.NOT_INSTALLED, f"{where} has no {unit}", "cogrid install-unit")
    return _of_a_unit_that_is_there(state, call)


def _of_a_unit_that_is_there(state: UnitState, call: str) -> Explanation:
    unit = state.unit
    match state.active, state.sub:
        case "active", _:
            return _running(state, call)
        case "activating", "auto-restart":
            meaning = _last(state)
            so_far = f" (restarts so far: {state.restarts})" if state.restarts else ""
            what = f"{unit} waits for its next start{so_far}: {_why(state)}"
            return Explanation(Word.RESTARTING, what, meaning.cure)
        case "activating" | "reloading", _:
            return Explanation(Word.STARTING, f"{unit} is starting")
        case "deactivating", _:
            return Explanation(Word.STOPPING, f"{unit} finishes what it runs and stops")
        case "failed", _:
            return _failed(state, call)
        case _:
            return Explanation(
                Word.STOPPED,
                f"{unit} is stopped{_at_boot(state)}",
                f"{call} enable --now {unit}" if _is_off(state) else f"{call} start {unit}",
            )


def _running(state: UnitState, call: str) -> Explanation:
    unit = state.unit
    if _is_off(state):
        return Explanation(Word.RUNNING, f"{unit} runs{_at_boot(state)}", f"{call} enable {unit}")
    if state.stale:
        what = f"{unit} runs, but not as its file says now: that was changed later"
        return Explanation(Word.RUNNING, what, f"{call} daemon-reload && {call} restart {unit}")
    return Explanation(Word.RUNNING, f"{unit} runs as process {state.pid}")


def _failed(state: UnitState, call: str) -> Explanation:
    unit = state.unit
    if state.gave_up:
        what = f"{unit} failed too often and is not started again (start limit)"
        last = f": {_why(state)}" if state.how else ""
        cure = f"{call} reset-failed {unit} && {call} start {unit}"
        first = _last(state).cure
        return Explanation(Word.FAILED, f"{what}{last}", f"{first}; then {cure}" if first else cure)
    cure = _last(state).cure or f"{call} start {unit}"
    return Explanation(Word.FAILED, f"{unit} has failed: {_why(state)}", cure)


def _why(state: UnitState) -> str:
    meaning = _last(state)
    return f"it {meaning.what}{_shown(state, meaning)}"


def _shown(state: UnitState, meaning: Meaning) -> str:
    """``(203/EXEC)``, as systemctl shows it."""
    if state.result in _RESULTS or state.how is None:
        return ""
    if state.how is How.EXITED:
        return f" (exit code {state.status}{f'/{meaning.name}' if meaning.name else ''})"
    return f" ({meaning.name})"


def _last(state: UnitState) -> Meaning:
    """Why it is not running: as systemd says, else as its process ended."""
    if found := _RESULTS.get(state.result):
        return found
    if state.how is None:
        return Meaning("", "has not run", "its last lines in the journal say why")
    return exit_meaning(state.status) if state.how is How.EXITED else signal_meaning(state.status)


_RESULTS = {
    "watchdog": Meaning(
        "", "had hung, and the watchdog ended it", "the journal shows where each thread hung"
    ),
    "timeout": Meaning(
        "", "took longer to start or to stop than it may", "its last lines in the journal say where"
    ),
    "protocol": Meaning(
        "", "ended before it had said that it is up", "its last lines in the journal say why"
    ),
    "oom-kill": Meaning(
        "", "was killed for want of memory", "free memory, or raise MemoryMax= in a drop-in"
    ),
    "resources": Meaning(
        "",
        "was not started: a file that its unit names is missing, or memory or disk is short",
        "is the file of EnvironmentFile= there? cogrid install-unit writes it",
    ),
    "exec-condition": Meaning("", "was not started: a condition of its unit does not hold"),
}
"""Results of systemd's that say more than the exit of the process."""


def _is_off(state: UnitState) -> bool:
    return state.enabled == "disabled"


def _at_boot(state: UnitState) -> str:
    return ", and would not be started with the machine" if _is_off(state) else ""
