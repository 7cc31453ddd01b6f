"""The way back to the cogrid that ran before: its plan, and what it is told of."""

from __future__ import annotations

import pytest

from cogrid.ops.delivery.stage import Installed, Version
from cogrid.ops.install.given import Seen
from cogrid.ops.install.plan import Act, Plan, plan_back
from cogrid.ops.unit.render import render
from tests.ops.install.build import ALIVE, a_look, installed, some_settings

OLD = Version("0.1.0-1111", "0.1.0", "/usr/bin/python3", whole=True, used_at=100.0)
NEW = Version("0.2.0-2222", "0.2.0", "/usr/bin/python3", whole=True, used_at=200.0)


def there(current: str = NEW.name, works: str = "cogrid, version 0.2.0") -> Installed:
    return Installed("/opt/cogrid", current, works, (OLD, NEW))


def back(found: Installed, seen: Seen = ALIVE) -> Plan:
    settings = some_settings(id="esxi")
    return plan_back(settings, installed(render(settings)), found, seen)


# One that does not even start is what one goes back from.
@pytest.mark.parametrize("works", ["cogrid, version 0.2.0", ""])
def test_it_switches_and_restarts_once_after_draining(works: str) -> None:
    found = back(there(works=works), Seen(True, "esxi", True, 2, "one"))
    assert [step.act for step in found.steps] == [
        Act.SWITCH, Act.DRAIN, Act.START, Act.ACTIVE, Act.POLLED,
    ]  # fmt: skip
    assert [step.what for step in found.steps][:3] == [
        "use cogrid 0.1.0-1111 again (was 0.2.0-2222)",
        "drain esxi, which runs 2 tasks",
        "restart cogrid-worker@esxi.service",
    ]
    assert (found.objections, found.diff, found.variables, found.running) == ((), (), (), True)


def test_a_worker_that_is_dead_is_not_drained() -> None:
    assert Act.DRAIN not in back(there(), Seen()).acts


def test_twice_is_refused() -> None:
    found = back(there(current=OLD.name))
    (no,) = found.objections
    assert found.steps == ()
    assert no.what == "there is no cogrid to go back to from 0.1.0-1111"
    assert "--upgrade" in no.cure


def test_what_is_not_installed_has_nowhere_to_go_back_to() -> None:
    (no,) = plan_back(some_settings(id="esxi"), a_look(), there(), Seen()).objections
    assert no.what == "cogrid-worker@esxi.service is not there, so it ran nothing before"
