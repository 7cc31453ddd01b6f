"""Where the server is, from a URL."""

from __future__ import annotations

import pytest

from cogrid.errors import UsageError
from cogrid.store.address import Address, parse_address


@pytest.mark.parametrize(
    ("url", "address", "shown"),
    [
        ("redis://10.0.0.5:6380/2", Address("10.0.0.5", 6380, db=2), "redis://10.0.0.5:6380/2"),
        ("redis://server", Address("server"), "redis://server:6379/0"),
        ("redis://", Address(), "redis://127.0.0.1:6379/0"),
        ("redis://[::1]:7000", Address("::1", 7000), "redis://[::1]:7000/0"),
        ("rediss://h/1", Address("h", db=1, tls=True), "rediss://h:6379/1"),
        (
            "redis://ada:p%20w%25@h",
            Address("h", username="ada", password="p w%"),
            "redis://h:6379/0",
        ),
        ("redis://:secret@h", Address("h", password="secret"), "redis://h:6379/0"),
        ("unix:///run/valkey.sock", Address(path="/run/valkey.sock"), "unix:///run/valkey.sock"),
        ("unix://:s@/run/v?db=3", Address(path="/run/v", db=3, password="s"), "unix:///run/v"),
    ],
)
def test_a_url_is_an_address(url: str, address: Address, shown: str) -> None:
    assert parse_address(url) == address
    assert parse_address(url).shown == shown


def test_what_is_given_beside_the_url_wins() -> None:
    address = parse_address("redis://ada:old@h", username="eve", password="new", ca_file="/ca.pem")
    assert (address.username, address.password, address.ca_file) == ("eve", "new", "/ca.pem")


def test_a_password_is_never_shown() -> None:
    address = parse_address("redis://:secret@h")
    assert "secret" not in repr(address) + address.shown


@pytest.mark.parametrize(
    "url",
    ["", "localhost:6379", "http://h", "redis://h:port", "redis://h/zero", "unix:///s?db=x",
     "unix://", "redis://[::1", "redis://h:99999"],
)  # fmt: skip
def test_a_url_that_is_none_is_refused_with_a_cure(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_address(url, password="secret")
    assert "Redis URL" in refused.value.message
    assert "://" in refused.value.hint
    assert "secret" not in refused.value.message


def test_only_tls_has_a_context() -> None:
    assert parse_address("redis://h").ssl_context() is None
    context = parse_address("rediss://h").ssl_context()
    assert context is not None
    assert context.check_hostname
