"""A connection that is lost in the moment between its making and its first use."""

from __future__ import annotations

import asyncio

import pytest

from cogrid.store.pipe import _Wire
from cogrid.store.refusal import StoreError


async def test_a_command_on_a_lost_connection_fails_at_once() -> None:
    """Who waited for a reply there would wait for ever."""
    wire = _Wire("redis://127.0.0.1:1/0")
    wire.connection_made(asyncio.Transport())
    wire.connection_lost(ConnectionResetError("reset"))
    with pytest.raises(StoreError, match="reset"):
        wire.send(b"*1\r\n$4\r\nPING\r\n", 1.0)
    assert not wire.waiting
