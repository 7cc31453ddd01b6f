"""What is said of a login that runs no further command."""

from __future__ import annotations

from typing import Any

import paramiko
import pytest

from cogrid.errors import HostError, HostFault
from cogrid.remote.crew import Crew
from cogrid.remote.session import Session


class Silent:
    """A connection that stands and says nothing more, as one whose cable was pulled."""

    def open_session(self, timeout: float) -> Any:
        raise paramiko.SSHException("Timeout opening channel.")

    def is_active(self) -> bool:
        return True

    def close(self) -> None:
        return None


def test_a_command_that_never_began_has_not_taken_its_time_and_was_not_ended() -> None:
    transport: Any = Silent()
    session = Session(transport, "192.168.0.41:22", "esxi", Crew())
    with pytest.raises(HostError) as raised:
        session.script("path=$1 mode=$2", ("a", "b"), timeout_s=120.0)
    assert raised.value.kind is HostFault.TIMEOUT
    assert raised.value.message == "192.168.0.41:22 opened no session within 30 s"
