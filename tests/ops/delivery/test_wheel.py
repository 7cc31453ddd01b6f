"""Which wheel is taken for a host's Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.requirements import Requirement

from cogrid.errors import CogridError
from cogrid.ops.delivery.python import HostPython, platforms, tags
from cogrid.ops.delivery.wheel import best, read_wheel
from tests.ops.delivery.build import a_python, a_wheel


def taken(tmp_path: Path, *wheels: str, wanted: str = "hiredis", python: HostPython) -> str:
    """The tag, or version and tag, of the one that is taken of ``version-tag`` names."""
    paths = []
    for each in wheels:
        version, _, tag = each.partition(" ")
        paths.append(a_wheel(tmp_path, "hiredis", version, tag=tag))
    found = best(paths, Requirement(wanted), python)
    return found.name.removeprefix("hiredis-").removesuffix(".whl") if found else ""


@pytest.mark.parametrize(
    ("python", "first", "last"),
    [
        (a_python(), "manylinux_2_36_x86_64", "manylinux1_x86_64"),
        (a_python(machine="aarch64"), "manylinux_2_36_aarch64", "manylinux2014_aarch64"),
        (
            a_python(libc="musl", libc_version=(1, 2)),
            "musllinux_1_2_x86_64",
            "musllinux_1_0_x86_64",
        ),
        (a_python(libc="", libc_version=(0, 0)), "linux_x86_64", "linux_x86_64"),
    ],
)
def test_platforms_are_those_of_the_host(python: HostPython, first: str, last: str) -> None:
    found = platforms(python)
    assert found[0] == first
    assert last in found[-2:]
    assert found[-1] == f"linux_{python.machine}"
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("abi", "version", "there", "absent"),
    [
        ("cp311", (3, 11, 2), "cp39-abi3-manylinux1_x86_64", "cp312-abi3-manylinux1_x86_64"),
        ("cp313t", (3, 13, 1), "cp313-cp313t-linux_x86_64", "cp313-cp313-linux_x86_64"),
    ],
)
def test_tags_are_those_of_its_interpreter(
    abi: str, version: tuple[int, int, int], there: str, absent: str
) -> None:
    found = set(map(str, tags(a_python(abi=abi, version=version))))
    assert there in found
    assert absent not in found
    assert "py3-none-any" in found


def test_the_newest_that_runs_there(tmp_path: Path) -> None:
    wheels = (
        "3.4 cp311-cp311-manylinux_2_17_x86_64",
        "3.5 cp311-cp311-manylinux_2_17_x86_64",
        "3.6 cp312-cp312-manylinux_2_17_x86_64",
        "3.6 cp311-cp311-manylinux_2_39_x86_64",
        "3.6 cp311-cp311-musllinux_1_2_x86_64",
        "3.6 cp311-cp311-manylinux_2_17_aarch64",
    )
    assert taken(tmp_path, *wheels, python=a_python()) == "3.5-cp311-cp311-manylinux_2_17_x86_64"


def test_of_one_version_the_closest(tmp_path: Path) -> None:
    wheels = (
        "3.5 py3-none-any",
        "3.5 cp311-cp311-manylinux_2_17_x86_64",
        "3.5 cp39-abi3-linux_x86_64",
    )
    found = taken(tmp_path, *wheels, python=a_python())
    assert found == "3.5-cp311-cp311-manylinux_2_17_x86_64"


def test_only_versions_that_are_wanted(tmp_path: Path) -> None:
    wheels = ("3.5 py3-none-any", "3.6 py3-none-any", "3.7rc1 py3-none-any")
    assert taken(tmp_path, *wheels, wanted="hiredis<3.6", python=a_python()) == "3.5-py3-none-any"
    assert taken(tmp_path, *wheels, wanted="hiredis", python=a_python()) == "3.6-py3-none-any"
    assert taken(tmp_path, *wheels, wanted="hiredis==3.7rc1", python=a_python()).startswith("3.7")
    assert taken(tmp_path, *wheels, wanted="redis", python=a_python()) == ""


def test_one_that_asks_for_a_later_python_is_passed_over(tmp_path: Path) -> None:
    later = a_wheel(tmp_path, "click", "9.0", requires_python=">=3.12")
    older = a_wheel(tmp_path, "click", "8.3")
    wanted = Requirement("click")
    assert best([later, older], wanted, a_python()) == older
    assert best([later, older], wanted, a_python(version=(3, 12, 0), abi="cp312")) == later


def test_files_that_are_no_wheels_are_passed_over(tmp_path: Path) -> None:
    for name in ("click-9.0-py3-none-any.whl", "click.whl", "notes.whl"):
        (tmp_path / name).write_text("no zip")
    good = a_wheel(tmp_path, "click", "8.3")
    assert best(tmp_path.iterdir(), Requirement("click"), a_python()) == good


def test_a_wheel_says_what_it_is(tmp_path: Path) -> None:
    wheel = read_wheel(a_wheel(tmp_path, "Rich", "15.0", 'pygments>=2; extra == "x"'))
    assert (wheel.name, wheel.version, wheel.requires) == (
        "rich",
        "15.0",
        ('pygments>=2; extra == "x"',),
    )
    assert wheel.size_bytes == wheel.path.stat().st_size
    assert 0 < wheel.unpacked_bytes < wheel.size_bytes


def test_a_damaged_wheel_is_named(tmp_path: Path) -> None:
    path = tmp_path / "click-9.0-py3-none-any.whl"
    path.write_text("no zip")
    with pytest.raises(CogridError, match=r"click-9\.0-py3-none-any\.whl is not a wheel"):
        read_wheel(path)
