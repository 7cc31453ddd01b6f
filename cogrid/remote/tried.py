"""What a login has tried, and the sentence for it when nothing did."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path

import paramiko

from cogrid.errors import HostError, HostFault
from cogrid.remote.known_hosts import SSH_PORT
from cogrid.remote.settings import Settings
from cogrid.remote.target import bracketed


@dataclass(slots=True)
class Tried:
    """What became of a login so far.

    allowed: the methods that the host takes. offered: keys and passwords that it refused. rsa: the
    RSA keys of those. unusable: files that gave no key, and why. locked: those that want a
    passphrase, and what became of that. too_old: keys for which there is no common signature.
    """

    allowed: frozenset[str] = frozenset()
    offered: list[str] = field(default_factory=list)
    rsa: dict[str, paramiko.PKey] = field(default_factory=dict)
    unusable: list[str] = field(default_factory=list)
    locked: dict[Path, str] = field(default_factory=dict)
    too_old: list[str] = field(default_factory=list)


def refused(hop: Settings, tried: Tried, notes: tuple[str, ...], *, hung_up: bool) -> HostError:
    """Why nobody was let in, by what weighs most. hung_up: the host ended the connection."""
    if tried.offered or (hung_up and not tried.allowed):
        kind, (message, hint) = HostFault.LOGIN, _turned_away(hop, tried, hung_up=hung_up)
    elif tried.too_old:
        kind, (message, hint) = HostFault.ALGORITHM, _too_old(hop, tried)
    elif tried.locked:
        kind, (message, hint) = HostFault.PASSPHRASE, _locked(hop, tried)
    else:
        kind, (message, hint) = HostFault.LOGIN, _no_key(hop)
    locked = [f"{path} {why}" for path, why in tried.locked.items()]
    also = "; ".join((*locked, *tried.unusable, *notes))
    return HostError(message + (f" ({also})" if also else ""), hint, host=hop.name, kind=kind)


def _turned_away(hop: Settings, tried: Tried, *, hung_up: bool) -> tuple[str, str]:
    if hung_up and len(tried.offered) > 1:
        return (
            f"{hop.place} hung up on {hop.user} after {len(tried.offered)} keys",
            "it takes only a few: in ssh_config, name the right one, with IdentitiesOnly yes",
        )
    if hung_up and not tried.offered:
        return (
            f"{hop.place} closed the connection before {hop.user} could log in",
            "its own log says why: journalctl -u ssh",
        )
    what = ", ".join(dict.fromkeys(tried.offered))
    return (
        f"{hop.place} refuses the user {hop.user}: it was offered {what}, and took none",
        f"is {hop.user} the right user? If so: {_copy(hop)}",
    )


def _too_old(hop: Settings, tried: Tried) -> tuple[str, str]:
    keys = ", ".join(tried.too_old)
    return (
        f"{hop.place} and this side have no signature algorithm in common for {keys}",
        f"SHA-1 (ssh-rsa) is over: update its sshd, or ssh-keygen -t ed25519 and {_copy(hop)}",
    )


def _locked(hop: Settings, tried: Tried) -> tuple[str, str]:
    files = " ".join(shlex.quote(str(path)) for path in tried.locked)
    return (
        f"there is no key to log in to {hop.place} with as {hop.user} but a locked one",
        f"unlock it in an agent first: ssh-add {files}",
    )


def _no_key(hop: Settings) -> tuple[str, str]:
    return (
        f"there is no key to log in to {hop.place} with as {hop.user}",
        f"make one and take it there: ssh-keygen -t ed25519; {_copy(hop)}",
    )


def _copy(hop: Settings) -> str:
    port = f" -p {hop.port}" if hop.port != SSH_PORT else ""
    return f"ssh-copy-id{port} {hop.user}@{bracketed(hop.host_name)}"
