"""What systemd says of a unit, and what that means. The words are those of systemd 252."""

from __future__ import annotations

import pytest

from cogrid.model.host import Scope
from cogrid.ops.unit.explain import Word, explain
from cogrid.ops.unit.state import PROPERTIES, SHOW, How, UnitState, parse_state, parse_states
from cogrid.rules.exit_code import exit_meaning, signal_meaning

UNIT = "cogrid-worker@esxi.service"


def shown(**said: str) -> str:
    """As ``systemctl show`` prints it; a unit that runs, but for what is said."""
    found = {
        "Restart": "always", "StartLimitIntervalUSec": "0", "StartLimitBurst": "5",
        "MainPID": "150", "Result": "success", "NRestarts": "0", "ExecMainCode": "0",
        "ExecMainStatus": "0", "ExecMainStartTimestampMonotonic": "14201361450",
        "ExecMainExitTimestampMonotonic": "0", "Id": UNIT, "LoadState": "loaded",
        "ActiveState": "active", "SubState": "running", "StatusText": "", "LoadError": "",
        "FragmentPath": f"/etc/systemd/system/{UNIT}", "DropInPaths": "",
        "UnitFileState": "enabled", "NeedDaemonReload": "no",
    }  # fmt: skip
    assert not said.keys() - found.keys()
    return "".join(f"{key}={value}\n" for key, value in (found | said).items())


def failed(code: str, status: str, **said: str) -> str:
    given = {"ActiveState": "activating", "SubState": "auto-restart", "MainPID": "0"}
    result = "exit-code" if code == "1" else "signal"
    given |= {"Result": result, "ExecMainCode": code, "ExecMainStatus": status}
    return shown(**(given | said))


def test_everything_is_read() -> None:
    text = shown(
        NRestarts="3",
        DropInPaths='"/etc/systemd/system/x.service.d/my own.conf" /run/y.conf',
        NeedDaemonReload="yes",
        StatusText="a=b",
    )
    assert parse_state(text) == UnitState(
        UNIT, "loaded", "active", "running", pid=150, restarts=3,
        path=f"/etc/systemd/system/{UNIT}",
        drop_ins=("/etc/systemd/system/x.service.d/my own.conf", "/run/y.conf"),
        enabled="enabled", stale=True, said="a=b",
    )  # fmt: skip


def test_the_words_that_ask_name_every_property_that_is_read() -> None:
    assert SHOW[0] == "show"
    assert set(PROPERTIES) == {line.partition("=")[0] for line in shown().splitlines()}
    assert f"--property={','.join(PROPERTIES)}" in SHOW


def test_several_units_are_told_apart() -> None:
    states = parse_states(shown() + "\n" + shown(Id="b.service", MainPID="7") + "\n")
    assert [(state.unit, state.pid) for state in states] == [(UNIT, 150), ("b.service", 7)]
    assert parse_states("") == ()


def test_what_is_not_there_is_never_taken_for_stopped() -> None:
    absent = {"LoadState": "not-found", "ActiveState": "inactive", "SubState": "dead"}
    state = parse_state(shown(**absent, FragmentPath="", MainPID="0", UnitFileState=""))
    assert not state.installed
    assert explain(state).word is Word.NOT_INSTALLED
    # A manager that is asked for the other one's units answers with defaults and no file.
    assert explain(parse_state(shown(FragmentPath=""))).word is Word.NOT_INSTALLED
    assert "this user's manager" in explain(state, Scope.USER).what
    assert explain(parse_state("Failed to connect to bus")).word is Word.NOT_INSTALLED


@pytest.mark.parametrize(
    ("text", "word", "what", "cure"),
    [
        (shown(), Word.RUNNING, "runs as process 150", ""),
        (shown(UnitFileState="disabled"), Word.RUNNING, "not be started with", "systemctl enable "),
        (shown(NeedDaemonReload="yes"), Word.RUNNING, "as its file says now", "daemon-reload"),
        (shown(ActiveState="activating", SubState="start"), Word.STARTING, "is starting", ""),
        (
            shown(ActiveState="deactivating", SubState="stop-sigterm"),
            Word.STOPPING, "finishes what it runs", "",
        ),
        (shown(ActiveState="inactive", SubState="dead"), Word.STOPPED, "is stopped", " start "),
        (
            shown(ActiveState="inactive", SubState="dead", UnitFileState="disabled"),
            Word.STOPPED, "would not be started with", "enable --now",
        ),
        (shown(LoadState="masked"), Word.MASKED, "nothing starts it", "unmask"),
        (
            shown(
                LoadState="bad-setting",
                LoadError='org.freedesktop.systemd1.BadUnitSetting "Unit x has a bad setting."',
            ),
            Word.BROKEN, "cannot be loaded: Unit x has a bad setting.", "systemd-analyze verify",
        ),
        (failed("1", "203"), Word.RESTARTING, "(exit code 203/EXEC)", "ExecStart="),
        (failed("1", "200"), Word.RESTARTING, "(exit code 200/CHDIR)", "WorkingDirectory="),
        (failed("1", "217"), Word.RESTARTING, "(exit code 217/USER)", "User="),
        (failed("1", "2"), Word.RESTARTING, "is wrong (exit code 2)", "last lines"),
        (failed("2", "9", NRestarts="3"), Word.RESTARTING, "so far: 3): it was killed", "memory"),
        (failed("3", "11"), Word.RESTARTING, "it crashed (SIGSEGV)", "install again"),
        (failed("2", "6", Result="watchdog"), Word.RESTARTING, "it had hung", "each thread"),
        (failed("2", "15", Result="timeout"), Word.RESTARTING, "took longer to start", "journal"),
        (failed("1", "0", Result="protocol"), Word.RESTARTING, "before it had said", "journal"),
        (failed("0", "0", Result="resources"), Word.RESTARTING, "its unit", "EnvironmentFile="),
        (
            failed("1", "75", ActiveState="failed", SubState="failed"),
            Word.FAILED, "taken its worker's name (exit code 75/TEMPFAIL)", "another name",
        ),
        (
            failed("1", "1", ActiveState="failed", SubState="failed", Result="start-limit-hit"),
            Word.FAILED, "failed too often", f"systemctl reset-failed {UNIT} && systemctl start",
        ),
    ],
)  # fmt: skip
def test_each_state_has_its_sentence_and_its_cure(
    text: str, word: Word, what: str, cure: str
) -> None:
    said = explain(parse_state(text))
    assert said.word is word
    assert what in said.what
    assert cure in said.cure
    assert bool(cure) == bool(said.cure)


def used_up(**said: str) -> str:
    return failed(
        "1", "203",
        **{
            "ActiveState": "failed", "SubState": "failed", "NRestarts": "5",
            "StartLimitIntervalUSec": "1min 40s", "ExecMainExitTimestampMonotonic": "14201361871",
        } | said,
    )  # fmt: skip


def test_the_start_limit_is_recognised_where_systemd_does_not_name_it() -> None:
    said = explain(parse_state(used_up()))
    assert "failed too often and is not started again (start limit)" in said.what
    assert "203/EXEC" in said.what
    assert said.cure.startswith("is the first word of ExecStart= there")
    assert said.cure.endswith(f"; then systemctl reset-failed {UNIT} && systemctl start {UNIT}")


@pytest.mark.parametrize(
    "other",
    [
        {"NRestarts": "4"},
        {"Restart": "no"},
        {"StartLimitIntervalUSec": "0"},
        {"StartLimitBurst": "0"},
        # It ran for two minutes, longer than starts are counted: somebody stopped it.
        {"ExecMainExitTimestampMonotonic": "14321361871"},
        {"ActiveState": "activating", "SubState": "auto-restart"},
    ],
)
def test_what_only_looks_like_the_start_limit_is_not_taken_for_it(other: dict[str, str]) -> None:
    assert parse_state(used_up()).gave_up
    assert not parse_state(used_up(**other)).gave_up


def test_how_it_ended_is_a_word() -> None:
    ends = [parse_state(failed(code, "9")).how for code in ("0", "1", "2", "3")]
    assert ends == [None, How.EXITED, How.KILLED, How.DUMPED]


def test_in_a_users_scope_the_cure_asks_that_users_manager() -> None:
    stopped = parse_state(shown(ActiveState="inactive", SubState="dead"))
    assert explain(stopped, Scope.USER).cure == f"systemctl --user start {UNIT}"


@pytest.mark.parametrize(
    ("code", "name", "what"),
    [
        (0, "", "ended as it was told to"),
        (1, "", "failed"),
        (2, "", "was called wrongly"),
        (3, "", "a model that failed"),
        (4, "", "could not reach Redis"),
        (75, "TEMPFAIL", "another machine has taken"),
        (124, "", "cut off"),
        (126, "", "may not be executed"),
        (127, "", "no such program"),
        (130, "SIGINT", "interrupted"),
        (137, "SIGKILL", "killed"),
        (139, "SIGSEGV", "crashed"),
        (143, "SIGTERM", "told to end"),
        (159, "SIGSYS", "forbids"),
        (160, "signal 32", "by a signal"),
        (200, "CHDIR", "could not go to its working directory"),
        (203, "EXEC", "could not execute the program"),
        (217, "USER", "could not become its user"),
        (226, "NAMESPACE", "set up what it may see"),
        (77, "", "failed"),
    ],
)
def test_every_exit_code_means_something(code: int, name: str, what: str) -> None:
    meaning = exit_meaning(code)
    assert meaning.name == name
    assert what in meaning.what
    assert bool(meaning.cure) == (code not in (0, 124, 130, 143))


def test_a_shells_code_of_a_signal_is_that_signal() -> None:
    for number in (1, 9, 11, 15):
        assert exit_meaning(128 + number) == signal_meaning(number)
    assert exit_meaning(193).what == "failed"
