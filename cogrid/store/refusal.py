"""What the server's refusals mean to an operator. Codes are the first word of an error reply."""

from __future__ import annotations

from cogrid.errors import UnreachableError


class StoreError(UnreachableError):
    """Redis did not answer, or refused. code: the reply's first word, "" without a reply.
    passing: it may work later without anybody doing anything (restart, failover, full disk)."""

    def __init__(self, message: str, hint: str = "", *, code: str = "", passing: bool = True):
        super().__init__(message, hint)
        self.code = code
        self.passing = passing


_MEANING: dict[str, tuple[str, str, bool]] = {
    "LOADING": ("is loading its data", "wait until it has read its files", True),
    "READONLY": ("is a read-only replica", "point the Redis URL at the primary", True),
    "MISCONF": (
        "refuses writes: it cannot save to disk",
        "free space on its disk or mend its directory; its log has the cause",
        True,
    ),
    "OOM": ("refuses writes: its memory is full", "raise maxmemory on the server", True),
    "BUSY": ("is busy with a long script", "wait, or SCRIPT KILL it on the server", True),
    "CLUSTERDOWN": ("has lost part of its cluster", "look at its cluster nodes", True),
    "TRYAGAIN": ("is moving this slot", "wait until the slot has moved", True),
    "MASTERDOWN": ("has lost its primary", "wait for the failover", True),
    "NOREPLICAS": ("has too few replicas to accept writes", "bring a replica back", True),
    "MAXCLIENTS": ("has all the clients it takes", "raise maxclients on the server", True),
    "UNBLOCKED": ("changed its role", "nothing; it is asked again", True),
    "NOAUTH": ("wants a password", "set COGRID_REDIS_PASSWORD or password_file", False),
    "WRONGPASS": (
        "refuses this user or password",
        "correct COGRID_REDIS_PASSWORD, password_file or what stands in the URL",
        False,
    ),
    "NOPERM": (
        "does not allow this to our user",
        "cogrid doctor says which rights it lacks",
        False,
    ),
    "WRONGTYPE": ("holds a key of another program", "set a prefix for cogrid", False),
    "FOREIGN": ("holds a key of another program", "set a prefix for cogrid", False),
    "CROSSSLOT": ("is a cluster", "set a prefix with a hash tag, such as {cogrid}:", False),
    "MOVED": ("is a cluster", "use the address of the node that holds cogrid's slot", False),
}


# Replies without a code of their own: what a command inside a script is told (Redis 7.0; later
# ones), and what a connection too many is.
_TOLD = {
    "The user executing the script can't": "NOPERM",
    "ACL failure in script": "NOPERM",
    "max number of clients reached": "MAXCLIENTS",
}


def refuses_command(reply: str) -> bool:
    """Of a NOPERM: whether it is the command that our user may not run, and not the key that it may
    not touch. Only the text tells; so in Redis 7.0 and 7.2 and Valkey 8 and 9."""
    return "permissions to run the" in reply


def refusal(where: str, reply: str) -> StoreError:
    """The error for one error reply of the server at ``where``."""
    code = next((code for said, code in _TOLD.items() if said in reply), reply.split(" ", 1)[0])
    meaning, hint, passing = _MEANING.get(code, ("answered with an error", "", False))
    return StoreError(f"Redis at {where} {meaning}: {reply}", hint, code=code, passing=passing)


def silence(where: str, cause: object) -> StoreError:
    """The error for a server that cannot be reached, or that went away."""
    return StoreError(
        f"Redis at {where} cannot be reached: {cause}",
        "start it (cogrid up brings its own), or set its address with --redis or COGRID_REDIS_URL",
    )
