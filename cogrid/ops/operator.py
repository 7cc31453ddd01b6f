"""Who is at the command line, for the event that each change leaves."""

from __future__ import annotations

import getpass
import os
import socket


def operator() -> str:
    """``user@host``, with the short name of the host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as containers have
        user = str(os.getuid()) if hasattr(os, "getuid") else "somebody"
    return f"{user}@{socket.gethostname().partition('.')[0]}"
