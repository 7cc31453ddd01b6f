"""The text that a host gets: every word as it is, nothing in its command line."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cogrid.remote.put import PUT
from cogrid.remote.script import boot, header

MARK = "m4rk"


def run(script: str, *args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """As a login shell would, without the host."""
    return subprocess.run(
        ["/bin/sh", "-c", boot(MARK)],
        input=header(MARK, script, args) + stdin,
        capture_output=True,
        check=False,
        env={"PATH": os.environ["PATH"], "LC_ALL": "xx_XX"},
    )


def test_mark_comes_before_everything() -> None:
    done = run("echo out; echo err >&2; exit 3")
    assert done.returncode == 3
    first, mark, rest = done.stdout.split(b"\n", 2)
    assert (first, mark.split()[0], rest) == (b"", b"m4rk", b"out\n")
    assert int(mark.split()[1]) > 1
    assert done.stderr == b"\nm4rk\nerr\n"


def after_mark(done: subprocess.CompletedProcess[bytes]) -> bytes:
    return done.stdout.split(b"\n", 2)[2]


@pytest.mark.parametrize(
    "words",
    [(), ("",), ("a b", "'", '"', "$(id)", "`id`", "!!", "\\", "%s", "\n\n", "ä", "-e")],
)
def test_words(words: tuple[str, ...]) -> None:
    done = run("""echo $#; for word; do printf '%s\\0' "$word"; done""", *words)
    count, _, rest = after_mark(done).partition(b"\n")
    assert int(count) == len(words)
    assert tuple(rest.decode().split("\0")[:-1]) == words


def test_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        header(MARK, "true", ("a\0b",))


def test_stdin_begins_after_the_script() -> None:
    assert after_mark(run("cat", stdin=b"\x00\n data")) == b"\x00\n data"


def test_cut_before_the_script_is_whole_runs_none_of_it(tmp_path: Path) -> None:
    data = header(MARK, f"touch {tmp_path}/ran", ())
    for length in range(len(data)):
        subprocess.run(
            ["/bin/sh", "-c", boot(MARK)], input=data[:length], capture_output=True, check=False
        )
    assert [path.name for path in tmp_path.iterdir()] == []


def test_put_takes_no_half(tmp_path: Path) -> None:
    """A connection that breaks looks to the host like the end of the content."""
    file = tmp_path / "it's"
    file.write_text("old")
    done = run(PUT, str(file), "640", "", "10", stdin=b"only nine")
    assert done.returncode == 47
    assert (file.read_text(), len(list(tmp_path.iterdir()))) == ("old", 1)
    done = run(PUT, str(file), "640", "", "9", stdin=b"only nine")
    assert (done.returncode, file.read_text()) == (0, "only nine")
    assert (file.stat().st_mode & 0o777, len(list(tmp_path.iterdir()))) == (0o640, 1)
