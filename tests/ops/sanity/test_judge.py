"""What is wrong with a host: a table of what it might have said."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cogrid.model.host import Host
from cogrid.model.trial import Trial, TriedModel, TriedRedis
from cogrid.model.worker import OfferState
from cogrid.ops.check import Verdict
from cogrid.ops.sanity.as_unit import Ran
from cogrid.ops.sanity.ask import HostSeen
from cogrid.ops.sanity.check import HostCheck
from cogrid.ops.sanity.parse import parse_look
from cogrid.ops.sanity.probe import Bare, BareEngine, BareRedis, Probe
from cogrid.ops.sanity.report import judge
from tests.mends import assert_is_a_command
from tests.ops.sanity.saying import MARK, TEXT, UNIT, a_host, a_line, a_unit

HERE = "0.1.0"
URL = "redis://10.0.0.1:6379/0"
FAILED = {"ActiveState": "failed", "SubState": "failed", "Result": "exit-code", "MainPID": "0",
          "ExecMainCode": "1"}  # fmt: skip
LIMIT = {**FAILED, "Result": "start-limit-hit", "ExecMainStatus": "1"}
FINE = Trial(
    worker="esxi",
    version=HERE,
    python="3.11.2",
    host="esxi",
    engine="ollama 0.9.3",
    engine_url="http://127.0.0.1:11434",
    engine_error=None,
    engine_hint=None,
    pool="cpu",
    slots=1,
    gpu=False,
    models=(TriedModel("gemma3:1b", OfferState.OK),),
    redis=TriedRedis(URL, ahead_s=0.01),
    machine={},
)


def seen(
    said: str, trial: Trial | None = FINE, ahead_s: float = 0.0, code: int = 0, out: str = ""
) -> HostSeen:
    """A host that said so, and whose worker's trial found that."""
    facts = parse_look(said, MARK)
    ran = Ran(code, out, "", True, True)
    probes = tuple(Probe(unit, ran, trial) for unit in facts.units)
    bare = None if probes else Bare()
    return HostSeen(Host("ann@192.168.0.41"), facts, (ahead_s, ahead_s), probes, bare)


def found(host: HostSeen) -> list[HostCheck]:
    return [check for check in judge(host, HERE) if check.verdict is not Verdict.PASS]


def test_a_host_that_is_well_has_no_findings() -> None:
    checks = list(judge(seen(a_host(a_unit())), HERE))
    assert [check.kind for check in checks] == [
        "reached", "python", "clock", "memory", "disk", "compute", "unit", "text", "version",
        "engine", "model", "redis",
    ]  # fmt: skip
    assert {check.verdict for check in checks} == {Verdict.PASS}
    assert [check.mend for check in checks] == [None] * len(checks)


def tried(**changes: Any) -> Trial:
    return replace(FINE, **changes)


CASES: dict[str, tuple[Callable[[], HostSeen], str, str, str]] = {
    # What is wrong -> the host, the kind, a part of the sentence, a part of the mend.
    "no systemd": (
        lambda: seen(a_host(init="init\n")), "no_systemd", "is init, not systemd", "supervisor",
    ),
    "an old Python": (
        lambda: seen(a_host(a_unit(), python="Python 3.9.2\n")),
        "python_old", "has 3.9.2", "apt-get install python3.11",
    ),
    "a clock ahead of Redis'": (
        lambda: seen(a_host(a_unit()), tried(redis=TriedRedis(URL, ahead_s=600.2))),
        "clock_off", "600 s ahead of Redis'", "timedatectl set-ntp true",
    ),
    "a clock behind ours, Redis not asked": (
        lambda: seen(a_host(a_unit()), tried(redis=None), ahead_s=-600.0),
        "clock_off", "600 s behind this machine's", "timedatectl",
    ),
    "no memory": (
        lambda: seen(a_host(a_unit(), memory="MemTotal: 1000 kB\nMemAvailable: 10 kB\n")),
        "memory_low", "memory are free", "smaller",
    ),
    "a full disk": (
        lambda: seen(a_host(a_unit(), disk="/dev/sda1 1000 990 10 99% /srv\n")),
        "disk_low", "free on /srv", "model remove",
    ),
    "a worker by hand": (
        lambda: seen(a_host(a_unit(), stray="4711 ann worker.py\n")),
        "by_hand", "process 4711 of ann", "cogrid install-unit",
    ),
    "the start limit, and the cause is still there": (
        lambda: seen(a_host(a_unit(LIMIT)), None, code=1, out="no such module"),
        "start_limit_hit", "start limit", "cogrid sanity --trial 60",
    ),
    "the start limit, and the cause is gone": (
        lambda: seen(a_host(a_unit(LIMIT))),
        "start_limit_hit", "tried now, it starts", f"cogrid host start --unit {UNIT}",
    ),
    "no program": (
        lambda: seen(a_host(a_unit({**FAILED, "ExecMainStatus": "203"})), None, code=127),
        "no_program", "203/EXEC", "install-unit --id esxi --force",
    ),
    "no directory": (
        lambda: seen(a_host(a_unit({**FAILED, "ExecMainStatus": "200"})), None, code=200),
        "no_directory", "200/CHDIR", "install-unit --id esxi --force",
    ),
    "stopped": (
        lambda: seen(a_host(a_unit({"ActiveState": "inactive", "SubState": "dead"}))),
        "unit_stopped", "is stopped", "cogrid host start",
    ),
    "not enabled": (
        lambda: seen(a_host(a_unit({"UnitFileState": "disabled"}))),
        "unit_running", "not be started with the machine", "systemctl enable",
    ),
    "masked": (
        lambda: seen(a_host(a_unit({"LoadState": "masked", "ActiveState": "inactive"}))),
        "unit_masked", "masked", "unmask",
    ),
    "edited": (
        lambda: seen(a_host(a_unit(text=TEXT + "# mine\n"))),
        "unit_edited", "edited", "install-unit --id esxi --dry-run",
    ),
    "written by somebody": (
        lambda: seen(a_host(a_unit(text="[Service]\n"))),
        "unit_foreign", "not written by", "--dry-run",
    ),
    "a secret that others read": (
        lambda: seen(a_host(a_unit(mode="644"))), "secret_open", "mode 644", "chmod 600",
    ),
    "no unit": (lambda: seen(a_host(engines="")), "no_unit", "no unit", "cogrid install-unit"),
    "another version": (
        lambda: seen(a_host(a_unit()), tried(version="0.0.9")),
        "version_other", "cogrid 0.0.9", "install-unit --id esxi --upgrade",
    ),
    "no engine, and there is a unit of it": (
        lambda: seen(a_host(a_unit()), tried(engine=None, engine_error="nobody there", models=())),
        "engine_down", "nobody there", "cogrid host start --unit ollama.service",
    ),
    "no engine, and no unit of it": (
        lambda: seen(a_host(a_unit(), engines=""), tried(engine=None, models=())),
        "engine_down", "no engine answered", "'ollama serve'",
    ),
    "no model": (
        lambda: seen(a_host(a_unit()), tried(models=())), "no_model", "0 models", "model pull",
    ),
    "a model that is missing": (
        lambda: seen(
            a_host(a_unit()), tried(models=(TriedModel("hf.co/a/b:Q4", OfferState.MISSING),))
        ),
        "model_missing", "hf.co/a/b:Q4", "cogrid model pull hf.co/a/b:Q4 --worker esxi",
    ),
    "a model that fails": (
        lambda: seen(
            a_host(a_unit()), tried(models=(TriedModel("a:1b", OfferState.FAILED, "no memory"),))
        ),
        "model_failed", "no memory", "cogrid sanity --trial",
    ),
    "a model that is slow": (
        lambda: seen(a_host(a_unit()), tried(models=(TriedModel("a:1b", OfferState.PROBING),))),
        "model_slow", "no token in time", "--timeout 10m",
    ),
    "Redis blocked": (
        lambda: seen(a_host(a_unit()), tried(redis=TriedRedis(URL, "Redis cannot be reached"))),
        "redis_blocked", "asked from there", f"let it reach {URL}",
    ),
    "Redis that means the host itself": (
        lambda: seen(
            a_host(a_unit()), tried(redis=TriedRedis("redis://127.0.0.1:6379/0", "refused"))
        ),
        "redis_itself", "means the host itself", "cogrid install-unit --id esxi",
    ),
    "Redis that refuses": (
        lambda: seen(
            a_host(a_unit()), tried(redis=TriedRedis(URL, "wants a password", "check it", 0.0))
        ),
        "redis_refuses", "wants a password", "check it, then cogrid install-unit --id esxi",
    ),
    "a program that cannot be tried": (
        lambda: seen(a_host(a_unit()), None, code=2, out="no such option --json"),
        "not_tried", "exit code 2", "cogrid sanity --trial",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_one_fault_is_one_finding_with_its_mend(case: str) -> None:
    host, kind, what, mend = CASES[case]
    told = [check for check in found(host()) if check.kind != "engine_down" or kind == check.kind]
    assert [check.kind for check in told if check.kind == kind] == [kind]
    (check,) = (check for check in told if check.kind == kind)
    assert what in check.what
    assert mend in (check.mend or "")


@pytest.mark.parametrize("case", CASES)
def test_every_mend_that_is_a_command_is_one_that_there_is(case: str) -> None:
    for check in found(CASES[case][0]()):
        assert check.mend
        words = shlex.split(check.mend)
        if words[0] == "cogrid" and "install-unit" not in words and "MODEL" not in words:
            assert_is_a_command(check.mend)
        elif words[0] == "ssh":
            assert words[1:3] == ["-t", "ann@192.168.0.41"]


def test_a_failed_unit_shows_what_it_prints_now_and_else_its_journal() -> None:
    now = found(seen(a_host(a_unit(LIMIT)), None, code=1, out="no such module\n"))[0]
    assert now.evidence == ("no such module",)
    lines = (a_line("I ended"), a_line("start request repeated too quickly", "systemd"))
    over = found(seen(a_host(a_unit(LIMIT, journal=lines))))[0]
    assert over.evidence == ("I ended",)
    bare = found(seen(a_host(a_unit(LIMIT, journal=lines[1:]))))[0]
    assert bare.evidence == ("start request repeated too quickly",)


def test_a_journal_that_cannot_be_read_is_not_an_empty_one() -> None:
    hidden = found(seen(a_host(a_unit(LIMIT, rights=""), who="ann\n1000\n\n")))[0]
    assert "cannot be read as ann" in hidden.evidence[0]
    assert "systemd-journal" in hidden.evidence[0]
    empty = found(seen(a_host(a_unit(LIMIT))))[0]
    assert empty.evidence == ("the journal has no line of it",)


def test_a_clock_is_only_off_where_no_delay_explains_it() -> None:
    host = seen(a_host(a_unit()), tried(redis=None))
    assert not found(replace(host, ahead_s=(-30.0, 1.0)))
    assert [c.kind for c in found(replace(host, ahead_s=(-30.0, -3.0)))] == ["clock_off"]


def test_a_host_without_a_unit_tells_of_its_engine_and_of_redis() -> None:
    host = seen(a_host(engines=""))
    fine = Bare(BareEngine("http://127.0.0.1:11434", "ollama", "0.9.3"), BareRedis(None, 0.1))
    assert [check.kind for check in found(replace(host, bare=fine))] == ["no_unit"]
    blocked = Bare(fine.engine, BareRedis("timed out"))
    assert [check.kind for check in found(replace(host, bare=blocked))] == [
        "no_unit", "redis_blocked",
    ]  # fmt: skip
