"""What every command does with the stream that it writes to: pipes that close early, full disks,
closed streams, any encoding, terminals of any width and kind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from cogrid.cli.main import run
from tests.cli.streams import STYLE, written
from tests.cli.terminal import on_terminal
from tests.cli.test_conditions import CASES, FAILED, FINE, READING, code, well
from tests.reaper.stage import MODEL, Stage

HOST = "日本のサーバー-🐙-ёжик"
USER = "Ørjan-Μαρία-かな"
UNWRITTEN = code("the answer could not be written")
READ_ENOUGH = code("the reader of a pipe has read enough")
TELLING = [
    words
    for words in READING
    if words not in ("config check", "spof --fix --dry-run", "reaper --once")
]
QUIET = ["reaper --dry-run"]
"""It says only what it would do, and here that is nothing."""
TABLES = ["status", "worker list", "task list", "dead list", "model list", "queue list", "usage",
          "events", "key list", "doctor", "config show", "worker show esxi",
          "task cancel --all --dry-run"]  # fmt: skip


@pytest.fixture
def grid(stage: Stage) -> Stage:
    """A grid whose hosts and users have names of every script."""
    well(stage)
    for name in ("esxi", "ai-core"):
        stage.redis.hset(stage.keys.worker(name), "host", f"{HOST}-{name}")
    for task in ("wait1", "run1", "done1"):
        stage.redis.hset(stage.keys.task(task), mapping={"user": USER, "why": "既定の領域"})
    stage.submit("dead1", f"tasks:cpu:shared:{MODEL}", max_recoveries=0)
    stage.claim("esxi", f"tasks:cpu:shared:{MODEL}")
    stage.redis.zadd(stage.keys.due, {"dead1": 1})
    stage.sweep()
    stage.renew("esxi")
    run(["key", "new", "--label", USER])
    return stage


LOOP = """
import os, select, sys
from cogrid.cli.main import run
from cogrid.cli.streams import mend

mend()
pipe = os.dup(1)
if "LEAVES" in os.environ:  # until nobody reads
    poll = select.poll()
    poll.register(pipe, 0)
    assert poll.poll(20_000)
with open(sys.argv[1], "w") as codes:
    for words in sys.stdin.read().splitlines():
        os.dup2(pipe, 1)
        print(run(words.split()), file=codes, flush=True)
"""


def run_all(
    listed: list[str], shell: str, codes: Path, json: bool, **env: str
) -> tuple[list[int], subprocess.CompletedProcess[str]]:
    """Commands one after the other in one process, with its streams as the shell redirects them."""
    given = "\n".join(f"{words} --json" if json else words for words in listed)
    done = subprocess.run(
        ["bash", "-c", f'"$0" -c "$1" "$2" {shell}', sys.executable, LOOP, codes],
        input=given, capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, **env},
    )  # fmt: skip
    return [int(line) for line in codes.read_text().split()], done


@pytest.mark.parametrize("json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize(
    ("shell", "why"), [(">/dev/full", "No space left on device"), (">&-", "it is closed")]
)
def test_an_answer_that_is_lost_is_no_success(
    grid: Stage, shell: str, why: str, json: bool, tmp_path: Path
) -> None:
    codes, done = run_all(TELLING, shell, tmp_path / "codes", json)
    quiet = [] if json else QUIET
    expected = {words: FINE if words in quiet else UNWRITTEN for words in TELLING}
    assert dict(zip(TELLING, codes, strict=True)) == expected
    assert "Traceback" not in done.stderr
    lost = len(TELLING) - len(quiet)
    assert done.stderr.count(f"cogrid: cannot write the answer: {why}\n") == lost


@pytest.mark.parametrize("json", [False, True], ids=["text", "json"])
def test_a_reader_that_has_read_enough(grid: Stage, json: bool, tmp_path: Path) -> None:
    """``head -0`` is the quickest of them: it has gone before anything was written."""
    codes, done = run_all(TELLING, "| head -0", tmp_path / "codes", json, LEAVES="1")
    assert dict(zip(TELLING, codes, strict=True)) == dict.fromkeys(TELLING, READ_ENOUGH)
    assert "Traceback" not in done.stderr
    assert "cannot write" not in done.stderr


@pytest.mark.parametrize(
    ("shell", "number"),
    [("2>&-", FINE), ("2>/dev/full", FINE), ("<&-", FINE), (">&- 2>&- <&-", FAILED),
     (">/dev/full 2>&1", FAILED), ("2>&1 | head -1", FINE)],
)  # fmt: skip
@pytest.mark.parametrize("words", ["status", "worker list --json"])
def test_one_process_by_itself(grid: Stage, shell: str, number: int, words: str) -> None:
    program = f"{sys.executable} -m cogrid.cli.main {words}"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {program} {shell}"],
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == number, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    if number == FINE and "head" not in shell:
        assert "ai-core" in done.stdout
        assert "warning" not in done.stdout, "what stands beside the answer is never in it"


def test_an_error_that_cannot_be_written_either_has_its_code(grid: Stage) -> None:
    for words in ("worker show nobody", "worker show nobody --json"):
        for shell in (">&-", ">/dev/full", "2>/dev/full"):
            program = f"{sys.executable} -m cogrid.cli.main {words} {shell}"
            done = subprocess.run(
                ["bash", "-c", program], check=False, capture_output=True, text=True, timeout=60
            )
            assert done.returncode == FAILED
            assert "Traceback" not in done.stderr
            if "2>" not in shell:
                assert "there is no worker 'nobody'" in done.stderr


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "ascii", "shift_jis"])
@pytest.mark.parametrize("columns", [0, 200], ids=["pipe", "terminal"])
def test_every_encoding(
    grid: Stage, encoding: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it cannot say is escaped; nothing is left out, nothing fails."""
    host = f"{HOST}-esxi".encode(encoding, "backslashreplace").decode(encoding)
    for words in TELLING:
        with written(monkeypatch, columns, encoding) as told:
            assert run(words.split()) == CASES[words].well, words
            shown = STYLE.sub("", told())
        if words in ("status", "worker list", "worker show esxi") and not columns:
            assert host in shown, words
        with written(monkeypatch, columns, encoding) as told:
            run([*words.split(), "--json"])
            assert told().count("\n") == 1, words


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("words", TABLES)
def test_names_are_whole_on_any_terminal(
    grid: Stage, words: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with written(monkeypatch) as told:
        run(words.split())
        piped = told()
    with written(monkeypatch, columns) as told:
        assert run(words.split()) == CASES.get(words, CASES["status"]).well
        shown = STYLE.sub("", told())
    assert "…" not in shown
    names = {
        name
        for name in (f"{HOST}-esxi", f"{HOST}-ai-core", USER, "esxi", "ai-core", "wait1", "run1",
                     "dead1", MODEL, f"tasks:gpu:shared:{MODEL}")
        if name in piped
    }  # fmt: skip
    if words == "config show":
        names = {line.partition("\t")[0] for line in piped.splitlines()[1:]}
    assert names, "it names nothing"
    for name in names:
        assert appears(name, shown), f"{name} in {shown}"
    if words not in ("status", "worker show esxi", "usage"):  # these have sentences, too
        assert max(map(cell_len, shown.splitlines())) <= columns


def appears(name: str, shown: str) -> bool:
    """The name, which may be folded over lines with other cells between its pieces."""
    if name in shown:
        return True
    pieces = (re.escape(char) for char in name)
    return re.search(r"(?:[^\n]*\n[^\n]*?)?".join(pieces), shown) is not None


@pytest.mark.parametrize("words", TABLES)
def test_columns_stand_under_their_heads(
    grid: Stage, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what they show: names of two cells a letter, and of none."""
    with written(monkeypatch, 400) as told:
        run(words.split())
        lines = STYLE.sub("", told()).splitlines()
    heads = [i for i, line in enumerate(lines) if re.fullmatch(r"(?:[A-Z]+ ?)+(?:  +.*)?", line)]
    looked = 0
    for head in heads:
        starts = [found.start() for found in re.finditer(r"(?<=  )\S", lines[head])]
        for line in lines[head + 1 :]:
            if not line.strip() or line[0] == " " or line.startswith("By "):
                break
            cells = spread(line)
            if len(cells) < len(lines[head].rstrip()):
                break
            looked += 1
            for start in starts:
                assert cells[start - 2 : start] == "  ", f"{start} of {line}"
                assert cells[start] != " ", f"{start} of {line}"
    assert looked, lines


def spread(line: str) -> str:
    """A character for each cell that the line takes."""
    return "".join(char + "\0" * (cell_len(char) - 1) for char in line if cell_len(char))


@pytest.mark.parametrize(
    ("env", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False),
     ({"LC_ALL": "C"}, True), ({"FORCE_COLOR": "1"}, True),
     ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False)],
    ids=str,
)  # fmt: skip
def test_terminals_of_every_kind(
    grid: Stage, env: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in TELLING:
        with written(monkeypatch, 120, "utf-8", **env) as told:
            assert run(words.split()) == CASES[words].well, words
            shown = told()
        colours = set(re.findall(r"\x1b\[(?:\d;)*(3[0-9])m", shown))
        if words == "status":
            assert bool(colours) is coloured
        assert coloured or not colours, words
        if env.get("TERM") == "dumb":
            assert "\x1b" not in shown, words


@pytest.mark.parametrize("env", [{"FORCE_COLOR": "1"}, {"TERM": "xterm"}, {"LC_ALL": "C"}], ids=str)
def test_a_pipe_is_plain_whatever_is_wished(
    grid: Stage, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in TELLING:
        with written(monkeypatch, 0, "utf-8", **env) as told:
            run(words.split())
            shown = told()
        assert "\x1b" not in shown, words
        assert not re.search("[─━│┃┌┏╭]", shown), words


def test_a_real_terminal_and_a_c_locale(grid: Stage) -> None:
    """As a process: Python chooses the encoding."""
    for env in ({"LC_ALL": "C", "PYTHONIOENCODING": "cp1252"}, {"LC_ALL": "C"}, {"TERM": "dumb"}):
        number, shown = on_terminal("worker", "list", columns=300, cues=(), **env)
        assert number == FINE
        assert "Traceback" not in shown
        whole = f"{HOST}-esxi"
        if "PYTHONIOENCODING" in env:
            whole = whole.encode("cp1252", "backslashreplace").decode("cp1252")
            shown = shown.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        assert whole in shown or "PYTHONIOENCODING" in env
