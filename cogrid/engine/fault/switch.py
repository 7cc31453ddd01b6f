"""What can be made to go wrong, and for whom."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Mode(StrEnum):
    """A way to fail, or to answer in an unusual way. ``after``: tokens sent before it happens."""

    HANG = "hang"
    """No byte at all."""
    SLOW_FIRST = "slow_first"
    """``seconds`` pass before the headers."""
    DELAY = "delay"
    """``seconds`` between tokens."""
    TOKENS = "tokens"
    """The answer has ``after`` tokens."""
    STALL = "stall"
    """Silence after ``after`` tokens; at 0 the headers come and nothing more."""
    CUT = "cut"
    """The connection breaks after ``after`` tokens."""
    UNFINISHED = "unfinished"
    """A clean end after ``after`` tokens, without the terminator."""
    ERROR_LINE = "error_line"
    """An error in the stream after ``after`` tokens."""
    GARBAGE = "garbage"
    """Bytes that are no JSON after ``after`` tokens."""
    SERVER_ERROR = "500"
    HTML_ERROR = "502"
    """A proxy's page."""
    BUSY = "busy"
    """503."""
    MISSING = "missing"
    """404: the model is gone."""
    REFUSE = "refuse"
    """400: the request is at fault."""
    WEDGED_PS = "wedged_ps"
    """/api/ps takes the question and never answers."""
    THINKING = "thinking"
    """Reasoning, and no answer behind it."""
    TOOL_CALLS = "tool_calls"
    """Two calls at once."""
    BIG_DELTA = "big_delta"
    """One piece of 300 kB."""
    SPLIT = "split"
    """Characters of several bytes, cut in the middle by the network."""
    ECHO = "echo"
    """The words of the last message."""


@dataclass(frozen=True, slots=True)
class Switch:
    """model: only for this one, "" for all. times: how many requests it meets; 0: all of them."""

    mode: Mode
    after: int = 0
    seconds: float = 0.0
    model: str = ""
    times: int = 0


class Switches:
    """Those that are on. A later one of the same mode and model replaces the earlier."""

    def __init__(self) -> None:
        self._on: dict[tuple[Mode, str], Switch] = {}

    def set(self, switch: Switch) -> None:
        self._on[switch.mode, switch.model] = switch

    def clear(self) -> None:
        self._on.clear()

    @property
    def all(self) -> tuple[Switch, ...]:
        return tuple(self._on.values())

    def has(self, mode: Mode) -> bool:
        """Whether it is on for everybody."""
        return (mode, "") in self._on

    def meet(self, model: str) -> dict[Mode, Switch]:
        """What happens to a request for this model; counts it where ``times`` is limited."""
        met: dict[Mode, Switch] = {}
        for key, switch in list(self._on.items()):
            if switch.model in ("", model):
                met[switch.mode] = switch
                if switch.times == 1:
                    del self._on[key]
                elif switch.times > 1:
                    self._on[key] = replace(switch, times=switch.times - 1)
        return met
