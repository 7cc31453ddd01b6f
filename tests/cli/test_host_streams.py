"""What the commands that go to hosts do with the stream that they write to, and with text that came
from a host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from cogrid.cli.main import run
from cogrid.model.trial import TriedModel, TriedRedis
from cogrid.model.worker import OfferState
from cogrid.ops.hosts import logs
from cogrid.ops.sanity import as_unit
from tests.cli.machine import ENGINE, LOOK, Machine, entry
from tests.cli.streams import STYLE, written
from tests.cli.test_conditions import FINE, FOUND, Asked, asked, one_document, well
from tests.cli.test_host_conditions import FOLLOW, ON_A_MACHINE, SOME_HOSTS, at, machine
from tests.cli.test_hostile import H, has
from tests.cli.test_streams import UNWRITTEN, run_all
from tests.ops.sanity.saying import MARK, a_host, a_line, a_unit
from tests.ops.sanity.test_judge import FINE as A_FINE_TRIAL
from tests.reaper.stage import Stage

__all__ = ["asked", "machine"]

BEGINS = r"[old] gpu-1[/red]x :skull:\x1b]0;t\x07\x1b[2J"
"""How what H begins with is shown."""
ANSWERED = (FINE, FOUND, SOME_HOSTS)
TELLING = ("host list", "host logs", f"host start --unit {ENGINE} --yes", "sanity",
           "sanity --trial 1", "drift")  # fmt: skip
JAPANESE = "日本のサーバー-🐙-ёжик"


def on(machine: Machine) -> list[str]:
    return [" ".join((words, *at(machine))) for words in ON_A_MACHINE]


@pytest.mark.parametrize("json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize(
    ("shell", "why"), [(">/dev/full", "No space left on device"), (">&-", "it is closed")]
)
def test_an_answer_that_is_lost_is_no_success(
    stage: Stage, machine: Machine, shell: str, why: str, json: bool, tmp_path: Path
) -> None:
    well(stage)
    listed = [*on(machine), " ".join((FOLLOW, *at(machine)))]
    codes, done = run_all(listed, shell, tmp_path / "codes", json)
    expected = dict.fromkeys(listed, UNWRITTEN)
    assert dict(zip(listed, codes, strict=True)) == expected, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count(f"cogrid: cannot write the answer: {why}\n") == len(listed)


@pytest.mark.parametrize("json", [False, True], ids=["text", "json"])
def test_a_reader_that_has_read_enough(
    stage: Stage, machine: Machine, json: bool, tmp_path: Path
) -> None:
    well(stage)
    listed = [*on(machine), " ".join((FOLLOW, *at(machine)))]
    codes, done = run_all(listed, "| head -0", tmp_path / "codes", json, LEAVES="1")
    assert dict(zip(listed, codes, strict=True)) == dict.fromkeys(listed, FINE)
    assert "Traceback" not in done.stderr
    assert "cannot write" not in done.stderr


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_every_encoding(
    stage: Stage, machine: Machine, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it cannot say is escaped; nothing is left out, nothing fails."""
    well(stage)
    says(machine, JAPANESE)
    shown = JAPANESE.encode(encoding, "backslashreplace").decode(encoding)
    for words in ON_A_MACHINE:
        with written(monkeypatch, 0, encoding) as told:
            assert run([*words.split(), *at(machine)]) in ANSWERED, words
            assert shown in told() or words not in TELLING, words
        with written(monkeypatch, 0, encoding) as told:
            run([*words.split(), "--json", *at(machine)])
            one_document(told())


@pytest.mark.parametrize("env", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "cp1252"}], ids=str)
def test_a_process_by_itself(machine: Machine, env: dict[str, str]) -> None:
    says(machine, JAPANESE)
    done = subprocess.run(
        [sys.executable, "-m", "cogrid.cli.main", "host", "logs", *at(machine)],
        check=False, capture_output=True, timeout=60, env={**os.environ, **env},
    )  # fmt: skip
    assert done.returncode == FINE, done.stderr
    encoding = env.get("PYTHONIOENCODING", "utf-8")
    assert JAPANESE.encode(encoding, "backslashreplace") in done.stdout


def says(machine: Machine, text: str) -> None:
    """Everything that a host can say of itself is this text, and its units fail. In a journal and
    in JSON it is whole, elsewhere without what would end its line."""
    line = "".join(text.splitlines())
    trial = replace(
        A_FINE_TRIAL, worker=text, version=text, python=text, host=text, engine=text,
        engine_url=text, models=(TriedModel(text, OfferState.FAILED, text),),
        redis=TriedRedis(text, text, text),
    )  # fmt: skip
    failed = {"ActiveState": "failed", "SubState": "failed", "Result": line, "StatusText": line,
              "UnitFileState": line, "DropInPaths": line}  # fmt: skip

    def look(args: tuple[str, ...]) -> str:
        unit = a_unit(
            failed,
            version=line,
            text=f"[Unit]\nDescription={line}\n",
            journal=(a_line(text),),
            argv=["/opt/cogrid", "worker", "run", "--id", line],
        )
        engine = a_unit(failed, name=ENGINE, text=line, journal=(a_line(text),), argv=[line])
        said = a_host(
            unit, engine if ENGINE in args else "", host=f"{line}\n{line}\n", engines=f"{line}\n",
            who=f"{line}\n0\n\n", stray=f"7 ann {line}\n", init=f"{line}\n",
            disk=f"{line} 100 99 1 99% /{line}\n",
        )  # fmt: skip
        return said.replace(MARK, args[0])

    machine.answers[LOOK] = look
    machine.answers[logs.JOURNAL] = lambda _: "#readable\n" + entry(text, unit=text)
    found = msgspec.json.encode(trial).decode()
    machine.answers[as_unit._AS_UNIT] = lambda args: (
        f"{found if '--json' in args else line}\nEXIT:1\n"
    )


@pytest.mark.parametrize("columns", [0, 5000], ids=["pipe", "terminal"])
@pytest.mark.parametrize("words", ON_A_MACHINE)
def test_what_a_host_says_is_shown_literally(
    stage: Stage, machine: Machine, words: str, columns: int, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    says(machine, H)
    capsys.readouterr()
    with written(monkeypatch, columns) as told:
        assert run([*words.split(), *at(machine)]) in ANSWERED
        out = told()
    for text in (out, capsys.readouterr().err):
        bare = STYLE.sub("", text)
        assert bare.replace("\n", "").replace("\t", "").isprintable()
        assert bare.count("gpu-1") == bare.count(BEGINS), bare
    assert BEGINS in out or words not in TELLING


@pytest.mark.parametrize("words", ON_A_MACHINE)
def test_json_has_it_as_it_is_and_shows_nothing_of_it(
    stage: Stage, machine: Machine, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    says(machine, H)
    capsys.readouterr()
    run([*words.split(), "--json", *at(machine)])
    (line,) = capsys.readouterr().out.splitlines()
    assert line.isprintable()
    assert has(json.loads(line)) or "gpu-1" not in line or words not in ("host logs", "sanity")


LIES = {
    "a unit without a name": "\n{mark} show system\n",
    "a scope that is none": "\n{mark} show moon x.service\n",
    "a name of two words": "\n{mark} show system a b\n",
    "a number without an end": "\n{mark} memory\nMemTotal: " + "9" * 5000 + " kB\n",
    "a clock without an end": "\n{mark} clock\n" + "9" * 400 + "\n",
    "restarts without an end": "\n{mark} show system x.service\nNRestarts=" + "9" * 5000 + "\n",
    "slots without an end": "\n{mark} show system x.service\n{mark} bus system x.service\n"
    + json.dumps({"data": [["c", ["c", "worker", "run", "--slots", "9" * 5000]]]}),
    "other things than were asked for": "\n{mark} show system x.service\n"
    "\n{mark} bus system x.service\n" + '{"data":5}\n' * 6,
    "no text at all": "\udcff\udc80",
    "nothing": "",
}


@pytest.mark.parametrize("lie", LIES)
def test_a_host_that_prints_what_no_host_prints(
    stage: Stage, machine: Machine, lie: str, asked: Asked
) -> None:
    """It is an answer like another one, and never a traceback that takes the others' answers."""
    well(stage)
    usual = machine.look
    told = LIES[lie]
    machine.answers[LOOK] = lambda args: (
        (usual(args) if told else "") + told.replace("{mark}", args[0])
    )
    for words in ("host list", "drift", "sanity", "sanity --trial 1", "host start --dry-run"):
        number, _ = asked(words, *at(machine))
        assert number in ANSWERED


@pytest.mark.parametrize(
    "at_us", ["9" * 5000, "9" * 30, "-1", "-" + "9" * 17, "x", "\u0663"], ids=lambda text: text[:9]
)
def test_a_journal_of_no_time(machine: Machine, at_us: str, asked: Asked) -> None:
    line = json.dumps({"__REALTIME_TIMESTAMP": at_us, "MESSAGE": "torn"})
    machine.answers[logs.JOURNAL] = lambda _: f"#readable\n{line}\n{entry('is up')}"
    number, found = asked("host logs", *at(machine))
    assert number == FINE
    assert "is up" in [line["text"] for line in found["lines"]]
