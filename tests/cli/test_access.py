"""What a person is asked on a terminal about hosts."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios

import pytest

from tests.cli.terminal import CONTROL_C
from tests.wait import until

ASKING = """
import threading
from cogrid.cli.access import access
asked = access(False, None).asked
asking = threading.Thread(target=asked.password, args=("ada@esxi:22", False), daemon=True)
asking.start()
asking.join()
"""

ASKS = """
import threading, time
from pathlib import Path
from cogrid.cli.access import access

asked = access(False, None).asked
ask = {"key": lambda: asked.new_key("esxi", "SHA256:x"),
       "password": lambda: asked.password("esxi", False)}["%s"]
threading.Thread(target=ask, daemon=True).start()
time.sleep(0.5)
"""


def echoes(terminal: int) -> bool:
    """Whether it shows what is typed there."""
    return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)


def test_ctrl_c_at_a_question_leaves_a_terminal_that_shows_what_is_typed() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["setsid", "--ctty", sys.executable, "-c", ASKING],
        stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs,
    ) as process:  # fmt: skip
        shown = b""
        while b"Password for ada@esxi:22" not in shown:
            shown += os.read(ours, 4096)
        until(lambda: not echoes(theirs))
        os.write(ours, CONTROL_C.encode())
        assert process.wait(20) != 0
    assert echoes(theirs)
    os.close(theirs)
    os.close(ours)


@pytest.mark.parametrize("question", ["key", "password"])
def test_a_command_that_ends_at_an_open_question_ends_well(question: str) -> None:
    """Its time is over, and the thread that asks still waits for a line."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            (sys.executable, "-c", ASKS % question),
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        assert process.wait(30) == 0
        assert b"esxi" in os.read(ours, 4096)
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_new_key_is_taken_only_by_yes() -> None:
    ours, theirs = pty.openpty()
    code = ("from cogrid.cli.access import access; "
            "print(access(False, None).asked.new_key('esxi', 'SHA256:x'))")  # fmt: skip
    try:
        for typed, said in (("y\n", "True"), ("yes\n", "True"), ("\n", "False"), ("x\n", "False")):
            os.write(ours, typed.encode())
            done = subprocess.run(
                (sys.executable, "-c", code), stdin=theirs, stderr=theirs, stdout=subprocess.PIPE,
                text=True, timeout=30, check=True,
            )  # fmt: skip
            assert done.stdout.strip() == said, typed
    finally:
        os.close(ours)
        os.close(theirs)
