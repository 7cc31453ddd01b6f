"""Finds out whether a host refused an RSA key only because it knows no newer signature for it."""

from __future__ import annotations

import paramiko
from paramiko.auth_handler import AuthOnlyHandler
from paramiko.message import Message

_OLD = "ssh-rsa"
"""RSA with SHA-1 (RFC 4253), which nobody who is up to date makes or takes any more."""


def only_old(transport: paramiko.Transport, user: str, key: paramiko.PKey) -> bool:
    """Asks whether this key would do with the old signature, without signing (RFC 4252, section 7).

    A server need not say which signatures it takes, and OpenSSH names those that its settings
    forbid. A yes ends the connection: paramiko never asks this way, and takes the answer for
    another message that has the same number.
    """
    handler = AuthOnlyHandler(transport)
    transport.auth_handler = handler

    def question(message: Message) -> None:
        message.add_boolean(False)
        message.add_string(_OLD)
        message.add_string(key.asbytes())

    try:
        handler.send_auth_request(user, "publickey", question)
    except paramiko.AuthenticationException:
        return False
    except paramiko.SSHException:
        return True
    return False
