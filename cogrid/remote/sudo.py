"""Whether a login may act as root, and by what; exit codes decide, never words.

Every call ignores what sudo remembers of an earlier one (-k): a shell over SSH has no terminal that
it would remember it for, and so the same question always has the same answer. Words of sudo are
shown and not read; they are asked for in English.
"""

from __future__ import annotations

from cogrid.errors import HostError, HostFault
from cogrid.remote.answers import Asked
from cogrid.remote.foreign import last_line
from cogrid.remote.session import Result, Session, Through

_TRIES = 3
_SUDO = "exec env LC_ALL=C sudo -k "
_SILENT = "-n "
_ASKING = "-S -p '' "
_SHELL = "/bin/sh -c :"
_NOT_FOUND = 127
"""What env, like every shell, ends with where there is no such program."""
_ON_TERMINAL = (
    'exec /bin/sh -c \'read -r word; printf "%s\\n" "$word" | env LC_ALL=C sudo -k -S -p "" {}\''
)
"""The password by a pipe there too: sudo asks again for a wrong one, and only a pipe has an end."""


def way_to_root(session: Session, user: str, asked: Asked | None) -> Through:
    """How a shell is started as root from this login. asked: somebody who knows the password.

    HostError when it cannot be; nothing was changed there.
    """
    if session.script("id -u", (), timeout_s=30).text == "0":
        return Through()
    answer = session.plain(_SUDO + _SILENT + _SHELL)
    if answer.code == 0:
        return Through(_words(_SILENT))
    if answer.code == _NOT_FOUND:
        raise _error(session, user, "there is no sudo", "install sudo there, or log in as root")
    _look(session, user)
    if asked is None:
        raise _error(
            session,
            user,
            f"sudo needs a password, or does not know {user} at all{_said(answer)}",
            f"run this on a terminal, where it is asked for, or {_allow(user)}",
        )
    return _with_password(session, user, asked)


def _with_password(session: Session, user: str, asked: Asked) -> Through:
    for again in range(_TRIES):
        password = asked.sudo(f"{user}@{session.place}", again > 0)
        if password is None:
            raise _error(session, user, "sudo needs a password, and none was given", _allow(user))
        first = password.encode() + b"\n"
        answer = session.plain(_SUDO + _ASKING + _SHELL, first)
        if answer.code == 0:
            return Through(_words(_ASKING), first)
        if not again:
            _look(session, user, first)
    raise _error(
        session,
        user,
        f"sudo refused every password, or does not know {user} at all{_said(answer)}",
        f"check the password of {user} there, or {_allow(user)}",
    )


def _look(session: Session, user: str, first: bytes = b"") -> None:
    """After a refusal: HostError where sudo lets this user list what is allowed, which tells more.
    On a terminal, since it may be that which it wants."""

    def allowed(words: str) -> bool:
        command = _ON_TERMINAL.format(words) if first else _SUDO + _SILENT + words
        return session.plain(command, first, pty=True).code == 0

    if not allowed("-l"):
        return
    if allowed(_SHELL):
        raise _error(
            session,
            user,
            "sudo demands a terminal (requiretty)",
            f"write with visudo: Defaults:{user} !requiretty",
        )
    if first or not allowed("-l /bin/sh"):
        raise _error(
            session,
            user,
            "sudo allows only certain commands, and not a shell",
            f"`sudo -l` there lists them; {_allow(user)}",
        )


def _words(how: str) -> str:
    return _SUDO.removeprefix("exec ") + how


def _said(answer: Result) -> str:
    """What sudo says itself, as text from another machine."""
    said = last_line(answer.err)
    return f" (it says: {said})" if said else ""


def _allow(user: str) -> str:
    return f"allow it there with visudo: {user} ALL=(ALL) NOPASSWD: ALL"


def _error(session: Session, user: str, why: str, hint: str) -> HostError:
    return HostError(
        f"{user} cannot act as root on {session.place}: {why}",
        hint,
        host=session.host,
        kind=HostFault.SUDO,
    )
