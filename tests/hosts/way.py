"""Ways into a host as people have them: their ssh_config, their keys, their answers."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from cogrid.remote.access import Access
from cogrid.remote.answers import Asked

QUIET = """\
    IdentityAgent none
    GlobalKnownHostsFile /dev/null
"""


def access(
    directory: Path, config: str, *, asked: Asked | None = None, connect_s: float = 5
) -> Access:
    """With this ssh_config. What it does not say is set so that nothing of the person who runs the
    test counts."""
    file = directory / "ssh_config"
    file.write_text(f"{config}\nHost *\n{QUIET}    UserKnownHostsFile {directory}/known_hosts\n")
    return Access(config=file, asked=asked, connect_s=connect_s)


def make_key(path: Path, *, kind: str = "ed25519", passphrase: str = "") -> str:
    """A new key; the line for authorized_keys."""
    how = ["-t", kind, *(["-b", "2048"] if kind == "rsa" else []), "-a", "1"]  # quick to open
    named = ["-N", passphrase, "-C", path.name, "-f", str(path)]
    subprocess.run(["ssh-keygen", "-q", *how, *named], check=True)
    return path.with_name(path.name + ".pub").read_text()


@dataclass(slots=True)
class Person:
    """Somebody at a terminal who gives these answers, one after the other."""

    words: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    yes: bool = False

    @property
    def asked(self) -> Asked:
        """What the code under test gets."""
        return Asked(
            password=lambda where, wrong: self._answer(f"password {where}", wrong),
            passphrase=lambda path, wrong: self._answer(f"passphrase {path.name}", wrong),
            sudo=lambda where, wrong: self._answer(f"sudo {where}", wrong),
            new_key=self._new_key,
        )

    def _answer(self, what: str, wrong: bool) -> str | None:
        self.heard.append(f"{what}, was wrong" if wrong else what)
        return self.words.pop(0) if self.words else None

    def _new_key(self, where: str, shown: str) -> bool:
        self.heard.append(f"{where} {shown}")
        return self.yes
