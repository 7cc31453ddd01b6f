"""Which machines are meant, and how all of them are asked at once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from cogrid.errors import HostError, HostFault, UsageError
from cogrid.model.host import Host
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import Worker
from cogrid.ops.found import the_worker
from cogrid.remote.fan_out import ask_all
from cogrid.remote.places import places_of
from cogrid.remote.target import Target, parse_target
from cogrid.rules.hosts import Places, machines, spellings, told_address

T = TypeVar("T")

_LOOK_S = 5.0
"""For all names to be looked up; a name server that is silent is not waited for any longer."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What one host answered. value: None where it could not be asked; error then says why."""

    host: Host
    value: T | None
    error: HostError | None = None


def ask_each(
    hosts: Iterable[Host], ask: Callable[[Host], T], each_s: float, at_once: int = 32
) -> tuple[Answer[T], ...]:
    """One answer a machine, in order; a host that is dead holds up none of the others, and one
    that cannot be a host, which come last, neither. Two of ``hosts`` that are one machine are asked
    once. each_s: the most that one may take; those that wait for their turn have theirs."""
    by_target: dict[Target, Host] = {}
    none: dict[Host, HostError] = {}
    for host in hosts:
        try:
            by_target.setdefault(target_of(host), host)
        except HostError as error:
            none[host] = error
    limit_s = -(-len(by_target) // at_once) * each_s
    answers = ask_all(tuple(by_target), lambda target: ask(by_target[target]), limit_s, at_once)
    found: list[tuple[Host, T | HostError]] = list(zip(by_target.values(), answers, strict=True))
    return tuple(
        Answer(host, None, answer) if isinstance(answer, HostError) else Answer(host, answer)
        for host, answer in (*found, *none.items())
    )


def target_of(host: Host) -> Target:
    """Where it is. HostError where that cannot be a host: a worker may have told anything."""
    try:
        return parse_target(host.address)
    except UsageError as error:
        raise HostError(
            f"{host.id or 'a worker'} has told a name of its machine that is none: {error.message}",
            "name the machine with --host",
            host=host.address,
            kind=HostFault.ADDRESS,
        ) from error


def meant(
    named: tuple[Host, ...],
    workers: tuple[str, ...],
    configured: tuple[Host, ...],
    snapshot: Callable[[], Snapshot],
    look: Callable[[Iterable[str]], Mapping[str, Places]],
) -> tuple[Host, ...]:
    """The hosts that were named, else those of the named workers; where nothing was, every
    ``[[host]]``, else every host that a worker of the grid has told. snapshot: read where the
    configuration does not know enough. look: where names lead from here. UsageError where there is
    none, or for a name that cannot be a host's, NotFoundError for a worker that nobody knows."""
    for host in named or configured:
        parse_target(host.address)
    if named:
        return named
    if workers:
        wanted = _of_workers(workers, configured, snapshot)
    elif configured:
        return configured
    else:
        wanted = tuple(worker for worker in snapshot().workers if worker.host)
    if not wanted:
        raise UsageError(
            "there is no host to ask: the configuration has no [[host]], and the grid no worker",
            "name one with --host 192.168.0.41",
        )
    return machines(wanted, look(spellings(wanted)))


def look_up(names: Iterable[str], config: Path | None) -> dict[str, Places]:
    """Where each name leads from here; nowhere where that is not known in time. config: an
    ssh_config file instead of the user's and the system's."""
    targets: dict[str, Target] = {}
    for name in names:
        with contextlib.suppress(UsageError):  # a worker may have told anything
            targets[name] = parse_target(name)
    found = ask_all(tuple(targets.values()), lambda target: places_of(target, config), _LOOK_S)
    return {
        name: frozenset() if isinstance(places, HostError) else places
        for name, places in zip(targets, found, strict=True)
    }


def _of_workers(
    names: tuple[str, ...], configured: tuple[Host, ...], snapshot: Callable[[], Snapshot]
) -> tuple[Host | Worker, ...]:
    by_id = {host.id: host for host in configured if host.id}
    grid = None if by_id.keys() >= set(names) else snapshot()
    return tuple(
        by_id.get(name) or _written_down(the_worker(grid, name), configured)
        if grid
        else by_id[name]
        for name in names
    )


def _written_down(worker: Worker, configured: tuple[Host, ...]) -> Host | Worker:
    """The configured host that is the worker's, by what its machine has told; else itself."""
    if not worker.host:
        raise UsageError(
            f"{worker.id} has never told on which host it runs", "name the host with --host"
        )
    told = {worker.host, worker.host.partition(".")[0], told_address(worker.address)}
    here = (host for host in configured if parse_target(host.address).name in told)
    return next(here, worker)
