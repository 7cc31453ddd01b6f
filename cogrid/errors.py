"""The errors cogrid raises on purpose: one root, one subclass for each thing an operator can do.

    CogridError            exit 1  something failed
    ├── UsageError         exit 2  the call or the configuration is wrong
    ├── NotFoundError      exit 1  no such task, worker or model
    ├── ConflictError      exit 1  somebody else holds it
    ├── UnreachableError   exit 4  Redis or the coordinator cannot be reached or used
    └── HostError          exit 5  a host could not be asked over SSH

Library code raises them; only ``cli/main.py`` prints one and exits.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum


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


class HostFault(StrEnum):
    """What kept a host from being asked; decided by what happened, never by a message's text."""

    ADDRESS = "address"
    """Its name has no address."""
    UNREACHABLE = "unreachable"
    """Refused, no route, or a jump host that could not pass us on."""
    TIMEOUT = "timeout"
    """A phase or a command took longer than it was given."""
    NOT_SSH = "not_ssh"
    """Something answers there, and it is no SSH server."""
    HOST_KEY = "host_key"
    """Its key is unknown, changed, revoked or of another type."""
    ALGORITHM = "algorithm"
    """No algorithm in common, for the connection or for the login."""
    LOGIN = "login"
    """It refused the user or every key."""
    PASSPHRASE = "passphrase"
    """A key file needs a passphrase that was not to be had or was wrong."""
    SHELL = "shell"
    """The login shell there never came to run /bin/sh."""
    SUDO = "sudo"
    """The login there may not act as root."""
    FILE = "file"
    """A file could not be written there."""
    LOST = "lost"
    """The connection broke after it had stood."""
    STOPPED = "stopped"
    """The whole call was ended before this host had answered."""


class HostError(CogridError):
    """A host could not be asked, or not to the end; the message names it with its port.

    host: as the operator named it. kind: what failed.
    """

    exit_code = Exit.SOME_HOSTS

    def __init__(self, message: str, hint: str = "", *, host: str, kind: HostFault) -> None:
        super().__init__(message, hint)
        self.host = host
        self.kind = kind
