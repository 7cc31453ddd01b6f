"""Which machines a command goes to."""

from __future__ import annotations

from cogrid.model.host import Host
from cogrid.rules.hosts import chosen, listed

ESXI = Host("ops@192.168.0.41", id="esxi", pool="cpu")
CORE = Host("ai-core")
CORE_REAPER = Host("ai-core", role="reaper")
ALL = (ESXI, CORE, CORE_REAPER)


def test_a_name_of_the_configuration_brings_what_stands_there() -> None:
    assert chosen(["esxi"], False, ALL) == (ESXI,)
    assert chosen(["ops@192.168.0.41"], False, ALL) == (ESXI,)
    assert chosen(["ai-core"], False, ALL) == (CORE, CORE_REAPER)


def test_any_other_name_is_an_address() -> None:
    assert chosen(["192.168.0.41", "ops@[::1]:22"], False, ALL) == (
        Host("192.168.0.41"),
        Host("ops@[::1]:22"),
    )


def test_each_is_meant_once_and_in_order() -> None:
    assert chosen(["b", "a", "b", "esxi"], False, ALL) == (Host("b"), Host("a"), ESXI)
    assert chosen(["b", "esxi"], True, ALL) == (*ALL, Host("b"))
    assert chosen([], False, ALL) == ()


def test_a_list_has_comments_and_empty_lines() -> None:
    assert listed("# all\n\n a \nuser@b:22  # the big one\n\n") == ("a", "user@b:22")
