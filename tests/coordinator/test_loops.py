"""The loops beside the requests go on, whatever happens in one of their turns; and readiness."""

from __future__ import annotations

import pytest

from cogrid.model.worker import WorkerState
from tests.coordinator.script import ScriptedWorker
from tests.coordinator.stage import Stage, eventually


async def test_a_fault_of_ours_ends_no_loop(grid: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """A number that is none is a bug, ours or somebody else's; the grid is read again after it."""

    async def told() -> bool:
        return "it begins again" in caplog.text

    await grid.call("HSET", grid.store.keys.totals, "queued_bytes", "many")
    await eventually(told, what="the fault to be told")
    await grid.call("HSET", grid.store.keys.totals, "queued_bytes", "0")
    await ScriptedWorker(grid.store, "ai-core").register()

    async def seen() -> bool:
        workers = (await grid.http.get("/workers")).json()["workers"]
        return {each["id"] for each in workers} == {"esxi", "ai-core"}

    await eventually(seen, what="the worker that came after the fault")
    # Registry and watch may both have met it; each tells once, however many turns it lasted.
    assert caplog.text.count("it begins again") in (1, 2)


@pytest.mark.parametrize("state", [WorkerState.STARTING, WorkerState.AWAY, WorkerState.DRAINING])
async def test_ready_only_while_some_worker_takes_tasks(grid: Stage, state: WorkerState) -> None:
    assert (await grid.http.get("/readyz")).status_code == 200
    await grid.workers["esxi"].renew(state)
    await grid.refresh()
    answer = await grid.http.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["missing"] == ["no worker could take a task"]
