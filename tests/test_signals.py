"""A signal may come at any moment of a wait, and is never lost in it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

from cogrid.signals import Told

MANY = """
import signal, sys
from cogrid.signals import Told

told = Told()
told.on_signals(signal.SIGALRM)
for round in range(3000):
    told.clear()
    signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + round % 60))
    while not told.wait(1e-5):
        pass
"""
"""A wait that ends and begins anew while the signal comes: it falls into every step of it. With
threading.Event in place of Told this stands still within the first few hundred rounds."""


def test_a_signal_in_any_step_of_a_wait_is_heard() -> None:
    subprocess.run((sys.executable, "-c", MANY), check=True, timeout=60)


def test_all_who_wait_hear_it() -> None:
    told = Told()
    heard: list[bool] = []
    waiters = [threading.Thread(target=lambda: heard.append(told.wait(30))) for _ in range(3)]
    for waiter in waiters:
        waiter.start()
    told.set()
    for waiter in waiters:
        waiter.join(30)
    assert heard == [True] * 3
    assert told.is_set()


def test_a_wait_for_nothing_ends_untold() -> None:
    told = Told()
    assert not told.wait(0.01)
    assert not told.is_set()
    told.on_signals(signal.SIGUSR2)
    signal.raise_signal(signal.SIGUSR2)
    assert told.wait(0)
    signal.signal(signal.SIGUSR2, signal.SIG_DFL)
