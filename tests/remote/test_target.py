"""How a host may be written."""

from __future__ import annotations

import pytest

from cogrid.errors import UsageError
from cogrid.remote.target import Target, parse_target


@pytest.mark.parametrize(
    ("text", "name", "user", "port", "shown"),
    [
        ("esxi", "esxi", "", 0, "esxi"),
        ("192.168.0.41", "192.168.0.41", "", 0, "192.168.0.41"),
        (" user@192.168.0.41:2222\n", "192.168.0.41", "user", 2222, "user@192.168.0.41:2222"),
        ("me@corp@esxi", "esxi", "me@corp", 0, "me@corp@esxi"),
        ("ssh://ann@esxi:22/", "esxi", "ann", 22, "ann@esxi:22"),
        ("::1", "::1", "", 0, "[::1]"),
        ("[::1]", "::1", "", 0, "[::1]"),
        ("[::1]:2222", "::1", "", 2222, "[::1]:2222"),
        ("2001:db8::1", "2001:db8::1", "", 0, "[2001:db8::1]"),
        ("2001:DB8:0:0:0:0:0:1", "2001:db8::1", "", 0, "[2001:db8::1]"),
        ("ann@fe80::1%eth0", "fe80::1%eth0", "ann", 0, "ann@[fe80::1%eth0]"),
        ("[fe80::1%eth0]:2222", "fe80::1%eth0", "", 2222, "[fe80::1%eth0]:2222"),
    ],
)
def test_every_form(text: str, name: str, user: str, port: int, shown: str) -> None:
    target = parse_target(text)
    assert target == Target(name, user, port)
    assert target.shown == shown
    assert parse_target(shown) == target


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@esxi",
        "ann@",
        "esxi:",
        "esxi:ssh",
        "esxi:0",
        "esxi:65536",
        "esxi:²",
        "[::1",
        "[::1]2222",
        "[]",
        "1:2:3",
        "-oProxyCommand=id",
        "-l@esxi",
        "two words",
        "a\x1b[31mb",
    ],
)
def test_what_is_no_host(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_target(text)
    assert raised.value.hint
