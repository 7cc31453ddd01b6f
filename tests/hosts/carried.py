"""cogrid on a host the short way: what this environment runs is copied, nothing is installed."""

from __future__ import annotations

import shutil
from importlib import metadata
from pathlib import Path

from tests.hosts.host import Host

PACKAGES = (
    "anyio", "certifi", "click", "cogrid", "h11", "hiredis", "httpcore", "httptools", "httpx",
    "idna", "markdown_it", "mdurl", "msgspec", "prometheus_client", "pygments", "redis", "rich",
    "starlette", "typing_extensions.py", "uvicorn", "uvloop",
)  # fmt: skip
"""Of this environment, all that the daemons import."""
PLACE = "/opt/cogrid/current"
_PROGRAM = """\
#!/usr/bin/python3
import sys
sys.path.insert(0, "{place}/lib")
from cogrid.cli.main import main
main()
"""
_TIMEOUT = "from asyncio import timeout as timeout\n"
"""redis wants the package async_timeout on Pythons before 3.11.3, such as Debian's; this
environment has a later one. What redis uses of it is in asyncio as well."""


def carry_cogrid(host: Host) -> None:
    """cogrid at its usual place there, and its user; the host's own Python runs it."""
    carry_files(host, PLACE)
    host.ssh("useradd --system --home-dir /var/lib/cogrid --shell /usr/sbin/nologin cogrid")


def carry_files(host: Host, path: str) -> None:
    """cogrid in this directory there."""
    place = host.root / path.lstrip("/")
    # Compiled files come along: the units' user may write none, and every start would make them.
    ignore = shutil.ignore_patterns("tests", "*.pyi", "*.pyc.*")
    for package in PACKAGES:
        source = Path(str(metadata.distribution(_named(package)).locate_file(package)))
        if package == "cogrid":
            source = Path(__file__).parents[2] / package
        if source.is_dir():
            shutil.copytree(source, place / "lib" / package, ignore=ignore)
        else:
            shutil.copy(source, place / "lib" / package)
    host.write(f"{path}/lib/async_timeout.py", _TIMEOUT)
    (place / "bin").mkdir()
    host.write(f"{path}/bin/cogrid", _PROGRAM.format(place=path), 0o755)


def _named(package: str) -> str:
    return {"markdown_it": "markdown-it-py"}.get(package, package.removesuffix(".py"))
