"""Forgetting a model that no worker has."""

from __future__ import annotations

import json

import pytest

from cogrid.cli.main import run
from cogrid.errors import ConflictError, NotFoundError
from cogrid.ops.unlearn import forget, plan_forget
from tests.ops.script import Meanwhile
from tests.reaper.stage import MODEL, Stage

OTHER = "llama3.2:1b"


@pytest.fixture
def left(stage: Stage) -> Stage:
    """OTHER was at home on a machine that has left; ai-core has MODEL."""
    stage.worker("ai-core")
    stage.hello("old", OTHER)
    stage.redis.zadd(stage.keys.models, {OTHER: stage.redis.zscore(stage.keys.models, MODEL) or 1})
    stage.redis.delete(stage.keys.worker("old"))
    stage.redis.zrem(stage.keys.workers, "old")
    return stage


def test_nobody_knows_it_afterwards(left: Stage) -> None:
    plan = plan_forget(left.store, OTHER)
    assert (plan.model, plan.dry_run, plan.by, plan.done) == (OTHER, True, None, False)
    assert left.redis.zscore(left.keys.models, OTHER) is not None
    done = forget(left.store, left.limits, plan)
    assert (done.dry_run, done.done) == (False, True)
    left.sweep()
    assert left.redis.zrange(left.keys.models, 0, -1) == [MODEL.encode()]
    last = left.redis.xrevrange(left.keys.events, count=1)[0][1]
    assert last[b"reason"].decode() == f"model forgotten: {OTHER} by {done.by}"
    with pytest.raises(NotFoundError):
        plan_forget(left.store, OTHER)


def test_what_a_living_worker_has_stays(left: Stage) -> None:
    with pytest.raises(ConflictError, match=f"ai-core still has {MODEL}") as refused:
        plan_forget(left.store, MODEL)
    assert refused.value.hint.endswith(f"cogrid model remove {MODEL} --worker ai-core --force")


def test_what_a_dead_one_had_stays_until_that_is_struck_off(left: Stage) -> None:
    left.let_pass(21)
    with pytest.raises(ConflictError, match=f"ai-core, dead, had {MODEL}") as refused:
        plan_forget(left.store, MODEL)
    assert refused.value.hint.endswith("cogrid worker forget ai-core")


def test_what_a_task_waits_for_stays(left: Stage) -> None:
    left.submit("t1", f"tasks:cpu:shared:{OTHER}", OTHER)
    with pytest.raises(ConflictError, match=f"1 task waits for {OTHER}"):
        plan_forget(left.store, OTHER)
    left.submit("t2", "tasks:cpu:ai-core", OTHER)
    with pytest.raises(ConflictError, match=f"2 tasks wait for {OTHER}") as refused:
        plan_forget(left.store, OTHER)
    assert refused.value.hint.endswith(f"cogrid task cancel --model {OTHER}")


def test_one_that_comes_back_in_between_stays(left: Stage) -> None:
    plan = plan_forget(left.store, OTHER)
    come = Meanwhile(lambda: left.worker("nas", OTHER))
    with pytest.raises(ConflictError, match=f"a worker has {OTHER} again"):
        forget(left.store, left.limits, plan, come)
    assert left.redis.zscore(left.keys.models, OTHER) is not None


def test_as_it_is_typed(
    left: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COGRID_REDIS_URL", left.store.shown)
    assert run(["model", "forget", OTHER, "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith(f"no worker has {OTHER}, its last was there ")
    assert run(["model", "forget", OTHER, "--yes", "--json"]) == 0
    told = capsys.readouterr()
    document = json.loads(told.out)
    assert (document["model"], document["done"], document["schema"]) == (OTHER, True, 1)
    assert told.err == ""
    assert run(["model", "forget", OTHER, "--yes"]) == 1
    assert "is not known to this grid" in capsys.readouterr().err
