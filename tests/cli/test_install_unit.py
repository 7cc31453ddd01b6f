"""What ``cogrid install-unit`` and ``uninstall-unit`` say before they connect to anything."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cogrid.cli import own_address
from cogrid.cli.connect import address_for_hosts
from cogrid.cli.installed import print_plans
from cogrid.cli.main import run
from cogrid.config import load
from cogrid.ops.install.fleet import HostInstall, Install
from cogrid.ops.install.objections import Objection
from cogrid.ops.unit.seal import Origin, origin
from cogrid.store.embedded import Embedded
from tests.servers import free_port

PASSWORD = "hunter2"
HOSTS = """
[[host]]
address = "ops@192.168.0.41"
id = "esxi"
slots = 2
models = ["gemma3:1b"]

[[host]]
address = "ai-core"
role = "reaper"
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COGRID_REDIS_URL", f"redis://:{PASSWORD}@192.168.0.10:6379/0")
    return tmp_path


@pytest.fixture(autouse=True)
def _nobody_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def called(*_: Any) -> None:
        raise AssertionError("a connection was made")

    for module in ("fleet", "uninstall"):
        monkeypatch.setattr(f"cogrid.ops.install.{module}.connect", called)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run([*words])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize("verb", ["install-unit", "uninstall-unit"])
@pytest.mark.parametrize(
    ("words", "what"),
    [
        ((), "no host was named"),
        (("--all",), "--all means every [[host]] of the configuration, and there is none"),
        (("--hosts-from", "none.txt"), "the hosts cannot be read from none.txt: No such file"),
        (("--host", "a", "--host", "b", "--id", "x"), "one name for several hosts"),
        (("--host", "a", "--role", "boss"), "Invalid value for '--role'"),
    ],
)
def test_a_wrong_call_asks_no_host(
    capsys: pytest.CaptureFixture[str], verb: str, words: tuple[str, ...], what: str
) -> None:
    code, out, err = told(capsys, verb, *words)
    assert (code, out) == (2, "")
    assert what in err


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--id", "ESXi"), "--id is 'ESXi': write a name of a-z 0-9"),
        (("--slots", "-1"), "--slots is -1: write 0"),
        (("--engine", "ftp://x"), "--engine is 'ftp://x': write the engine's address"),
        (("--restart-sec", "0"), "Invalid value for '--restart-sec'"),
        (("--wheels", "nowhere"), "Invalid value for '--wheels'"),
    ],
)
def test_a_wrong_setting_is_a_wrong_call(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], what: str
) -> None:
    code, out, err = told(capsys, "install-unit", "--host", "a", *words)
    assert (code, out) == (2, "")
    assert what in err


@pytest.mark.parametrize(
    "more", [("--upgrade",), ("--engine", "demo"), ("--slots", "2"), ("--force",), ("--print",)]
)
def test_a_way_back_changes_no_setting(
    capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    code, out, err = told(capsys, "install-unit", "--host", "a", "--rollback", *more)
    assert (code, out) == (2, "")
    assert f"--rollback changes neither unit nor settings, and {more[0]} would" in err


@pytest.mark.parametrize("url", ["redis://127.0.0.1:6379/0", "redis://localhost", "unix:///s", ""])
def test_a_server_of_this_machine_only_is_refused_with_the_cure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("COGRID_REDIS_URL", url)
    code, out, err = told(capsys, "install-unit", "--host", "192.168.0.41")
    assert (code, out) == (2, "")
    assert "on a host it would mean the host itself" in err
    assert "cogrid up --listen ADDRESS" in err


def test_print_shows_the_unit_and_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(
        capsys, "install-unit", "--host", "ops@192.168.0.41", "--id", "esxi", "--slots", "2",
        "--print",
    )  # fmt: skip
    assert code == 0
    assert origin(out) is Origin.INSTALLED
    assert "User=ops\n" in out
    assert "worker run --id esxi --slots 2\n" in out
    assert "/etc/systemd/system/cogrid-worker@esxi.service" in err
    assert PASSWORD not in out + err


@pytest.mark.parametrize("host", ["192.168.0.41", "fe80::1%eth0"])
def test_print_makes_up_no_name_for_an_address(
    capsys: pytest.CaptureFixture[str], host: str
) -> None:
    code, out, err = told(capsys, "install-unit", "--host", host, "--print")
    assert (code, out) == (2, "")
    assert f"what {host} calls itself is not known without a connection" in err
    assert "--id NAME" in err
    assert told(capsys, "install-unit", "--host", host, "--print", "--role", "reaper")[0] == 0


def test_a_host_of_the_configuration_brings_its_settings_and_options_win(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    (home / "cogrid.toml").write_text(HOSTS)
    _, out, _ = told(capsys, "install-unit", "--host", "esxi", "--print")
    assert "worker run --id esxi --slots 2 --models gemma3:1b\n" in out
    _, out, _ = told(capsys, "install-unit", "--host", "esxi", "--slots", "4", "--print")
    assert "worker run --id esxi --slots 4 --models gemma3:1b\n" in out
    _, out, _ = told(capsys, "install-unit", "--all", "--print", "--json")
    assert [unit["name"] for unit in json.loads(out)["units"]] == [
        "cogrid-worker@esxi.service",
        "cogrid-reaper.service",
    ]


def test_hosts_come_from_a_file_or_a_pipe(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "hosts").write_text("# mine\na\n\nuser@b:22  # the big one\n")
    _, out, _ = told(capsys, "install-unit", "--hosts-from", "hosts", "--print", "--json")
    names = ["cogrid-worker@a.service", "cogrid-worker@b.service"]
    assert [unit["name"] for unit in json.loads(out)["units"]] == names
    monkeypatch.setattr("sys.stdin", io.StringIO("a\nb\n"))
    _, out, _ = told(capsys, "install-unit", "--hosts-from", "-", "--print", "--json")
    assert [unit["name"] for unit in json.loads(out)["units"]] == names


# The server that ``cogrid up --listen`` brought.


@pytest.fixture
def opened(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Embedded]:
    monkeypatch.delenv("COGRID_REDIS_URL")
    monkeypatch.setattr(own_address, "_own_address", lambda: "192.168.0.10")
    with Embedded.start(home / "state" / "cogrid", listen=f"0.0.0.0:{free_port()}") as server:
        yield server


def test_the_opened_server_is_found_with_its_password(opened: Embedded) -> None:
    address = address_for_hosts(load(None, {}))
    assert opened.address
    assert (address.host, address.port) == ("192.168.0.10", opened.address.port)
    assert address.password == opened.password != ""
    assert opened.password not in repr(address) + address.shown


def test_one_that_is_not_open_is_not(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COGRID_REDIS_URL")
    with (
        Embedded.start(home / "state" / "cogrid"),
        pytest.raises(Exception, match="on a host it would mean the host itself"),
    ):
        address_for_hosts(load(None, {}))


def test_of_a_refused_host_no_step_is_shown_that_nobody_will_take() -> None:
    steps = ("add the system user nosuch", "install cogrid 0.1.0 (0 packages, 0.0 MB)")
    unit = "cogrid-worker@esxi.service"
    why = Objection("there is no user nosuch", "add it")
    refused = HostInstall("a", unit, "refused", steps, variables=("+X",), objections=(why,))
    planned = HostInstall("b", unit, "planned", steps[:1], variables=("+X",))
    lines: list[object] = []
    print_plans(Install(True, None, (refused, planned)), lines.append)
    assert lines == [
        f"a: {unit} refused",
        "  no: there is no user nosuch",
        "      → add it",
        f"b: {unit} planned",
        "   1. add the system user nosuch",
        "      variables: +X",
    ]
