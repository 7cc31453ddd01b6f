"""What an SSH server says before anything is encrypted (RFC 4253, sections 4.2 and 7.1)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_KEXINIT = 20
_COOKIE = 16
_LISTS = ("kex", "host_keys", "ciphers", "_", "macs")
"""The order of the name lists; of ciphers and macs the first is ours, what we send with."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The algorithms that a server offers, in its order."""

    kex: tuple[str, ...]
    host_keys: tuple[str, ...]
    ciphers: tuple[str, ...]
    macs: tuple[str, ...]


def is_ssh(received: bytes) -> bool:
    """Whether it greets as SSH; lines may come before the greeting."""
    return received.startswith(b"SSH-") or b"\nSSH-" in received


def offer(received: bytes) -> Offer | None:
    """The algorithms, or None when they had not come whole."""
    packet = _after_greeting(received)
    if len(packet) < 6 + _COOKIE or packet[5] != _KEXINIT:
        return None
    lists: dict[str, tuple[str, ...]] = {}
    at = 6 + _COOKIE
    for name in _LISTS:
        if len(packet) < at + 4:
            return None
        (length,) = struct.unpack_from(">I", packet, at)
        words = packet[at + 4 : at + 4 + length]
        if len(words) < length:
            return None
        lists[name] = tuple(words.decode("ascii", "replace").split(","))
        at += 4 + length
    return Offer(lists["kex"], lists["host_keys"], lists["ciphers"], lists["macs"])


def _after_greeting(received: bytes) -> bytes:
    begin = 0 if received.startswith(b"SSH-") else received.find(b"\nSSH-") + 1
    end = received.find(b"\n", begin)
    return received[end + 1 :] if end >= 0 else b""
