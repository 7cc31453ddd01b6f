"""A unit file as a value: sections, their lines, and the comments above each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from cogrid.ops.unit.quoting import BLANK


@dataclass(frozen=True, slots=True)
class Entry:
    """``key=value`` with what stands above it (comments and empty lines)."""

    key: str
    value: str
    above: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """``[Service]`` and its entries."""

    name: str
    entries: tuple[Entry, ...] = ()
    above: tuple[str, ...] = ()

    def values(self, key: str) -> tuple[str, ...]:
        """Of every line with this key."""
        return tuple(entry.value for entry in self.entries if entry.key == key)


@dataclass(frozen=True, slots=True)
class UnitFile:
    """below: comments behind the last entry."""

    sections: tuple[Section, ...]
    below: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As it is written."""
        return "".join(f"{line}\n" for line in self._lines())

    def values(self, section: str, key: str) -> tuple[str, ...]:
        """Of every line with this key in the section, wherever it begins."""
        found = (each for each in self.sections if each.name == section)
        return tuple(value for each in found for value in each.values(key))

    def last(self, section: str, key: str) -> str:
        """The one that counts where a key may have one value; "" where it has none."""
        return next(reversed(self.values(section, key)), "")

    def mapped(self, section: str, change: Callable[[Entry], tuple[Entry, ...]]) -> UnitFile:
        """Each entry of the section replaced by what ``change`` makes of it."""
        return replace(
            self,
            sections=tuple(
                replace(each, entries=tuple(new for old in each.entries for new in change(old)))
                if each.name == section
                else each
                for each in self.sections
            ),
        )

    def _lines(self) -> Iterator[str]:
        for section in self.sections:
            yield from section.above
            yield f"[{section.name}]"
            for entry in section.entries:
                yield from entry.above
                yield f"{entry.key}={entry.value}"
        yield from self.below


def parse_unit(text: str) -> UnitFile:
    """Any unit file; lines that are none of a unit's are taken for comments, as systemd does."""
    sections: list[Section] = []
    above: tuple[str, ...] = ()
    for line in _joined(text):
        bare = line.strip(BLANK)
        key, equals, value = bare.partition("=")
        if bare.startswith("[") and bare.endswith("]"):
            sections.append(Section(bare[1:-1], above=above))
            above = ()
        elif sections and equals and not bare.startswith(("#", ";")):
            last = sections[-1]
            entry = Entry(key.strip(BLANK), value.strip(BLANK), above)
            sections[-1] = replace(last, entries=(*last.entries, entry))
            above = ()
        else:
            above = (*above, line)
    return UnitFile(tuple(sections), above)


def _joined(text: str) -> Iterator[str]:
    """Lines; one that ends with a backslash goes on in the next that is no comment."""
    begun: str | None = None
    for line in text.removesuffix("\n").split("\n"):
        if line.lstrip(BLANK).startswith(("#", ";")):
            if begun is None:
                yield line
            continue
        whole = line if begun is None else f"{begun} {line.strip(BLANK)}"
        begun = whole[:-1] if whole.endswith("\\") else None
        if begun is None:
            yield whole
    if begun is not None:
        yield begun
