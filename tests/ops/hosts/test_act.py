"""Units restarted and stopped: what is asked of the grid and of systemd, and in which order."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cogrid.errors import Exit
from cogrid.model.host import Host
from cogrid.model.limits import Limits
from cogrid.ops.drain import drain
from cogrid.ops.hosts import act, acts
from cogrid.ops.hosts.act import Acted, Done, Timing, carry_out
from cogrid.ops.hosts.acts import Choice, Plan, Verb, plan_acts
from cogrid.remote.access import Access
from cogrid.remote.session import Result
from cogrid.store.address import parse_address
from cogrid.store.client import Store
from cogrid.store.snapshot import read_snapshot
from tests.ops.sanity.saying import MARK, UNIT, a_host, a_line, a_unit
from tests.reaper.stage import Stage
from tests.servers import Server

HOST = Host("192.168.0.41")
LIMITS = Limits()
STOPPED = {"ActiveState": "inactive", "SubState": "dead"}


class Machine:
    """A host that has one worker's unit; ``did`` is what its systemd was asked to do."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.show: dict[str, str] = {}
        self.on_systemctl: Callable[[], None] = lambda: None

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def run(self, script: str, *args: str, **_: Any) -> Result:
        if script is act._SYSTEMCTL:
            self.did.append(" ".join(args))
            self.show = STOPPED if args[0] == "stop" else {}
            self.on_systemctl()
            return Result(0, b"", b"", False)
        text = a_host(a_unit(self.show, journal=(a_line("good-bye"),)))
        return Result(0, text.replace(MARK, args[0]).encode(), b"", False)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    for module in (act, acts):
        monkeypatch.setattr(module, "connect", lambda target, access: made)
    monkeypatch.setattr(act, "SEEN_S", 0.5)
    return made


def plan(stage: Stage, verb: Verb) -> Plan:
    snapshot = stage.store.read(read_snapshot(stage.keys, info=False))
    return plan_acts([HOST], Access(), verb, Choice(), (snapshot, LIMITS))


def done(stage: Stage, url: str, verb: Verb, drain_s: float | None = 5.0) -> tuple[Acted, Done]:
    """What became of the one unit."""
    made = carry_out(
        plan(stage, verb), [HOST], Access(), lambda: Store.connect(parse_address(url)), LIMITS,
        Timing(drain_s), lambda _: None,
    )  # fmt: skip
    (acted,) = made.acts
    return acted, made


def wish(stage: Stage) -> str:
    """The state that the operator wants, "" where none was ever asked for."""
    kept = stage.redis.hget("worker:esxi", "wanted")
    return str(json.loads(kept)["state"]) if kept else ""


def comes_back(stage: Stage, machine: Machine, seen: list[str]) -> None:
    """systemd starts another process of that name; what was wanted then is noted."""

    def restarted() -> None:
        seen.append(wish(stage))
        stage.hello("esxi", process=2)
        stage.renew("esxi")
        stage.poll("esxi")

    machine.on_systemctl = restarted


def test_the_plan_says_what_hangs_on_the_worker(stage: Stage, machine: Machine) -> None:
    stage.worker("esxi")
    stage.submit("t1")
    stage.claim("esxi", "tasks:cpu:shared:gemma3:1b")
    (one,) = plan(stage, Verb.STOP).acts
    assert (one.unit, one.worker, one.state, one.runs, one.only_here) == (
        UNIT, "esxi", "running", 1, ("gemma3:1b",),
    )  # fmt: skip
    assert machine.did == []


def test_a_restart_drains_lets_systemd_act_and_sees_another_process_poll(
    stage: Stage, machine: Machine, server: Server
) -> None:
    stage.worker("esxi")
    seen: list[str] = []
    comes_back(stage, machine, seen)
    acted, made = done(stage, server.url, Verb.RESTART)
    assert (acted.done, acted.state, acted.error) == (True, "running", None)
    assert machine.did == [f"restart {UNIT} system"]
    assert (seen, wish(stage)) == (["drain"], "run")
    assert made.exit_code is Exit.OK


def test_a_worker_that_is_not_done_in_time_is_left_as_it_was(
    stage: Stage, machine: Machine, server: Server
) -> None:
    stage.worker("esxi")
    stage.submit("t1")
    stage.claim("esxi", "tasks:cpu:shared:gemma3:1b")
    acted, made = done(stage, server.url, Verb.STOP, drain_s=0.3)
    assert "still runs something after 0.3 s" in (acted.error or "")
    assert (machine.did, wish(stage)) == ([], "run")
    assert made.exit_code is Exit.SOME_HOSTS
    acted, _ = done(stage, server.url, Verb.STOP, drain_s=None)
    assert (acted.done, acted.state) == (True, "stopped")
    assert machine.did == [f"stop {UNIT} system"]


def test_a_drain_that_an_operator_had_asked_for_stays(
    stage: Stage, machine: Machine, server: Server
) -> None:
    stage.worker("esxi")
    drain(stage.store, "esxi")
    kept = stage.redis.hget("worker:esxi", "wanted")
    seen: list[str] = []
    comes_back(stage, machine, seen)
    acted, _ = done(stage, server.url, Verb.RESTART)
    assert acted.done
    assert stage.redis.hget("worker:esxi", "wanted") == kept


def test_active_is_not_enough_the_grid_must_see_a_poll(
    stage: Stage, machine: Machine, server: Server
) -> None:
    stage.worker("esxi")
    acted, _ = done(stage, server.url, Verb.RESTART)
    assert (acted.done, acted.state) == (False, "running")
    assert "the grid has not seen esxi poll" in (acted.error or "")
    assert acted.hint == "cogrid sanity --host 192.168.0.41"


def test_a_worker_that_runs_already_is_started_when_it_polls(
    stage: Stage, machine: Machine, server: Server
) -> None:
    stage.hello("esxi")
    stage.renew("esxi")
    acted, _ = done(stage, server.url, Verb.START)
    assert "the grid has not seen esxi poll" in (acted.error or "")
    stage.poll("esxi")
    acted, made = done(stage, server.url, Verb.START)
    assert (acted.done, acted.was, acted.error) == (True, "running", None)
    assert made.exit_code is Exit.OK


def test_a_unit_that_is_not_there_is_no_reason_to_install_a_worker(
    stage: Stage, machine: Machine
) -> None:
    named = Choice(("olama.service",))
    (trouble,) = plan_acts([HOST], Access(), Verb.START, named, None).troubles
    assert trouble.message == "192.168.0.41 has no olama.service"
    assert "install-unit" not in (trouble.hint or "")


def test_a_unit_that_does_not_start_shows_its_last_lines(
    stage: Stage, machine: Machine, server: Server
) -> None:
    failed = {"ActiveState": "failed", "SubState": "failed", "ExecMainCode": "1",
              "ExecMainStatus": "203", "Result": "exit-code"}  # fmt: skip
    machine.on_systemctl = lambda: machine.show.update(failed)
    acted, _ = done(stage, server.url, Verb.START)
    assert (acted.done, acted.state, acted.journal) == (False, "failed", ("good-bye",))
    assert "203/EXEC" in (acted.error or "")


def test_redis_lost_meanwhile_is_that_units_failure(stage: Stage, machine: Machine) -> None:
    stage.worker("esxi")
    acted, _ = done(stage, "redis://127.0.0.1:9/0", Verb.STOP)
    assert (acted.done, machine.did) == (False, [])
    assert "cannot be reached" in (acted.error or "")
