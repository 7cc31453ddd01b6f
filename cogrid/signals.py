"""Being told by a signal to stop, without the deadlock that threading.Event has there."""

from __future__ import annotations

import contextlib
import os
import select
import signal


class Told:
    """What a signal handler says and the program waits for; one or two of them in a process.

    A handler runs in the middle of whatever the main thread does, and Event.set() there takes the
    lock that a wait() of that same thread may hold at this moment: the process never ends. A pipe
    has no such lock.
    """

    def __init__(self) -> None:
        self._reads, self._writes = os.pipe()
        os.set_blocking(self._reads, False)
        os.set_blocking(self._writes, False)

    def on_signals(self, *numbers: signal.Signals) -> None:
        """Let these signals say it from now on; in the main thread."""
        for number in numbers:
            signal.signal(number, lambda *_: self.set())

    def set(self) -> None:
        """Say it; from a handler or from any thread."""
        with contextlib.suppress(BlockingIOError):  # a full pipe says it as well
            os.write(self._writes, b".")

    def clear(self) -> None:
        """From here on it counts as unsaid."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._reads, 64):
                pass

    def is_set(self) -> bool:
        """Was it said?"""
        return self.wait(0)

    def wait(self, limit_s: float) -> bool:
        """Wait until it is said, for at most so many seconds; was it? Any number of threads."""
        waiting = select.poll()
        waiting.register(self._reads, select.POLLIN)
        return bool(waiting.poll(limit_s * 1000))
