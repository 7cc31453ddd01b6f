"""All wheels that a host needs are collected, or everything that cannot be had is named."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from cogrid import __version__
from cogrid.errors import CogridError, UsageError
from cogrid.ops.delivery import gather as gathering
from cogrid.ops.delivery.bundle import Bundle, archive
from cogrid.ops.delivery.cache import Cache
from cogrid.ops.delivery.closure import Release
from cogrid.ops.delivery.gather import MissingWheelsError, gather, installed, resolved
from cogrid.ops.delivery.pip import Pip
from cogrid.ops.delivery.python import HostPython
from cogrid.ops.delivery.sources import Folder, Index
from tests.ops.delivery.build import a_python, a_release, a_wheel

COGRID = a_release("cogrid", "0.1.0", "redis>=7", "click>=8")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Says which releases are installed on this side."""

    def say(*releases: Release) -> None:
        monkeypatch.setattr(gathering, "installed", lambda: {each.name: each for each in releases})

    say()
    return say


def versions(wheels: Iterable[object]) -> list[str]:
    return [f"{wheel.name} {wheel.version}" for wheel in wheels]  # type: ignore[attr-defined]


@pytest.mark.usefixtures("here")
def test_requirements_of_what_is_found_are_found_too(tmp_path: Path) -> None:
    a_wheel(tmp_path, "redis", "8.1", 'async-timeout>=4; python_full_version < "3.11.3"')
    a_wheel(tmp_path, "async_timeout", "5.0")
    a_wheel(tmp_path, "click", "8.3")
    a_wheel(tmp_path, "unused", "1.0")
    folder = Folder(tmp_path)
    assert versions(resolved(COGRID, folder, a_python())) == [
        "async-timeout 5.0",
        "click 8.3",
        "redis 8.1",
    ]
    newer = a_python(markers={"python_full_version": "3.11.3"})
    assert versions(resolved(COGRID, folder, newer)) == ["click 8.3", "redis 8.1"]


def test_the_release_that_runs_here_is_taken(tmp_path: Path, here: Callable[..., None]) -> None:
    here(a_release("redis", "7.4"), a_release("click", "8.2"))
    for version in ("7.4", "8.1"):
        a_wheel(tmp_path, "redis", version)
    a_wheel(tmp_path, "click", "8.3")
    found = resolved(COGRID, Folder(tmp_path), a_python())
    assert versions(found) == ["click 8.3", "redis 7.4"], "another only where ours is not to be had"


def test_another_release_brings_its_own_requirements(
    tmp_path: Path, here: Callable[..., None]
) -> None:
    here(a_release("redis", "8.1"), a_release("click", "8.3"), a_release("extra", "1.0"))
    a_wheel(tmp_path, "redis", "7.4", "extra<1.0")
    a_wheel(tmp_path, "extra", "0.9")
    a_wheel(tmp_path, "extra", "1.0")
    a_wheel(tmp_path, "click", "8.3")
    found = resolved(COGRID, Folder(tmp_path), a_python())
    assert versions(found) == ["click 8.3", "extra 0.9", "redis 7.4"]


def test_everything_that_is_missing_is_named_at_once(
    tmp_path: Path, here: Callable[..., None]
) -> None:
    here(a_release("redis", "8.1"))
    a_wheel(tmp_path, "redis", "8.1", "hiredis", tag="cp312-cp312-linux_x86_64")
    with pytest.raises(MissingWheelsError) as caught:
        resolved(COGRID, Folder(tmp_path), a_python())
    assert set(caught.value.problems) == {"click>=8", "redis>=7"}
    assert "for Python 3.11.2 for linux x86_64 with glibc 2.36 of: " in caught.value.message
    assert "nothing was changed" in caught.value.message
    assert "that directory" in caught.value.hint


@pytest.mark.usefixtures("here")
def test_requirements_that_contradict_each_other_end(tmp_path: Path) -> None:
    a_wheel(tmp_path, "redis", "8.1", "click<9")
    a_wheel(tmp_path, "click", "8.3", "redis<8")
    a_wheel(tmp_path, "redis", "7.4", "click>=9")
    a_wheel(tmp_path, "click", "9.0", "redis>=8")
    with pytest.raises(CogridError, match="contradict"):
        resolved(COGRID, Folder(tmp_path), a_python())


def test_a_directory_is_all_that_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = a_wheel(tmp_path / "wheels", "cogrid", __version__, "click", "paramiko")
    a_wheel(tmp_path / "wheels", "cogrid", "0.0.1")
    click = a_wheel(tmp_path / "wheels", "click", "8.3")
    pip = a_wheel(tmp_path / "wheels", "pip", "26.0")
    monkeypatch.setattr(Pip, "_run", lambda *_: pytest.fail("pip was run"))
    found = gather(a_python(), tmp_path / "wheels", {"XDG_CACHE_HOME": str(tmp_path)})
    assert [wheel.path for wheel in found.wheels] == [own, click]
    assert (found.version, found.pip.path) == (__version__, pip)
    with pytest.raises(UsageError, match="is not a directory"):
        gather(a_python(), tmp_path / "absent", {"XDG_CACHE_HOME": str(tmp_path)})


def test_the_name_says_what_is_in_it(tmp_path: Path) -> None:
    def bundle(python: HostPython, pip: str = "26.0", text: str = "") -> Bundle:
        place = tmp_path / "wheels"
        for each in place.glob("*.whl"):
            each.unlink()
        a_wheel(place, "cogrid", __version__, files={"cogrid/x.py": text})
        a_wheel(place, "pip", pip)
        return gather(python, place, {"XDG_CACHE_HOME": str(tmp_path)})

    name = bundle(a_python()).name
    assert name.startswith(f"{__version__}-")
    assert bundle(a_python(), pip="26.1").name == name, "pip is only the tool"
    kernel = a_python(markers={"platform_release": "6.12"})
    assert bundle(kernel).name == name
    assert bundle(a_python(), text="#").name != name
    assert bundle(a_python(path="/opt/bin/python3.11")).name != name


def test_the_archive_holds_every_wheel(tmp_path: Path) -> None:
    a_wheel(tmp_path, "cogrid", __version__)
    a_wheel(tmp_path, "pip", "26.0")
    found = gather(a_python(), tmp_path, {"XDG_CACHE_HOME": str(tmp_path)})
    with tarfile.open(fileobj=io.BytesIO(archive(found))) as tar:
        packed = {entry.name: tar.extractfile(entry).read() for entry in tar}  # type: ignore[union-attr]
    assert packed == {path.name: path.read_bytes() for path in tmp_path.glob("*.whl")}
    assert found.packed_bytes == sum(map(len, packed.values()))


@dataclass
class FakePip:
    """An index with these wheels. Like pip it gets all that is asked for, or nothing."""

    shelf: Path
    calls: list[tuple[str, ...]] = field(default_factory=list)
    reachable: bool = True

    def fetch(self, wanted: tuple[Requirement, ...], python: HostPython, into: Path) -> str:
        self.calls.append(tuple(map(str, wanted)))
        found = [Folder(self.shelf).find(each, python) for each in wanted]
        if not self.reachable or None in found:
            return "ERROR: no matching distribution"
        for path in filter(None, found):
            (into / path.name).write_bytes(path.read_bytes())
        return ""


@pytest.fixture
def pip(tmp_path: Path) -> FakePip:
    a_wheel(tmp_path / "shelf", "pip", "26.0")
    return FakePip(tmp_path / "shelf")


@pytest.fixture
def index(tmp_path: Path, pip: FakePip) -> Index:
    return Index(Cache(tmp_path / "cache"), lambda: pip, lambda _: None)  # type: ignore[arg-type,return-value]


@pytest.mark.usefixtures("here")
def test_what_was_fetched_once_needs_no_index(pip: FakePip, index: Index) -> None:
    a_wheel(pip.shelf, "redis", "8.1")
    a_wheel(pip.shelf, "click", "8.3")
    first = resolved(COGRID, index, a_python())
    assert pip.calls == [("click>=8", "redis>=7")]
    pip.reachable = False
    assert resolved(COGRID, index, a_python()) == first
    assert len(pip.calls) == 1


@pytest.mark.usefixtures("here")
def test_one_that_is_missing_does_not_hide_the_others(pip: FakePip, index: Index) -> None:
    a_wheel(pip.shelf, "click", "8.3")
    with pytest.raises(MissingWheelsError) as caught:
        resolved(COGRID, index, a_python())
    assert caught.value.problems == ("redis>=7",)
    assert "click-8.3-py3-none-any.whl" in {path.name for path in index.cache.wheels()}


@pytest.mark.usefixtures("here")
def test_an_index_out_of_reach_is_found_out_by_one_more_call(pip: FakePip, index: Index) -> None:
    pip.reachable = False
    with pytest.raises(CogridError, match="does not get anything from its package index"):
        resolved(COGRID, index, a_python())
    assert len(pip.calls) == 2


def test_a_damaged_file_in_the_cache_is_fetched_again(
    tmp_path: Path, pip: FakePip, index: Index
) -> None:
    wheel = a_wheel(pip.shelf, "click", "8.3")
    wanted = (Requirement("click"),)
    index.fetch(wanted, a_python())
    kept = index.find(wanted[0], a_python())
    assert kept is not None
    with zipfile.ZipFile(kept, "a") as archive_:
        archive_.writestr("more", "bytes")
    assert index.find(wanted[0], a_python()) is None
    index.fetch(wanted, a_python())
    again = index.find(wanted[0], a_python())
    assert again is not None
    assert again.read_bytes() == wheel.read_bytes()


def test_what_is_installed_here_is_known_by_its_normal_name() -> None:
    found = installed()
    assert found["prometheus-client"].version
    assert any(each.startswith("h11") for each in found["uvicorn"].requires)
