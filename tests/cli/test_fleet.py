"""What goes to machines that have no settings of their own."""

from __future__ import annotations

from cogrid.cli.fleet import settings_for_hosts
from cogrid.config import load
from cogrid.store.address import parse_address

SAID = {"COGRID_WORKER_ENGINE_KEY": "sk-1", "COGRID_REDIS_PREFIX": "grid2:"}


def test_a_worker_there_is_told_the_key_of_its_engine() -> None:
    redis = parse_address("redis://ops:hunter2@192.168.0.10:6379/0")
    assert settings_for_hosts(load(None, SAID), redis) == {
        "COGRID_REDIS_URL": "redis://192.168.0.10:6379/0",
        "COGRID_REDIS_USERNAME": "ops",
        "COGRID_REDIS_PASSWORD": "hunter2",
        "COGRID_REDIS_PREFIX": "grid2:",
        "COGRID_WORKER_ENGINE_KEY": "sk-1",
    }


def test_what_is_not_said_here_is_left_to_the_machine() -> None:
    assert settings_for_hosts(load("/dev/null", {}), None) == {}
