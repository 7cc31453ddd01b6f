"""Wheels and Pythons for tests, each with defaults for what a test does not care about."""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cogrid.ops.delivery.bundle import Bundle
from cogrid.ops.delivery.closure import Release
from cogrid.ops.delivery.pip import carried
from cogrid.ops.delivery.python import HostPython
from cogrid.ops.delivery.wheel import read_wheel
from tests.conftest import missing

MARKERS = {
    "implementation_name": "cpython",
    "implementation_version": "3.11.2",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_release": "6.1.0-13-amd64",
    "platform_system": "Linux",
    "platform_version": "#1 SMP",
    "python_full_version": "3.11.2",
    "python_version": "3.11",
    "sys_platform": "linux",
}


MAIN = """
import sys
from cogrid import __version__
def main():
    print("cogrid, version", __version__)
"""
DAEMONS = {f"cogrid/{name}/__init__.py": "" for name in ("coordinator", "worker", "reaper")}

UNPACK = """
import os, sys, sysconfig, zipfile
for word in sys.argv:
    if word.endswith(".whl"):
        zipfile.ZipFile(word).extractall(sysconfig.get_path("purelib"))
script = os.path.join(sysconfig.get_path("scripts"), "cogrid")
with open(script, "w") as file:
    file.write(f"#!{sys.executable}\\nfrom cogrid.cli.main import main\\nmain()\\n")
os.chmod(script, 0o755)
"""
"""What pip does, in a tenth of the time."""


def a_python(**fields: Any) -> HostPython:
    """Debian 12's. markers: those that differ."""
    markers = {**MARKERS, **fields.pop("markers", {})}
    defaults: dict[str, Any] = {
        "path": "/usr/bin/python3.11",
        "version": (3, 11, 2),
        "implementation": "cpython",
        "abi": "cp311",
        "machine": "x86_64",
        "libc": "glibc",
        "libc_version": (2, 36),
        "venv": True,
        "markers": tuple(sorted(markers.items())),
    }
    return HostPython(**{**defaults, **fields})


def a_release(name: str, version: str = "1.0", *requires: str) -> Release:
    """One that requires these."""
    return Release(name, version, requires)


def a_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    *requires: str,
    tag: str = "py3-none-any",
    requires_python: str = ">=3.8",
    files: Mapping[str, str] | None = None,
    program: str = "",
) -> Path:
    """A wheel that pip installs. files: by path, with their text. program: what the script of the
    package's name calls, as ``module:function``."""
    info = f"{name}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    metadata += [f"Requires-Python: {requires_python}"]
    metadata += [f"Requires-Dist: {each}" for each in requires]
    content = {
        f"{name}/__init__.py": f'__version__ = "{version}"\n',
        **(files or {}),
        f"{info}/METADATA": "\n".join(metadata) + "\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    if program:
        content[f"{info}/entry_points.txt"] = f"[console_scripts]\n{name} = {program}\n"
    record = "".join(_line(path, text) for path, text in content.items()) + f"{info}/RECORD,,\n"
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**content, f"{info}/RECORD": record}.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return wheel


def _line(path: str, text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(text.encode())}\n"


def a_bundle(
    place: Path,
    version: str,
    *,
    python: HostPython | None = None,
    real: bool = False,
    modules: Mapping[str, str] = MappingProxyType({}),
) -> Bundle:
    """One with a cogrid that does nothing. real: installed by pip. modules: those of its worker,
    with their text."""
    content = {
        "cogrid/cli/__init__.py": "",
        "cogrid/cli/main.py": MAIN,
        **DAEMONS,
        **{f"cogrid/worker/{name}.py": text for name, text in modules.items()},
    }
    own = a_wheel(place, "cogrid", version, files=content, program="cogrid.cli.main:main")
    tool = a_wheel(place, "pip", "99.0", files={"pip/__main__.py": UNPACK})
    if real:
        tool = next(carried(), None) or missing("the pip that Python carries", "see python3-venv")
    return Bundle(
        version, python or a_python(path=sys.executable), (read_wheel(own),), read_wheel(tool)
    )
