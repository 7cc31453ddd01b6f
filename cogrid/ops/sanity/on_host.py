"""What is wrong with a machine itself: systemd, Python, clock, memory, disk, strays."""

from __future__ import annotations

from collections.abc import Iterator

from cogrid.model.host import Host
from cogrid.ops.sanity import commands
from cogrid.ops.sanity.ask import HostSeen
from cogrid.ops.sanity.check import HostCheck, broken, doubtful, fine
from cogrid.ops.sanity.facts import Disk, HostFacts

OLDEST_PYTHON = (3, 11)
SKEW_S = 2.0
"""Redis' clock alone decides; a host that is off by more misleads whoever reads its logs."""
LOW = 0.05
"""Part of a disk or of memory below which it is said."""
GIB = 1 << 30


def judge_host(seen: HostSeen) -> Iterator[HostCheck]:
    """The machine without its units."""
    host, facts = seen.host, seen.facts
    yield fine("reached", "ssh", f"logged in as {facts.login} on {facts.name} ({facts.system})")
    if facts.init != "systemd":
        yield broken(
            "no_systemd",
            "host",
            f"its first process is {facts.init or 'unknown'}, not systemd: no unit can run there",
            "run cogrid worker run under the supervisor that it has",
        )
    yield _python(host, facts)
    yield _clock(seen)
    yield _memory(facts)
    yield from map(_disk, _tight_first(facts.disks))
    yield fine("compute", "host", "it has a GPU" if facts.gpu else "it has no GPU: CPU only")
    for stray in facts.strays:
        yield broken(
            "by_hand",
            "unit",
            f"{stray.what} was started by hand as process {stray.pid} of {stray.user}, so it ends "
            "with that session",
            commands.install(host),
        )


def _python(host: Host, facts: HostFacts) -> HostCheck:
    told = ", ".join(".".join(map(str, version)) for version in facts.pythons) or "none"
    if facts.pythons and facts.pythons[0] >= OLDEST_PYTHON:
        return fine("python", "version", f"Python {told}")
    return broken(
        "python_old",
        "version",
        f"cogrid needs Python 3.11 or later, and it has {told}",
        commands.by_hand(host, "sudo apt-get install python3.11"),
    )


def _clock(seen: HostSeen) -> HostCheck:
    """Beside Redis' clock where it was asked from there, else beside this side's."""
    by_redis = [probe.trial.redis for probe in seen.probes if probe.trial and probe.trial.redis]
    told = [redis.ahead_s for redis in by_redis if redis.ahead_s is not None]
    if seen.bare and seen.bare.redis and seen.bare.redis.ahead_s is not None:
        told.append(seen.bare.redis.ahead_s)
    least_s, most_s = (told[0], told[0]) if told else seen.ahead_s
    beside = "Redis" if told else "this machine"
    theirs = "Redis'" if told else "this machine's"
    if least_s <= SKEW_S and most_s >= -SKEW_S:
        return fine("clock", "clock", f"its clock agrees with {beside}")
    off_s = least_s if least_s > 0 else most_s
    side = "ahead of" if off_s > 0 else "behind"
    return broken(
        "clock_off",
        "clock",
        f"its clock is {abs(off_s):.0f} s {side} {theirs}: its logs cannot be compared",
        commands.by_hand(seen.host, "sudo timedatectl set-ntp true"),
    )


def _memory(facts: HostFacts) -> HostCheck:
    what = f"{_gib(facts.memory_free_bytes)} of {_gib(facts.memory_bytes)} memory are free"
    if facts.memory_free_bytes >= LOW * facts.memory_bytes:
        return fine("memory", "host", what)
    return doubtful("memory_low", "host", what, "load fewer models, or smaller ones")


def _disk(disk: Disk) -> HostCheck:
    what = f"{_gib(disk.free_bytes)} of {_gib(disk.size_bytes)} are free on {disk.place}"
    if disk.free_bytes >= LOW * disk.size_bytes:
        return fine("disk", "host", what, disk.place)
    return doubtful(
        "disk_low", "host", what, "free some there, such as models: cogrid model remove", disk.place
    )


def _tight_first(disks: tuple[Disk, ...]) -> list[Disk]:
    """Each file system once; the tight ones, or the tightest one."""
    by_part = sorted(disks, key=lambda disk: disk.free_bytes / max(1, disk.size_bytes))
    tight = [disk for disk in by_part if disk.free_bytes < LOW * disk.size_bytes]
    return tight or by_part[:1]


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / GIB:.1f} GiB"
