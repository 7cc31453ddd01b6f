"""Many hosts at once: order, limits, and that nobody is waited for in vain."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from cogrid.errors import HostError, HostFault
from cogrid.remote import crew
from cogrid.remote.fan_out import ask_all
from cogrid.remote.target import Target

TARGETS = tuple(Target(f"host{number}") for number in range(40))


def failing(target: Target) -> HostError:
    return HostError(f"{target.name} is gone", host=target.name, kind=HostFault.LOST)


def test_answers_in_the_order_of_the_targets() -> None:
    def ask(target: Target) -> str:
        time.sleep(0.001 * (40 - int(target.name[4:])))
        if target.name == "host7":
            raise failing(target)
        return target.name

    answers = ask_all(TARGETS, ask, limit_s=10, at_once=8)
    assert [a for a in answers if isinstance(a, str)] == [
        t.name for t in TARGETS if t.name != "host7"
    ]
    assert isinstance(answers[7], HostError)
    assert answers[7].host == "host7"


def test_no_targets() -> None:
    assert ask_all((), lambda target: target, limit_s=1) == ()


def test_at_once() -> None:
    busy: list[int] = []
    most: list[int] = []

    def ask(_target: Target) -> None:
        busy.append(1)
        most.append(len(busy))
        time.sleep(0.005)
        busy.pop()

    ask_all(TARGETS, ask, limit_s=10, at_once=4)
    assert max(most) <= 4


def test_limit_of_the_whole_call() -> None:
    release = threading.Event()

    def ask(target: Target) -> str:
        if target.name != "host0":
            release.wait(20)
        return target.name

    began = time.monotonic()
    answers = ask_all(TARGETS[:3], ask, limit_s=0.2)
    assert time.monotonic() - began < 1
    release.set()
    assert answers[0] == "host0"
    for target, answer in zip(TARGETS[1:3], answers[1:], strict=True):
        assert isinstance(answer, HostError)
        assert (answer.host, answer.kind) == (target.name, HostFault.STOPPED)
        assert "0.2 s" in answer.message


def test_what_runs_is_ended_and_waited_for() -> None:
    ended: list[str] = []

    def ask(target: Target) -> str:
        ours = crew.current()
        with ours.busy():
            ours.stop.wait(20)
            time.sleep(0.2)  # what ending takes on the host
            ended.append(target.name)
        raise failing(target)

    answers = ask_all(TARGETS[:2], ask, limit_s=0.1)
    assert sorted(ended) == ["host0", "host1"]
    assert all(isinstance(answer, HostError) for answer in answers)


def test_ctrl_c_ends_what_runs() -> None:
    ended: list[str] = []
    started = threading.Event()

    def ask(target: Target) -> str:
        ours = crew.current()
        with ours.busy():
            started.set()
            ours.stop.wait(20)
            ended.append(target.name)
        return "too late"

    def interrupt() -> None:
        started.wait(10)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        ask_all(TARGETS[:1], ask, limit_s=20)
    assert ended == ["host0"]


def test_a_bug_is_no_answer() -> None:
    def ask(_target: Target) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask_all(TARGETS, ask, limit_s=10)


def test_outside_of_a_call_nothing_is_shared() -> None:
    assert crew.current() is not crew.current()
