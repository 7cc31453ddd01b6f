"""Where names lead, with a resolver of the test's own."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from cogrid.remote.places import places_of
from cogrid.remote.target import parse_target

CONFIG = """
Host w1
    HostName 10.0.0.9
    Port 2222
Host lab
    HostName 127.0.0.1
    Port 2201
Host old
    HostName gone.lan
Host far
    ProxyJump w1
Host piped
    ProxyCommand nc %h %p
"""
KNOWN = {
    "box.lan": ("192.168.0.41", "2001:db8::41"),
    "debian": ("127.0.1.1",),
    "localhost": ("::1", "127.0.0.1"),
}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def resolve(name: str, port: int, *_: Any) -> list[tuple[Any, ...]]:
        if name in KNOWN:
            return [(0, 0, 0, "", (address, port)) for address in KNOWN[name]]
        if not name[0].isdigit():
            raise socket.gaierror(f"{name} is not known")
        return [(0, 0, 0, "", (name, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    file = tmp_path / "ssh_config"
    file.write_text(CONFIG)
    return file


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("w1", {("10.0.0.9", 2222)}),
        ("ann@w1:2300", {("10.0.0.9", 2300)}),
        ("lab", {("127.0.0.1", 2201)}),
        ("old", set()),
        ("far", {("far", 22)}),
        ("piped", {("piped", 22)}),
        ("box.lan", {("192.168.0.41", 22), ("2001:db8::41", 22)}),
        ("debian", set()),
        ("localhost", set()),
        ("nobody", set()),
        ("192.168.0.41", {("192.168.0.41", 22)}),
    ],
)
def test_where_a_name_leads(config: Path, name: str, places: set[tuple[str, int]]) -> None:
    assert places_of(parse_target(name), config) == places


def test_a_configuration_that_cannot_be_read_knows_nobody(config: Path) -> None:
    config.write_text("Host w1\n    Prot 2222\n    ProxyJump ''\n")
    assert places_of(parse_target("box.lan"), config) == set()
