"""The ssh agent: the keys that it holds."""

from __future__ import annotations

import socket
from pathlib import Path

import paramiko
from paramiko.agent import AgentSSH

_ANSWER_S = 5.0
"""An agent answers at once, unless it asks somebody to confirm."""


class Agent(AgentSSH):
    """An agent at any socket; paramiko's own looks at one variable only."""

    def __init__(self, path: Path) -> None:
        """OSError or SSHException when none answers there."""
        super().__init__()
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connected.settimeout(_ANSWER_S)
        try:
            connected.connect(str(path))
            self._connect(connected)  # type: ignore[attr-defined]  # not in its types
        except BaseException:
            connected.close()
            raise

    def close(self) -> None:
        """Ends the connection to it."""
        self._close()  # type: ignore[attr-defined]


def keys(path: Path | None) -> tuple[Agent | None, str]:
    """The agent, and a note where it should be there and is not."""
    if path is None:
        return None, ""
    try:
        return Agent(path), ""
    except (OSError, paramiko.SSHException, EOFError) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return None, f"the ssh agent at {path} does not answer ({why}); went on with key files"
