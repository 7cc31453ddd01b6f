"""The incident as an operator sees it while no reaper acts, and each of its commands run."""

from __future__ import annotations

import re
from functools import partial

from cogrid.engine.fault import FaultModel
from tests.e2e.chat import Ending
from tests.e2e.grid import MODEL, Grid, chats, said
from tests.e2e.host import Host, needs_hosts
from tests.e2e.mended import found, mend
from tests.e2e.overlap import scaled
from tests.wait import until_async

OTHER = "llama3.2:1b"
QUEUE = "tasks:cpu:esxi"
REGISTERED = re.compile(
    r"\[register\] worker_id=esxi models=\['llama3.2:1b'(, 'gemma3:1b')?\] "
    r"supports=\['cpu_inference'\]$"
)
"""A worker registers with the first model that passed its probe; often the next one has, too."""
STARTS_AGAIN = "start it again on esxi, as a service that restarts"


@scaled
async def test_the_incident_is_told_and_mended(grid: Grid) -> None:
    """esxi registers and never polls; its task waits; the reaper stands still."""
    needs_hosts()
    grid.patient()
    await grid.begin()
    switch = grid.directory / "hang"
    switch.touch()
    hung = {"COGRID_TEST_HANG_CLAIMS": str(switch)}
    spare = await grid.engine(OTHER)
    spare.shelf.offer(FaultModel(MODEL))
    grid.worker("ai-core", spare, host=Host("ai-core"))
    await grid.up("ai-core")
    esxi = grid.worker("esxi", await grid.engine(OTHER, MODEL), host=Host("esxi"), env=hung)
    await grid.up("esxi", "ai-core")
    assert REGISTERED.search(await grid.daemons["coordinator"].says("[register] worker_id=esxi"))
    seen = partial(grid.redis.zscore, "grid:models", MODEL)
    await until_async(seen, 15, f"a pass to see a home of {MODEL}")
    grid.daemons["reaper"].pause()
    chat = grid.chat(worker="esxi", status=True)
    await chat.accepted()
    assert chat.headers["x-cogrid-queue"] == QUEUE
    assert grid.redis.hget("worker:esxi", "registered_at").endswith("Z")
    assert grid.field(chat.task, "state") == "pending"
    await until_async(lambda: grid.health("esxi") == "ghost", 15, "esxi to be a ghost")

    await _told_by_status(grid)
    await _told_by_diagnose(grid, chat.task)
    await _told_by_explain(grid, chat.task)
    await _told_by_spof(grid, chat.task)
    assert grid.field(chat.task, "state") == "pending", "a look has changed something"

    await mend(grid, "stuck_no_home", "diagnose stuck", code=3)
    assert MODEL in spare.models
    assert not await found(grid, "no_home", f"spof --model {MODEL}")
    await mend(grid, "ghost_pending", "diagnose ghosts", gone=False)
    assert await chat.ended(15) is Ending.ANSWER
    assert chat.text == said(8)
    assert chat.ran["worker"] == "ai-core"
    assert len(chats(spare)) == 1
    assert any("moved from esxi (ghost_pending) to ai-core" in line for line in chat.told)
    await mend(grid, "ghost_pending", "diagnose ghosts")
    assert not grid.redis.exists("worker:esxi")
    assert await esxi.over() == 1, "struck off, it ends by itself"
    grid.daemons["reaper"].resume()


async def _told_by_status(grid: Grid) -> None:
    document = (await grid.cogrid("status", "--json")).json
    health = {worker["id"]: worker["health"] for worker in document["workers"]}
    assert health == {"esxi": "ghost", "ai-core": "healthy"}
    (queue,) = document["queues"]
    assert (queue["name"], queue["depth"], queue["servable"]) == (QUEUE, 1, False)
    assert (await grid.cogrid("status", "--check")).code == 3


async def _told_by_diagnose(grid: Grid, task: str) -> None:
    said = (await grid.cogrid("diagnose", "--json")).json["findings"]
    assert [each["kind"] for each in said] == ["ghost_pending", "stuck_no_home"]
    ghost, stuck = said
    assert ghost["subject"] == "esxi"
    assert ghost["what"] == (
        f"esxi is registered and renews its lease, but takes no work; {STARTS_AGAIN}"
    )
    registered = grid.redis.hget("worker:esxi", "registered_at")
    for fact in (
        "registered, never polled for ", "host esxi", f"registered_at {registered}",
        "holds 0 of 1 slots", f"1 in {QUEUE}", f"nobody else serves {MODEL}",
    ):  # fmt: skip
        assert fact in ghost["evidence"]
    assert ghost["at_risk"] == [MODEL]
    assert ghost["mend"] == "cogrid reaper --once"
    assert stuck["subject"] == QUEUE
    assert stuck["at_risk"] == [task]
    assert "esxi: " in stuck["evidence"]
    told = await grid.cogrid("diagnose", "ghosts")
    assert told.code == 3
    first, *_, last = told.out.splitlines()
    assert first == f"ghost_pending esxi: {ghost['what']}"
    assert last == "  mend:     cogrid reaper --once"


async def _told_by_explain(grid: Grid, task: str) -> None:
    told = await grid.cogrid("explain", task[:8])
    assert told.code == 0
    lines = told.out.splitlines()
    assert lines[0].startswith(f"task {task}: it waits in {QUEUE}, place 1, for ")
    assert lines[1].startswith(f"model {MODEL}, domain general, user ")
    assert "place 1, it is next" in lines
    assert "no worker can take it" in lines
    cannot = {line.split(": ")[1]: line for line in lines if line.startswith("cannot: ")}
    assert cannot["esxi"].startswith("cannot: esxi: ghost: registered, never polled for ")
    assert cannot["ai-core"] == "cannot: ai-core: does not have the model"


async def _told_by_spof(grid: Grid, task: str) -> None:
    document = (await grid.cogrid("spof", "--json")).json
    first, second = document["findings"]
    assert (first["kind"], first["subject"], first["at_risk"]) == ("no_home", MODEL, [task])
    assert first["what"] == (f"no worker can serve {MODEL}; run `ollama pull {MODEL}` on ai-core")
    assert "1 queued" in first["evidence"]
    assert (second["kind"], second["subject"]) == ("single_worker", OTHER)
    assert document["losses"] == [
        {"kind": "host", "name": "ai-core", "workers": ["ai-core"], "models": [OTHER]}
    ]
