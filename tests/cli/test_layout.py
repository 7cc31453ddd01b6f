"""What a narrow terminal shows of a table."""

from __future__ import annotations

import pytest

from cogrid.cli.layout import folded, kept_columns

WIDTHS = (10, 8, 12, 30)
"""66 cells with the gaps."""


@pytest.mark.parametrize(
    ("room", "kept"),
    [
        (200, (0, 1, 2, 3)),
        (66, (0, 1, 2, 3)),
        (65, (0, 2, 3)),
        (56, (0, 2, 3)),
        (55, (0, 3)),
        (42, (0, 3)),
        (41, (0, 3)),
        (28, (0, 3)),
        (27, ()),
    ],
)
def test_measures_go_in_order_then_names_fold_then_rows_become_blocks(
    room: int, kept: tuple[int, ...]
) -> None:
    assert kept_columns(WIDTHS, (1, 2), room) == kept


def test_without_columns_that_may_go_all_fold() -> None:
    assert kept_columns((40, 40), (), 58) == (0, 1)
    assert kept_columns((40, 40), (), 57) == (), "the first column is never folded"


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("one two three", 13, ["one two three"]),
        ("one two three", 12, ["one two", "  three"]),
        ("  one two three", 9, ["  one two", "  three"]),
        ("a hf.co/LiquidAI/LFM2.5-1.2B-JP-GGUF:Q4_K_M b", 10, [
            "a", "  hf.co/LiquidAI/LFM2.5-1.2B-JP-GGUF:Q4_K_M", "  b",
        ]),
        ("日本 のサーバー", 10, ["日本", "  のサーバー"]),
        ("", 10, [""]),
    ],
)  # fmt: skip
def test_sentences_are_broken_at_blanks_only(text: str, room: int, lines: list[str]) -> None:
    assert list(folded(text, room, 2)) == lines
