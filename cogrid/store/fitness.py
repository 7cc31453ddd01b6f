"""Whether this server can be cogrid's, asked once when a role starts: version, mode, eviction, what
already stands under our names, and our user's rights. What does not fit is a sentence now and not
WRONGTYPE in the middle of something."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from cogrid.errors import UnreachableError
from cogrid.model.names import Queue, WorkerId
from cogrid.model.snapshot import Server
from cogrid.store.keys import Keys
from cogrid.store.passes import AHEAD, SCHEMA
from cogrid.store.reading import Reading, good
from cogrid.store.roles import COMMANDS as RUNS
from cogrid.store.roles import Role, touches
from cogrid.store.script import script, text
from cogrid.store.server_info import server_facts

OLDEST = (7, 0)
"""Redis 7.0: rights can be asked for within a script, and an entry's number can be left to it."""

_EVERY = ("TYPE", "EXISTS", "DEL", "PEXPIRE", "PTTL")
COMMANDS: dict[str, tuple[str, ...]] = {
    "hash": ("HSET", "HGET", "HMGET", "HGETALL", "HLEN", "HDEL", "HINCRBY", *_EVERY),
    "zset": (
        "ZADD", "ZREM", "ZREMRANGEBYSCORE", "ZRANGE", "ZCARD", "ZSCORE", "ZRANK", "ZSCAN",
        "ZPOPMIN",  *_EVERY,
    ),
    "set": ("SADD", "SREM", "SCARD", "SMEMBERS", "SRANDMEMBER", *_EVERY),
    "stream": ("XADD", "XRANGE", "XREVRANGE", *_EVERY),
    "string": ("SET", "GET", "INCR", "STRLEN", "PERSIST", *_EVERY),
}  # fmt: skip
"""What cogrid does with a key of each type."""
KEYLESS = ("TIME", "INFO", "PING", "SCAN", "BZPOPMIN")


@dataclass(frozen=True, slots=True)
class Problem:
    """What does not fit, in one sentence, and what to do about it. fatal: cogrid cannot work so;
    else it works, and may lose what it should not."""

    sentence: str
    hint: str
    fatal: bool = True


class UnfitError(UnreachableError):
    """This server cannot be cogrid's as it is."""


def require(problems: Iterable[Problem], warn: Callable[[str], None]) -> None:
    """Warn of what may cost something; UnfitError for what makes work impossible."""
    for problem in problems:
        if problem.fatal:
            raise UnfitError(problem.sentence, problem.hint)
        warn(f"{problem.sentence}: {problem.hint}")


def read_fitness(
    keys: Keys,
    queues: Iterable[Queue] = (),
    worker: WorkerId | None = None,
    role: Role = Role.OPERATOR,
) -> Reading[tuple[Problem, ...]]:
    """Everything that does not fit, the fatal first. role: whose rights are asked for. queues,
    worker: its own."""
    kinds = _touched(keys, _kinds(keys, tuple(queues), worker), role)
    info, schema, *types = yield [
        ("INFO",),
        ("HGET", keys.reaper, "schema"),
        *(("TYPE", key) for key in kinds),
    ]
    server = server_facts(good(info))
    problems = [
        *_of_the_server(server, keys.prefix),
        *_of_types(dict(zip(kinds, types, strict=True)), kinds),
        *_of_the_schema(good(schema), role),
    ]
    if not _is_too_old(server):
        (reply,) = yield [_ask_rights(keys, kinds, role)]
        problems += _of_rights(reply, keys.prefix)
    return tuple(sorted(problems, key=lambda problem: not problem.fatal))


def read_roles(keys: Keys) -> Reading[tuple[Role, ...] | None]:
    """The roles whose rights our user has; None where it may run no script and so only looks."""
    kinds = _kinds(keys, (), None)
    roles = tuple(role for role in Role if role is not Role.READER)
    replies = yield [_ask_rights(keys, _touched(keys, kinds, role), role) for role in roles]
    if isinstance(replies[0], Exception):
        return None
    able = tuple(role for role, lacking in zip(roles, replies, strict=True) if lacking == [])
    return (*able, Role.READER) if able else ()


def _touched(keys: Keys, kinds: dict[str, str], role: Role) -> dict[str, str]:
    """Those of the keys that the role touches."""
    start = len(keys.prefix)
    return {key: kind for key, kind in kinds.items() if touches(role, key[start:])}


def _kinds(keys: Keys, queues: tuple[Queue, ...], worker: WorkerId | None) -> dict[str, str]:
    """Key -> the type it must have: every fixed key, the role's own, and one of each other kind
    (whose names hold an id that cannot stand for a task or a worker)."""
    name, model = worker or WorkerId("-"), Queue("tasks:-:shared:-")
    kinds = dict.fromkeys(
        (keys.workers, keys.due, keys.clients, keys.queues, keys.models, keys.finished, keys.dead),
        "zset",
    )
    kinds |= dict.fromkeys((keys.reaper, keys.totals, keys.api_keys), "hash")
    kinds |= {keys.events: "stream", keys.out("-"): "stream", keys.body("-"): "string"}
    kinds |= {keys.task("-"): "hash", keys.usage("0000-00-00"): "hash"}
    kinds |= {keys.worker(name): "hash", keys.inbox(name): "zset"}
    kinds |= {keys.worker_tasks(name): "set", keys.worker_revoked(name): "set"}
    kinds |= {keys.worker_chores(name): "set"}
    for queue in queues or (model,):
        kinds |= {keys.queue(queue): "zset", keys.wake(queue): "zset"}
        kinds |= {keys.turns(queue): "hash", keys.rate(queue): "hash"}
    return kinds


def _is_too_old(server: Server) -> bool:
    numbers = server.version.split(".")[:2]
    return all(n.isdigit() for n in numbers) and tuple(map(int, numbers)) < OLDEST


def _of_the_server(server: Server, prefix: str) -> Iterator[Problem]:
    if not server.version:
        yield Problem(
            "the Redis user may not run INFO, so version and memory policy are unknown",
            "give it +info",
            fatal=False,
        )
    elif _is_too_old(server):
        yield Problem(
            f"this is Redis {server.version}, cogrid needs 7.0 or later",
            "install Redis 7.0 or later, or Valkey",
        )
    if server.mode == "cluster" and not _has_tag(prefix):
        yield Problem(
            f"this is a cluster, and the prefix {prefix!r} has no hash tag",
            "set a prefix with one, such as {cogrid}:, so that all keys are on one node",
        )
    if server.role in ("slave", "replica"):
        yield Problem(
            "this is a read-only replica", "point the Redis URL at the primary", fatal=False
        )
    if server.maxmemory_bytes and server.policy != "noeviction":
        yield Problem(
            f"Redis may throw keys away when its memory is full (maxmemory-policy {server.policy})",
            "set maxmemory-policy noeviction",
            fatal=server.policy.startswith("allkeys"),
        )


def _has_tag(prefix: str) -> bool:
    start = prefix.find("{")
    return start >= 0 and prefix.find("}", start) > start + 1


def _of_types(types: dict[str, Any], kinds: dict[str, str]) -> Iterator[Problem]:
    for key, reply in types.items():
        found = text(good(reply, b"none"))
        if found not in ("none", kinds[key]):
            yield Problem(f"{key} is a {found}, not cogrid's", "set a prefix")


def _of_the_schema(told: Any, role: Role) -> Iterator[Problem]:
    schema = int(told or 0)
    if schema <= SCHEMA:
        return
    fatal = role is Role.REAPER or schema > SCHEMA + AHEAD
    yield Problem(
        f"Redis holds the data of a newer cogrid (schema {schema}, here {SCHEMA})",
        "install the newer version here too" + ("" if fatal else "; until then this one works on"),
        fatal,
    )


def _ask_rights(keys: Keys, kinds: dict[str, str], role: Role) -> tuple[Any, ...]:
    """What the role runs on keys of each type. Who may run this at all may look as well."""
    runs = frozenset(RUNS[role])
    asked = [(command, key) for key, kind in kinds.items() for command in COMMANDS[kind]]
    asked += [(command, "") for command in KEYLESS]
    asked = [(command, key) for command, key in asked if command.lower() in runs]
    flat = (part for pair in asked for part in pair)
    return ("EVAL", script("rights").source, 0, keys.prefix, *flat)


def _of_rights(reply: Any, prefix: str) -> Iterator[Problem]:
    if isinstance(reply, Exception):
        yield Problem(f"the Redis user may not run scripts: {reply}", "give it +@scripting")
        return
    lacking: dict[str, list[str]] = defaultdict(list)
    for command, key in zip(reply[::2], reply[1::2], strict=True):
        lacking[text(key)].append(text(command))
    together: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for key, commands in lacking.items():
        together[tuple(commands)].append(key)
    for names, places in together.items():
        yield Problem(
            f"the Redis user may not run {_some(names)}{_where(places)}",
            f"give it these rights on {prefix}* (ACL SETUSER)",
        )


def _where(keys: list[str]) -> str:
    return f" on {_some(keys)}" if keys != [""] else ""


def _some(names: Iterable[str]) -> str:
    """At most four of them, and how many more there are."""
    listed = list(names)
    rest = f" and {len(listed) - 4} more" if len(listed) > 4 else ""
    return ", ".join(listed[:4]) + rest
