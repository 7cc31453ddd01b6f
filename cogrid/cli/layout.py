"""How a table fits a terminal: measures go first, names wrap, and where even that is too narrow
each row becomes a block of lines. Nothing that names something is ever cut off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

GAP = 2
"""Blanks between two columns."""
NARROW = 16
"""A column may be folded down to this many cells; below it, a name in pieces is no name. The first
column, which says what the row is about, is never folded."""


def kept_columns(widths: Sequence[int], order_to_go: Sequence[int], room: int) -> tuple[int, ...]:
    """Which columns to show, or () where rows must become blocks.

    widths: the natural width of each column in cells. order_to_go: columns that may be left out,
    the first to go first. room: width of the terminal in cells.
    """
    kept = list(range(len(widths)))
    for going in (None, *order_to_go):
        if going in kept:
            kept.remove(going)
        if _needed([widths[column] for column in kept]) <= room:
            return tuple(kept)
    folded = _needed([min(widths[column], NARROW) if column else widths[0] for column in kept])
    return tuple(kept) if folded <= room else ()


def folded(text: str, room: int, hang: int) -> Iterator[str]:
    """Lines of at most ``room`` cells, broken at blanks only: a name, a queue or a command is never
    broken, so a longer one has its line for itself. hang: blanks before each line but the first."""
    from rich.cells import cell_len

    line = ""
    for number, word in enumerate(text.split(" ")):
        if line.strip() and cell_len(line) + 1 + cell_len(word) > room:
            yield line
            line = " " * hang + word
        else:
            line = f"{line} {word}" if number else word
    yield line


def _needed(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * max(0, len(widths) - 1)
