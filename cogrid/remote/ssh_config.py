"""Reads OpenSSH's configuration: by OpenSSH itself where its client is here, else by paramiko."""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import paramiko

from cogrid.errors import HostError, HostFault
from cogrid.remote.foreign import last_line
from cogrid.remote.target import Target

_READ_S = 10.0
"""For ``ssh -G``, which may run what a Match line asks it to."""
_FILES = (Path("~/.ssh/config"), Path("/etc/ssh/ssh_config"))
_DEFAULTS = {
    "identityfile": tuple(f"~/.ssh/id_{kind}" for kind in ("rsa", "ecdsa", "ed25519")),
    "userknownhostsfile": ("~/.ssh/known_hosts ~/.ssh/known_hosts2",),
    "globalknownhostsfile": ("/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2",),
}
"""OpenSSH's own, see ssh_config(5), for what paramiko leaves out."""
_WAYS = ("proxycommand", "proxyjump")
"""Keywords of which OpenSSH tells nothing where they are "none"; paramiko has that, or None."""


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one host: each keyword in small letters with its values."""

    values: dict[str, tuple[str, ...]]

    def all(self, keyword: str) -> tuple[str, ...]:
        """Every value, in order."""
        return tuple(value for value in self.values.get(keyword, ()) if value.lower() != "none")

    def one(self, keyword: str, default: str = "") -> str:
        """The value, ``default`` where there is none."""
        return next(iter(self.values.get(keyword, ())), default)

    def yes(self, keyword: str) -> bool:
        """Whether it is switched on."""
        return self.one(keyword) in ("yes", "true")


def lookup(target: Target, config: Path | None) -> Config:
    """What the configuration says of this host. config: a file instead of the user's and the
    system's. HostError where it cannot be read."""
    ssh = shutil.which("ssh")
    return _ask_ssh(ssh, target, config) if ssh else _ask_paramiko(target, config)


def _ask_ssh(ssh: str, target: Target, config: Path | None) -> Config:
    argv = [ssh, "-G", "-T"]
    argv += ["-F", str(config)] if config is not None else []
    argv += ["-l", target.user] if target.user else []
    argv += ["-p", str(target.port)] if target.port else []
    try:
        done = subprocess.run(
            [*argv, "--", target.name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_READ_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _unusable(target, f"`ssh -G` took longer than {_READ_S:g} s") from None
    if done.returncode != 0:
        raise _unusable(target, last_line(done.stderr))
    values: dict[str, tuple[str, ...]] = {}
    for line in done.stdout.decode(errors="surrogateescape").splitlines():
        keyword, _, value = line.partition(" ")
        values[keyword] = (*values.get(keyword, ()), value)
    return Config(values)


def _ask_paramiko(target: Target, config: Path | None) -> Config:
    files = [path.expanduser() for path in ((config,) if config is not None else _FILES)]
    named = f"User {target.user}\n" * bool(target.user) + f"Port {target.port}\n" * bool(
        target.port
    )
    text = "\n".join((named, *(path.read_text() for path in files if path.exists())))
    if re.search(r"^\s*include\b", text, re.IGNORECASE | re.MULTILINE):
        raise _unusable(target, "it uses Include, which only OpenSSH's own client reads")
    try:
        found = paramiko.SSHConfig.from_text(text).lookup(target.name)
    except (paramiko.ConfigParseError, ImportError) as error:  # ImportError: a Match exec
        raise _unusable(target, str(error)) from error
    values = _DEFAULTS | {"user": (getpass.getuser(),)}
    values |= {
        keyword: _several(value)
        for keyword, value in found.items()
        if keyword not in _WAYS or str(value).lower() != "none"
    }
    return Config(values)


def _several(value: object) -> tuple[str, ...]:
    """paramiko gives a list where a keyword may come more than once, whatever its types say."""
    return tuple(value) if isinstance(value, list) else (str(value),)


def _unusable(target: Target, why: str) -> HostError:
    return HostError(
        f"the ssh configuration for {target.shown} cannot be used: {why}",
        f"`ssh -G {target.name}` shows how OpenSSH reads it",
        host=target.name,
        kind=HostFault.ADDRESS,
    )
