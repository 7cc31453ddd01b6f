"""What OpenSSH's configuration says of a host, and of each host on the way to it."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, replace
from pathlib import Path

from cogrid.errors import HostError, HostFault
from cogrid.remote.known_hosts import SSH_PORT, known_as
from cogrid.remote.ssh_config import Config, lookup
from cogrid.remote.target import Target, bracketed, parse_target
from cogrid.remote.tokens import expand, expand_path, tokens

_MOST_HOPS = 8
"""More than this is a configuration that names itself in a circle."""
_FAMILIES = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}


@dataclass(frozen=True, slots=True)
class Settings:
    """One host on the way.

    name: as it was named. host_name: what is connected to. known_as: under what its keys stand in
    known_hosts; also_known_as: the same without the port, "" if there is none, see ssh(1).
    connect_s: 0 if not configured. agent: the socket, None where no agent is to be asked.
    known_hosts: the user's own files, a new key goes into the first. jumps: the nearest one first.
    """

    name: str
    host_name: str
    user: str
    port: int = SSH_PORT
    family: socket.AddressFamily = socket.AF_UNSPEC
    connect_s: float = 0.0
    identities: tuple[Path, ...] = ()
    identities_only: bool = False
    agent: Path | None = None
    known_hosts: tuple[Path, ...] = ()
    global_known_hosts: tuple[Path, ...] = ()
    known_as: str = ""
    also_known_as: str = ""
    hash_new: bool = False
    accept_new: bool = False
    jumps: tuple[Target, ...] = ()
    proxy_command: str = ""

    @property
    def place(self) -> str:
        """For messages: where it is, with the name that it was given where that is another."""
        place = f"{bracketed(self.host_name)}:{self.port}"
        return place if self.name == self.host_name else f"{self.name} ({place})"


def route(target: Target, config: Path | None) -> tuple[Settings, ...]:
    """The hosts from the first that is connected to, over each jump host, to the target.

    As ssh does it: the first jump host may need jump hosts itself, the others are reached through
    the one before. HostError where the configuration cannot be used.
    """
    return _route(target, config, _MOST_HOPS)


def _route(target: Target, config: Path | None, left: int) -> tuple[Settings, ...]:
    own = read(target, config)
    if not own.jumps:
        return (own,)
    if left == 0:
        raise HostError(
            f"the jump hosts of {target.shown} lead to each other in a circle",
            f"look at ProxyJump in `ssh -G {target.name}`",
            host=target.name,
            kind=HostFault.ADDRESS,
        )
    first, *others = own.jumps
    between = (replace(read(hop, config), jumps=(), proxy_command="") for hop in others)
    return (*_route(first, config, left - 1), *between, own)


def read(target: Target, config: Path | None) -> Settings:
    """What the configuration says of this one host."""
    said = lookup(target, config)
    host_name = said.one("hostname", target.name)
    port = int(said.one("port", str(SSH_PORT)))
    alias = said.one("hostkeyalias")
    jumps = said.one("proxyjump")
    words = _tokens(target, said, host_name, port)
    return Settings(
        name=target.name,
        host_name=host_name,
        user=said.one("user"),
        port=port,
        family=_FAMILIES.get(said.one("addressfamily"), socket.AF_UNSPEC),
        connect_s=_seconds(said.one("connecttimeout")),
        identities=tuple(expand_path(file, words) for file in said.all("identityfile")),
        identities_only=said.yes("identitiesonly"),
        agent=_agent(said.one("identityagent", "SSH_AUTH_SOCK"), words),
        known_hosts=_files(said.one("userknownhostsfile"), words),
        global_known_hosts=_files(said.one("globalknownhostsfile"), words),
        known_as=alias or known_as(host_name, port),
        also_known_as=host_name if port != SSH_PORT and not alias else "",
        hash_new=said.yes("hashknownhosts"),
        accept_new=said.one("stricthostkeychecking") == "accept-new",
        jumps=tuple(parse_target(hop) for hop in jumps.split(",") if hop),
        proxy_command=expand(said.one("proxycommand"), words),
    )


def _tokens(target: Target, said: Config, host_name: str, port: int) -> dict[str, str]:
    return tokens(
        name=target.name,
        host_name=host_name,
        port=port,
        user=said.one("user"),
        alias=said.one("hostkeyalias"),
        jump=said.one("proxyjump"),
    )


def _seconds(value: str) -> float:
    """OpenSSH's times: plain seconds, as ``ssh -G`` prints them, or "none"."""
    return float(value) if value.isdigit() else 0.0


def _agent(value: str, words: dict[str, str]) -> Path | None:
    """IdentityAgent: a socket, "none", or the name of the variable that holds it."""
    if value == "none":
        return None
    if value == "SSH_AUTH_SOCK":
        value = "$SSH_AUTH_SOCK"
    if value.startswith("$") and not value.startswith("${"):
        value = os.environ.get(value[1:], "")
    return expand_path(value, words) if value else None


def _files(value: str, words: dict[str, str]) -> tuple[Path, ...]:
    """A list of files. OpenSSH prints one with a space in its name without its quotes, so a word
    that begins no path belongs to the one before."""
    files: list[str] = []
    for word in value.split():
        if files and word[0] not in "/~%$":
            files[-1] += " " + word
        else:
            files.append(word)
    return tuple(expand_path(file, words) for file in files if file != "none")
