"""Waiting in tests: poll for a condition until a deadline, never sleep for a guess."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")

POLL_S = 0.01


def until(ask: Callable[[], T], timeout_s: float = 10.0, what: str = "") -> T:
    """Asks again and again until the answer is true, and returns it; fails at the deadline."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(_late(ask, what, timeout_s, answer))
        time.sleep(POLL_S)


@overload
async def until_async(
    ask: Callable[[], Awaitable[T]], timeout_s: float = 10.0, what: str = ""
) -> T: ...


@overload
async def until_async(ask: Callable[[], T], timeout_s: float = 10.0, what: str = "") -> T: ...


async def until_async(ask: Callable[[], Any], timeout_s: float = 10.0, what: str = "") -> Any:
    """The same inside an event loop; ``ask`` may be a coroutine function or a plain one."""
    deadline = time.monotonic() + timeout_s
    while True:
        asked = ask()
        answer = await asked if isinstance(asked, Awaitable) else asked
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(_late(ask, what, timeout_s, answer))
        await asyncio.sleep(POLL_S)


def _late(ask: object, what: str, timeout_s: float, answer: object) -> str:
    name = what or getattr(ask, "__name__", repr(ask))
    return f"waited {timeout_s:g} s for {name}; last answer {answer!r}"
