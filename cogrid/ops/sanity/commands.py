"""The commands that mend what is wrong on a host, as somebody can paste them."""

from __future__ import annotations

import shlex

from cogrid.model.host import Host, Role, Scope


def on_host(host: Host, *words: str) -> str:
    """``cogrid …`` for that host, named as the operator named it."""
    return shlex.join(("cogrid", *words, "--host", host.address))


def start(host: Host, unit: str, scope: str = Scope.SYSTEM) -> str:
    """Starts a unit there; one that systemd has given up is given a new chance first."""
    return on_host(host, "host", "start", "--unit", unit, *_scope(scope))


def restart(host: Host, unit: str, scope: str = Scope.SYSTEM) -> str:
    """Restarts a unit there, its worker drained first."""
    return on_host(host, "host", "restart", "--unit", unit, *_scope(scope))


def logs(host: Host) -> str:
    """Shows what its units say."""
    return on_host(host, "host", "logs")


def install(
    host: Host, *, role: str = Role.WORKER, worker: str = "", more: tuple[str, ...] = ()
) -> str:
    """Writes the unit and its settings anew, and proves that it polls."""
    who = ("--id", worker) if worker else ()
    as_role = ("--role", role) if role != Role.WORKER else ()
    return on_host(host, "install-unit", *as_role, *who, *more)


def trial(host: Host, limit_s: float = 60.0) -> str:
    """Shows everything that a start there prints."""
    return on_host(host, "sanity", "--trial", f"{limit_s:g}")


def by_hand(host: Host, command: str) -> str:
    """What no command of cogrid does: a command to run there."""
    return shlex.join(("ssh", "-t", host.address, command))


def _scope(scope: str) -> tuple[str, ...]:
    return ("--scope", scope) if scope != Scope.SYSTEM else ()
