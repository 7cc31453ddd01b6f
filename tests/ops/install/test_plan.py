"""What would be done on a host, and what speaks against it, from what the host is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cogrid.model.host import Host, Role
from cogrid.ops.install.facts import Place, Reach, Unit
from cogrid.ops.install.given import Delivery, Seen, Wishes
from cogrid.ops.install.objections import no_systemd
from cogrid.ops.install.order import unit_settings
from cogrid.ops.install.plan import Act, plan
from cogrid.ops.unit.render import render
from tests.ops.install.build import (
    ALIVE,
    NEW,
    THERE,
    UP,
    a_login,
    a_look,
    a_process,
    a_unit,
    an_order,
    installed,
    planned,
    some_settings,
)

SETTINGS = some_settings()
RENDERED = render(SETTINGS)
COORDINATOR = "[Service]\nExecStart=/srv/venv/bin/python /srv/worker.py\n"


def acts(found: Any) -> list[Act]:
    return [step.act for step in found.steps]


def objections(found: Any) -> list[str]:
    return [each.what for each in found.objections]


def test_a_bare_host_gets_everything_in_order() -> None:
    found = planned(a_look(account=None))
    assert acts(found) == [
        Act.USER,
        Act.INSTALL,
        Act.ENVIRONMENT,
        Act.UNIT,
        Act.SWITCH,
        Act.ENABLE,
        Act.START,
        Act.ACTIVE,
        Act.POLLED,
    ]
    assert found.objections == ()
    assert not found.running
    assert [step.what for step in found.steps][:3] == [
        "add the system user cogrid",
        "install cogrid 0.1.0-1f0f54a2 (29 packages, 17.4 MB)",
        "write /etc/cogrid/cogrid-worker@esxi.env (0600)",
    ]
    assert found.variables == ("+COGRID_REDIS_PASSWORD", "+COGRID_REDIS_URL")


def test_no_secret_is_in_a_plan() -> None:
    assert "s3cret" in RENDERED.environment_text
    assert "s3cret" not in repr(planned(a_look()))
    assert "s3cret" not in repr((SETTINGS, RENDERED, installed(RENDERED)))


def test_twice_is_once() -> None:
    found = planned(installed(RENDERED), THERE, seen=ALIVE)
    assert (found.steps, found.diff, found.variables) == ((), (), ())
    assert not found.is_todo


def test_changed_settings_restart_once_and_after_a_drain() -> None:
    more = replace(SETTINGS, slots=2)
    found = planned(installed(RENDERED), THERE, settings=more, seen=replace(ALIVE, runs=3))
    assert acts(found) == [Act.UNIT, Act.DRAIN, Act.START, Act.ACTIVE, Act.POLLED]
    assert found.steps[1].what == "drain esxi, which runs 3 tasks"
    assert found.steps[2].what == "restart cogrid-worker@esxi.service"
    assert [line for line in found.diff if line.startswith("+Exec")] == [
        "+ExecStart=/opt/cogrid/current/bin/cogrid worker run --id esxi --slots 2"
    ]


def test_another_password_changes_the_environment_only_and_is_not_shown() -> None:
    other = replace(SETTINGS, redis_password="other")
    found = planned(installed(RENDERED), THERE, settings=other, seen=ALIVE)
    assert acts(found) == [Act.ENVIRONMENT, Act.DRAIN, Act.START, Act.ACTIVE, Act.POLLED]
    assert found.variables == ("~COGRID_REDIS_PASSWORD",)
    assert found.diff == ()


@pytest.mark.parametrize(
    ("state", "seen", "expected"),
    [
        (UP.replace("active\n", "failed\n", 1), Seen(), [Act.START, Act.ACTIVE, Act.POLLED]),
        (UP.replace("=enabled", "=disabled"), ALIVE, [Act.ENABLE]),
        # It runs and does not poll: hung, or registered under a server that is gone.
        (UP, Seen(), [Act.START, Act.ACTIVE, Act.POLLED]),
        (
            UP,
            replace(ALIVE, polls=False),
            [Act.DRAIN, Act.START, Act.ACTIVE, Act.POLLED],
        ),
    ],
)
def test_what_is_installed_and_does_not_work_is_started(
    state: str, seen: Seen, expected: list[Act]
) -> None:
    look = installed(RENDERED, unit=Unit(RENDERED.unit_text, state))
    assert acts(planned(look, THERE, seen=seen)) == expected


def test_an_upgrade_restarts_the_unit_without_writing_it() -> None:
    coming = Delivery("0.1.0-aaaaaaaa", "0.2.0-bbbbbbbb", 29, 1_000_000, 0)
    found = planned(installed(RENDERED), coming, seen=ALIVE)
    assert acts(found) == [
        Act.INSTALL, Act.SWITCH, Act.DRAIN, Act.START, Act.ACTIVE, Act.POLLED,
    ]  # fmt: skip
    assert found.steps[1].what == "use cogrid 0.2.0-bbbbbbbb (was 0.1.0-aaaaaaaa)"


# The host.


@pytest.mark.parametrize(
    ("login", "what"),
    [
        ({"init": "init", "systemd": False}, "its first process is init"),
        # systemctl is installed, and something else runs the machine.
        ({"init": "sh", "systemd": True}, "its first process is sh"),
        ({"init": "", "systemd": False}, "it is no Linux"),
    ],
)
def test_without_systemd_nothing_is_done(login: dict[str, Any], what: str) -> None:
    found = no_systemd(a_login(**login), SETTINGS)
    assert found is not None
    assert found.what == f"there is no systemd as init ({what})"
    assert found.cure == ("run this command under your own supervisor: cogrid worker run --id esxi")


def test_systemd_is_fine() -> None:
    assert no_systemd(a_login(), SETTINGS) is None


@pytest.mark.parametrize(
    ("look", "what"),
    [
        ({"workdir": "missing"}, "the working directory /srv/x does not exist there"),
        ({"workdir": "relative"}, "the working directory /srv/x is not written in full"),
        ({"workdir": "file"}, "the working directory /srv/x is no directory"),
        ({"workdir": "closed"}, "cogrid may not enter or read the working directory /srv/x"),
        (
            {"place": Place(10**9, noexec=True, readonly=False, path="/opt")},
            "the file system at /opt is mounted noexec, so no program there can run",
        ),
        (
            {"place": Place(10**9, noexec=False, readonly=True, path="/opt")},
            "the file system at /opt is mounted read-only",
        ),
        (
            {"place": Place(50_000_000, noexec=False, readonly=False, path="/opt")},
            "the disk at /opt has 50 MB free and 107 MB are needed",
        ),
        ({"engine": ""}, "no engine answers there on the usual ports"),
    ],
)
def test_what_a_host_lacks_is_named(look: dict[str, Any], what: str) -> None:
    settings = replace(SETTINGS, workdir="/srv/x")
    assert objections(planned(a_look(**look), settings=settings)) == [what]


def test_all_that_is_wrong_is_told_at_once() -> None:
    look = a_look(engine="", redis=Reach("network", "Connection refused"), account=None)
    settings = replace(SETTINGS, user="ai", engine="http://10.0.0.1:11434")
    assert objections(planned(look, settings=settings)) == [
        "there is no user ai",
        "Redis at 192.168.0.10:6379 cannot be reached from there: Connection refused",
        "no engine answers there at http://10.0.0.1:11434",
    ]


def test_only_the_usual_user_is_made() -> None:
    assert Act.USER in planned(a_look(account=None)).acts
    named = planned(a_look(account=None), settings=replace(SETTINGS, user="ai"))
    assert objections(named) == ["there is no user ai"]


def test_a_users_unit_needs_lingering() -> None:
    login = a_login(user="ada", uid=1000, home="/home/ada", data_home="/home/ada/.local/share")
    settings = some_settings(login, scope="user")
    assert objections(planned(a_look(), settings=settings, login=login)) == []
    found = planned(a_look(lingers=False), settings=settings, login=login)
    assert objections(found) == [
        "its units end with the last login, since lingering is off for that user"
    ]
    assert found.objections[0].cure.endswith("sudo loginctl enable-linger ada")


def test_an_engine_of_our_own_needs_nothing_there() -> None:
    assert objections(planned(a_look(engine=""), settings=replace(SETTINGS, engine="demo"))) == []


@pytest.mark.parametrize("role", [Role.COORDINATOR, Role.REAPER])
def test_only_workers_need_an_engine(role: Role) -> None:
    settings = some_settings(role=role)
    look = a_look(engine="", workers=(a_process("python3 worker.py"),))
    assert objections(planned(look, settings=settings)) == []


@pytest.mark.parametrize(
    ("fault", "what", "cure"),
    [
        (
            "itself",
            "the Redis URL names 192.168.0.10:6379, which on that host",
            "cogrid up --listen",
        ),
        ("name", "the name 192.168.0.10 of the Redis server has no address there", "--redis"),
        ("tls", "Redis at 192.168.0.10:6379 cannot be trusted from there", "redis.ca_file"),
        ("password", "Redis at 192.168.0.10:6379 refuses user and password", "redis.password"),
        ("network", "Redis at 192.168.0.10:6379 cannot be reached from there", "open the port"),
        ("server", "what listens at 192.168.0.10:6379 does not answer like Redis", "--redis"),
    ],
)
def test_each_way_in_which_redis_is_not_there_has_its_cure(
    fault: str, what: str, cure: str
) -> None:
    (found,) = planned(a_look(redis=Reach(fault, "so it says"))).objections
    assert found.what.startswith(what)
    assert cure in found.cure


def test_a_clock_that_is_off_is_noted_and_no_obstacle() -> None:
    found = planned(a_look(off_s=-600.4))
    assert found.notes == ("its clock is 600 s behind: its log will mislead",)
    assert found.objections == ()
    assert planned(a_look(off_s=5.0)).notes == ()


# What is there already.


def test_an_edited_unit_is_shown_and_not_written_over() -> None:
    edited = RENDERED.unit_text.replace("RestartSec=10", "RestartSec=3")
    look = installed(RENDERED, unit=Unit(edited, UP))
    found = planned(look, THERE, seen=ALIVE)
    assert objections(found) == [
        "/etc/systemd/system/cogrid-worker@esxi.service was edited by hand"
    ]
    assert {"-RestartSec=3", "+RestartSec=10"} <= set(found.diff)
    forced = planned(look, THERE, seen=ALIVE, force=True)
    assert forced.objections == ()
    assert Act.UNIT in forced.acts


def test_an_edited_environment_is_not_written_over_either() -> None:
    look = installed(RENDERED, environment=f"{RENDERED.environment_text}CUDA_VISIBLE_DEVICES=1\n")
    found = planned(look, THERE, seen=ALIVE)
    assert objections(found) == ["/etc/cogrid/cogrid-worker@esxi.env was edited by hand"]
    assert found.variables == ("-CUDA_VISIBLE_DEVICES",)


def test_a_unit_of_an_older_cogrid_is_written_anew() -> None:
    older = render(replace(SETTINGS, restart_s=5))
    found = planned(installed(older), THERE, seen=ALIVE)
    assert found.objections == ()
    assert Act.UNIT in found.acts


def test_a_foreign_file_in_our_place_needs_force() -> None:
    look = installed(RENDERED, unit=Unit(COORDINATOR, UP))
    assert objections(planned(look, THERE)) == [
        "/etc/systemd/system/cogrid-worker@esxi.service is there and was not written by cogrid"
    ]


def test_drop_ins_are_named_and_stay() -> None:
    state = f"{UP}DropInPaths=/etc/systemd/system/cogrid-worker@esxi.service.d/gpu.conf\n"
    look = installed(RENDERED, unit=Unit(RENDERED.unit_text, state))
    found = planned(look, THERE, settings=replace(SETTINGS, slots=2), seen=ALIVE)
    assert found.notes == (
        "stays as it is: /etc/systemd/system/cogrid-worker@esxi.service.d/gpu.conf",
    )


FOREIGN = a_unit("coordinator-worker.service", "/home/u/venv/bin/python /home/u/worker.py")
BY_HAND = a_process("/home/u/venv/bin/python worker.py --redis redis://:hunter2@x")


def test_the_worker_of_old_is_shown_and_replaced_only_when_agreed() -> None:
    look = a_look(workers=(FOREIGN, BY_HAND))
    found = planned(look)
    (what,) = objections(found)
    assert "coordinator-worker.service (/etc/systemd/system/coordinator-worker.service)" in what
    assert "process 4242 of ada, started by hand: /home/u/venv/bin/python worker.py" in what
    assert "hunter2" not in repr(found)
    agreed = planned(look, replace=True)
    assert agreed.objections == ()
    assert acts(agreed)[-7:] == [
        Act.REPLACE, Act.FREEZE, Act.ENABLE, Act.START, Act.ACTIVE, Act.POLLED, Act.END,
    ]  # fmt: skip
    assert [step.what for step in agreed.steps if step.other] == [
        "stop and disable coordinator-worker.service",
        "halt process 4242",
        "end process 4242",
    ]


def test_a_password_before_the_program_is_not_shown() -> None:
    sudo = a_process("sudo COGRID_REDIS_PASSWORD=hunter2 cogrid worker run")
    assert "hunter2" not in repr(planned(a_look(workers=(sudo,))))


def test_a_unit_that_is_off_is_nobody() -> None:
    off = a_unit("coordinator-worker.service", "python worker.py", "inactive", "disabled")
    assert planned(a_look(workers=(off,))).others == ()
    waiting = a_unit("coordinator-worker.service", "python worker.py", "inactive", "enabled")
    assert len(planned(a_look(workers=(waiting,))).others) == 1


@pytest.mark.parametrize(
    ("running", "count"),
    [
        (a_unit("cogrid-worker@esxi.service", "/opt/cogrid worker run --id esxi"), 0),
        (a_unit("cogrid-worker@two.service", "/opt/cogrid/bin/cogrid worker run --id two"), 0),
        (a_unit("mine.service", "/opt/cogrid/bin/cogrid worker run --id esxi"), 1),
        (a_unit("mine.service", "/opt/cogrid worker run --id two --log-level debug"), 0),
        (a_unit("mine.service", "/opt/cogrid worker run --log-level debug --id=two"), 0),
        (a_unit("mine.service", "/opt/cogrid worker run --id esxi --log-level debug"), 1),
        (a_unit("mine@two.service", "/opt/cogrid worker run --id %i"), 0),
        (a_unit("mine@esxi.service", "/opt/cogrid worker run --id %i"), 1),
        # Its name may come from a file, so it may be this one.
        (a_unit("mine.service", "/opt/cogrid worker run --log-level debug"), 1),
        (a_unit("mine.service", "/opt/cogrid worker run"), 1),
        (a_unit("mine.service", "/opt/other serve --id two"), 1),
        (a_process("python -m cogrid.cli.main worker run --id two"), 0),
        (a_process("python -m cogrid.cli.main worker run --id=two"), 0),
        (a_process("python -m cogrid.cli.main worker run --id esxi"), 1),
        # Without a name it is called as the host is.
        (a_process("/opt/cogrid/bin/cogrid worker run"), 1),
    ],
)
def test_a_cogrid_worker_of_another_name_may_stay_beside_it(running: Any, count: int) -> None:
    assert len(planned(a_look(workers=(running,))).others) == count


def test_a_name_that_lives_elsewhere_is_not_taken() -> None:
    found = planned(a_look(), seen=replace(ALIVE, host="ai-core.lan"))
    assert objections(found) == ["a worker esxi is alive on host ai-core.lan"]
    assert objections(planned(a_look(), seen=replace(ALIVE, host="ESXI.lan"))) == []
    assert objections(planned(a_look(), seen=Seen(alive=False, host="ai-core"))) == []


def test_whose_unit_it_is_decides_where_all_stands() -> None:
    login = a_login(user="ada", uid=1000, home="/home/ada", data_home="/home/ada/.local/share")
    found = some_settings(login, scope="user")
    assert found.program == ("/home/ada/.local/share/cogrid/current/bin/cogrid",)
    assert found.user == ""
    assert some_settings(login).user == "ada"
    assert some_settings().user == "cogrid"
    assert NEW.coming in planned(a_look()).steps[0].what


def test_the_authority_of_the_server_goes_along_and_only_when_it_is_another_one() -> None:
    order = an_order("rediss://:s3cret@192.168.0.10:6379/0", authorities="PEM")
    settings = unit_settings(Host("192.168.0.41"), a_login(), order)
    rendered = render(settings)
    assert 'COGRID_REDIS_CA_FILE="/etc/cogrid/redis-ca.pem"' in rendered.environment_text

    def found(authorities: str | None) -> list[Act]:
        look = installed(rendered, authorities=authorities)
        return acts(plan(settings, rendered, a_login(), look, THERE, ALIVE, Wishes(), order.server))

    assert found("PEM") == []
    assert found("older")[:2] == [Act.AUTHORITIES, Act.DRAIN]
    assert found(None)[0] is Act.AUTHORITIES


def test_what_all_daemons_of_a_grid_must_agree_on_goes_along() -> None:
    env = {"COGRID_LIMITS_LEASE_S": "60", "COGRID_WORKER_ENGINE_KEY": "sk-1"}
    settings = unit_settings(Host("192.168.0.41"), a_login(), an_order(env=env))
    assert settings.environment == (
        ("COGRID_LIMITS_LEASE_S", "60.0"),
        ("COGRID_WORKER_ENGINE_KEY", "sk-1"),
    )
    reaper = unit_settings(Host("192.168.0.41", role="reaper"), a_login(), an_order(env=env))
    assert reaper.environment == (("COGRID_LIMITS_LEASE_S", "60.0"),)
    assert some_settings().environment == ()
