"""From settings to a unit and back: byte for byte, or refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogrid.errors import UsageError
from cogrid.model.host import Role, Scope
from cogrid.ops.unit.command import read_command
from cogrid.ops.unit.environment import environment_text, read_environment
from cogrid.ops.unit.file import parse_unit
from cogrid.ops.unit.quoting import command_line, from_command_line, from_raw, raw, split
from cogrid.ops.unit.read import read
from cogrid.ops.unit.render import needs_home, render
from cogrid.ops.unit.settings import UnitSettings
from tests.ops.unit.strange import PASSWORDS, PROGRAMS, texts, workers

ESXI = UnitSettings(
    id="esxi",
    pool="cpu",
    engine="http://127.0.0.1:11434",
    slots=2,
    models=("gemma3:1b", "hf.co/LiquidAI/LFM2.5-1.2B-JP-GGUF:Q4_K_M"),
    redis_url="redis://192.168.0.10:6379/0",
    redis_password="s3cret",
)


def service(made: UnitSettings, key: str) -> str:
    return parse_unit(render(made).unit_text).last("Service", key)


def test_every_setting_has_its_line() -> None:
    made = render(replace(ESXI, user="ollama", workdir="/srv/my grid", restart_s=7))
    unit = parse_unit(made.unit_text)
    assert made.unit_name == "cogrid-worker@esxi.service"
    assert made.unit_path == "/etc/systemd/system/cogrid-worker@esxi.service"
    assert made.environment_path == "/etc/cogrid/cogrid-worker@esxi.env"
    assert unit.last("Unit", "Description") == "cogrid worker esxi"
    assert unit.last("Service", "ExecStart") == (
        "/opt/cogrid/current/bin/cogrid worker run --id esxi --pool cpu"
        " --engine http://127.0.0.1:11434 --slots 2"
        " --models gemma3:1b,hf.co/LiquidAI/LFM2.5-1.2B-JP-GGUF:Q4_K_M"
    )
    assert unit.last("Service", "EnvironmentFile") == made.environment_path
    assert unit.last("Service", "User") == "ollama"
    assert unit.last("Service", "WorkingDirectory") == "/srv/my grid"
    assert unit.last("Service", "RestartSec") == "7"
    assert unit.last("Service", "StateDirectory") == "cogrid/worker-esxi"
    assert "%i" not in made.unit_text


def test_secrets_stand_in_the_environment_file_only_and_in_no_repr() -> None:
    made = replace(ESXI, api_key="k3y", environment=(("HF_TOKEN", "t0ken"),))
    rendered = render(made)
    assert read_environment(rendered.environment_text) == {
        "COGRID_REDIS_URL": "redis://192.168.0.10:6379/0",
        "COGRID_REDIS_PASSWORD": "s3cret",
        "COGRID_CLIENT_API_KEY": "k3y",
        "HF_TOKEN": "t0ken",
    }
    for secret in ("s3cret", "k3y", "t0ken", "192.168.0.10"):
        assert secret not in rendered.unit_text + repr(rendered) + repr(made)


def test_a_users_unit_stands_in_that_users_home() -> None:
    made = render(replace(ESXI, scope=Scope.USER))
    assert made.unit_path == "~/.config/systemd/user/cogrid-worker@esxi.service"
    assert made.environment_path == "~/.config/cogrid/cogrid-worker@esxi.env"
    unit = parse_unit(made.unit_text)
    assert unit.last("Service", "EnvironmentFile") == "%h/.config/cogrid/cogrid-worker@esxi.env"
    assert unit.values("Service", "User") == ()
    assert not any("STATE_DIR" in line for line in unit.values("Service", "Environment"))


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (ESXI, "yes"),
        (replace(ESXI, user="root"), "yes"),
        (replace(ESXI, user="ubuntu"), "read-only"),
        (replace(ESXI, program=("/home/ubuntu/venv/bin/cogrid",)), "read-only"),
        (replace(ESXI, program=("/usr/bin/python3", "/root/cogrid")), "read-only"),
        (replace(ESXI, workdir="/home"), "read-only"),
        (replace(ESXI, workdir="/homes"), "yes"),
        (replace(ESXI, has_home=True), "read-only"),
    ],
)
def test_homes_are_hidden_unless_something_lives_there(made: UnitSettings, wanted: str) -> None:
    assert service(made, "ProtectHome") == wanted


def test_another_name_for_the_unit_is_used_throughout() -> None:
    made = replace(ESXI, unit="coordinator-worker")
    rendered = render(made)
    assert rendered.unit_name == "coordinator-worker.service"
    assert rendered.environment_path == "/etc/cogrid/coordinator-worker.env"
    assert service(made, "StateDirectory") == "cogrid/worker-esxi"
    again = read(rendered.unit_name, rendered.unit_text, rendered.environment_text)
    assert again == replace(made, unit="coordinator-worker.service")


@pytest.mark.parametrize(
    "made",
    [
        UnitSettings(Role.COORDINATOR, listen="0.0.0.0:8700", redis_url="redis://h"),
        UnitSettings(Role.REAPER, redis_url="redis://h", prefix="cogrid:"),
        UnitSettings(Role.REAPER, program=("/usr/bin/python3", "-m", "cogrid.cli.main")),
        ESXI,
    ],
)
def test_every_role_is_read_back(made: UnitSettings) -> None:
    rendered = render(made)
    assert read(rendered.unit_name, rendered.unit_text, rendered.environment_text) == made


@given(made=workers())
@settings(max_examples=300, deadline=None)
def test_any_worker_is_read_back_as_it_was(made: UnitSettings) -> None:
    rendered = render(made)
    again = read(rendered.unit_name, rendered.unit_text, rendered.environment_text, made.scope)
    home = made.scope is Scope.SYSTEM and needs_home(made)
    unit = "" if made.unit_name == f"cogrid-worker@{made.id}.service" else made.unit
    assert again == replace(made, has_home=home, unit=unit)
    assert render(again) == rendered


@given(program=PROGRAMS, more=st.lists(texts(), max_size=4))
def test_any_words_are_read_back(program: str, more: list[str]) -> None:
    assert from_command_line(command_line((program, *more))) == (program, *more)


@given(PASSWORDS)
def test_any_value_is_read_back(value: str) -> None:
    assert from_raw(raw(value)) == value
    assert read_environment(environment_text((("A", value), ("B", "b")))) == {"A": value, "B": "b"}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("/u/venv/bin/python /u/worker.py", ("/u/venv/bin/python", "/u/worker.py")),
        ('"/opt/my dir/x" \'it is\' a"b c"d', ("/opt/my dir/x", "it is", "ab cd")),
        (r"/x \x41\x20b \u0041 \101 \s \q", ("/x", "A b", "A", "A", " ", r"\q")),
        ('/x ""', ("/x", "")),
        ("  /x\t a ", ("/x", "a")),
    ],
)  # fmt: skip
def test_lines_of_others_are_split_as_systemd_does(line: str, wanted: tuple[str, ...]) -> None:
    assert split(line) == wanted


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"id": ""}, "needs the worker's id"),
        ({"id": "ESXi"}, "worker.id is 'ESXi'"),
        ({"pool": "a b"}, "worker.pool is 'a b'"),
        ({"engine": "nonsense"}, "worker.engine is 'nonsense'"),
        ({"slots": -1}, "worker.slots is -1"),
        ({"models": ("a,b",)}, "the model's name 'a,b'"),
        ({"models": ("a\nb",)}, "a line end"),
        ({"models": ("a\ud800",)}, "a line end"),
        ({"unit": "a/b"}, "the unit's name 'a/b.service'"),
        ({"unit": "-W"}, "the unit's name '-W.service'"),
        ({"unit": "a@.service"}, "the unit's name 'a@.service'"),
        ({"unit": "x" * 260}, "the unit's name"),
        ({"restart_s": 0}, "0 s until the next start"),
        ({"user": "a:b"}, "the user's name 'a:b'"),
        ({"user": ""}, "the user's name ''"),
        ({"program": ()}, "the program ''"),
        ({"program": ("cogrid",)}, "the program 'cogrid'"),
        ({"program": ("/opt/../x",)}, "the program '/opt/../x'"),
        ({"program": ("/opt/$x",)}, "the program '/opt/$x'"),
        ({"program": ('/opt/"x',)}, "the program"),
        ({"program": ("/tmp/cogrid",)}, "a place for temporary files"),
        ({"program": ("/x", "a\0b")}, "the program has a line end"),
        ({"workdir": "~/grid"}, "the working directory '~/grid'"),
        ({"workdir": "/grid "}, "the working directory '/grid '"),
        ({"workdir": "/grid\\"}, "the working directory"),
        ({"workdir": "/var/tmp/x"}, "is a place for temporary files"),
        ({"redis_password": "s3cret\n"}, "the value of COGRID_REDIS_PASSWORD has a line end"),
        ({"environment": (("A B", "s3cret"),)}, "'A B' is no name of a variable"),
        ({"environment": (("COGRID_REDIS_URL", "s3cret"),)}, "COGRID_REDIS_URL is set twice"),
        ({"environment": (("A", "1"), ("A", "2"))}, "A is set twice"),
    ],
)
def test_what_no_unit_can_say_is_refused(change: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        render(replace(ESXI, **change))  # type: ignore[arg-type]
    assert told in refused.value.message
    assert len(refused.value.message.split("\n")) == 1
    assert "s3cret" not in refused.value.message


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(UsageError) as refused:
        render(UnitSettings(id="esxi", program=("x",), workdir="y", restart_s=0, pool="A"))
    assert len(refused.value.message.split("\n")) == 4


@pytest.mark.parametrize(
    "command",
    [
        ("/home/u/venv/bin/python", "/home/u/worker.py"),
        ("/x/cogrid", "worker", "list"),
        ("/x/cogrid", "worker", "run", "--id"),
        ("/x/cogrid", "worker", "run", "--trial", "10"),
        ("/x/cogrid", "worker", "run", "--slots", "many"),
        ("worker", "run"),
    ],
)
def test_other_commands_are_not_taken_for_ours(command: tuple[str, ...]) -> None:
    assert read_command(command) is None
    text = f"[Service]\nExecStart={command_line(command)}\n"
    assert read("x.service", text) is None


def test_a_unit_that_says_nothing_is_not_ours() -> None:
    assert read("x.service", "") is None
    assert read("x.service", "[Service]\nType=oneshot\n") is None
