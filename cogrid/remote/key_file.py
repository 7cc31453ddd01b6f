"""A private key in a file: what can be told of it without its passphrase, and reading it."""

from __future__ import annotations

import base64
import binascii
import io
import struct
from dataclasses import dataclass
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

_BEGIN = "-----BEGIN OPENSSH PRIVATE KEY-----"
_MAGIC = b"openssh-key-v1\0"
"""OpenSSH's PROTOCOL.key: after it cipher, key derivation, its options, the number of keys, and the
public key, all of it readable without the passphrase."""


class Unusable(Exception):  # noqa: N818
    """The file is there and gives no key; the text says why."""


@dataclass(frozen=True, slots=True)
class KeyFile:
    """public: as it travels, None where only the passphrase would show it."""

    path: Path
    encrypted: bool
    public: bytes | None

    def load(self, passphrase: str | None = None) -> paramiko.PKey:
        """The key, with the certificate that lies beside it. Unusable, also when the passphrase is
        wrong."""
        try:
            key = _read(self.path.read_bytes(), passphrase.encode() if passphrase else None)
            certificate = self.path.with_name(self.path.name + "-cert.pub")
            if certificate.exists():
                key.load_certificate(str(certificate))
            return key
        except (
            paramiko.SSHException,
            UnsupportedAlgorithm,
            OSError,
            ValueError,
            TypeError,
        ) as error:
            if passphrase is not None:
                raise Unusable(f"the passphrase for {self.path} is wrong") from None
            raise Unusable(f"{self.path} is no private key that can be used: {error}") from None


def _read(data: bytes, passphrase: bytes | None) -> paramiko.PKey:
    """Not by paramiko's own reader, which loses some keys that have no comment."""
    try:
        key = serialization.load_ssh_private_key(data, passphrase)
    except ValueError:
        key = serialization.load_pem_private_key(data, passphrase)  # type: ignore[assignment]
    match key:
        case RSAPrivateKey():
            return paramiko.RSAKey(key=key)
        case EllipticCurvePrivateKey():
            return paramiko.ECDSAKey(vals=(key, key.public_key()))
        case Ed25519PrivateKey():
            form = (Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
            return paramiko.Ed25519Key(file_obj=io.StringIO(key.private_bytes(*form).decode()))
        case _:
            raise ValueError("its type is not supported")


def look(path: Path) -> KeyFile | None:
    """What the file is; None where there is none. Unusable where it cannot be read."""
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return _only_public(path)
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}") from None
    if text.lstrip().startswith(_BEGIN):
        encrypted, public = _open_part(text)
        return KeyFile(path, encrypted, public)
    return KeyFile(path, "ENCRYPTED" in text, _public(path.with_name(path.name + ".pub")))


def _only_public(path: Path) -> KeyFile | None:
    """An agent may hold the key of a file that is not here, only its public half."""
    public = _public(path.with_name(path.name + ".pub"))
    return KeyFile(path, True, public) if public else None


def _public(path: Path) -> bytes | None:
    """The key in a .pub file."""
    try:
        return base64.b64decode(path.read_text().split()[1], validate=True)
    except (OSError, ValueError, IndexError, binascii.Error):
        return None


def _open_part(text: str) -> tuple[bool, bytes | None]:
    """Whether it is encrypted, and the public key."""
    body = text.partition(_BEGIN)[2].partition("-----")[0]
    try:
        return _fields(base64.b64decode("".join(body.split())))
    except (ValueError, struct.error):
        return False, None


def _fields(data: bytes) -> tuple[bool, bytes | None]:
    at = len(_MAGIC)
    found = []
    for skip in (0, 0, 0, 4):  # the number of keys stands before the key
        at += skip
        (length,) = struct.unpack_from(">I", data, at)
        found.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    cipher, _, _, public = found
    return cipher != b"none", public
