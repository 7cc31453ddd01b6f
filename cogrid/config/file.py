"""The configuration file: which one, and what stands in which line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_HEADER = re.compile(r"\s*(\[+)\s*([A-Za-z0-9_.\-]+)\s*\]+")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\-]+)\s*=")


@dataclass(frozen=True, slots=True)
class Read:
    """A file's tables, and the line of each ``section.key``, ``section``, and of the n-th table of
    a list, ``domain#n`` and ``host#n``."""

    path: str = ""
    tables: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def source(self, *keys: str) -> str:
        """``cogrid.toml:4`` for the first of the keys whose line is known."""
        line = next((self.lines[key] for key in keys if key in self.lines), None)
        return self.path if line is None else f"{self.path}:{line}"


class UnreadableError(Exception):
    """The file cannot be read; the text says why and where."""


def find(named: str | None, env: Mapping[str, str]) -> str | None:
    """The file to read: the named one, else COGRID_CONFIG, else the first there is of
    ./cogrid.toml, the user's and /etc/cogrid/cogrid.toml. A named one need not exist yet."""
    if named or env.get("COGRID_CONFIG"):
        return named or env["COGRID_CONFIG"]
    home = env.get("XDG_CONFIG_HOME") or f"{env.get('HOME', '')}/.config"
    places = ("cogrid.toml", f"{home}/cogrid/cogrid.toml", "/etc/cogrid/cogrid.toml")
    return next((place for place in places if Path(place).is_file()), None)


def read(path: str) -> Read:
    """The file; UnreadableError."""
    import tomllib  # only where there is a file: it costs as much as all else here together

    try:
        text = Path(path).expanduser().read_text(encoding="utf-8")
        return Read(path, tomllib.loads(text), _lines(text))
    except FileNotFoundError as error:
        raise UnreadableError(f"{path}: there is no such file") from error
    except OSError as error:
        raise UnreadableError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UnreadableError(f"{path}: is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise UnreadableError(f"{path}: is not TOML: {error}") from error


def _lines(text: str) -> dict[str, int]:
    """Where each key stands. A line within a text of several lines may pass for a key; that only
    makes a line number wrong."""
    lines: dict[str, int] = {}
    section, seen = "", Counter[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            section = header[2]
            if header[1] == "[[":
                seen[section] += 1
                section = f"{section}#{seen[section] - 1}"
            lines.setdefault(section, number)
        elif key := _KEY.match(line):
            lines.setdefault(f"{section}.{key[1]}" if section else key[1], number)
    return lines
