"""Asks many hosts at once, so that a dead one holds up no other."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from cogrid.errors import HostError, HostFault
from cogrid.remote.crew import Crew
from cogrid.remote.target import Target

T = TypeVar("T")

_ENDING_S = 2.0
"""How long the hosts that are still busy at the end have to end what runs there."""


def ask_all(
    targets: Sequence[Target],
    ask: Callable[[Target], T],
    limit_s: float,
    at_once: int = 32,
) -> tuple[T | HostError, ...]:
    """What each host answered, or the HostError it failed with, in the order of the targets.

    ask: called in threads of its own; what else it raises is raised here, when all have ended.
    limit_s: of the whole call. Then, and at Ctrl-C, what the connections opened by ``ask`` still
    run is ended on the hosts, for which they get two seconds more; a host that has not answered has
    a HostError of the kind STOPPED.
    """
    answers: queue.SimpleQueue[tuple[int, T | BaseException]] = queue.SimpleQueue()
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(targets)):
        waiting.put(number)
    crew = Crew()

    def work() -> None:
        with crew.joined():
            while not crew.stop.is_set():
                try:
                    number = waiting.get_nowait()
                except queue.Empty:
                    return
                answers.put((number, _answer(ask, targets[number])))

    found: dict[int, T | BaseException] = {}
    try:
        # Not a pool of concurrent.futures: the interpreter would wait for its threads at its end.
        for _ in targets[:at_once]:
            threading.Thread(target=work, daemon=True).start()
        _collect(answers, found, len(targets), limit_s)
    finally:
        crew.end(_ENDING_S)
    _collect(answers, found, len(targets), 0)
    return tuple(
        _settled(found.get(number), target, limit_s) for number, target in enumerate(targets)
    )


def _answer(ask: Callable[[Target], T], target: Target) -> T | BaseException:
    try:
        return ask(target)
    except BaseException as error:  # it is raised in the thread that waits
        return error


def _collect(
    answers: queue.SimpleQueue[tuple[int, T | BaseException]],
    found: dict[int, T | BaseException],
    count: int,
    limit_s: float,
) -> None:
    deadline = time.monotonic() + limit_s
    while len(found) < count:
        try:
            number, answer = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return
        found[number] = answer


def _settled(answer: T | BaseException | None, target: Target, limit_s: float) -> T | HostError:
    if answer is None:
        return HostError(
            f"{target.shown} had not answered when the {limit_s:g} s for all hosts were over",
            "ask it alone, or with more time",
            host=target.name,
            kind=HostFault.STOPPED,
        )
    if isinstance(answer, BaseException) and not isinstance(answer, HostError):
        raise answer
    return answer
