"""Whether the host that answers is the one that is meant: before anything else is sent to it."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import paramiko

from cogrid.errors import HostError, HostFault
from cogrid.remote import host_certificate, known_hosts
from cogrid.remote.access import Access
from cogrid.remote.known_hosts import Entry, Standing, Verdict, fingerprint
from cogrid.remote.settings import Settings

_ALGORITHMS = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
"""What a type of key signs with, where that is not its own name (RFC 8332)."""
_ITS_OWN = "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"
"""Run on the host's own console, shows the fingerprint to compare with."""


def entries_of(hop: Settings) -> tuple[Entry, ...]:
    """The lines of known_hosts that are about this host. HostError when a file is not readable."""
    try:
        entries = known_hosts.read((*hop.known_hosts, *hop.global_known_hosts))
    except OSError as error:
        raise HostError(
            f"{hop.place} was not asked: {error.filename} cannot be read: {error.strerror}",
            "make it readable for you, since it says which host keys are right",
            host=hop.name,
            kind=HostFault.HOST_KEY,
        ) from error
    return known_hosts.of_host(entries, hop.known_as, hop.also_known_as)


def preferred(entries: tuple[Entry, ...], possible: tuple[str, ...]) -> tuple[str, ...]:
    """The algorithms to ask for: those of the keys that are known first. A host has several keys,
    and one that is not known would look like another host."""
    known = [kind for entry in entries if not entry.marker for kind in _algorithms(entry.kind)]
    first = tuple(dict.fromkeys(kind for kind in known if kind in possible))
    plain = first + tuple(kind for kind in possible if kind not in first)
    return (host_certificate.algorithms(plain) if _authorities(entries) else ()) + plain


def _authorities(entries: tuple[Entry, ...]) -> frozenset[bytes]:
    revoked = {entry.key for entry in entries if entry.marker == "revoked"}
    return frozenset(e.key for e in entries if e.marker == "cert-authority") - revoked


def _algorithms(kind: str) -> tuple[str, ...]:
    return _ALGORITHMS.get(kind, (kind,))


def check(
    hop: Settings, access: Access, entries: tuple[Entry, ...], shown: paramiko.PKey
) -> tuple[str, ...]:
    """HostError unless the key is known, or new and to be accepted; a note of what was accepted."""
    kind, key = shown.get_name(), shown.asbytes()
    verdict = known_hosts.judge(entries, kind, key, hop.known_as)
    if verdict.standing is Standing.KNOWN:
        return ()
    objection = _objection(hop, verdict, entries, shown)
    if objection is None:
        return ()
    if verdict.standing is Standing.UNKNOWN and _accepted(hop, access, kind, key):
        return _remember(hop, kind, key)
    raise _refused(hop, verdict, objection, kind, key)


def _objection(
    hop: Settings, verdict: Verdict, entries: tuple[Entry, ...], shown: paramiko.PKey
) -> str | None:
    """What speaks against the authorities that known_hosts names; "" where it names none, None
    where one of them vouches for the key."""
    authorities = _authorities(entries)
    if not authorities or verdict.standing is Standing.REVOKED:
        return ""
    name = hop.also_known_as or hop.known_as
    return host_certificate.objection(shown, authorities, name, time.time())


def _accepted(hop: Settings, access: Access, kind: str, key: bytes) -> bool:
    if access.accept_new or hop.accept_new:
        return True
    return access.asked is not None and access.asked.new_key(
        hop.place, f"{kind} {fingerprint(key)}"
    )


def _remember(hop: Settings, kind: str, key: bytes) -> tuple[str, ...]:
    accepted = f"{hop.place} was not known; accepted its host key {kind} {fingerprint(key)}"
    if not hop.known_hosts:
        return (accepted,)
    file = hop.known_hosts[0]
    try:
        known_hosts.append(file, hop.known_as, kind, key, hashed=hop.hash_new)
    except OSError as error:
        raise HostError(
            f"the new host key of {hop.place} cannot be written to {file}: {error.strerror}",
            "make it writable for you; a key that is not kept protects nothing the next time",
            host=hop.name,
            kind=HostFault.HOST_KEY,
        ) from error
    return (f"{accepted} into {file}",)


def _refused(hop: Settings, verdict: Verdict, objection: str, kind: str, key: bytes) -> HostError:
    shows = f"{kind} {fingerprint(key)}"
    match verdict.standing:
        case Standing.CHANGED:
            known = verdict.entries[0]
            message = (
                f"{hop.place} shows another host key than the one that is known: {shows}, where "
                f"{_where(known)} has {known.kind} {fingerprint(known.key)}"
            )
            hint = (
                f"if it was installed anew, compare with `{_ITS_OWN}` on its console, then: "
                f"{_forget(hop, known.file)}"
            )
        case Standing.REVOKED:
            message = (
                f"{hop.place} shows a host key that {_where(verdict.entries[0])} revokes: {shows}"
            )
            hint = "do not log in there; give the host a new key"
        case _:
            message = f"the host key of {hop.place} is not known: {shows}"
            if objection:
                message += f", and no authority vouches for it: {objection}"
            hint = (
                f"compare with `{_ITS_OWN}` on its console, then say --accept-new, or log in once "
                f"with: ssh {_ssh(hop)}"
            )
    return HostError(message, hint, host=hop.name, kind=HostFault.HOST_KEY)


def _where(entry: Entry) -> str:
    return f"{entry.file} line {entry.line}"


def _forget(hop: Settings, file: Path) -> str:
    usual = Path("~/.ssh/known_hosts").expanduser()
    option = "" if file == usual else f"-f {shlex.quote(str(file))} "
    name = hop.known_as
    return f"ssh-keygen {option}-R {shlex.quote(name) if name.startswith('[') else name}"


def _ssh(hop: Settings) -> str:
    port = "" if hop.port == known_hosts.SSH_PORT else f"-p {hop.port} "
    return f"{port}{hop.user}@{hop.name}"
