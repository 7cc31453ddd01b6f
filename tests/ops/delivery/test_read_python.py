"""Which Python of a host is taken, and what is said where none will do."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from cogrid.ops.delivery.python import HostPython
from cogrid.ops.delivery.read_python import ASK, choose, parse
from cogrid.ops.delivery.refusal import DeliveryError
from tests.ops.delivery.build import MARKERS, a_python

FACTS = resources.files("cogrid.ops.delivery").joinpath("facts.py").read_text()


def said(**fields: Any) -> str:
    defaults = {
        "path": "/usr/bin/python3.11",
        "version": [3, 11, 2],
        "bits": 64,
        "free_threaded": False,
        "libc": "glibc 2.36",
        "venv": True,
        "markers": {**MARKERS, **fields.pop("markers", {})},
    }
    return json.dumps({**defaults, **fields})


def test_what_an_interpreter_says_is_read() -> None:
    assert parse(said()) == (a_python(),)


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"libc": "musl 1.2"}, "libc_version", (1, 2)),
        ({"libc": ""}, "libc", ""),
        ({"version": [3, 14, 0], "free_threaded": True}, "abi", "cp314t"),
        ({"bits": 32, "markers": {"platform_machine": "aarch64"}}, "machine", "armv7l"),
        ({"bits": 32, "markers": {"platform_machine": "armv7l"}}, "machine", "armv7l"),
        ({"bits": 64, "markers": {"platform_machine": "aarch64"}}, "machine", "aarch64"),
        ({"bits": 32}, "machine", "i686"),
    ],
)
def test_each_kind_of_python_is_told(fields: dict[str, Any], name: str, value: object) -> None:
    assert getattr(parse(said(**fields))[0], name) == value


def test_a_shells_noise_is_no_python() -> None:
    noise = ["Welcome to esxi!", "{", "{}", '{"version": 3, "markers": []}', "[1]", "null", said()]
    assert [each.path for each in parse("\n".join(noise))] == ["/usr/bin/python3.11"]


def test_one_under_several_names_is_one() -> None:
    assert len(parse(f"{said()}\n{said()}\n{said(path='/usr/local/bin/python3.12')}")) == 2


def _of(path: str, *version: int, **fields: Any) -> HostPython:
    return a_python(path=path, version=version, **fields)


def test_the_machines_own_comes_first() -> None:
    found = (_of("/root/.pyenv/bin/python3.14", 3, 14, 0), _of("/usr/bin/python3.11", 3, 11, 2))
    assert choose("esxi", found).path == "/usr/bin/python3.11"


def test_else_the_newest() -> None:
    found = (
        _of("/usr/bin/python3.9", 3, 9, 2),
        _of("/usr/local/bin/python3.12", 3, 12, 9),
        _of("/opt/python/bin/python3.13", 3, 13, 1),
        _of("/opt/other/bin/python3.14", 3, 14, 0, venv=False),
    )
    assert choose("esxi", found).path == "/opt/python/bin/python3.13"


@pytest.mark.parametrize(
    ("python", "what"),
    [
        (_of("/usr/bin/python3.9", 3, 9, 2), "/usr/bin/python3.9 is 3.9.2, cogrid needs 3.11"),
        (_of("/usr/bin/pypy3", 3, 11, 2, implementation="pypy"), "/usr/bin/pypy3 is pypy"),
        (_of("/usr/bin/python3.11", 3, 11, 2, venv=False), "its module venv is not installed"),
        (_of("/usr/bin/python3.11", 3, 11, 2, markers={"sys_platform": "darwin"}), "on darwin"),
    ],
)
def test_one_that_will_not_do_is_named_with_the_reason(python: HostPython, what: str) -> None:
    with pytest.raises(DeliveryError, match="esxi: no Python that cogrid can use") as caught:
        choose("esxi", (python,))
    assert what in caught.value.message
    assert "--python PATH" in caught.value.hint
    assert caught.value.exit_code == 5


def test_none_at_all() -> None:
    with pytest.raises(DeliveryError, match="there is none in /usr/bin, /usr/local/bin or PATH"):
        choose("esxi", ())
    with pytest.raises(DeliveryError, match="/opt/py/bin/python is no Python that runs there"):
        choose("esxi", (), "/opt/py/bin/python")


def asked(path: str, wanted: str = "") -> tuple[HostPython, ...]:
    done = subprocess.run(
        ("/bin/sh", "-c", ASK, "sh", FACTS, wanted),
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": path, "LC_ALL": "C"},
    )
    return parse(done.stdout)


def test_a_real_interpreter_answers() -> None:
    (found,) = asked("/nowhere", sys.executable)
    assert found.version == sys.version_info[:3]
    assert Path(found.path).name == f"python{sys.version_info[0]}.{sys.version_info[1]}"
    assert not Path(found.path).is_relative_to(sys.prefix), "it is the one below our environment"
    assert dict(found.markers)["sys_platform"] == sys.platform
    assert found.libc in ("glibc", "musl", "")
    assert found.venv


def test_every_python_on_the_path_is_asked(tmp_path: Path) -> None:
    place = tmp_path / "with space"
    place.mkdir()
    for name, number in (("python3", 12), ("python3.13", 13)):
        line = said(path=f"{place}/{name}", version=[3, number, 0])
        (place / name).write_text(f"#!/bin/sh\necho noise >&2\n/bin/cat <<'END'\n{line}\nEND\n")
        (place / name).chmod(0o755)
    (place / "python3.14").write_text("#!/bin/sh\nexit 1\n")
    (place / "python3.14").chmod(0o755)
    (place / "python3.15").mkdir()
    found = {each.path for each in asked(f"/nowhere:{place}") if each.path.startswith(str(place))}
    assert found == {f"{place}/python3", f"{place}/python3.13"}
