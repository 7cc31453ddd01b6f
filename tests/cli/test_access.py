"""What a person is asked on a terminal about hosts."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios

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
