"""One command's conversation: both outputs drained at once, stdin fed as it is taken."""

from __future__ import annotations

import contextlib
import io
import re
import select
import threading
import time
from collections.abc import Callable
from typing import BinaryIO

import paramiko

from cogrid.remote.kept import Kept

_PIECE = 32 * 1024
"""What is read or sent at once: the largest packet that OpenSSH takes."""
_PIECES = 16
"""Read before the deadline is looked at again."""
_IDLE_S = 0.25
"""How long a stop may go unnoticed while nothing comes."""
_FEED_S = 0.01
"""The pause while the host takes no more stdin: nothing tells when it does again."""


class Late(Exception):  # noqa: N818
    """The deadline has come. Not TimeoutError, which the system raises for a connection that died
    of silence."""


class Stopped(Exception):  # noqa: N818
    """The whole call was ended meanwhile."""


class Lost(Exception):  # noqa: N818
    """The connection ended before the command did."""


class Exchange:
    """What is said and heard on one channel.

    mark: the word after which output counts; before it the login shell's own noise is dropped; "":
    everything counts. first: stdin that the mark waits for, such as sudo's password; everything
    else waits for the mark.
    """

    def __init__(
        self,
        mark: str,
        *,
        first: bytes = b"",
        header: bytes = b"",
        stdin: BinaryIO | None = None,
        limit_bytes: int,
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        self.out = Kept(limit_bytes, on_line)
        self.err = Kept(limit_bytes)
        self._out_mark = Mark(mark)
        self._err_mark = Mark(mark)
        self._unsent = memoryview(first)
        self._sources = [io.BytesIO(header), *([stdin] if stdin is not None else [])]
        self._closed = False

    @property
    def begun(self) -> bool:
        """Whether the shell there has said that it runs."""
        return self._out_mark.seen

    @property
    def group(self) -> int:
        """The process group of all that runs there; 0 before it was said."""
        return int(self._out_mark.word or 0)

    @property
    def noise(self) -> str:
        """What came before the mark: a login script's words, or why there was no shell."""
        return (self._out_mark.before + self._err_mark.before).decode(errors="replace").strip()

    def run(self, channel: paramiko.Channel, deadline: float, stop: threading.Event) -> int:
        """Until the command has ended and both outputs are at their end; its exit code, -1 when a
        signal ended it. deadline: on the monotonic clock. Late, Stopped, Lost."""
        while not self._ended(channel):
            if stop.is_set():
                raise Stopped
            left = deadline - time.monotonic()
            if left <= 0:
                raise Late
            busy = self._feed(channel)
            self._wait(channel, min(left, _FEED_S if busy else _IDLE_S))
            self._drain(channel)
        self.out.end()
        self.err.end()
        code = channel.recv_exit_status()
        transport = channel.get_transport()
        if code == -1 and not transport.is_active():
            raise Lost
        return code

    def _wait(self, channel: paramiko.Channel, wait_s: float) -> None:
        if channel.eof_received:  # from then on it can always be read
            channel.status_event.wait(wait_s)
        else:
            select.select([channel], [], [], wait_s)

    def _ended(self, channel: paramiko.Channel) -> bool:
        if channel.recv_ready() or channel.recv_stderr_ready():
            return False
        return channel.closed or bool(channel.eof_received and channel.exit_status_ready())

    def _drain(self, channel: paramiko.Channel) -> None:
        """Takes what has come; not more than some, since an endless output always has more."""
        for _ in range(_PIECES):
            if channel.recv_ready():
                self.out.add(self._out_mark.after(channel.recv(_PIECE)))
            if channel.recv_stderr_ready():
                self.err.add(self._err_mark.after(channel.recv_stderr(_PIECE)))

    def _feed(self, channel: paramiko.Channel) -> bool:
        """Sends what fits; whether there is more to send."""
        while self._more(channel) and channel.send_ready():
            with contextlib.suppress(OSError):  # it reads no more; how it ended is what counts
                sent = channel.send(bytes(self._unsent[:_PIECE]))
                self._unsent = self._unsent[sent:]
                continue
            self._sources.clear()
            self._unsent = memoryview(b"")
        return bool(self._unsent)

    def _more(self, channel: paramiko.Channel) -> bool:
        while not self._unsent and self.begun and self._sources:
            self._unsent = memoryview(self._sources[0].read(_PIECE))
            if not self._unsent:
                self._sources.pop(0)
        if not self._unsent and not self._sources and not self._closed:
            self._closed = True
            with contextlib.suppress(OSError):
                channel.shutdown_write()
        return bool(self._unsent)


class Mark:
    """Splits a stream at the line that says that the shell runs, however it is cut into pieces."""

    _KEPT = 4096

    def __init__(self, mark: str) -> None:
        self.before = b""
        self.seen = not mark
        self.word = b""
        self._line = re.compile(rb"\n%b(?: (\d+))?\n" % mark.encode())

    def after(self, data: bytes) -> bytes:
        """The part of this piece that stands after that line; ``word`` is then what it said."""
        if self.seen:
            return data
        text = self.before + data
        found = self._line.search(text)
        if found is None:
            self.before = text[-self._KEPT :]
            return b""
        self.seen = True
        self.word = found[1] or b""
        self.before = text[: found.start()][-self._KEPT :]
        return text[found.end() :]
