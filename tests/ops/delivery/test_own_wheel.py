"""The wheel of what is installed here, made again from the installed files."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

import pytest

import cogrid
from cogrid.errors import CogridError
from cogrid.ops.delivery.own_wheel import own_wheel, rebuilt
from cogrid.ops.delivery.pip import CURE, Pip, carried, find_pip
from cogrid.ops.delivery.wheel import read_wheel
from tests.ops.delivery.build import a_wheel


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip has installed a wheel."""
    tmp_path = tmp_path_factory.mktemp("installed")
    wheel = a_wheel(
        tmp_path,
        "thing",
        "1.2",
        "click>=8",
        files={"thing/lua/claim.lua": "return 1", "thing/cli.py": "def main(): print('it runs')"},
        program="thing.cli:main",
    )
    install(wheel, tmp_path / "site")
    return tmp_path / "site"


@pytest.fixture
def site(pristine: Path, tmp_path: Path) -> Path:
    """The same for one test."""
    return shutil.copytree(pristine, tmp_path / "site")


def install(wheel: Path, into: Path) -> None:
    words = ("install", "--quiet", "--no-deps", "--no-index", "--target", str(into), str(wheel))
    subprocess.run((sys.executable, "-m", "pip", *words), check=True)


def installed(site: Path) -> Distribution:
    return PathDistribution(next(site.glob("*.dist-info")))


def test_it_holds_the_installed_files_and_what_they_say(site: Path, tmp_path: Path) -> None:
    wheel = rebuilt(installed(site), tmp_path)
    assert wheel.name == "thing-1.2-py3-none-any.whl"
    assert read_wheel(wheel).requires == ("click>=8",)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("thing/lua/claim.lua") == b"return 1"
        names = archive.namelist()
    info = "thing-1.2.dist-info"
    assert set(names) == {
        "thing/__init__.py",
        "thing/cli.py",
        "thing/lua/claim.lua",
        f"{info}/METADATA",
        f"{info}/WHEEL",
        f"{info}/entry_points.txt",
        f"{info}/RECORD",
    }


def test_its_record_is_right(site: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(rebuilt(installed(site), tmp_path)) as archive:
        record = archive.read("thing-1.2.dist-info/RECORD").decode()
        for name, digest, size in csv.reader(io.StringIO(record)):
            if digest:
                content = archive.read(name)
                found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
                assert (digest, size) == (f"sha256={found.decode()}", str(len(content)))


def test_the_same_files_make_the_same_bytes(site: Path, tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    first, again = rebuilt(installed(site), tmp_path), rebuilt(installed(site), tmp_path / "again")
    install(again, tmp_path / "second")
    (tmp_path / "third").mkdir()
    third = rebuilt(installed(tmp_path / "second"), tmp_path / "third")
    assert first.read_bytes() == again.read_bytes() == third.read_bytes()


def test_a_file_that_is_gone_is_named(site: Path, tmp_path: Path) -> None:
    (site / "thing" / "lua" / "claim.lua").unlink()
    with pytest.raises(
        CogridError, match=r"thing/lua/claim\.lua, a file of cogrid, cannot be read"
    ):
        rebuilt(installed(site), tmp_path)


def test_one_without_a_record_is_refused(site: Path, tmp_path: Path) -> None:
    next(site.glob("*.dist-info/RECORD")).unlink()
    with pytest.raises(CogridError, match="does not say which files") as caught:
        rebuilt(installed(site), tmp_path)
    assert "--wheels DIR" in caught.value.hint


def test_a_checkout_is_built(tmp_path: Path) -> None:
    direct = installed_direct_url()
    if not direct:
        pytest.skip("this cogrid is not installed from a checkout")
    wheel = own_wheel(tmp_path, lambda: find_pip({}))
    assert read_wheel(wheel).version == cogrid.__version__
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert {"cogrid/store/lua/claim.lua", "cogrid/systemd/cogrid-worker@.service"} <= packed
    assert {"cogrid/ops/delivery/on_host.py", "cogrid/ops/delivery/facts.py"} <= packed


def installed_direct_url() -> dict[str, object]:
    found: dict[str, object] = json.loads(
        distribution("cogrid").read_text("direct_url.json") or "{}"
    )
    return found


def test_a_checkout_that_cannot_be_built_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pip, "_run", lambda *_: "many lines\nERROR: no build tool")
    if not installed_direct_url():
        pytest.skip("this cogrid is not installed from a checkout")
    with pytest.raises(CogridError, match="could not be built: ERROR: no build tool"):
        own_wheel(tmp_path, lambda: Pip(("pip",)))


def test_pip_is_found_where_it_can_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_pip({}).words == (sys.executable, "-m", "pip")
    monkeypatch.setattr("cogrid.ops.delivery.pip.find_spec", lambda _: None)
    wheel = a_wheel(tmp_path, "pip", "26.0")
    monkeypatch.setattr("cogrid.ops.delivery.pip.carried", lambda: iter([wheel]))
    assert find_pip({}).words == (sys.executable, f"{wheel}/pip")
    monkeypatch.setattr("cogrid.ops.delivery.pip.carried", lambda: iter(()))
    (tmp_path / "pip").write_text("#!/bin/sh\n")
    (tmp_path / "pip").chmod(0o755)
    assert find_pip({"PATH": str(tmp_path)}).words == (f"{tmp_path}/pip",)
    with pytest.raises(CogridError, match="there is no pip on this machine") as caught:
        find_pip({"PATH": "/nowhere"})
    assert caught.value.hint == CURE


def test_a_pip_that_fails_is_quoted(tmp_path: Path) -> None:
    said = Pip((sys.executable, "-m", "pip")).build(tmp_path / "absent", tmp_path)
    assert "absent" in said
    with pytest.raises(CogridError, match="/nowhere/pip cannot be run"):
        Pip(("/nowhere/pip",)).build(tmp_path, tmp_path)


def test_this_python_carries_pip() -> None:
    if found := list(carried()):
        done = subprocess.run(
            (sys.executable, f"{found[0]}/pip", "--version"),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith("pip ")
