"""Runs a command that ends with the process that started it. Run as a file, never imported:

    python tether.py PARENT_PID COMMAND [ARGUMENT …]

On Linux the kernel sends the command SIGTERM when its parent is gone, even after ``kill -9``; the
wish survives exec, so nothing stays between the two. Elsewhere the command simply runs.
(Strictly, when the *thread* that started it is gone: start it from one that lasts.)
"""

import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def tie(parent: int) -> None:
    """Asks the kernel for SIGTERM at the parent's death; leaves at once if it is dead already."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(1)


if __name__ == "__main__":
    tie(int(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
