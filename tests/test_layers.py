"""The arrows between packages, as pyproject.toml draws them, and that a wrong one is caught."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = PROJECT["tool"]["importlinter"]["contracts"]
EVERYWHERE = {"cogrid", "msgspec"}
"""What any package may import beside the standard library."""


def lint_imports(directory: Path) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        (command, "--no-logo", "--no-cache"),
        cwd=directory,
        check=False,
        capture_output=True,
        text=True,
    )


def third_party(file: Path) -> set[str]:
    """The top-level names that a file imports and that Python does not bring."""
    names = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names


def test_every_contract_holds() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_library_has_a_home() -> None:
    homed = {
        name
        for contract in CONTRACTS
        if contract["type"] == "forbidden"
        for name in contract["forbidden_modules"]
    }
    homeless = {
        str(file.relative_to(ROOT)): sorted(found)
        for file in (ROOT / "cogrid").rglob("*.py")
        if (found := third_party(file) - homed - EVERYWHERE)
    }
    assert homeless == {}, "name the library in a contract of pyproject.toml, or do without it"


def test_every_library_is_a_dependency() -> None:
    declared = {
        re.split(r"[\[<>=;! ]", line)[0].replace("-", "_")
        for line in PROJECT["project"]["dependencies"]
    }
    imported = set().union(*(third_party(file) for file in (ROOT / "cogrid").rglob("*.py")))
    assert imported - {"cogrid"} <= declared


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package with every layer and no import in it, under this project's contracts."""
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    layers = CONTRACTS[0]["layers"]
    for name in re.findall(r"\w+", " ".join(layers)):
        write(tmp_path, f"{name}/__init__", "")
        write(tmp_path, f"{name}/thing", "")
    write(tmp_path, "__init__", "")
    return tmp_path


def write(tree: Path, module: str, text: str) -> None:
    file = tree / "cogrid" / f"{module}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(
    ("module", "imports"),
    [
        ("cli/thing", "import click, rich"),
        ("store/thing", "import redis.asyncio, msgspec"),
        ("engine/thing", "import httpx"),
        ("ops/thing", "import httpx"),
        ("cli/thing", "from cogrid.worker import thing"),
        ("worker/thing", "from cogrid.store import thing"),
        ("store/thing", "from cogrid.config import thing"),
    ],
)
def test_a_right_import_passes(tree: Path, module: str, imports: str) -> None:
    write(tree, module, imports)
    done = lint_imports(tree)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "imports", "broken"),
    [
        ("worker/thing", "from cogrid.cli import thing", "Arrows point down"),
        ("worker/thing", "from cogrid.reaper import thing", "Arrows point down"),
        ("engine/thing", "from cogrid.store import thing", "Arrows point down"),
        ("rules/thing", "from cogrid.config import thing", "Arrows point down"),
        ("model/thing", "from cogrid.rules import thing", "Arrows point down"),
        ("newcomer", "", "Arrows point down"),
        ("ops/thing", "import click", "Only cli knows the terminal"),
        ("coordinator/thing", "from rich.table import Table", "Only cli knows the terminal"),
        ("reaper/thing", "import redis", "Only store knows Redis"),
        ("cli/thing", "from redis.asyncio import Redis", "Only store knows Redis"),
        ("ops/thing", "def f():\n    import paramiko", "Only remote knows SSH"),
        ("cli/thing", "import httpx", "Only engine and ops are HTTP clients"),
        ("cli/thing", "import uvicorn", "Only coordinator is an HTTP server"),
    ],
)
def test_a_wrong_import_is_caught(tree: Path, module: str, imports: str, broken: str) -> None:
    write(tree, module, imports)
    done = lint_imports(tree)
    assert done.returncode == 1
    assert f"{broken} BROKEN" in done.stdout
