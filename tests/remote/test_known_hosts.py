"""known_hosts in all its forms; where ssh-keygen is here, it wrote the lines."""

from __future__ import annotations

import base64
import stat
import struct
from pathlib import Path

import pytest

from cogrid.remote import known_hosts
from cogrid.remote.known_hosts import Standing, Verdict, judge, known_as, of_host


def a_key(kind: str = "ssh-ed25519", seed: int = 1) -> bytes:
    return struct.pack(">I", len(kind)) + kind.encode() + struct.pack(">I", 32) + bytes([seed] * 32)


def a_line(names: str, key: bytes | None = None, kind: str = "ssh-ed25519") -> str:
    return f"{names} {kind} {base64.b64encode(key or a_key(kind)).decode()} a comment\n"


def verdict(text: str, tmp_path: Path, *, host: str = "esxi", port: int = 22) -> Verdict:
    """What a file with this text says of the key ``a_key()``."""
    file = tmp_path / "known_hosts"
    file.write_text(text)
    name = known_as(host, port)
    entries = of_host(known_hosts.read([file]), name, host if port != 22 else "")
    return judge(entries, "ssh-ed25519", a_key(), name)


OTHER = a_key(seed=2)
ECDSA = "ecdsa-sha2-nistp256"


@pytest.mark.parametrize(
    ("text", "port", "standing"),
    [
        ("", 22, Standing.UNKNOWN),
        ("esxi ssh-ed25519 鍵\n|1|鍵|鍵 ssh-ed25519 AAAA\n" + a_line("esxi"), 22, Standing.KNOWN),
        (a_line("esxi"), 22, Standing.KNOWN),
        (a_line("ESXI"), 22, Standing.KNOWN),
        (a_line("other,esxi,192.168.0.41"), 22, Standing.KNOWN),
        (a_line("esx?"), 22, Standing.KNOWN),
        (a_line("e*,!esxi"), 22, Standing.UNKNOWN),
        (a_line("esxi", OTHER), 22, Standing.CHANGED),
        (a_line("esxi", OTHER) + a_line("esxi"), 22, Standing.KNOWN),
        (a_line("esxi", kind=ECDSA), 22, Standing.CHANGED),
        (a_line("ai-core", OTHER), 22, Standing.UNKNOWN),
        ("#" + a_line("esxi"), 22, Standing.UNKNOWN),
        ("esxi ssh-ed25519\nesxi ssh-ed25519 %%%\n\n", 22, Standing.UNKNOWN),
        (a_line("[esxi]:2222"), 2222, Standing.KNOWN),
        (a_line("[esxi]:2222", OTHER), 2222, Standing.CHANGED),
        (a_line("[esxi]:2222"), 22, Standing.UNKNOWN),
        (a_line("esxi"), 2222, Standing.KNOWN),
        (a_line("esxi", OTHER), 2222, Standing.UNKNOWN),
        (a_line("esxi") + a_line("[esxi]:2222", OTHER), 2222, Standing.CHANGED),
        ("@revoked " + a_line("*"), 22, Standing.REVOKED),
        (a_line("esxi") + "@revoked " + a_line("esxi"), 22, Standing.REVOKED),
        ("@revoked " + a_line("*", OTHER) + a_line("esxi"), 22, Standing.KNOWN),
        ("@revoked " + a_line("*", OTHER) + a_line("esxi"), 2222, Standing.KNOWN),
        ("@cert-authority " + a_line("*"), 22, Standing.UNKNOWN),
    ],
)
def test_what_a_file_says(text: str, port: int, standing: Standing, tmp_path: Path) -> None:
    assert verdict(text, tmp_path, port=port).standing is standing


def test_changed_names_the_line_of_the_same_type(tmp_path: Path) -> None:
    text = "# mine\n" + a_line("esxi", kind=ECDSA) + a_line("esxi", OTHER)
    found = verdict(text, tmp_path)
    assert [(entry.line, entry.kind) for entry in found.entries] == [(3, "ssh-ed25519")]
    assert found.entries[0].file == tmp_path / "known_hosts"


@pytest.mark.parametrize("hashed", [False, True])
def test_appended_is_known(hashed: bool, tmp_path: Path) -> None:
    file = tmp_path / "new" / "known_hosts"
    known_hosts.append(file, "[esxi]:2222", "ssh-ed25519", a_key(), hashed=hashed)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert ("esxi" in file.read_text()) is not hashed
    assert verdict(file.read_text(), tmp_path, port=2222).standing is Standing.KNOWN
    assert verdict(file.read_text(), tmp_path, port=22).standing is Standing.UNKNOWN


def test_appended_after_a_torn_line(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(a_line("ai-core").rstrip("\n"))
    known_hosts.append(file, "esxi", "ssh-ed25519", a_key(), hashed=False)
    assert [line.split()[0] for line in file.read_text().splitlines()] == ["ai-core", "esxi"]


def test_missing_file_has_no_lines_and_an_unreadable_one_is_an_error(tmp_path: Path) -> None:
    assert known_hosts.read([tmp_path / "none"]) == ()
    with pytest.raises(OSError, match="directory"):
        known_hosts.read([tmp_path])
