"""The acts on an installation, run as they are on a host, but in a directory of the test's own.

What is installed is a small package of cogrid's name; tests/hosts/test_bundle.py does it in real.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cogrid.ops.delivery import on_host
from cogrid.ops.delivery.bundle import Bundle, archive
from cogrid.ops.delivery.stage import Installed
from cogrid.ops.delivery.wheel import read_wheel
from tests.ops.delivery.build import a_bundle, a_wheel
from tests.wait import until

TEXT = resources.files("cogrid.ops.delivery").joinpath("on_host.py").read_text()


@dataclass(frozen=True)
class There:
    """A directory that takes the place of /opt/cogrid."""

    base: Path

    def act(self, act: str, *, stdin: bytes = b"", **request: object) -> dict[str, Any]:
        done = subprocess.run(
            self.words(act, **request), input=stdin, capture_output=True, check=False
        )
        lines = done.stdout.decode().splitlines()
        assert all(line.startswith("- ") for line in lines[:-1]), lines
        answer: dict[str, Any] = json.loads(lines[-1])
        assert done.returncode == ("refused" in answer), done.stderr.decode()
        return answer

    def words(self, act: str, **request: object) -> tuple[str, ...]:
        said = json.dumps({"act": act, "base": str(self.base), **request})
        return (sys.executable, "-I", "-c", TEXT, said)

    def stage(self, wanted: Bundle, **changed: Any) -> dict[str, Any]:
        stdin = changed.pop("stdin", archive(wanted))
        return self.act("stage", stdin=stdin, **self.request(wanted, **changed))

    def request(self, wanted: Bundle, **changed: object) -> dict[str, object]:
        wheels = (wanted.pip, *wanted.wheels)
        return {
            "name": wanted.name,
            "version": wanted.version,
            "wheels": {wheel.path.name: wheel.sha256 for wheel in wheels},
            "pip": wanted.pip.path.name,
            "needed_bytes": 1000,
            "everyone": False,
            "stall_s": 30.0,
            **changed,
        }

    def versions(self) -> list[str]:
        place = self.base / "versions"
        return sorted(each.name for each in place.iterdir()) if place.exists() else []

    def runs(self) -> str:
        done = subprocess.run(
            (self.base / "current/bin/cogrid", "--version"),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()


@pytest.fixture
def there(tmp_path: Path) -> There:
    return There(tmp_path / "opt" / "cogrid")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return a_bundle(tmp_path_factory.mktemp("first"), "0.1.0")


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return a_bundle(tmp_path_factory.mktemp("second"), "0.2.0")


@pytest.fixture(scope="module")
def third(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return a_bundle(tmp_path_factory.mktemp("third"), "0.3.0")


def test_two_beside_each_other_and_back(there: There, first: Bundle, second: Bundle) -> None:
    assert there.stage(first)["fresh"]
    assert not (there.base / "current").exists(), "nothing runs it yet"
    assert there.act("switch", name=first.name) == {"before": ""}
    assert there.runs() == "cogrid, version 0.1.0"
    assert there.stage(second)["fresh"]
    assert there.runs() == "cogrid, version 0.1.0"
    assert there.act("switch", name=second.name) == {"before": first.name}
    assert there.runs() == "cogrid, version 0.2.0"
    assert there.act("switch", name=first.name) == {"before": second.name}
    assert there.runs() == "cogrid, version 0.1.0"


def test_what_is_there_is_left_alone(there: There, first: Bundle) -> None:
    assert there.stage(first) == {"base": str(there.base), "fresh": True}
    before = (there.base / "versions" / first.name / "cogrid-bundle.json").stat()
    assert there.act("ready", name=first.name, version="0.1.0")["ready"]
    assert not there.stage(first)["fresh"]
    after = (there.base / "versions" / first.name / "cogrid-bundle.json").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_one_whose_python_is_gone_is_made_anew(there: There, first: Bundle) -> None:
    there.stage(first)
    there.act("switch", name=first.name)
    python = there.base / "versions" / first.name / "bin" / "python"
    python.unlink()
    python.symlink_to("/usr/bin/python3.99")
    look = there.act("look")
    assert (look["current"], look["works"]) == (first.name, "")
    assert there.stage(first)["fresh"]
    assert there.act("look")["works"] == "cogrid, version 0.1.0"


def test_a_look_tells_what_is_there_and_writes_nothing(there: There, first: Bundle) -> None:
    empty = there.act("look")
    assert (empty["current"], empty["works"], empty["versions"]) == ("", "", [])
    assert not there.base.parent.exists()
    there.stage(first)
    (there.base / "versions" / "0.0.1-half").mkdir()
    found = there.act("look")["versions"]
    assert [(each["name"], each["version"], each["whole"]) for each in found] == [
        ("0.0.1-half", "", False),
        (first.name, "0.1.0", True),
    ]


def test_what_others_left_half_made_is_swept(there: There, first: Bundle) -> None:
    (there.base / "versions" / "0.0.1-half" / "wheels").mkdir(parents=True)
    (there.base / "versions" / first.name / "bin").mkdir(parents=True)
    assert there.stage(first)["fresh"]
    assert there.versions() == [first.name]


def test_the_one_used_before_is_kept(
    there: There, first: Bundle, second: Bundle, third: Bundle
) -> None:
    for each in (first, second, first, third):
        there.stage(each)
        there.act("switch", name=each.name)
    assert there.act("prune") == {"removed": [second.name]}
    assert there.versions() == [first.name, third.name]
    assert there.act("prune") == {"removed": []}


def test_the_way_back_leads_to_the_one_before_and_not_to_and_fro(
    there: There, first: Bundle, second: Bundle, third: Bundle
) -> None:
    def before() -> str | None:
        found = msgspec.convert(there.act("look"), Installed).before
        return found.name if found else None

    assert before() is None
    there.stage(first)
    there.act("switch", name=first.name)
    assert before() is None
    there.stage(second)
    assert before() is None, "it lies there, and nothing has run it"
    there.act("switch", name=second.name)
    assert before() == first.name
    assert there.act("switch", name=first.name, back=True) == {"before": second.name}
    assert there.runs() == "cogrid, version 0.1.0"
    assert before() is None
    # Forward again, by an installation: then there is a way back again.
    there.stage(third)
    there.act("switch", name=third.name)
    assert before() == first.name
    assert there.act("prune") == {"removed": [second.name]}


def test_what_is_half_made_is_nowhere_to_go_back_to(there: There, first: Bundle) -> None:
    there.stage(first)
    there.act("switch", name=first.name)
    (there.base / "versions" / "0.0.1-half").mkdir()
    assert msgspec.convert(there.act("look"), Installed).before is None


def test_one_that_runs_is_never_pruned(there: There, first: Bundle, tmp_path: Path) -> None:
    forever = a_bundle(tmp_path / "forever", "0.0.9")
    there.stage(forever)
    versions = [a_bundle(tmp_path / str(number), f"0.1.{number}") for number in range(1, 3)]
    python = there.base / "versions" / forever.name / "bin" / "python"
    with subprocess.Popen((python, "-c", "input()"), stdin=subprocess.PIPE) as process:
        for each in versions:
            there.stage(each)
            there.act("switch", name=each.name)
        assert there.act("prune") == {"removed": []}
        assert there.act("remove") == {
            "removed": [],
            "kept": [forever.name],
            "left": ["current", "versions"],
        }
        process.communicate(b"\n")
    assert there.act("prune") == {"removed": [forever.name]}


def test_removing_leaves_what_is_not_ours(there: There, first: Bundle) -> None:
    assert there.act("remove") == {"removed": [], "kept": [], "left": []}
    there.stage(first)
    there.act("switch", name=first.name)
    (there.base / "notes").write_text("mine")
    assert there.act("remove") == {"removed": [first.name], "kept": [], "left": ["notes"]}
    (there.base / "notes").unlink()
    assert there.act("remove") == {"removed": [], "kept": [], "left": []}
    assert not there.base.exists()


Change = Callable[[There, Bundle], dict[str, Any]]


def _cut(there: There, wanted: Bundle) -> dict[str, Any]:
    return {"stdin": archive(wanted)[:5_000]}


def _less(there: There, wanted: Bundle) -> dict[str, Any]:
    return {"stdin": archive(replace(wanted, wheels=()))}


def _empty(there: There, wanted: Bundle) -> dict[str, Any]:
    return {"stdin": b""}


def _changed(there: There, wanted: Bundle) -> dict[str, Any]:
    sent = archive(wanted)
    return {"stdin": sent.replace(b"cogrid, version", b"cogrid, VERSION")}


def _full(there: There, wanted: Bundle) -> dict[str, Any]:
    return {"needed_bytes": 1 << 60}


def _foreign(there: There, wanted: Bundle) -> dict[str, Any]:
    (there.base / "current").mkdir(parents=True)
    return {}


def _open(there: There, wanted: Bundle) -> dict[str, Any]:
    there.base.mkdir(parents=True)
    there.base.chmod(0o777)
    return {}


def _other(there: There, wanted: Bundle) -> dict[str, Any]:
    return {"version": "0.2.0"}


@pytest.mark.parametrize(
    ("change", "kind", "what"),
    [
        (_cut, "upload", "the upload was cut off"),
        (_less, "upload", "cogrid-0.1.0-py3-none-any.whl is missing"),
        (_empty, "upload", "the upload was cut off"),
        (_changed, "upload", "did not arrive as it was sent"),
        (_full, "space", "MiB that it takes"),
        (_foreign, "foreign", "current is not a link"),
        (_open, "owner", "can be written by others"),
        (_other, "proof", "--version fails: cogrid, version 0.1.0"),
    ],
)
def test_a_failure_leaves_all_as_it_was(
    there: There, first: Bundle, change: Change, kind: str, what: str
) -> None:
    changed = change(there, first)
    before = sorted(there.base.parent.rglob("*"))
    answer = there.stage(first, **changed)
    assert answer["refused"] == kind
    assert what in answer["what"]
    assert sorted(there.base.parent.rglob("*")) == before
    if not before:
        assert not there.base.parent.exists()


def test_one_that_cannot_be_loaded_is_not_kept(there: There, first: Bundle, tmp_path: Path) -> None:
    there.stage(first)
    answer = there.stage(
        a_bundle(tmp_path, "0.2.0", modules={"broken": "import nothing_of_the_kind"})
    )
    assert answer["refused"] == "proof"
    assert "No module named 'nothing_of_the_kind'" in answer["what"]
    assert there.versions() == [first.name]


def test_a_wheel_that_does_not_fit_is_pips_word(there: There, tmp_path: Path) -> None:
    wanted = a_bundle(tmp_path / "wheels", "0.2.0", real=True)
    other = read_wheel(a_wheel(tmp_path / "wheels", "hiredis", tag="cp27-cp27mu-win32"))
    unfit = Bundle("0.2.0", wanted.python, (*wanted.wheels, other), wanted.pip)
    answer = there.stage(unfit)
    assert answer["refused"] == "pip"
    assert "is not a supported wheel" in answer["what"]
    assert not there.base.parent.exists()


def test_a_place_where_nothing_may_be_written_is_named(first: Bundle) -> None:
    answer = There(Path("/proc/cogrid")).stage(first)
    assert "/proc/cogrid" in answer["what"]
    assert "refused" in answer


@pytest.fixture
def half_way(there: There, first: Bundle) -> Iterator[subprocess.Popen[bytes]]:
    """One that waits for the rest of its upload."""
    with subprocess.Popen(
        there.words("stage", **there.request(first)), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin
        process.stdin.write(archive(first)[:5_000])
        process.stdin.flush()
        until(lambda: there.versions() == [first.name])
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_one_that_is_stopped_takes_away_what_it_made(
    there: There, half_way: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    half_way.send_signal(number)
    assert half_way.wait(10) == 143
    assert not there.base.parent.exists()


def test_what_is_half_gone_does_not_look_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Path) -> None:
        raise OSError("the disk went away")

    (tmp_path / on_host.MANIFEST).write_text("{}")
    monkeypatch.setattr("shutil.rmtree", broken)
    with pytest.raises(OSError, match="went away"):
        on_host.remove_tree(tmp_path)
    assert not on_host.manifest(tmp_path)["whole"]


def test_an_upload_that_stands_still_is_given_up(there: There, first: Bundle) -> None:
    words = there.words("stage", **there.request(first, stall_s=0.3))
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(archive(first)[:5_000])
        process.stdin.flush()
        answer = json.loads(process.stdout.read().splitlines()[-1])
    assert answer == {"refused": "upload", "what": "nothing came for 0.3 s of an upload"}
    assert not there.base.parent.exists()


def test_one_that_was_killed_is_swept_by_the_next(
    there: There, first: Bundle, half_way: subprocess.Popen[bytes]
) -> None:
    half_way.kill()
    half_way.wait(10)
    assert there.act("look")["versions"][0]["whole"] is False
    assert there.act("switch", name=first.name)["refused"] == "absent"
    assert there.stage(first)["fresh"]


def test_another_one_at_work_is_waited_for(there: There, first: Bundle) -> None:
    (there.base / "versions").mkdir(parents=True)
    held = os.open(there.base, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    waiting = subprocess.Popen(there.words("prune"), stdout=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(0.5)
    os.close(held)
    assert json.loads(waiting.communicate(timeout=10)[0]) == {"removed": []}
    assert not (there.base / "current").exists()
    assert there.stage(first)["fresh"]


def test_nothing_configured_there_takes_part(
    there: There, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wanted = a_bundle(tmp_path / "wheels", "0.1.0", real=True)
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("PIP_REQUIRE_HASHES", "1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "json.py").write_text("raise RuntimeError")
    there.stage(wanted)
    there.act("switch", name=wanted.name)
    assert there.act("look")["works"] == "cogrid, version 0.1.0"
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("data", "base"),
    [
        ("", "home/.local/share/cogrid"),
        ("data", "data/cogrid"),
        ("./x", "home/.local/share/cogrid"),
    ],
)
def test_a_users_own_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str, base: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / data) if data == "data" else data)
    done = subprocess.run(
        (sys.executable, "-I", "-c", TEXT, '{"act": "look", "base": ""}'),
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["base"] == str(tmp_path / base)
