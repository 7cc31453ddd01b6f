"""What ``look.sh`` prints, made into facts. Nothing in it is trusted to be there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from cogrid.model.host import Scope
from cogrid.ops.journal import journal_line
from cogrid.ops.sanity.facts import Disk, EnvironmentFile, HostFacts, Stray, UnitFacts
from cogrid.ops.unit.seal import origin
from cogrid.ops.unit.state import parse_state

_SCOPES = frozenset(scope.value for scope in Scope)
Parts = dict[tuple[str, ...], str]
"""The words of a part's first line -> what follows."""


def parse_look(text: str, mark: str) -> HostFacts:
    """The facts. mark: the word that begins each part."""
    parts, clocks = _parts(text, mark)
    who, host = ([*_lines(parts, name), "", "", ""] for name in ("who", "host"))
    memory = dict(re.findall(r"^(\w+):\s+(\d{1,15}) kB", parts.get(("memory",), ""), re.MULTILINE))
    return HostFacts(
        login=who[0],
        root=who[1] == "0" or who[2] == "sudo",
        name=host[0],
        system=host[1],
        init=parts.get(("init",), "").strip(),
        clock=(clocks[0], clocks[-1]) if clocks else (0.0, 0.0),
        pythons=tuple(sorted(set(_versions(_lines(parts, "python"))), reverse=True)),
        memory_bytes=int(memory.get("MemTotal", 0)) * 1024,
        memory_free_bytes=int(memory.get("MemAvailable", 0)) * 1024,
        disks=tuple(dict.fromkeys(_disks(_lines(parts, "disk")))),
        gpu=bool(_lines(parts, "gpu")),
        programs=tuple(dict.fromkeys(_lines(parts, "programs"))),
        engines=tuple(_lines(parts, "engines")),
        strays=tuple(_strays(_lines(parts, "stray"))),
        units=tuple(
            _unit(parts, *words[1:])
            for words in parts
            if len(words) == 3 and words[0] == "show" and words[1] in _SCOPES
        ),
    )


def _parts(text: str, mark: str) -> tuple[Parts, list[float]]:
    """The clock is told twice, at the beginning and at the end."""
    parts: Parts = {}
    clocks: list[float] = []
    for piece in f"\n{text}".split(f"\n{mark} ")[1:]:
        first, _, rest = piece.partition("\n")
        words = tuple(first.split())
        if words == ("clock",):
            clocks += [float(found[0]) for found in re.findall(r"^(\d{1,12}(\.\d+)?)", rest)]
        elif words:
            parts[words] = rest
    return parts, clocks


def _lines(parts: Parts, *words: str) -> list[str]:
    return [line for line in parts.get(words, "").splitlines() if line.strip()]


def _versions(lines: Iterable[str]) -> Iterable[tuple[int, ...]]:
    for line in lines:
        if found := re.match(r"Python (\d{1,4})\.(\d{1,4})\.(\d{1,4})", line):
            yield tuple(map(int, found.groups()))


def _disks(lines: Iterable[str]) -> Iterable[Disk]:
    """``df -P``: file system, kB, used, available, percentage, place."""
    for line in lines:
        if found := re.match(r"\S.*? +(\d{1,15}) +\d+ +(\d{1,15}) +\S+ +(/.*)", line):
            size, free, place = found.groups()
            yield Disk(place, int(size) * 1024, int(free) * 1024)


def _strays(lines: Iterable[str]) -> Iterable[Stray]:
    for line in lines:
        if found := re.match(r"(\d{1,10}) (\S+) (.+)", line):
            pid, user, what = found.groups()
            yield Stray(int(pid), user, what)


def _unit(parts: Parts, scope: str, name: str) -> UnitFacts:
    def part(what: str) -> str:
        return parts.get((what, scope, name), "")

    start, environment, files, user, group, workdir = _bus(part("bus"))
    text = part("text")
    return UnitFacts(
        scope=Scope(scope),
        name=name,
        state=parse_state(part("show")),
        text=text,
        origin=origin(text),
        version=part("version").rpartition("cogrid, version ")[2].strip(),
        argv=start[0].argv if start else (),
        environment=tuple(environment or ()),
        files=tuple(files or ()),
        user=user or "",
        group=group or "",
        workdir=workdir or "",
        modes=tuple(_modes(part("files").splitlines())),
        readable=bool(part("rights").strip()),
        journal=tuple(
            line for each in part("journal").splitlines() if (line := journal_line(each))
        ),
    )


class _Start(msgspec.Struct, array_like=True):
    """The first two of what systemd tells of an ExecStart=."""

    path: str
    argv: tuple[str, ...]


_KINDS: tuple[Any, ...] = (list[_Start], list[str], list[tuple[str, bool]], str, str, str)
"""Of the properties, in the order in which ``look.sh`` asks for them."""


def _bus(text: str) -> list[Any]:
    """The properties, None for each that is not told."""
    values: list[Any] = []
    for line in text.splitlines():
        try:
            said = msgspec.json.decode(line)
        except ValueError:
            continue
        values.append(said.get("data") if isinstance(said, dict) else None)
    told = [*values, *[None] * len(_KINDS)]
    return [_as(kind, value) for kind, value in zip(_KINDS, told, strict=False)]


def _as(kind: Any, value: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None


def _modes(lines: Iterable[str]) -> Iterable[EnvironmentFile]:
    for line in lines:
        if found := re.match(r"([0-7]{1,6}) (\S+) (.+)", line):
            mode, owner, path = found.groups()
            yield EnvironmentFile(path, int(mode, 8), owner)
