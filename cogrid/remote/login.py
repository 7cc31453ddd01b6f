"""Logs in as ssh does: the agent's keys, key files, and what a person may be asked."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import paramiko

from cogrid.remote import agent, key_file
from cogrid.remote.access import Access
from cogrid.remote.key_file import KeyFile, Unusable
from cogrid.remote.old_signature import only_old
from cogrid.remote.settings import Settings
from cogrid.remote.tried import Tried, refused

_TRIES = 3
"""Passphrases and passwords, as OpenSSH's NumberOfPasswordPrompts."""
_PASSWORDS = frozenset({"password", "keyboard-interactive"})


@dataclass(frozen=True, slots=True)
class Offer:
    """A key to be offered. load: gives it, and may ask for its passphrase."""

    what: str
    load: Callable[[], paramiko.PKey] = field(repr=False)


def log_in(transport: paramiko.Transport, hop: Settings, access: Access) -> tuple[str, ...]:
    """Logs in on a connection whose host key is known to be right; notes for the operator.

    HostError when nothing works, with what was offered and why it did not do.
    """
    with contextlib.ExitStack() as opened:
        its_agent, note = agent.keys(hop.agent)
        if its_agent is not None:
            opened.callback(its_agent.close)
        notes = (note,) if note else ()
        tried = Tried()
        if _none(transport, hop, tried):
            return notes
        for offer in _offers(hop, access, its_agent, tried):
            if "publickey" in tried.allowed and _key(transport, hop, offer, tried):
                return notes
            if not transport.is_active():
                break
        if _password(transport, hop, access, tried):
            return notes
        hung_up = not transport.is_active()
        _blame_age(transport, hop, tried)
    raise refused(hop, tried, notes, hung_up=hung_up)


def _none(transport: paramiko.Transport, hop: Settings, tried: Tried) -> bool:
    """Asks what the host takes; sshd does not count it."""
    return _attempt(transport, tried, lambda: transport.auth_none(hop.user))


def _attempt(transport: paramiko.Transport, tried: Tried, offer: Callable[[], list[str]]) -> bool:
    """Whether that logged in; a host may want another method on top."""
    try:
        further = offer()
    except paramiko.BadAuthenticationType as error:
        tried.allowed = frozenset(error.allowed_types)
        return False
    except (paramiko.SSHException, EOFError, OSError):
        return False
    tried.allowed = frozenset(further) or tried.allowed
    return not further


def _offers(
    hop: Settings, access: Access, its_agent: agent.Agent | None, tried: Tried
) -> Iterator[Offer]:
    """The keys, the likeliest first: a host takes only a few (MaxAuthTries).

    Named keys that the agent holds, named files without a passphrase, the agent's other keys, and
    last the files that somebody must be asked about.
    """
    files = _files(hop, tried)
    held = list(its_agent.get_keys()) if its_agent is not None else []
    named = {file.public: file for file in files if file.public}
    mine = [key for key in held if key.asbytes() in named]
    for key in mine:
        yield Offer(f"{named[key.asbytes()].path} (from the agent)", _given(key))
    left = [file for file in files if file.public not in [key.asbytes() for key in mine]]
    for file in left:
        if not file.encrypted:
            yield Offer(str(file.path), file.load)
    if not hop.identities_only:
        for key in held:
            if key not in mine:
                yield Offer(f"{key.comment or key.fingerprint} (agent)", _given(key))
    for file in left:
        if file.encrypted and file.path.exists():
            yield from _locked(file, access, tried)


def _given(key: paramiko.PKey) -> Callable[[], paramiko.PKey]:
    return lambda: key


def _files(hop: Settings, tried: Tried) -> list[KeyFile]:
    found = []
    for path in hop.identities:
        try:
            file = key_file.look(path)
        except Unusable as error:
            tried.unusable.append(str(error))
        else:
            found += [file] if file is not None else []
    return found


def _locked(file: KeyFile, access: Access, tried: Tried) -> Iterator[Offer]:
    if access.asked is None:
        tried.locked[file.path] = "needs a passphrase, and there is no terminal to ask on"
        return
    for wrong in [False, *[True] * (_TRIES - 1)]:
        passphrase = access.asked.passphrase(file.path, wrong)
        if passphrase is None:
            tried.locked[file.path] = "needs a passphrase, and none was given"
            return
        try:
            key = file.load(passphrase)
        except Unusable:
            continue
        yield Offer(str(file.path), _given(key))
        return
    tried.locked[file.path] = "did not open with any of the passphrases"


def _key(transport: paramiko.Transport, hop: Settings, offer: Offer, tried: Tried) -> bool:
    try:
        key = offer.load()
    except Unusable as error:
        tried.unusable.append(str(error))
        return False
    if not _signs(transport, key):
        tried.too_old.append(f"{offer.what} ({key.get_name()})")
        return False
    tried.offered.append(offer.what)
    if key.get_name() == "ssh-rsa":
        tried.rsa[offer.what] = key
    return _attempt(transport, tried, lambda: transport.auth_publickey(hop.user, key))


def _signs(transport: paramiko.Transport, key: paramiko.PKey) -> bool:
    """Whether there is an algorithm that this key signs with and the host takes. ssh-rsa, which
    signs with SHA-1, is not one that we have."""
    takes = taken(transport)
    if not takes:
        return True
    kind = key.get_name()
    if kind.startswith("ssh-rsa"):
        return any(name.startswith("rsa-sha2") for name in takes)
    return kind in takes


def _blame_age(transport: paramiko.Transport, hop: Settings, tried: Tried) -> None:
    """Which of the refused keys were refused for their signature."""
    for what, key in tried.rsa.items():
        if transport.is_active() and only_old(transport, hop.user, key):
            tried.offered.remove(what)
            tried.too_old.append(f"{what} (ssh-rsa)")


def taken(transport: paramiko.Transport) -> tuple[str, ...]:
    """The signature algorithms that the host says it takes (RFC 8308); () when it does not say."""
    extensions: dict[str, bytes | str] = getattr(transport, "server_extensions", {})
    said = extensions.get("server-sig-algs", b"")
    text = said.decode("ascii", "replace") if isinstance(said, bytes) else str(said)
    return tuple(text.split(",")) if text else ()


def _password(transport: paramiko.Transport, hop: Settings, access: Access, tried: Tried) -> bool:
    """Only a person gives passwords."""
    if access.asked is None or not tried.allowed & _PASSWORDS:
        return False
    for wrong in [False, *[True] * (_TRIES - 1)]:
        password = access.asked.password(f"{hop.user}@{hop.place}", wrong)
        if password is None:
            return False
        tried.offered.append("a password")
        if _attempt(transport, tried, _offering(transport, hop.user, password)):
            return True
        if not transport.is_active():
            break
    return False


def _offering(transport: paramiko.Transport, user: str, word: str) -> Callable[[], list[str]]:
    return lambda: transport.auth_password(user, word)
