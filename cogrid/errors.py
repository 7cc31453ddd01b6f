"""The errors cogrid raises on purpose: one root, one subclass for each thing an operator can do.

    CogridError            exit 1  something failed
    ├── UsageError         exit 2  the call or the configuration is wrong
    ├── NotFoundError      exit 1  no such task, worker or model
    ├── ConflictError      exit 1  somebody else holds it
    └── UnreachableError   exit 4  Redis or the coordinator cannot be reached or used

Library code raises them; only ``cli/main.py`` prints one and exits.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes, the same for every command (docs/commands.md)."""

    OK = 0
    FAILED = 1
    USAGE = 2
    FINDINGS = 3
    UNREACHABLE = 4
    SOME_HOSTS = 5
    INTERRUPTED = 130


class CogridError(Exception):
    """A failure that can be told in one sentence.

    message: what failed and on what. hint: what to do about it, or "". problems: where it is
    several things at once, a line each; they stand in the message too.
    """

    exit_code: Exit = Exit.FAILED
    problems: tuple[str, ...] = ()

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(CogridError):
    """The command line or the configuration is wrong; nothing was done."""

    exit_code = Exit.USAGE


class NotFoundError(CogridError):
    """What was named does not exist."""


class ConflictError(CogridError):
    """Somebody else holds what was asked for, such as a worker's name."""


class UnreachableError(CogridError):
    """Redis or the coordinator did not answer, or cannot be used as it is."""

    exit_code = Exit.UNREACHABLE
