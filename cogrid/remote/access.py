"""With what this side goes in: OpenSSH's configuration, and what a person may be asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cogrid.remote.answers import Asked


@dataclass(frozen=True, slots=True)
class Access:
    """How hosts are reached.

    asked: None where nobody can be asked: no terminal. accept_new: a host that was never seen is
    written to known_hosts; a changed one never is. config: an ssh_config file instead of the user's
    and the system's own. connect_s: for each phase of a connection (TCP, greeting and keys, login)
    where the configuration has no ConnectTimeout.
    """

    asked: Asked | None = None
    accept_new: bool = False
    config: Path | None = None
    connect_s: float = 10.0
