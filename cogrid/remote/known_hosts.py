"""The known_hosts files in all their forms (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT")."""

from __future__ import annotations

import base64
import contextlib
import fnmatch
import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

SSH_PORT = 22
_HASHED = "|1|"


class Standing(StrEnum):
    """What the files say of a key that a host shows."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line. marker: "", "revoked" or "cert-authority". names: its first field. kind: the type
    of its key, such as ssh-ed25519. key: the public key as it travels."""

    marker: str
    names: str
    kind: str
    key: bytes
    file: Path
    line: int

    def names_host(self, name: str) -> bool:
        """Whether it is of the host of this name, which is ``[name]:port`` for ports but 22."""
        if self.names.startswith(_HASHED):
            return self.names == _hashed(name, self.names)
        patterns = self.names.lower().split(",")
        hits = [p for p in patterns if fits(p.removeprefix("!"), name.lower())]
        return bool(hits) and not any(p.startswith("!") for p in hits)


@dataclass(frozen=True, slots=True)
class Verdict:
    """entries: the lines that it rests on; for a changed key those that say another."""

    standing: Standing
    entries: tuple[Entry, ...] = ()


def known_as(host_name: str, port: int) -> str:
    """Under what name a host's keys stand."""
    return host_name.lower() if port == SSH_PORT else f"[{host_name.lower()}]:{port}"


def fingerprint(key: bytes) -> str:
    """As ssh-keygen -l shows it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


def read(files: Iterable[Path]) -> tuple[Entry, ...]:
    """All lines of all files that can be understood; a file that is not there has none. OSError
    for one that is there and cannot be read."""
    found: list[Entry] = []
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            text = file.read_text(errors="replace")
            lines = enumerate(text.splitlines(), start=1)
            found += [entry for n, line in lines if (entry := _parse(line, file, n))]
    return tuple(found)


def of_host(entries: Iterable[Entry], name: str, also: str = "") -> tuple[Entry, ...]:
    """The lines of one host. also: its name without a port, which counts where ``name`` has no
    line at all, and then only for a key that is the same."""
    entries = tuple(entries)
    exact = tuple(entry for entry in entries if entry.names_host(name))
    if not also or any(not entry.marker for entry in exact):
        return exact
    return exact + tuple(entry for entry in entries if entry.names_host(also))


def judge(entries: tuple[Entry, ...], kind: str, key: bytes, name: str) -> Verdict:
    """What the lines of a host (``of_host``) say of the key that it shows.

    A host that is known by keys of other types only has changed: those types were asked for first,
    and it no longer has one.
    """
    revoked = tuple(e for e in entries if e.marker == "revoked" and e.key == key)
    if revoked:
        return Verdict(Standing.REVOKED, revoked)
    plain = tuple(e for e in entries if not e.marker)
    same = tuple(e for e in plain if e.key == key)
    if same:
        return Verdict(Standing.KNOWN, same)
    own = tuple(e for e in plain if e.names_host(name))
    if own:
        return Verdict(Standing.CHANGED, tuple(e for e in own if e.kind == kind) or own)
    return Verdict(Standing.UNKNOWN)


def append(file: Path, name: str, kind: str, key: bytes, *, hashed: bool) -> None:
    """Adds a line; the file and its folder are made, readable by their owner only. OSError."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    names = _hashed(name, f"{_HASHED}{_salt()}|") if hashed else name
    line = f"{names} {kind} {base64.b64encode(key).decode()}\n".encode()
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        end = os.lseek(descriptor, 0, os.SEEK_END)
        torn = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
        os.write(descriptor, b"\n" * torn + line)  # one write: several hosts may be added at once
    finally:
        os.close(descriptor)


def _parse(line: str, file: Path, number: int) -> Entry | None:
    fields = line.split()
    if not fields or fields[0].startswith("#"):
        return None
    marker = fields.pop(0)[1:] if fields[0].startswith("@") else ""
    if len(fields) < 3:
        return None
    names, kind, encoded = fields[:3]
    try:
        key = base64.b64decode(encoded, validate=True)
    except ValueError:  # also what is not even ASCII
        return None
    return Entry(marker, names, kind, key, file, number)


def fits(pattern: str, name: str) -> bool:
    """OpenSSH's patterns know * and ?, and no character classes, which brackets are to fnmatch."""
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


def _salt() -> str:
    return base64.b64encode(secrets.token_bytes(20)).decode()


def _hashed(name: str, like: str) -> str:
    """The name hashed with the salt of another hashed field."""
    salt = like.removeprefix(_HASHED).partition("|")[0]
    try:
        key = base64.b64decode(salt, validate=True)
    except ValueError:
        return ""
    digest = hmac.new(key, name.encode(), hashlib.sha1).digest()
    return f"{_HASHED}{salt}|{base64.b64encode(digest).decode()}"
