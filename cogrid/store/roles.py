"""The rights that each role needs of the server, as the ``ACL SETUSER`` lines that grant them.

docs/security.md shows the lines, and tests run every role with exactly these.
"""

from __future__ import annotations

from enum import StrEnum
from fnmatch import fnmatchcase

_READS = (
    "exists", "get", "hget", "hgetall", "hlen", "hmget", "pttl", "scard", "smembers", "srandmember",
    "strlen", "type", "xrange", "xrevrange", "zcard", "zrange", "zrank", "zscan", "zscore",
)  # fmt: skip
_WRITES = (
    "bzpopmin", "del", "hdel", "hincrby", "hset", "incr", "persist", "pexpire", "sadd", "set",
    "srem", "xadd", "zadd", "zpopmin", "zrem", "zremrangebyscore",
)  # fmt: skip
_ASKS = ("info", "ping", "scan", "select", "time")
_SCRIPTS = ("eval", "evalsha", "script|load")

_TASKS = ("task:*", "tasks:*", "turns:*", "wake:*", "worker:*", "rate:*", "usage:*")
_INDEXES = tuple(
    f"grid:{name}"
    for name in (
        "clients", "dead", "due", "events", "finished", "models", "queues", "totals", "workers",
    )
)  # fmt: skip


class Role(StrEnum):
    """Who uses the server. OPERATOR: whoever runs the commands that change something."""

    COORDINATOR = "coordinator"
    WORKER = "worker"
    REAPER = "reaper"
    READER = "reader"
    OPERATOR = "operator"


COMMANDS: dict[Role, tuple[str, ...]] = {
    **{role: tuple(sorted((*_ASKS, *_READS, *_WRITES, *_SCRIPTS))) for role in Role},
    Role.READER: tuple(sorted((*_ASKS, *_READS))),
}
"""What each role runs, in lower case."""

KEYS: dict[Role, tuple[str, ...]] = {
    Role.COORDINATOR: (*_TASKS, *_INDEXES, "grid:keys", "grid:reaper", "limit:*"),
    Role.WORKER: (*_TASKS, *_INDEXES),
    Role.REAPER: (*_TASKS, *_INDEXES, "grid:reaper"),
    Role.READER: (*_TASKS, *_INDEXES, "grid:reaper"),
    Role.OPERATOR: (*_TASKS, *_INDEXES, "grid:keys", "grid:reaper", "limit:*"),
}
"""The keys that each role touches, without the prefix; a reader only reads them."""

READS: dict[Role, tuple[str, ...]] = {Role.WORKER: ("grid:reaper",)}
"""The keys that a role which writes others may only read: a worker looks at the schema version."""


def touches(role: Role, key: str) -> bool:
    """True for a key (without the prefix) that the role reads or writes."""
    return any(fnmatchcase(key, pattern) for pattern in KEYS[role])


def acl_line(role: Role, prefix: str = "", user: str = "", password: str = "PASSWORD") -> str:
    """The line that makes a user of this role."""
    mark = "%R~" if role is Role.READER else "~"
    patterns = [f"{mark}{prefix}{key}" for key in KEYS[role]]
    patterns += [f"%R~{prefix}{key}" for key in READS.get(role, ())]
    keys = " ".join(patterns)
    commands = " ".join(f"+{command}" for command in COMMANDS[role])
    return f"ACL SETUSER {user or f'cogrid-{role}'} reset on >{password} {keys} {commands}"
