"""What another machine says cannot do anything to the terminal."""

from __future__ import annotations

from cogrid.remote.foreign import last_line


def test_last_line_that_says_something() -> None:
    assert last_line(b"first\nsudo: no\r\n \n") == "sudo: no"
    assert last_line("") == last_line(b"\n\n") == ""


def test_no_control_characters() -> None:
    assert last_line(b"\x1b[31mred\x07 \xe3\x81\x82 \xff") == "\\x1b[31mred\\x07 あ �"
    assert last_line("a\u202eb\x9bc") == "a\\u202eb\\x9bc"


def test_not_for_ever() -> None:
    assert len(last_line(b"x" * 10_000)) == 200
