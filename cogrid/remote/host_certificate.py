"""A host key that an authority vouches for (OpenSSH's PROTOCOL.certkeys)."""

from __future__ import annotations

import base64
from collections.abc import Collection

import paramiko
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    SSHCertificate,
    SSHCertificateType,
    load_ssh_public_identity,
)

from cogrid.remote.known_hosts import fits

_SUFFIX = "-cert-v01@openssh.com"


def algorithms(plain: tuple[str, ...]) -> tuple[str, ...]:
    """Under what names a host is asked for the certificates of these types of key."""
    return tuple(kind + _SUFFIX for kind in plain)


def objection(
    shown: paramiko.PKey, authorities: Collection[bytes], name: str, now_s: float
) -> str | None:
    """Why the certificate that a host shows does not hold; None when it does.

    authorities: the public keys whose word counts for this host. name: what the host is called, by
    its HostKeyAlias or without its port. now_s: seconds since the epoch.
    """
    certificate = _read(shown)
    if certificate is None:
        return "it shows no certificate"
    try:
        certificate.verify_cert_signature()
    except InvalidSignature:
        return "its certificate is forged"
    authority = certificate.signature_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    if base64.b64decode(authority.split()[1]) not in authorities:
        return "its certificate is by another authority"
    if certificate.type is not SSHCertificateType.HOST or certificate.critical_options:
        return "its certificate is not for a host"
    if not certificate.valid_after <= now_s < certificate.valid_before:
        return "its certificate is over or not valid yet"
    names = [
        principal.decode(errors="replace").lower() for principal in certificate.valid_principals
    ]
    if names and not any(fits(pattern, name.lower()) for pattern in names):
        return f"its certificate is for {', '.join(names)}"
    return None


def _read(shown: paramiko.PKey) -> SSHCertificate | None:
    blob = getattr(shown, "public_blob", None)
    if blob is None:
        return None
    line = f"{blob.key_type} {base64.b64encode(blob.key_blob).decode()}".encode()
    try:
        found = load_ssh_public_identity(line)
    except (ValueError, UnsupportedAlgorithm):
        return None
    return found if isinstance(found, SSHCertificate) else None
