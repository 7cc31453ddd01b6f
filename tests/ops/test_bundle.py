"""What a support bundle is looked through for."""

from __future__ import annotations

from cogrid.config import load
from cogrid.config.keys import SECRET, variable
from cogrid.ops.bundle import _secrets, without


def test_every_secret_of_the_configuration_is_looked_for() -> None:
    said = {key: f"{key}-is-this" for key in SECRET - {"redis.url"}}
    env = {variable(key): secret for key, secret in said.items()}
    env["COGRID_REDIS_URL"] = "redis://:in%20url@127.0.0.1:6379/0"
    found = _secrets(load("/dev/null", env))
    assert set(found) == {*said.values(), "in%20url", "in url"}
    assert without(f"a {said['worker.engine_key']} b", found) == "a *** b"
