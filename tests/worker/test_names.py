"""One name, one worker: locks, refusals, takeovers, and being superseded."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from cogrid.errors import ConflictError, Exit, UsageError
from cogrid.model.names import WorkerId
from cogrid.model.worker import WorkerState
from cogrid.store.client import Store
from cogrid.store.workers import forget
from cogrid.worker import identity as identities
from cogrid.worker.identity import NameLock, default_id, identity
from cogrid.worker.life import SUPERSEDED
from tests.wait import until_async
from tests.worker.grid import Grid
from tests.worker.puppet import Puppet


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("esxi", "esxi"),
        ("ESXi.example.org", "esxi"),
        ("my_host", "my_host"),
        ("Büro PC", "b-ro-pc"),
        ("-x-", "x"),
    ],
)
def test_the_short_host_name_is_the_name(host: str, name: str) -> None:
    assert default_id(host) == name


@pytest.mark.parametrize("host", ["", "...", "ü", "shared"])
def test_a_host_name_that_is_none_asks_for_one(host: str) -> None:
    with pytest.raises(UsageError, match="is no name") as caught:
        default_id(host)
    assert "--id" in caught.value.hint


def test_the_lock_keeps_its_id_and_gives_each_process_its_instance(tmp_path: Path) -> None:
    with NameLock.take(tmp_path / "new", "esxi") as lock:
        first = identity(default_id("esxi"), lock)
    with NameLock.take(tmp_path / "new", "esxi") as lock:
        second = identity(default_id("esxi"), lock)
    assert first.lock == second.lock
    assert first.instance != second.instance


def test_a_second_process_is_refused_with_the_first_ones_pid(tmp_path: Path) -> None:
    import os

    with (
        NameLock.take(tmp_path, "esxi"),
        NameLock.take(tmp_path, "other"),
        pytest.raises(ConflictError, match=f"as process {os.getpid()}"),
    ):
        NameLock.take(tmp_path, "esxi")


def test_a_copied_disk_gets_an_id_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = tmp_path / "machine-id"
    monkeypatch.setattr(identities, "MACHINE_ID", machine)
    ids = []
    for name in ("one", "one", "two"):
        machine.write_text(name)
        with NameLock.take(tmp_path, "esxi") as lock:
            ids.append(lock.lock)
    assert ids[0] == ids[1] != ids[2]


def test_a_torn_lock_file_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "worker-esxi.lock").write_text('{"lock": "abc')
    with NameLock.take(tmp_path, "esxi") as lock:
        assert len(lock.lock) == 16


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be opened"):
        NameLock.take(tmp_path / "file", "esxi")


async def test_another_machine_is_refused_while_the_lease_runs(
    grid: Grid, told: pytest.LogCaptureFixture
) -> None:
    async with grid.living(Puppet(), machine="1") as first:
        mine = await grid.worker()
        async with grid.living(Puppet(), machine="2", ready=False) as second:
            await until_async(lambda: "[hello] refused" in told.text, what="a refusal")
            assert not second.task.done()
            assert await second.ended() == 0
        assert not first.task.done()
        now = await grid.worker()
    assert mine is not None
    assert now is not None
    assert now.instance == mine.instance
    assert told.text.count("[hello] refused: worker_id=esxi is held by host") == 1


@pytest.mark.parametrize(
    ("local", "address"), [("192.168.0.41", "192.168.0.41"), ("127.0.0.1", ""), ("", "")]
)
async def test_a_worker_tells_from_where_it_reaches_redis(
    grid: Grid, monkeypatch: pytest.MonkeyPatch, local: str, address: str
) -> None:
    monkeypatch.setattr(Store, "local_address", lambda _store: local)
    async with grid.living(Puppet()):
        worker = await grid.worker()
    assert worker is not None
    assert worker.address == address


async def test_another_machine_takes_over_when_the_lease_has_ended(grid: Grid) -> None:
    """The first one hangs: nothing of it renews. When it comes back it finds that it is over."""
    async with grid.living(Puppet(), machine="1") as first:
        mine = await grid.worker()
        assert mine is not None
        assert first.life.crew is not None
        first.life.crew.renewal.stop()
        async with grid.living(Puppet(), machine="2", ready=False):

            async def taken() -> bool:
                now = await grid.worker()
                return now is not None and now.instance not in ("", mine.instance)

            await until_async(taken, what="the name to be taken over")


async def test_a_superseded_worker_stops_its_runs_and_ends_with_75(
    grid: Grid, told: pytest.LogCaptureFixture
) -> None:
    engine = Puppet()
    async with grid.living(engine) as first:
        await grid.submit("t1")
        await engine.asked(1)
        other = {"instance": "feed", "lock": "beef", "host": "ai-core"}
        await grid.raw("HSET", "worker:esxi", *(x for pair in other.items() for x in pair))
        assert await first.task == SUPERSEDED
    assert engine.streams[0].closed.is_set()
    assert "[superseded] worker_id=esxi is now at host ai-core" in told.text


async def test_a_worker_that_was_struck_off_stops_its_runs_and_ends(
    grid: Grid, told: pytest.LogCaptureFixture
) -> None:
    engine = Puppet()
    async with grid.living(engine) as first:
        await grid.submit("t1")
        await engine.asked(1)
        keys = grid.store.keys
        await grid.store.do(forget(keys, WorkerId("esxi"), force=True, by="ada"))
        assert await first.task == Exit.FAILED
    assert engine.streams[0].closed.is_set()
    assert "[forgotten] worker_id=esxi" in told.text


async def test_the_same_machine_s_new_process_has_the_name_at_once(grid: Grid) -> None:
    grid.limits = replace(grid.limits, lease_s=30.0)
    async with grid.living(Puppet(), machine="1"):
        before = await grid.worker()
    async with grid.living(Puppet(), machine="1"):
        after = await grid.worker_is(WorkerState.READY)
    assert before is not None
    assert after.lock_id == before.lock_id
    assert after.instance != before.instance


async def test_a_newer_instance_in_the_hash_of_the_same_lock_is_displaced(grid: Grid) -> None:
    """A failover brought back the hash of an older process; the holder of the lock is right."""
    async with grid.living(Puppet()) as living:
        mine = await grid.worker()
        assert mine is not None
        await grid.raw("HSET", "worker:esxi", "instance", "feed")

        async def back() -> bool:
            now = await grid.worker()
            return now is not None and now.instance == mine.instance

        await until_async(back, what="the instance to be the living one's")
        await grid.worker_is(WorkerState.READY)
        assert not living.task.done()


async def test_its_life_is_told_in_the_incident_s_words(
    grid: Grid, told: pytest.LogCaptureFixture
) -> None:
    async with grid.living(Puppet("llama3.2:1b", "gemma3:1b")):
        await until_async(lambda: "waiting on queues" in told.text, what="the loop to wait")
        await until_async(lambda: "shared:gemma3:1b" in told.text, what="both models")
    lines = [r.getMessage() for r in told.records if r.levelno == logging.INFO]
    assert lines[0].startswith("[start] worker_id=esxi version=")
    assert lines[1] == "[engine] puppet 1.0 OK puppet:"
    assert "[sanity] checking llama3.2:1b ... OK" in lines
    assert "[sanity] checking gemma3:1b ... OK" in lines
    register = next(line for line in lines if line.startswith("[register]"))
    assert register.startswith("[register] worker_id=esxi models=['llama3.2:1b'")
    assert register.endswith("supports=['cpu_inference']")
    assert any(
        line.startswith("waiting on queues [tasks:cpu:esxi, tasks:cpu:shared:llama3.2:1b")
        for line in lines
    )
