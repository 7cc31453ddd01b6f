"""Outputs of any length take bounded memory."""

from __future__ import annotations

from cogrid.remote.kept import Kept


def kept(pieces: list[bytes], limit_bytes: int) -> Kept:
    one = Kept(limit_bytes)
    for piece in pieces:
        one.add(piece)
    one.end()
    return one


def test_short_is_whole() -> None:
    one = kept([b"abc", b"def"], 6)
    assert (one.data, one.cut) == (b"abcdef", False)


def test_long_keeps_head_and_tail() -> None:
    one = kept([b"abc", b"defg", b"hi"], 6)
    assert one.data == b"abc\n[... 3 bytes left out ...]\nghi"
    assert one.cut


def test_one_huge_piece() -> None:
    one = kept([b"a" * 5_000_000 + b"end"], 10)
    assert one.data == b"aaaaa\n[... 4,999,993 bytes left out ...]\naaend"


def test_lines_as_they_come() -> None:
    lines: list[str] = []
    one = Kept(4, lines.append)
    for piece in (b"one\ntw", b"o\r\nthr\xc3", b"\xa4\n\nla", b"st"):
        one.add(piece)
    assert lines == ["one", "two\r", "thrä", ""]
    one.end()
    assert lines[-1] == "last"


def test_endless_line_comes_in_pieces() -> None:
    lines: list[str] = []
    one = Kept(4, lines.append)
    for _ in range(100):
        one.add(b"x" * 1000)
    one.end()
    assert "".join(lines) == "x" * 100_000
    assert len(lines) == 2
