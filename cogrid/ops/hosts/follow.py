"""The journals of many machines followed, as one, for as long as somebody listens."""

from __future__ import annotations

import heapq
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Self

from cogrid.errors import HostError
from cogrid.model.host import Host
from cogrid.ops.hosts.logs import (
    JOURNAL,
    LogLine,
    LogWishes,
    Reader,
    Trouble,
    log_line,
    of_error,
    words,
)
from cogrid.ops.hosts.machines import target_of
from cogrid.remote.access import Access
from cogrid.remote.connection import connect
from cogrid.remote.crew import Crew

FOLLOW_S = 365 * 86_400.0
"""For ever, as far as timers go."""
FOLLOW_BYTES = 1 << 16
"""Of what is followed nothing is kept; this is for what journalctl itself says."""
APART_S = 0.3
"""So long a line is held back for an older one of another host, whose way here took longer."""
AGAIN_S = 5.0
"""Between a host's loss and the next try."""
ENDING_S = 2.0
"""For what runs on the hosts to be ended."""


class Follower:
    """Follows all journals until it is closed, each on a thread of its own. A host that is lost is
    told once and tried again; the others go on meanwhile."""

    def __init__(self, hosts: Iterable[Host], access: Access, wishes: LogWishes) -> None:
        self._access = access
        self._wishes = wishes
        self._crew = Crew()
        self._over = self._crew.stop
        self._heard: queue.SimpleQueue[tuple[float, int, LogLine] | Trouble] = queue.SimpleQueue()
        self._hosts = tuple(hosts)

    def __enter__(self) -> Self:
        for host in self._hosts:
            threading.Thread(target=self._follow, args=(host,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._crew.end(ENDING_S)

    def heard(self, clock: Callable[[], float] = time.monotonic) -> Iterator[LogLine | Trouble]:
        """Lines in the order of their times, as far as they come at the same moment; for ever."""
        held: list[tuple[int, int, float, LogLine]] = []
        count = 0
        while True:
            now_s = clock()
            while held and now_s - held[0][2] >= APART_S:
                yield heapq.heappop(held)[3]
            wait_s = max(0.0, held[0][2] + APART_S - now_s) if held else APART_S
            try:
                item = self._heard.get(timeout=wait_s)
            except queue.Empty:
                continue
            if isinstance(item, Trouble):
                yield item
                continue
            came_s, at_us, line = item
            count += 1
            heapq.heappush(held, (at_us, count, came_s, line))

    def _follow(self, host: Host) -> None:
        reader = Reader(host)
        told = ""
        while not self._over.is_set():
            with self._crew.joined():
                trouble = self._once(reader)
            if self._over.is_set():
                return
            if trouble.message != told:
                self._heard.put(trouble)
            told = "" if reader.readable else trouble.message
            reader.readable = None
            self._over.wait(AGAIN_S)

    def _once(self, reader: Reader) -> Trouble:
        """Until the host is lost; why."""
        host = reader.host

        def take(text: str) -> None:
            line = reader.take(text)
            if line:
                self._heard.put((time.monotonic(), line.at_us, log_line(host, line)))

        try:
            with connect(target_of(host), self._access) as there:
                asked = words(self._wishes, reader.cursor, follow=True)
                there.run(
                    JOURNAL, *asked, timeout_s=FOLLOW_S, limit_bytes=FOLLOW_BYTES, on_line=take
                )
                return reader.trouble(there) or Trouble(
                    host.address, f"{host.address}: its journal ended", "it is asked again"
                )
        except HostError as error:
            return of_error(host, error)
