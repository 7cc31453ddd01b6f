"""One streamed answer as it is read: bytes in, deltas out, and how it ended."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress

import msgspec

from cogrid.engine.api import Done, EngineError, Fault
from cogrid.engine.joined import Joined
from cogrid.engine.lines import Lines, LineTooLongError
from cogrid.model.chat import Delta


class Answer(ABC):
    """``feed`` what arrives, ``close`` when nothing more comes; both return what is new.

    done: the proper end, once it was read. failure: SERVER for an error in the stream or for bytes
    that are no answer, CUT for an end without its terminator; the deltas before it still count.
    Its message goes on where the engine's name stands: "failed: out of memory".
    """

    def __init__(self) -> None:
        self.done: Done | None = None
        self.failure: EngineError | None = None
        self._lines = Lines()
        self._joined = Joined()

    def feed(self, data: bytes) -> list[Delta]:
        """What these bytes complete."""
        try:
            self._take_in(data)
        except (msgspec.DecodeError, LineTooLongError) as error:
            self.failure = EngineError(Fault.SERVER, f"sent what is no answer: {error}")
        return self._joined.take()

    def close(self) -> list[Delta]:
        """What a last line without its end still says; half a line says nothing."""
        with suppress(msgspec.DecodeError, LineTooLongError):
            self._take_in(b"\n")
        if self.failure is None:
            self.done = self.done or self._unterminated()
        if self.done is None and self.failure is None:
            self.failure = EngineError(Fault.CUT, "broke the answer off before its end")
        return self._joined.take()

    def _take_in(self, data: bytes) -> None:
        try:
            whole = self._lines.feed(data)
            if whole:
                self._read(whole)
        except EngineError as error:
            self.failure = error

    def _unterminated(self) -> Done | None:
        """The end, where what was read is whole without its terminator."""
        return None

    @abstractmethod
    def _read(self, whole: bytes) -> None:
        """Takes in whole lines; sets ``done`` at the terminator, raises what the engine reports."""
