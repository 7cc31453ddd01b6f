"""What a server offers before anything is encrypted."""

from __future__ import annotations

import struct

import pytest

from cogrid.remote.greeting import Offer, is_ssh, offer


def a_packet(*lists: str) -> bytes:
    payload = b"\x14" + bytes(16)
    for names in lists:
        payload += struct.pack(">I", len(names)) + names.encode()
    return struct.pack(">IB", len(payload) + 1, 0) + payload


LISTS = ("kex-a,kex-b", "ssh-rsa", "c1", "c2", "m1", "m2", "none", "none", "", "")
WHOLE = b"please wait\r\nSSH-2.0-OpenSSH_5.3\r\n" + a_packet(*LISTS)


def test_offer() -> None:
    assert offer(WHOLE) == Offer(("kex-a", "kex-b"), ("ssh-rsa",), ("c1",), ("m1",))


def test_without_lines_before() -> None:
    assert offer(WHOLE[13:]) == offer(WHOLE)


def test_cut_anywhere_is_no_offer() -> None:
    needed = WHOLE.index(b"m1") + 2
    for length in range(needed):
        assert offer(WHOLE[:length]) is None
    assert offer(WHOLE[:needed]) is not None


@pytest.mark.parametrize(
    ("received", "ssh"),
    [
        (b"SSH-2.0-x\r\n", True),
        (b"hello\nSSH-2.0-x", True),
        (b"-ERR unknown command 'SSH-2.0-paramiko'\r\n", False),
        (b"HTTP/1.1 400 Bad Request\r\n", False),
        (b"", False),
    ],
)
def test_is_ssh(received: bytes, ssh: bool) -> None:
    assert is_ssh(received) is ssh
