"""How hosts are logged in to: the options about it, and the questions that a person is asked."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cogrid.cli.output import clean

if TYPE_CHECKING:
    from cogrid.remote.access import Access

Function = Callable[..., Any]


def with_access(command: Function) -> Function:
    """``--accept-new`` and ``--ssh-config``; the command gets ``access``."""

    @click.option(
        "--ssh-config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Instead of your ssh_config and the system's.",
    )
    @click.option(
        "--accept-new",
        is_flag=True,
        help="Remember the key of a host that was never seen; a changed one is refused.",
    )
    @functools.wraps(command)
    def told(*args: Any, accept_new: bool, ssh_config: Path | None, **more: Any) -> Any:
        return command(*args, access=access(accept_new, ssh_config), **more)

    return told


def access(accept_new: bool, ssh_config: Path | None) -> Access:
    """With somebody to ask where there is a terminal."""
    from cogrid.remote.access import Access
    from cogrid.remote.answers import Asked

    asked = None
    if sys.stdin.isatty() and sys.stderr.isatty():
        person = _Person()
        asked = Asked(person.password, person.passphrase, person.sudo, person.new_key)
    return Access(asked=asked, accept_new=accept_new, config=ssh_config)


class _Person:
    """Asks one thing at a time, and the same thing once. Answers are kept for this call only."""

    def __init__(self) -> None:
        self._one = threading.Lock()
        self._said: dict[str, str | None] = {}
        self._keeps_echo = False

    def password(self, host: str, wrong: bool) -> str | None:
        return self._secret(f"Password for {host}", wrong)

    def passphrase(self, file: Path, wrong: bool) -> str | None:
        return self._secret(f"Passphrase of {file}", wrong)

    def sudo(self, host: str, wrong: bool) -> str | None:
        return self._secret(f"Password for sudo on {host}", wrong)

    def new_key(self, host: str, fingerprint: str) -> bool:
        question = f"{host} was never seen before; its key is {fingerprint}. Is that the host?"
        with self._one:
            click.echo(f"{clean(question)} [y/N]: ", nl=False, err=True)
            return _line().strip().lower() in ("y", "yes")

    def _secret(self, question: str, wrong: bool) -> str | None:
        with self._one:
            if wrong or question not in self._said:
                self._keep_echo()
                again = "That was wrong. " if wrong else ""
                said = click.prompt(
                    clean(again + question),
                    hide_input=True,
                    default="",
                    show_default=False,
                    err=True,
                )
                self._said[question] = said or None
            return self._said[question]

    def _keep_echo(self) -> None:
        """The terminal shows again what is typed there, also after Ctrl-C at the question: that
        ends this process and not the thread that asks, which would have seen to it."""
        if self._keeps_echo:
            return
        self._keeps_echo = True
        with contextlib.suppress(ImportError):  # Windows has no termios
            import termios

            before = termios.tcgetattr(sys.stdin)
            atexit.register(termios.tcsetattr, sys.stdin, termios.TCSADRAIN, before)


def _line() -> str:
    """What is typed at the terminal. Not by sys.stdin: a thread that still waits there when the
    command ends holds its lock, and Python aborts."""
    return os.read(sys.stdin.fileno(), 1024).decode(errors="replace")
