"""Sums of what was used."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cogrid.ops.keys import new_key
from cogrid.ops.usage import UsageRow, usage
from tests.reaper.stage import Stage

DAY_S = 86_400


def write(stage: Stage, days_ago: int, **sums: tuple[str, str, str, str, int, int, int]) -> None:
    day = (datetime.now(UTC).date() - timedelta(days=days_ago)).isoformat()
    key = stage.keys.usage(day)
    for user, api_key, model, worker, requests, tokens, ms in sums.values():
        who = f"{user}\t{api_key}\t{model}\t{worker}\t"
        told = {f"{who}requests": requests, f"{who}tokens": tokens, f"{who}ms": ms}
        stage.redis.hset(key, mapping=told)
    stage.redis.expire(key, DAY_S)


def test_sums_by_user_key_model_and_worker(stage: Stage) -> None:
    _, facts = new_key(stage.store, "webui")
    write(
        stage, 0,
        a=("ada", facts.id, "m", "esxi", 2, 30, 1500),
        b=("bob", "", "m", "ai-core", 1, 10, 4000),
        c=("ada", "revoked12345", "n", "esxi", 1, 5, 250),
    )  # fmt: skip
    write(stage, 3, d=("ada", facts.id, "m", "esxi", 1, 1, 1000))
    found = usage(stage.store, 7 * DAY_S)
    assert found.total == UsageRow("total", 5, 46, 6.75)
    assert found.users == (UsageRow("bob", 1, 10, 4.0), UsageRow("ada", 4, 36, 2.75))
    assert found.keys == (UsageRow("webui", 3, 31, 2.5), UsageRow("revoked12345", 1, 5, 0.25))
    assert [row.name for row in found.models] == ["m", "n"]
    assert [row.name for row in found.workers] == ["ai-core", "esxi"]
    today = datetime.now(UTC).date()
    assert (found.from_day, found.to_day) == (
        (today - timedelta(days=6)).isoformat(), today.isoformat()
    )  # fmt: skip


def test_a_key_that_names_no_user_is_shown_by_its_label(stage: Stage) -> None:
    _, facts = new_key(stage.store, "webui")
    write(stage, 0, a=(facts.id, facts.id, "m", "esxi", 2, 30, 1500))
    found = usage(stage.store, DAY_S)
    assert [row.name for row in found.users] == ["webui"]
    assert [row.name for row in found.keys] == ["webui"]


def test_days_are_whole_and_no_more_than_are_kept(stage: Stage) -> None:
    write(stage, 3, d=("ada", "", "m", "esxi", 1, 1, 1000))
    assert usage(stage.store, 3 * DAY_S).total.requests == 0
    assert usage(stage.store, 3 * DAY_S + 1).total.requests == 1
    found = usage(stage.store, 400 * DAY_S)
    first = datetime.fromisoformat(found.from_day)
    assert (datetime.fromisoformat(found.to_day) - first).days == 34
    short = usage(stage.store, 1)
    assert short.from_day == short.to_day


def test_a_run_is_counted_by_its_end(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("t1")
    (task,) = stage.claim("esxi", "tasks:cpu:shared:gemma3:1b")
    stage.finish("esxi", task, usage=b'{"prompt_tokens":7,"completion_tokens":5}')
    (user,) = usage(stage.store, DAY_S).users
    assert (user.name, user.requests, user.tokens) == ("ada", 1, 12)
