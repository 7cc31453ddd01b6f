"""How systemd writes values, so that it reads back exactly what was meant (systemd.syntax(7),
systemd.service(5) "Command lines", systemd.unit(5) "Specifiers")."""

from __future__ import annotations

import re

BLANK = " \t\r\n"
"""What counts as space in these files; other spaces are letters like any other."""
_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./%-]+")
"""Words that mean themselves (a ``%`` stands twice)."""
_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " ",
    "\\": "\\", '"': '"', "'": "'",
}  # fmt: skip
_NUMBERS = {"x": (2, 16), "u": (4, 16), "U": (8, 16)}
"""Escapes that are a number: how many digits, and to which base."""


def raw(value: str) -> str:
    """For what is one value to the end of its line (User=, WorkingDirectory=)."""
    return value.replace("%", "%%")


def from_raw(text: str) -> str:
    """The value again."""
    return text.replace("%%", "%")


def command_line(words: tuple[str, ...]) -> str:
    """For ExecStart=: ``$`` stands twice (variables), but not in the program's own path, where
    systemd looks for none."""
    return " ".join((_word(words[0]), *(_word(word.replace("$", "$$")) for word in words[1:])))


def from_command_line(text: str) -> tuple[str, ...]:
    """The words again; of a foreign unit, variables and specifiers stay as they stand there."""
    first, *rest = split(text) or ("",)
    return (from_raw(first), *(from_raw(word).replace("$$", "$") for word in rest))


def split(text: str) -> tuple[str, ...]:
    """Words apart, quotes and backslashes resolved."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "\\":
            piece, at = _escape(text, at)
            word = (word or "") + piece
        elif quote:
            word, quote = (word or "", "") if char == quote else ((word or "") + char, quote)
        elif char in "\"'":
            word, quote = word or "", char
        elif char in BLANK:
            words += () if word is None else (word,)
            word = None
        else:
            word = (word or "") + char
    return (*words,) if word is None else (*words, word)


def _word(word: str) -> str:
    word = word.replace("%", "%%")
    if _PLAIN.fullmatch(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _escape(text: str, at: int) -> tuple[str, int]:
    """What stands for the escape whose letter is at ``at``, and where it ends. One that systemd
    does not know keeps its backslash."""
    letter = text[at : at + 1]
    if letter in _ESCAPES:
        return _ESCAPES[letter], at + 1
    digits, base = _NUMBERS.get(letter, (3, 8))
    start = at + 1 if letter in _NUMBERS else at
    try:
        return chr(int(text[start : start + digits], base)), start + digits
    except ValueError:
        return f"\\{letter}", at + 1
