"""What a command prints under ``--json``, told once beside the command; docs/commands.md is made
from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])

ATTRIBUTE = "json_answers"


def answers(*documents: str) -> Callable[[F], F]:
    """Each a value class (``module:name``), whose fields are the document's, or a sentence about a
    document that has no class."""

    def mark(command: F) -> F:
        setattr(command, ATTRIBUTE, documents)
        return command

    return mark
