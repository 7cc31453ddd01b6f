"""Key files: what can be told without a passphrase."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from cogrid.remote.key_file import Unusable, look
from tests.conftest import missing


def make(path: Path, *options: str, passphrase: str = "") -> bytes:
    """A key by ssh-keygen; its public half as text."""
    if shutil.which("ssh-keygen") is None:
        missing("ssh-keygen", "apt-get install openssh-client")
    argv = ["ssh-keygen", "-q", "-a", "1", "-N", passphrase, "-C", "", "-f", str(path), *options]
    subprocess.run(argv, check=True)
    return path.with_name(path.name + ".pub").read_bytes()


KINDS = (
    ("-t", "ed25519"),
    ("-t", "ecdsa"),
    ("-t", "rsa", "-b", "2048"),
    ("-t", "rsa", "-b", "2048", "-m", "PEM"),
    ("-t", "ecdsa", "-m", "PEM"),
)


@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize("passphrase", ["", "correct horse ä"])
def test_every_kind(options: tuple[str, ...], passphrase: str, tmp_path: Path) -> None:
    public = make(tmp_path / "key", *options, passphrase=passphrase)
    file = look(tmp_path / "key")
    assert file is not None
    assert file.encrypted is bool(passphrase)
    key = file.load(passphrase or None)
    assert key.get_base64() == public.split()[1].decode()
    assert file.public == key.asbytes()
    if passphrase:
        with pytest.raises(Unusable, match=r"the passphrase for .*key is wrong"):
            file.load("battery staple")


def test_without_padding_or_comment(tmp_path: Path) -> None:
    """Some of these need no padding, depending on their numbers."""
    for number in range(8):
        make(tmp_path / str(number), "-t", "ecdsa")
        file = look(tmp_path / str(number))
        assert file is not None
        assert file.load().asbytes() == file.public


def test_public_half_of_an_open_form_needs_no_other_file(tmp_path: Path) -> None:
    make(tmp_path / "key", "-t", "ed25519", passphrase="x" * 5)
    whole = look(tmp_path / "key")
    (tmp_path / "key.pub").unlink()
    assert look(tmp_path / "key") == whole


def test_only_the_public_half_is_here(tmp_path: Path) -> None:
    make(tmp_path / "key", "-t", "ed25519")
    whole = look(tmp_path / "key")
    (tmp_path / "key").unlink()
    half = look(tmp_path / "key")
    assert whole is not None
    assert half is not None
    assert half.public == whole.public


def test_none(tmp_path: Path) -> None:
    assert look(tmp_path / "none") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no key",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n\n-----END OPENSSH PRIVATE KEY-----\n",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\n",
    ],
)
def test_what_is_no_key(text: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(text)
    file = look(tmp_path / "key")
    assert file is not None
    with pytest.raises(Unusable, match="is no private key that can be used"):
        file.load()


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="cannot be read"):
        look(tmp_path)
