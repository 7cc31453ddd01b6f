"""Every key has a name, a type and an end; the scripts' clock is the server's."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cogrid.model.names import own_queue, shared_queue
from cogrid.store.keys import KEYS, Keys
from cogrid.store.passes import begin_pass
from cogrid.store.script import script, script_names
from tests.store import seed
from tests.store.checker import spec_of
from tests.store.test_transitions_workers import renewed
from tests.store.world import LIMITS, RUN_ID, World

MODEL = "hf.co/LiquidAI/LFM2.5-1.2B-JP-GGUF:Q4_K_M"
NAMES = {
    "worker": "esxi", "worker_tasks": "esxi", "worker_chores": "esxi", "worker_revoked": "esxi",
    "worker_fenced": "esxi", "inbox": "c1-5f",
    "task": "cb305e3a", "body": "cb305e3a", "out": "cb305e3a", "usage": "2026-06-07",
    "body_beside": "cb305e3a 7c1d", "withdrawn": "cb305e3a 7c1d",
}  # fmt: skip


def names(keys: Keys) -> dict[str, str]:
    """Every key that keys.py can name, by what names it."""
    found = {}
    for name in (name for name in dir(keys) if not name.startswith("_") and name != "prefix"):
        build = getattr(keys, name)
        if not callable(build):
            found[name] = build
        elif name in NAMES:
            found[name] = build(*NAMES[name].split())
        else:
            found[name] = build(shared_queue("cpu", MODEL))
            found[f"own {name}"] = build(own_queue("cpu", "esxi"))
    return found


def test_every_name_is_of_one_kind() -> None:
    for what, key in names(Keys()).items():
        kinds = [spec for spec in KEYS if spec.pattern.fullmatch(key)]
        assert kinds, what
        assert len({(spec.type, spec.permanent) for spec in kinds}) == 1, what


def test_the_prefix_stands_before_all() -> None:
    plain, tagged = names(Keys()), names(Keys("{cogrid}:"))
    assert tagged == {what: "{cogrid}:" + key for what, key in plain.items()}


def test_the_kinds_are_what_they_say() -> None:
    spec = spec_of(f"tasks:cpu:shared:{MODEL}")
    assert spec is not None
    assert (spec.type, spec.permanent) == ("zset", True)
    assert spec_of("celery") is None


@pytest.mark.parametrize("name", script_names())
def test_every_script_tells_its_contract(name: str) -> None:
    text = script(name).source
    for part in (f"-- {name.replace('_', '-')}:", "-- KEYS", "-- ARGV", "-- reply"):
        assert part in text, part


@pytest.mark.parametrize(
    "at",
    ["1970-01-01T00:00:00", "2000-02-29T23:59:59", "2024-02-29T12:00:00", "2025-12-31T23:59:59",
     "2026-06-07T02:25:47", "2028-03-01T00:00:00", "2100-02-28T23:59:59", "2100-03-01T00:00:00"],
)  # fmt: skip
def test_scripts_know_the_calendar(real: World, at: str) -> None:
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    real.seed(seed.worker(state="starting", registered_at=None))
    real.tick(int(moment.timestamp() * 1000) - real.now_ms)
    real.client.hset("worker:esxi", "instance", "esxi1")
    renewed(real)
    assert real.hash("worker:esxi")["registered_at"] == at + "Z"


def test_without_a_tests_clock_it_is_the_servers(real: World) -> None:
    store = real.with_scripts(script)
    began = store.do(begin_pass(real.keys, RUN_ID, "r", LIMITS))
    seconds, micros = real.client.time()
    assert abs(began.now_ms - (int(seconds) * 1000 + int(micros) // 1000)) < 5_000
