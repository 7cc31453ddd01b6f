"""Words of another machine: text that is shown and never obeyed."""

from __future__ import annotations

_LONGEST = 200


def last_line(said: bytes | str) -> str:
    """The last line that says something, with everything that would move a cursor or change a
    colour spelt out; "" where there is none."""
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    lines = (line.strip() for line in reversed(text.split("\n")))
    return plain(next((line for line in lines if line), ""))


def plain(text: str) -> str:
    """Control characters spelt out, and not longer than a line or two."""
    spelt = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return spelt if len(spelt) <= _LONGEST else spelt[: _LONGEST - 3] + "..."
