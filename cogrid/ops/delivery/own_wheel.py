"""The wheel of the cogrid that runs here: what goes to a host is what its operator has.

The same files always make the same bytes, so that a host is not given anew what it has.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator
from email import message_from_string
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePath
from urllib.parse import unquote, urlsplit

from cogrid.errors import CogridError
from cogrid.ops.delivery.pip import Pip

_OF_THE_INSTALLER = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})
"""What an installer writes beside the wheel's own files."""
_TIME = (1980, 1, 1, 0, 0, 0)
"""The oldest that a zip can say."""
_GIVE = "install cogrid from a wheel, or give one with the others: --wheels DIR"


def own_wheel(into: Path, pip: Callable[[], Pip]) -> Path:
    """Write the wheel of the cogrid that runs, from the files it is installed as, or built where
    it is a checkout. pip is only asked for where something is to be built."""
    try:
        found = distribution("cogrid")
    except PackageNotFoundError as error:
        raise CogridError("the cogrid that runs was not installed from a package", _GIVE) from error
    if checkout := _checkout(found):
        return _built(checkout, into, pip())
    return rebuilt(found, into)


def _checkout(found: Distribution) -> Path | None:
    """The source tree of an editable installation (PEP 610)."""
    said = json.loads(found.read_text("direct_url.json") or "{}")
    editable = said.get("dir_info", {}).get("editable", False)
    return Path(unquote(urlsplit(said["url"]).path)) if editable else None


def _built(checkout: Path, into: Path, pip: Pip) -> Path:
    if said := pip.build(checkout, into):
        raise CogridError(
            f"the wheel of {checkout} could not be built: {said.splitlines()[-1]}", _GIVE
        )
    return next(into.glob("cogrid-*.whl"))


def rebuilt(found: Distribution, into: Path) -> Path:
    """The wheel that this was installed from, made of the installed files by its RECORD."""
    name = found.metadata["Name"]
    tag = message_from_string(found.read_text("WHEEL") or "").get("Tag")
    files = dict(_files(found))
    if not files or tag is None:
        raise CogridError(
            f"{name} {found.version} does not say which files it was installed as", _GIVE
        )
    path = into / f"{name}-{found.version}-{tag}.whl"
    lines = [_line(each, content) for each, content in files.items()]
    record = f"{name}-{found.version}.dist-info/RECORD"
    with zipfile.ZipFile(path, "w") as archive:
        for each, content in files.items():
            _write(archive, each, content)
        _write(archive, record, "".join([*lines, f"{record},,\n"]).encode())
    return path


def _files(found: Distribution) -> Iterator[tuple[str, bytes]]:
    """Without what an installer made: programs outside of the package, caches, its notes."""
    for each in sorted(found.files or (), key=str):
        if ".." in each.parts or "__pycache__" in each.parts or each.name in _OF_THE_INSTALLER:
            continue
        place = Path(str(each.locate()))
        try:
            yield PurePath(each).as_posix(), place.read_bytes()
        except OSError as error:
            raise CogridError(
                f"{place}, a file of cogrid, cannot be read: {error.strerror}",
                "install cogrid again",
            ) from error


def _line(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def _write(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Not packed, since each zlib packs in its own way."""
    entry = zipfile.ZipInfo(name, _TIME)
    entry.external_attr = 0o100644 << 16
    archive.writestr(entry, content)
