"""Redis answers, and refuses: what needs somebody's help is waited for, but not for ever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cogrid.model.task import State
from tests.servers import Server
from tests.wait import until_async
from tests.worker.grid import Grid, a_grid
from tests.worker.puppet import Puppet, Stream


async def test_one_connection_that_is_let_in_is_no_good_news(
    own_server: Callable[..., Server], tmp_path: Path, scale: float, told: pytest.LogCaptureFixture
) -> None:
    """Another password: a connection that stands is not asked for it, a new one is."""
    server = own_server()
    grid = a_grid(server.url, tmp_path, scale, lease_s=20.0)
    async with grid.living(Puppet()):
        server.client.config_set("requirepass", "another")
        await until_async(lambda: kill_waiting(server), what="a connection that waits")
        await until_async(lambda: "[redis] lost" in told.text, what="the loss")
        before = await claims(grid)
        await until_async(lambda: reached(grid, before + 3), what="three more claims")
        assert told.text.count("[redis] lost") == 1
        assert "wants a password" in told.text
        assert "[redis] back" not in told.text
        server.client.config_set("requirepass", "")
        await until_async(lambda: "[redis] back" in told.text, what="good news")
    grid.store.close()


async def test_who_was_never_let_in_does_not_say_at_its_end_that_redis_is_back(
    own_server: Callable[..., Server], tmp_path: Path, scale: float, told: pytest.LogCaptureFixture
) -> None:
    server = own_server(password="right")
    url = f"redis://:mistyped@127.0.0.1:{server.port}/0"
    grid = a_grid(url, tmp_path, scale)
    async with grid.living(Puppet(), ready=False) as living:
        await until_async(lambda: "[redis] lost" in told.text, what="the loss")
        assert "refuses this user or password" in told.text
        await living.ended()
    assert "[redis] back" not in told.text
    grid.store.close()


def kill_waiting(server: Server) -> bool:
    """Ends the connection on which the worker waits for hints; False where it does not wait."""
    waiting = [each["id"] for each in server.client.client_list() if each["cmd"] == "bzpopmin"]
    return any(server.client.client_kill_filter(_id=each) for each in waiting)


async def claims(grid: Grid) -> int:
    return int(await grid.raw("HGET", grid.store.keys.worker("esxi"), "claim"))


async def reached(grid: Grid, number: int) -> bool:
    return await claims(grid) >= number


async def test_a_run_whose_text_is_refused_ends(
    server: Server, tmp_path: Path, scale: float, told: pytest.LogCaptureFixture
) -> None:
    grid = a_grid(server.url, tmp_path, scale, idle_s=0.5)
    engine = Puppet(parallel=2)
    async with grid.living(engine):
        await grid.submit("t1")
        stream = await engine.asked(1)
        out = grid.store.keys.out("t1")
        await grid.raw("DEL", out)
        await grid.raw("RPUSH", out, "of another program")
        await until_async(lambda: goes_on(stream), what="the engine to be let go")
        await until_async(lambda: "[run] task=t1 is over" in told.text, what="its last words")
        assert "Redis refuses the text of esxi" in told.text
        assert (
            told.text.count("not cogrid's stream (set a prefix for cogrid); tried for 0.5 s") == 1
        )
        assert "[redis] lost" not in told.text
        await grid.submit("t2")
        (await engine.asked(2)).done()
        await grid.in_state("t2", State.DONE)
    await grid.raw("DEL", out)
    grid.store.close()


def goes_on(stream: Stream) -> bool:
    """Says something more; True once nobody listens."""
    stream.say("more ")
    return stream.closed.is_set()


async def test_an_end_counts_where_only_the_next_claim_is_refused(
    grid: Grid, told: pytest.LogCaptureFixture
) -> None:
    engine = Puppet("gemma3:1b", "other")
    async with grid.living(engine):
        await grid.submit("t1")
        stream = await engine.asked(1)
        theirs = "tasks:cpu:shared:other"
        await grid.raw("RPUSH", theirs, "of another program")
        stream.done()
        await grid.in_state("t1", State.DONE)
        await until_async(lambda: "[redis] lost" in told.text, what="the claims' refusal")
        assert f"{theirs} is a list, not cogrid's zset" in told.text
        assert "[run] task=t1" not in told.text
        await grid.raw("DEL", theirs)
        await grid.submit("t2")
        (await engine.asked(2)).done()
        await grid.in_state("t2", State.DONE)
