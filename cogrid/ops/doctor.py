"""A check-up of everything that cogrid needs here: each thing passes, or says what to do."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from cogrid import __version__
from cogrid.config import ConfigError, Effective
from cogrid.errors import CogridError, Exit, UnreachableError
from cogrid.ops.check import Check, Verdict, failed
from cogrid.ops.check_coordinator import check_coordinator
from cogrid.ops.check_grid import check_grid
from cogrid.ops.check_here import check_here
from cogrid.ops.check_redis import check_redis, check_time
from cogrid.ops.doubt import fleet_unknown
from cogrid.store.client import Store
from cogrid.store.snapshot import read_snapshot

CLIENT_URL = "client.url"


@dataclass(frozen=True, slots=True)
class Checkup:
    """at: when, by this machine's clock (UTC). reached: Redis answered. bundle: the file that was
    written, null where none was asked for."""

    version: str
    host: str
    at: str
    reached: bool
    checks: tuple[Check, ...]
    bundle: str | None = None

    @property
    def exit_code(self) -> Exit:
        """4 where Redis did not answer, 3 where something should be done, else 0."""
        if not self.reached:
            return Exit.UNREACHABLE
        fine = all(check.verdict is Verdict.PASS for check in self.checks)
        return Exit.OK if fine else Exit.FINDINGS


def checkup(
    found: Effective,
    connect: Callable[[], Store],
    coordinator: str,
    env: Mapping[str, str] = os.environ,
) -> Checkup:
    """Look at everything. Nothing is written; what cannot be looked at is one of the checks.
    coordinator: the URL of the one that commands here ask."""
    checks = [*_guarded("here", lambda: check_here(found, env))]
    reached, of_the_grid = _grid(found, connect)
    checks += of_the_grid
    named = CLIENT_URL in found.sources or coordinator != found.config.client.url
    checks += check_coordinator(coordinator, named)
    return _made(reached, checks)


def misconfigured(error: ConfigError) -> Checkup:
    """The check-up of a configuration that cannot be read: nothing else is known then."""
    mend = "correct it; cogrid config check says the same"
    return _made(True, [failed("configuration", problem, mend) for problem in error.problems])


def _grid(found: Effective, connect: Callable[[], Store]) -> tuple[bool, list[Check]]:
    try:
        store = connect()
    except CogridError as error:
        return True, [_failure("redis", error)]
    try:
        checks = list(check_time(store))
    except UnreachableError as error:
        return False, [_failure("redis", error)]
    try:
        snapshot = store.read(read_snapshot(store.keys, stray=True))
    except UnreachableError as error:
        return True, [*checks, _failure("redis", error)]
    checks += _guarded("redis", lambda: check_redis(store, snapshot.server))
    checks += _hidden(store)
    if not fleet_unknown(store.unread):
        checks += check_grid(snapshot, found.config.limits)
    store.close()
    return True, checks


def _hidden(store: Store) -> Iterator[Check]:
    """What our user may not read, so that nothing can be said of it."""
    if store.gaps:
        yield from (failed("redis", gap.what, gap.mend) for gap in store.gaps.all)


def _guarded(area: str, look: Callable[[], Iterable[Check]]) -> Iterator[Check]:
    """The checks, up to one that cannot be made, which is told as a failure."""
    try:
        yield from look()
    except CogridError as error:
        yield _failure(area, error)


def _failure(area: str, error: CogridError) -> Check:
    return failed(area, error.message, error.hint or "see what is said above")


def _made(reached: bool, checks: Iterable[Check]) -> Checkup:
    at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    host = socket.gethostname().partition(".")[0]
    return Checkup(__version__, host, at, reached, tuple(checks))
