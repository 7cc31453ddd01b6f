"""The coordinator that clients here would ask."""

from __future__ import annotations

from collections.abc import Iterator

import httpx

from cogrid.ops.check import Check, failed, passed, warned
from cogrid.ops.settings import without_password

AREA = "coordinator"
PATIENCE_S = 3.0


def check_coordinator(url: str, named: bool) -> Iterator[Check]:
    """Whether it lives and could serve. named: by somebody, or by ``cogrid up``; else nobody may
    have meant one to be here."""
    shown = without_password(url)
    try:
        with httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
            alive = client.get("/healthz")
            ready = client.get("/readyz")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        verdict = failed if named else warned
        yield verdict(
            AREA,
            f"nothing answers at {shown}: {error or type(error).__name__}",
            "start it (cogrid coordinator run, or cogrid up), or set client.url",
        )
        return
    if alive.status_code != 200:
        yield failed(AREA, f"{shown} is no coordinator of cogrid", "set client.url")
        return
    yield passed(AREA, f"alive at {shown}")
    yield _readiness(ready)


def _readiness(ready: httpx.Response) -> Check:
    if ready.status_code == 200:
        return passed(AREA, "ready: it can write to Redis, and some worker could take a task")
    try:
        missing = ", ".join(map(str, ready.json()["missing"]))
    except (ValueError, KeyError, TypeError):
        missing = f"status {ready.status_code}"
    return failed(AREA, f"not ready: {missing}", "see what this check-up says of Redis and workers")
