"""Which worker has a conversation's cache: kept in memory, bounded, and nobody's loss when gone."""

from __future__ import annotations

from collections import OrderedDict

CONVERSATIONS_MOST = 10_000


class Affinity:
    """A conversation -> the worker that served it last. Conversations are known by a hash of their
    user, system texts and first message, which is all that their requests have in common."""

    def __init__(self, most: int = CONVERSATIONS_MOST) -> None:
        self._most = most
        self._workers: OrderedDict[int, str] = OrderedDict()

    def worker(self, key: int) -> str:
        """Who served it last, "" where that is not known."""
        return self._workers.get(key, "")

    def served(self, key: int, worker: str) -> None:
        """This worker has just served it; the one longest unheard of is forgotten."""
        self._workers[key] = worker
        self._workers.move_to_end(key)
        if len(self._workers) > self._most:
            self._workers.popitem(last=False)


def key_of(user: str, model: str, system: str, first: str) -> int:
    """The key of a conversation."""
    return hash((user, model, system, first))
