"""What is committed is whole: no file of it names a module that only somebody's working tree has.

Such a file is in the wheel that is built there, and everything works; it fails for whoever clones.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tarfile
from collections.abc import Iterator

import pytest

from tests.test_layers import ROOT

OURS = ("cogrid", "tests")
NAMED = re.compile(r"(cogrid\.[a-z]+)((?:\.\w+)+)(?::\w+)?")
"""A module that is loaded by its name, such as that of a command; or a name in one."""

Files = dict[str, str]


def committed() -> Files:
    """Modules of the last commit and their text, whatever the working tree has by now."""
    packed = subprocess.run(
        ("git", "archive", "HEAD", *OURS), cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return {
            _module(member.name): file.read().decode()
            for member in archive
            if member.name.endswith(".py") and (file := archive.extractfile(member))
        }


def missing(files: Files) -> set[tuple[str, str]]:
    """(who, what): modules of ours that are named somewhere, also inside functions, and are not
    there."""
    return {
        (name, module)
        for name, text in files.items()
        for module in (*_imported(text, files), *_loaded(name, text, files))
        if module not in files and not _is_name(module, files)
    }


def _is_name(dotted: str, files: Files) -> bool:
    """True for what a module has, or a class in it: a name of its text."""
    module, names = dotted, ""
    while module and module not in files:
        module, _, names = module.rpartition(".")
    return re.search(rf"\b{names}\b", files.get(module, "")) is not None


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imported(text: str, files: Files) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if _is_ours(each.name))
        elif isinstance(node, ast.ImportFrom) and _is_ours(node.module or ""):
            yield str(node.module)
            if node.module in files:  # a name in it may be a module of the package
                yield from (f"{node.module}.{each.name}" for each in node.names)


def _loaded(name: str, text: str, files: Files) -> Iterator[str]:
    """Modules that are named in texts; in tests such a text may be an example, as below."""
    if name.startswith("tests"):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = NAMED.fullmatch(node.value)
            if found and found[1] in files:  # cogrid.toml is a file's name
                yield found[1] + found[2]


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in OURS


def test_every_module_that_is_named_is_committed() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout")
    files = committed()
    assert len(files) > 500
    assert missing(files) == set()


@pytest.mark.parametrize(
    "text",
    [
        "from cogrid.ops.gone import verb",
        "def act():\n    from cogrid.ops import gone",
        "import cogrid.ops.gone",
        'COMMANDS = {"gone": ("cogrid.ops.gone", "What is not there.")}',
        '@answers("cogrid.ops.gone:Gone")\ndef command(): ...',
    ],
)
def test_one_that_is_not_is_told(text: str) -> None:
    files = {"cogrid": "", "cogrid.ops": '"""Verbs."""', "cogrid.cli.act": text}
    assert missing(files) == {("cogrid.cli.act", "cogrid.ops.gone")}
    assert missing({**files, "cogrid.ops.gone": "class Gone: ...\ndef verb(): ..."}) == set()
