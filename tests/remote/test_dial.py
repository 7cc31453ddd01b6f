"""The stream of a ProxyCommand, and what it prints beside it."""

from __future__ import annotations

import time

from cogrid.remote.dial import Proxy
from cogrid.remote.tail import KEPT_BYTES
from tests.wait import until


def test_what_it_says_at_the_end_is_told() -> None:
    proxy = Proxy("sh -c 'echo first >&2; echo no route to it >&2'")
    assert proxy.recv(1) == b""
    assert proxy.said() == "no route to it"
    assert proxy.said() == "no route to it"


def test_of_many_words_the_end_is_kept_and_the_stream_goes_on() -> None:
    proxy = Proxy("sh -c 'yes talk | head -c 20000000 >&2; echo over >&2; exec cat'")
    proxy.settimeout(30)
    proxy.send(b"x")
    assert proxy.recv(1) == b"x"
    assert proxy.said() == "over"
    assert len(proxy._printed.kept) == KEPT_BYTES


def test_one_that_never_stops_talking_is_ended() -> None:
    proxy = Proxy("yes talk >&2")
    until(lambda: len(proxy._printed.kept) == KEPT_BYTES, what="words of it")
    proxy.close()
    assert proxy._process.returncode is not None
    assert len(proxy._printed.kept) == KEPT_BYTES


def test_what_it_leaves_running_holds_nothing_up() -> None:
    proxy = Proxy("sh -c 'echo gone >&2; sleep 5 >/dev/null & exit 1'")
    assert proxy.recv(1) == b""
    began_s = time.monotonic()
    assert proxy.said() == "gone"
    assert time.monotonic() - began_s < 3
