"""Certificates for tests of TLS: an authority of our own and one certificate for localhost."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in PEM form."""

    authority: Path
    certificate: Path
    key: Path


def make_certificates(directory: Path) -> Certificates:
    """Makes them with openssl, valid for a day, for 127.0.0.1 and localhost."""
    made = Certificates(directory / "ca.pem", directory / "cert.pem", directory / "key.pem")
    new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    authority_key = directory / "ca-key.pem"
    _openssl(*new, "-days", "1", "-subj", "/CN=cogrid test authority",
             "-addext", "keyUsage=critical,keyCertSign",
             "-keyout", str(authority_key), "-out", str(made.authority))  # fmt: skip
    _openssl(*new, "-days", "1", "-subj", "/CN=localhost",
             "-addext", "basicConstraints=critical,CA:FALSE",
             "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
             "-CA", str(made.authority), "-CAkey", str(authority_key),
             "-keyout", str(made.key), "-out", str(made.certificate))  # fmt: skip
    return made


def _openssl(*words: str) -> None:
    subprocess.run(("openssl", *words), check=True, capture_output=True)
