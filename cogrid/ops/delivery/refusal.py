"""What a host has against an installation."""

from __future__ import annotations

from cogrid.errors import CogridError, Exit

CURES = {
    "space": "make room there, or see `df -h`",
    "noexec": "mount it without noexec, or use the other --scope",
    "readonly": "mount it writable, or use the other --scope",
    "right": "log in as root or as a user with sudo, or use --scope user",
    "owner": "give it back to the user that installs (chown), or remove it, then try again",
    "foreign": "move it away, then try again",
    "upload": "try again",
    "busy": "wait until that one has ended, then try again",
    "slow": "try again when the host has less to do",
    "proof": "see what it says there; the host is as it was",
    "pip": "see what it says; the host is as it was",
    "venv": "install Python's module venv there, or say which Python to use: --python PATH",
    "absent": "try again: it is installed anew",
}


class DeliveryError(CogridError):
    """A host does not take it; it is as it was before. kind: a key of CURES, ``python``, or
    ``failed``."""

    exit_code = Exit.SOME_HOSTS

    def __init__(self, host: str, kind: str, what: str, cure: str = "") -> None:
        super().__init__(f"{host}: {what}", cure or CURES.get(kind, ""))
        self.host = host
        self.kind = kind
