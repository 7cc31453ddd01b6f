"""``[[host]]`` tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from cogrid.config import ConfigError, load
from cogrid.model.host import Host


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cogrid.toml"


def test_hosts_in_their_order_with_what_they_leave_open(file: Path) -> None:
    file.write_text(
        """
[[host]]
address = "ops@192.168.0.41:2222"
id = "esxi"
pool = "cpu"
engine = "http://127.0.0.1:11434"
models = ["gemma3:latest", "llama3.2:1b"]
slots = 2
scope = "user"
user = "ai"
workdir = "/srv/ai core"
python = "/usr/bin/python3.12"

[[host]]
address = "ai-core"
role = "reaper"
"""
    )
    assert load(str(file), {}).hosts == (
        Host(
            "ops@192.168.0.41:2222",
            id="esxi",
            pool="cpu",
            engine="http://127.0.0.1:11434",
            models=("gemma3", "llama3.2:1b"),
            slots=2,
            scope="user",
            user="ai",
            workdir="/srv/ai core",
            python="/usr/bin/python3.12",
        ),
        Host("ai-core", role="reaper"),
    )


def test_one_host_may_have_several_roles_but_each_once(file: Path) -> None:
    host = '[[host]]\naddress = "a"\n'
    file.write_text(f'{host}{host}role = "reaper"\n')
    assert [each.role for each in load(str(file), {}).hosts] == ["worker", "reaper"]
    file.write_text(f"{host}{host}")
    with pytest.raises(ConfigError) as caught:
        load(str(file), {})
    assert caught.value.problems == (
        f"{file}:4: host.address: 'a' stands above with the same role",
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("adress = 1", "host.adress: is unknown; did you mean address?"),
        ("id = 'ESXi'", "host.id: write a name of a-z 0-9"),
        ("slots = '2'", "host.slots: write a whole number"),
        ("slots = -1", "host.slots: write 0 (as the engine says) to 1024"),
        ("role = 'boss'", "host.role: write worker or coordinator or reaper"),
        ("scope = 'mine'", "host.scope: write system or user"),
        ("models = 'a'", "host.models: write a list of texts"),
        ("engine = 'ftp://x'", "host.engine: write the engine's address"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(file: Path, line: str, problem: str) -> None:
    file.write_text(f"[[host]]\naddress = 'a'\n\n[[host]]\naddress = 'b'\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        load(str(file), {})
    (told,) = caught.value.problems
    assert told.startswith(f"{file}:6: {problem}")


@pytest.mark.parametrize("address", ["", "-oProxyCommand=x", "a b", "a\tb"])
def test_what_can_be_no_address_is_refused(file: Path, address: str) -> None:
    file.write_text(f'[[host]]\naddress = "{address}"\n'.replace("\t", "\\t"))
    with pytest.raises(ConfigError, match=r"host\.address: write HOST"):
        load(str(file), {})


def test_an_address_is_missing_and_a_single_table_is_no_list(file: Path) -> None:
    file.write_text("[[host]]\nid = 'a'\n")
    with pytest.raises(ConfigError, match=r"toml:1: host.address: is missing"):
        load(str(file), {})
    file.write_text("[host]\nid = 'a'\n")
    with pytest.raises(ConfigError, match=r"toml:1: host: write each machine as a table"):
        load(str(file), {})
