"""Logs in as ssh does: the agent's keys, key files, and what a person may be asked."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import paramiko

from cogrid.errors import HostError, HostFault
from cogrid.remote import agent, key_file
from cogrid.remote.access import Access
from cogrid.remote.key_file import KeyFile, Unusable
from cogrid.remote.settings import Settings
from cogrid.remote.target import bracketed

_TRIES = 3
"""Passphrases and passwords, as OpenSSH's NumberOfPasswordPrompts."""
_PASSWORDS = frozenset({"password", "keyboard-interactive"})


@dataclass(frozen=True, slots=True)
class Offer:
    """A key to be offered. load: gives it, and may ask for its passphrase."""

    what: str
    load: Callable[[], paramiko.PKey] = field(repr=False)


@dataclass(slots=True)
class Tried:
    """What became of the login so far. allowed: the methods that the host takes."""

    allowed: frozenset[str] = frozenset()
    offered: list[str] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    locked: list[str] = field(default_factory=list)
    too_old: list[str] = field(default_factory=list)


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
    raise _refused(hop, tried, notes, hung_up=not transport.is_active())


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
        tried.locked.append(f"{file.path} needs a passphrase, and there is no terminal to ask on")
        return
    for wrong in [False, *[True] * (_TRIES - 1)]:
        passphrase = access.asked.passphrase(file.path, wrong)
        if passphrase is None:
            tried.locked.append(f"{file.path} needs a passphrase, and none was given")
            return
        try:
            key = file.load(passphrase)
        except Unusable as error:
            why = str(error)
            continue
        yield Offer(str(file.path), _given(key))
        return
    tried.locked.append(why)


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


def _refused(hop: Settings, tried: Tried, notes: tuple[str, ...], *, hung_up: bool) -> HostError:
    also = "; ".join((*tried.locked, *tried.unusable, *notes))
    port = f" -p {hop.port}" if hop.port != 22 else ""
    if tried.too_old and not tried.offered:
        return _no_algorithm(hop, tried)
    if hung_up and len(tried.offered) > 1:
        message = f"{hop.place} hung up on {hop.user} after {len(tried.offered)} keys"
        hint = (
            "it takes only a few tries: name the right key in ~/.ssh/config with IdentityFile and "
            "IdentitiesOnly yes"
        )
    elif hung_up and not tried.allowed:
        message = f"{hop.place} closed the connection before {hop.user} could log in"
        hint = "its own log says why: journalctl -u ssh"
    elif tried.offered:
        what = ", ".join(dict.fromkeys(tried.offered))
        message = f"{hop.place} refuses the user {hop.user}: it was offered {what}, and took none"
        hint = (
            f"is {hop.user} the right user? If so: "
            f"ssh-copy-id{port} {hop.user}@{bracketed(hop.host_name)}"
        )
    elif tried.locked:
        return HostError(
            f"{hop.place}: {also}",
            "unlock it in an agent first: " + _add(tried, hop),
            host=hop.name,
            kind=HostFault.PASSPHRASE,
        )
    else:
        message = f"there is no key to log in to {hop.place} with as {hop.user}"
        hint = (
            f"make one and take it there: ssh-keygen -t ed25519; "
            f"ssh-copy-id{port} {hop.user}@{bracketed(hop.host_name)}"
        )
    return HostError(
        message + (f" ({also})" if also else ""), hint, host=hop.name, kind=HostFault.LOGIN
    )


def _add(tried: Tried, hop: Settings) -> str:
    path = next((str(path) for path in hop.identities if tried.locked[0].count(str(path))), "")
    return f"ssh-add {path}"


def _no_algorithm(hop: Settings, tried: Tried) -> HostError:
    return HostError(
        f"{hop.place} and this side have no signature algorithm in common for "
        f"{', '.join(tried.too_old)}: SHA-1 signatures (ssh-rsa) are not made any more",
        "make a new key (ssh-keygen -t ed25519) and take it there, or update its sshd",
        host=hop.name,
        kind=HostFault.ALGORITHM,
    )
