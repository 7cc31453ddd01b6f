"""The pulls after which every model is served from two hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from cogrid.model.limits import Limits
from cogrid.model.names import DEMO_MODEL, WorkerId
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import Worker
from cogrid.rules.grid import Grid
from cogrid.rules.homes import all_models
from cogrid.rules.mend import RUN_DEMO

HOSTS = 2
"""A model that so many hosts can serve survives the loss of one."""
EXACT = 20
"""Up to so many models every combination is tried, as far as bounds allow it."""
TRIES = 100_000
"""Combinations that are tried at most; a second of work."""
DISK_SPARE_BYTES = 1 << 30
"""What a pull leaves free on a disk."""


@dataclass(frozen=True, slots=True)
class Pull:
    """size_bytes: 0 where nobody that has the model says it."""

    model: str
    worker: WorkerId
    host: str
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Unfixed:
    """A model that will not be on two hosts, and why."""

    model: str
    why: str


@dataclass(frozen=True, slots=True)
class Fix:
    """exact: there is no smaller set of pulls that leaves fewer models unfixed. models: how many
    were looked at."""

    pulls: tuple[Pull, ...]
    unfixed: tuple[Unfixed, ...]
    exact: bool
    models: int


@dataclass(frozen=True, slots=True)
class _Lack:
    """hosts: where a pull could put the model. missing: so many of them are needed."""

    model: str
    size_bytes: int
    missing: int
    hosts: tuple[str, ...]


def fix(snapshot: Snapshot, limits: Limits, model: str | None = None) -> Fix:
    """The pulls, spread over the hosts. model: only this one."""
    grid = Grid.of(snapshot, limits)
    pullers = _pullers(grid)
    models = all_models(snapshot) if model is None else (model,)
    lacks = [lack for name in models if (lack := _lack(name, grid, pullers))]
    lacks.sort(key=lambda lack: (-lack.size_bytes, lack.model))
    free = {host: _disk(worker) for host, worker in pullers.items()}
    chosen, exact = _search(lacks, free) if len(lacks) <= EXACT else (_greedy(lacks, free), False)
    chosen = _spread(lacks, free, chosen)
    pulls = tuple(
        Pull(lack.model, pullers[host].id, host, lack.size_bytes)
        for lack in lacks
        for host in chosen.get(lack.model, ())
    )
    unfixed = tuple(
        Unfixed(lack.model, _why(lack))
        for lack in lacks
        if len(chosen.get(lack.model, ())) < lack.missing
    )
    return Fix(pulls, unfixed, exact, len(models))


def _pullers(grid: Grid) -> dict[str, Worker]:
    """On each host the worker that would pull: one beside Ollama that could take tasks now."""
    able = {seat.worker.id for seats in grid.homes.values() for seat in seats if seat.able}
    found: dict[str, Worker] = {}
    for worker in sorted(grid.snapshot.workers, key=lambda each: (-each.slots, each.id)):
        if worker.id in able and worker.pulls:
            found.setdefault(worker.host or worker.id, worker)
    return found


def _lack(model: str, grid: Grid, pullers: dict[str, Worker]) -> _Lack | None:
    able = {
        seat.worker.host or seat.worker.id for seat in grid.homes.get(model, ()) if seat.capable
    }
    if len(able) >= HOSTS:
        return None
    offers = [offer for worker in grid.snapshot.workers if (offer := worker.offer(model))]
    size_bytes = max((offer.size_bytes for offer in offers), default=0)
    hosts = tuple(
        host
        for host, worker in pullers.items()
        if model != DEMO_MODEL and host not in able and _fits(worker, size_bytes)
    )
    return _Lack(model, size_bytes, HOSTS - len(able), hosts)


def _fits(worker: Worker, size_bytes: int) -> bool:
    """Alone on the disk, and in memory; what is not known stands in no way."""
    memory = worker.report.get("memory_bytes")
    held = not isinstance(memory, int) or size_bytes <= memory
    return held and size_bytes <= _disk(worker)


def _disk(worker: Worker) -> float:
    free = worker.report.get("disk_free_bytes")
    return free - DISK_SPARE_BYTES if isinstance(free, int) else float("inf")


def _search(lacks: list[_Lack], free: dict[str, float]) -> tuple[dict[str, tuple[str, ...]], bool]:
    """Depth first, the largest models first, the emptiest hosts first; the first choice that leaves
    nothing missing is as small as any. Where there is none, the one that leaves least."""
    needed = sum(lack.missing for lack in lacks)
    best: dict[str, tuple[str, ...]] = {}
    best_count, tries = -1, 0

    def go(
        at: int, left: dict[str, float], load: Counter[str], chosen: dict[str, tuple[str, ...]]
    ) -> bool:
        nonlocal best, best_count, tries
        tries += 1
        count = sum(map(len, chosen.values()))
        if count > best_count:
            best, best_count = dict(chosen), count
        if count == needed or tries > TRIES:
            return True
        if at == len(lacks) or count + sum(each.missing for each in lacks[at:]) <= best_count:
            return False
        lack = lacks[at]
        for hosts in _ways(lack, left, load):
            spent = {host: room - lack.size_bytes * (host in hosts) for host, room in left.items()}
            if go(at + 1, spent, load + Counter(hosts), {**chosen, lack.model: hosts}):
                return True
        return False

    go(0, free, Counter(), {})
    return best, tries <= TRIES


def _ways(lack: _Lack, left: dict[str, float], load: Counter[str]) -> Iterator[tuple[str, ...]]:
    """Sets of hosts for one model, the fullest sets first."""
    room = [host for host in lack.hosts if left[host] >= lack.size_bytes]
    room.sort(key=lambda host: (load[host], -left[host], host))
    for count in range(min(lack.missing, len(room)), -1, -1):
        yield from combinations(room, count)


def _greedy(lacks: list[_Lack], free: dict[str, float]) -> dict[str, tuple[str, ...]]:
    left, load = dict(free), Counter[str]()
    chosen = {}
    for lack in lacks:
        hosts = next(_ways(lack, left, load))
        for host in hosts:
            left[host] -= lack.size_bytes
            load[host] += 1
        chosen[lack.model] = hosts
    return chosen


def _spread(
    lacks: list[_Lack], free: dict[str, float], chosen: dict[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """The same number of pulls, from hosts with many to hosts with at least two fewer, as long as
    there is one that could move: so that they run side by side, and no host has most of them."""
    load = Counter(host for hosts in chosen.values() for host in hosts)
    left = dict(free)
    for lack in lacks:
        for host in chosen.get(lack.model, ()):
            left[host] -= lack.size_bytes
    while step := _step(lacks, left, load, chosen):
        lack, here, there = step
        load[here] -= 1
        load[there] += 1
        left[here] += lack.size_bytes
        left[there] -= lack.size_bytes
        hosts = tuple(there if host == here else host for host in chosen[lack.model])
        chosen = {**chosen, lack.model: hosts}
    return chosen


def _step(
    lacks: list[_Lack],
    left: dict[str, float],
    load: Counter[str],
    chosen: dict[str, tuple[str, ...]],
) -> tuple[_Lack, str, str] | None:
    """One pull that should move: from where, to where. Each makes the squares of the loads smaller,
    so there are not many."""
    for lack in lacks:
        hosts = chosen.get(lack.model, ())
        rest = [h for h in lack.hosts if h not in hosts and left[h] >= lack.size_bytes]
        if hosts and rest:
            here = max(hosts, key=lambda host: load[host])
            there = min(rest, key=lambda host: load[host])
            if load[there] + 1 < load[here]:
                return lack, here, there
    return None


def _why(lack: _Lack) -> str:
    if lack.model == DEMO_MODEL:
        return f"it is built in, so it is not pulled: run `{RUN_DEMO}` on another machine"
    if len(lack.hosts) < lack.missing:
        needed = f"{lack.missing} more {'host' if lack.missing == 1 else 'hosts'}"
        be = "is" if lack.missing == 1 else "are"
        there = "there is only 1" if lack.hosts else "there is none"
        return f"{needed} with Ollama and room for it {be} needed, {there}"
    return "the other models leave no room for it"
