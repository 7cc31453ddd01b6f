"""The only printer. stdout is the answer, stderr everything else.

On a terminal: rich tables. In a pipe: no colour, no boxes, one row a line, names in full. Text from
workers, hosts and models is data: never markup, never control characters.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from cogrid.cli.streams import give_up
from cogrid.errors import CogridError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

SCHEMA = 1


def clean(text: object) -> str:
    """Data as it may be shown: control characters become visible escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def print_json(value: Any) -> None:
    """One JSON document on stdout, with the schema number first."""
    facts = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    document = {"schema": SCHEMA, **facts}
    told = json.dumps(document, ensure_ascii=not _utf8(), separators=(",", ":"), default=str)
    _write(told if told.isprintable() else "".join(map(_in_json, told)))


def print_line(text: object = "") -> None:
    """One line of the answer."""
    _write(clean(text) if text else "")


def print_prose(text: object, hang: int = 0, bold: int = 0, *, whole: bool = False) -> None:
    """A sentence of the answer. In a pipe one line; on a terminal as many as it needs, broken at
    blanks. hang: blanks before each but the first. bold: so many of its first characters. whole: it
    is to be pasted, so it stays one line."""
    if not on_terminal():
        print_line(text)
        return
    from rich.console import Console
    from rich.text import Text

    from cogrid.cli.layout import folded

    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    shown = _fit(clean(text), sys.stdout)
    lines = (shown,) if whole else folded(shown, console.width, hang)
    prose = Text("\n".join(lines))
    prose.stylize("bold", 0, bold)
    console.print(prose, soft_wrap=True)


def print_piece(text: str) -> None:
    """A piece of running text, such as a streamed answer: its lines, tabs and joined emoji stay;
    other control characters, and those that turn what follows around, become visible escapes."""
    shown = "".join(
        c if c in "\n\t" or not _is_control(c) else c.encode("unicode_escape").decode()
        for c in text
    )
    sys.stdout.write(_fit(shown, sys.stdout))
    sys.stdout.flush()


def note(text: object) -> None:
    """One line beside the answer: progress, warnings. Where nobody can read it, it is lost."""
    try:
        print(_fit(clean(text), sys.stderr), file=sys.stderr, flush=True)
    except OSError:
        give_up(sys.stderr)


def print_error(error: CogridError, as_json: bool) -> int:
    """Say what failed and what to do about it; the exit code."""
    if as_json:
        said = {
            "message": error.message,
            "hint": error.hint or None,
            "exit_code": int(error.exit_code),
            **({"problems": error.problems} if error.problems else {}),
        }
        try:
            print_json({"error": said})
            return int(error.exit_code)
        except (OSError, ValueError):  # nobody can read it there
            give_up(sys.stdout)
    message = error.message.partition("\n")[0] if error.problems else error.message
    note(f"cogrid: {message}")
    for problem in error.problems:
        note(problem)
    if error.hint:
        note(f"  → {error.hint}")
    return int(error.exit_code)


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    first_to_go: Sequence[str] = (),
) -> None:
    """Rows under their columns. In a pipe: tab-separated, with the columns' names as first line.

    first_to_go: columns that a narrow terminal may do without, in this order; never one that names
    something. Where even the others do not fit, each row becomes a block of lines.
    """
    cells = [[_fit(_cell(cell), sys.stdout) for cell in row] for row in rows]
    if not on_terminal():
        for line in ([name.lower() for name in columns], *cells):
            _write("\t".join(line))
        return
    from rich.cells import cell_len
    from rich.console import Console

    from cogrid.cli.layout import kept_columns

    console = Console(file=sys.stdout, highlight=False, soft_wrap=False)
    widths = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    order = [columns.index(name) for name in first_to_go]
    kept = kept_columns(widths, order, console.width)
    if kept:
        _print_columns(console, title, columns, cells, kept)
    else:
        _print_blocks(console, title, columns, cells)


def _print_columns(
    console: Console,
    title: str,
    columns: Sequence[str],
    cells: list[list[str]],
    kept: tuple[int, ...],
) -> None:
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for column in kept:
        table.add_column(columns[column], overflow="fold", no_wrap=column == 0, header_style="bold")
    for line in cells:
        table.add_row(*(_styled(line[column]) for column in kept))
    console.print(table)


def _print_blocks(
    console: Console, title: str, columns: Sequence[str], cells: list[list[str]]
) -> None:
    """A row as lines of name and value, for terminals that are narrower than the table."""
    from rich.table import Table

    if title:
        console.print(title, style="italic", markup=False)
    for line in cells:
        block = Table(box=None, pad_edge=False, show_header=False)
        block.add_column(style="bold", no_wrap=True)
        block.add_column(overflow="fold")
        for name, cell in zip(columns, line, strict=True):
            block.add_row(name, _styled(cell))
        console.print(block)
        _write("")


def _cell(value: object) -> str:
    return clean("-" if value is None or value == "" else value)


def _styled(cell: str) -> Text:
    from rich.text import Text

    return Text(cell, style=_STYLES.get(cell, ""))


def print_row(row: Iterable[object]) -> None:
    """One row by itself, such as one of a log that goes on."""
    _write(("  " if on_terminal() else "\t").join(map(_cell, row)))


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """A name and what it is, a line each; in a pipe with a tab between."""
    pairs = [(clean(name), _cell(value)) for name, value in facts]
    width = max((len(name) for name, _ in pairs), default=0) if on_terminal() else 0
    for name, value in pairs:
        _write(f"{name.ljust(width)}  {value}" if width else f"{name}\t{value}")


def print_heading(text: str) -> None:
    """What follows has this name; on a terminal after an empty line, and as tables have it."""
    if not on_terminal():
        _write(f"# {text}")
        return
    from rich.console import Console

    print_gap()
    Console(file=sys.stdout, highlight=False).print(text, style="italic", markup=False)


def print_gap() -> None:
    """On a terminal an empty line; in a pipe every line says something."""
    if on_terminal():
        _write("")


def on_terminal() -> bool:
    """True where tables and colours are wanted."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


# Colour only repeats what the word says.
_STYLES = {
    "healthy": "green",
    "busy": "green",
    "dead": "red",
    "ghost": "red",
    "wedged": "red",
    "quarantined": "red",
    "degraded": "yellow",
    "starting": "yellow",
    "draining": "yellow",
    "away": "yellow",
}


def _in_json(char: str) -> str:
    """What a terminal might obey is escaped; JSON itself asks for that only below U+0020."""
    return char if char.isprintable() else json.dumps(char)[1:-1]


_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _is_control(char: str) -> bool:
    return char < " " or "\x7f" <= char <= "\x9f" or char in _TURNING


def _write(text: str) -> None:
    sys.stdout.write(_fit(text, sys.stdout) + "\n")
    sys.stdout.flush()


def _fit(text: str, stream: Any) -> str:
    """What the stream's encoding cannot say is escaped, not refused."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
