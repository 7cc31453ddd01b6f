"""The ghost: a worker whose claim loop hangs while its renewals go on."""

from __future__ import annotations

import re
import time

from tests.e2e.chat import Ending
from tests.e2e.grid import Grid, chats, said
from tests.e2e.overlap import at_defaults
from tests.wait import until_async

TOKENS = 180
DELAY_S = 0.25
EVIDENCE = re.compile(r"slot free, no claim for (\d+\.\d) s")


@at_defaults
async def test_ghost_is_found_and_keeps_its_answer(grid: Grid) -> None:
    """Two slots, one busy. What waits for it runs elsewhere within ghost_after + 3 s of its last
    poll; its running answer goes on; status, diagnose and the reaper name it with evidence."""
    switch = grid.directory / "hang"
    await grid.begin()
    reaper = grid.daemons["reaper"]
    engine = await grid.engine(tokens=TOKENS, delay_s=DELAY_S)
    spare = await grid.engine(gpu=True)
    grid.worker("esxi", engine, slots=2, env={"COGRID_TEST_HANG_CLAIMS": str(switch)})
    grid.worker("ai-core", spare, pool="gpu")
    await grid.up("esxi", "ai-core")

    running = grid.chat(worker="esxi")
    await running.reaches(2)
    switch.touch()
    # The claim that it is blocked behind may still take something; what is sent after its last
    # possible turn waits.
    await until_async(lambda: grid.poll_age_s("esxi") > 6, 15, "its claim loop to stand")
    polled_s = time.monotonic() - grid.poll_age_s("esxi")
    waiting = [grid.chat(worker="esxi", stream=stream) for stream in (True, False, True)]
    await until_async(lambda: grid.depth("tasks:cpu:esxi") == 3)

    for chat in waiting:
        assert await chat.ended(20) is Ending.ANSWER
        assert chat.ended_s - polled_s < 15 + 3
        assert chat.ended_s - polled_s > 14.5, "it was moved before it was a ghost"
        assert chat.text == said(8)
        assert chat.ran["worker"] == "ai-core"
    assert len(chats(spare)) == 3
    moves = grid.events("moved")
    assert [move.reason.split()[0] for move in moves] == ["ghost_pending"] * 3
    lines = reaper.lines("[reaper] REQUEUE", "worker_id=esxi reason=ghost_pending")
    assert len(lines) == 3
    for line in lines:
        seconds = EVIDENCE.search(line)
        assert seconds, line
        assert 15 <= float(seconds[1]) < 18
        assert line.endswith("queue=tasks:gpu:shared:gemma3:1b homes=ai-core")

    status = await grid.cogrid("status", "--json")
    rows = {row["id"]: row for row in status.json["workers"]}
    assert rows["esxi"]["health"] == "ghost"
    assert rows["esxi"]["poll_age_s"] > 15
    assert rows["esxi"]["beat_age_s"] < 7
    assert (rows["esxi"]["busy"], rows["esxi"]["slots"]) == (1, 2)
    assert len(rows["esxi"]["tasks"]) == 1
    assert rows["ai-core"]["health"] == "healthy"

    diagnosed = await grid.cogrid("diagnose", "ghosts", "--json")
    assert diagnosed.code == 3
    (finding,) = diagnosed.json["findings"]
    assert (finding["kind"], finding["subject"]) == ("ghost_pending", "esxi")
    assert EVIDENCE.search(finding["evidence"])

    assert running.ending is Ending.BROKEN, "it ended too soon for this test"
    assert await running.ended(TOKENS * DELAY_S) is Ending.ANSWER
    assert running.text == said(TOKENS)
    assert running.ran["worker"] == "esxi"
    assert not grid.events("reaped", "claimed_again", "retried")
    assert len(chats(engine)) == 1

    switch.unlink()
    await until_async(lambda: grid.poll_age_s("esxi") < 5, 10, "it to poll again")
    again = await grid.cogrid("diagnose", "ghosts", "--json")
    assert (again.code, again.json["findings"]) == (0, [])
