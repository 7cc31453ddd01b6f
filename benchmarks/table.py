"""One table of figures, each with its goal beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: the median of its repeats. goal: None where there is none, only a comparison.
    most: the goal is an upper limit, else a lower one. note: what stands beside it."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    most: bool = False
    note: str = ""
    repeats: tuple[float, ...] = ()

    @property
    def holds(self) -> bool | None:
        """Whether the goal is reached; None without one."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.most else self.value >= self.goal


def row(
    name: str, values: Sequence[float], unit: str, goal: float | None = None, most: bool = False,
    note: str = "",
) -> Row:  # fmt: skip
    """A row from the values of all repeats."""
    return Row(name, median(values), unit, goal, most, note, tuple(values))


def render(rows: Sequence[Row]) -> str:
    """The table as text."""
    columns: tuple[tuple[str, Callable[[Row], str]], ...] = (
        ("what", lambda row: row.name),
        ("measured", lambda row: f"{number(row.value)} {row.unit}"),
        ("goal", _goal),
        ("", lambda row: {None: "", True: "ok", False: "MISSED"}[row.holds]),
        ("repeats", lambda row: " ".join(number(value) for value in row.repeats)),
        ("beside it", lambda row: row.note),
    )
    cells = [tuple(title for title, _ in columns)]
    cells += [tuple(of(row) for _, of in columns) for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def number(value: float) -> str:
    """Three digits that matter; thousands apart."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def _goal(row: Row) -> str:
    if row.goal is None:
        return ""
    return f"{'<=' if row.most else '>='} {number(row.goal)} {row.unit}".rstrip()
