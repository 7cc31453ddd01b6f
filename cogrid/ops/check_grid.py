"""Reaper and workers, by what a snapshot says of them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from cogrid import __version__
from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import Health, Worker
from cogrid.ops.check import Check, failed, passed, warned
from cogrid.rules.counted import counted
from cogrid.rules.health import health
from cogrid.rules.moment import Moment

_GONE = (Health.DEAD, Health.GHOST)
_SICK = (Health.WEDGED, Health.QUARANTINED)


def check_grid(snapshot: Snapshot, limits: Limits) -> Iterator[Check]:
    """The reaper first: without it nothing of what follows mends itself."""
    yield _reaper(snapshot, limits)
    yield from _workers(snapshot, limits)
    yield from _versions(snapshot)


def _reaper(snapshot: Snapshot, limits: Limits) -> Check:
    mark, now_ms = snapshot.reaper, snapshot.taken_at_ms
    mend = "cogrid reaper --daemon, or cogrid up"
    if not mark.last_pass_ms:
        return failed("reaper", "no reaper has ever run: nothing that is stuck is freed", mend)
    idle_s = (now_ms - mark.last_pass_ms) / 1000
    if idle_s > limits.pass_window_s:
        return failed("reaper", f"the last pass was {idle_s:.0f} s ago: no reaper is running", mend)
    hold_s = (mark.hold_until_ms - now_ms) / 1000
    if hold_s > 0:
        return passed("reaper", f"at work; after a disturbance it waits for another {hold_s:.0f} s")
    return passed("reaper", f"at work; the last pass was {idle_s:.1f} s ago")


def _workers(snapshot: Snapshot, limits: Limits) -> Iterator[Check]:
    at = Moment.of(snapshot, limits)
    words = {w.id: health(w, at) for w in snapshot.workers}
    if not words:
        yield warned("workers", "there is no worker", "cogrid worker run, beside an engine")
        return
    counts = Counter(words.values())
    told = ", ".join(f"{counts[word]} {word}" for word in Health if counts[word])
    bad = [w for w in snapshot.workers if words[w.id] in (*_GONE, *_SICK, Health.DEGRADED)]
    if not bad:
        yield passed("workers", f"{counted(len(words), 'worker')}: {told}")
    for worker in bad:
        yield _bad(worker, words[worker.id])


def _bad(worker: Worker, word: Health) -> Check:
    where = f" on {worker.host}" if worker.host else ""
    what = f"worker {worker.id}{where} is {word}"
    name = shlex.quote(worker.id)
    if word is Health.DEAD:
        return failed("workers", what, f"start it again there, or: cogrid worker forget {name}")
    if word in (Health.GHOST, Health.WEDGED):
        return failed("workers", what, "cogrid diagnose ghosts")
    verdict = warned if word is Health.DEGRADED else failed
    return verdict("workers", what, f"cogrid worker show {name}")


def _versions(snapshot: Snapshot) -> Iterator[Check]:
    others = [w for w in snapshot.workers if w.version and w.version != __version__]
    if others:
        told = ", ".join(f"{worker.id} {worker.version}" for worker in others)
        yield warned(
            "versions",
            f"this is cogrid {__version__}, and there are: {told}",
            "install the same version everywhere, workers last",
        )
    elif snapshot.workers:
        yield passed("versions", f"every worker is of this version, {__version__}")
