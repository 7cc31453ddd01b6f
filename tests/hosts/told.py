"""A page that tells a story in console blocks: what is typed, and what it says is shown.

In a block a line behind a prompt (``$ ``, or ``esxi$ `` on that host) is typed, and the lines below
it are shown, in their order. ``…`` stands for what is left out. ``[y/N]: y`` at the end of a line
is typed there. ``exit code N`` below a command is told, not shown; where it is not told it is 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = re.compile(r"([a-z-]*)\$ (.*)")
CODE = re.compile(r"exit code (\d+)")
LEFT_OUT = "…"
YES = "[y/N]: y"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
VARIES = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\b\d\d:\d\d:\d\d\b"  # times
    r"|\b\d+(\.\d+)? (s|ms|[MG]B|packages)\b"  # how long, how much
    r"|\bprocess \d+\b"
    r"|(?<![\d.])\d+\.\d+\.\d+(-[0-9a-f]{8})?(?![\d.])"  # versions
    r"|\bcg-[\w-]{20,}|\b[0-9a-f]{32}\b"  # keys, ids
)
"""What differs from run to run; so do blanks and line breaks, by how wide a terminal is."""


@dataclass(slots=True)
class Step:
    """where: "" for the machine that one sits at. lines: what is shown, as it is quoted."""

    where: str
    typed: str
    code: int = 0
    lines: list[str] = field(default_factory=list)

    @property
    def parts(self) -> list[str]:
        """What must be shown, between what is left out."""
        return [plain(part) for part in "\n".join(self.lines).split(LEFT_OUT) if part.strip()]

    @property
    def cues(self) -> tuple[tuple[str, str], ...]:
        """What is typed at which question."""
        return tuple((YES[:-2], "y\n") for line in self.lines if line.endswith(YES))

    def missing(self, shown: str) -> str:
        """The first part that was not shown where it should be, "" where all were."""
        text, at = plain(shown), 0
        for part in self.parts:
            found = text.find(part, at)
            if found < 0:
                return part
            at = found + len(part)
        return ""


def steps(page: Path) -> Iterator[Step]:
    """Everything that it has one type, in its order."""
    for block in BLOCK.findall(page.read_text()):
        step: Step | None = None
        for line in block.splitlines():
            if prompt := PROMPT.fullmatch(line):
                if step:
                    yield step
                step = Step(prompt[1], prompt[2])
                continue
            assert step, f"{line!r} is shown before anything is typed"
            if code := CODE.fullmatch(line):
                step.code = int(code[1])
            else:
                step.lines.append(line)
        if step:
            yield step


def plain(text: str) -> str:
    """Without colours, on one line, and without what differs from run to run."""
    return VARIES.sub("#", " ".join(ESCAPES.sub("", text).split()))
