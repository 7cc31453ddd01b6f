"""What a test left in a server that should not stay: unknown keys, and keys that never end."""

from __future__ import annotations

import re

import redis

from cogrid.model.task import State
from cogrid.store.keys import KEYS, KeySpec

TASK = re.compile(r"task:[^:]+")


def leaks(client: redis.Redis) -> tuple[str, ...]:
    """One text for each key that is no key of cogrid's, is of another type than it should be, or
    has no TTL though it is not permanent. A key of a task may do without only while it is open."""
    keys = sorted(client.scan_iter(count=1000))
    return tuple(wrong for key in keys if (wrong := _wrong(client, _text(key))))


def _wrong(client: redis.Redis, key: str) -> str:
    prefix, name, spec = _spec(key)
    kind = _text(client.type(key))
    if kind == "none":
        return ""  # its TTL ran out since it was listed
    if spec is None:
        return f"{key} ({kind}): not in store/keys.py"
    if kind != spec.type:
        return f"{key}: a {kind}, should be a {spec.type}"
    task = TASK.match(name)
    lasting = _is_open(client, prefix + task[0]) if task else spec.permanent
    if lasting or client.ttl(key) != -1:
        return ""
    return f"{key} ({kind}): no TTL, and not permanent"


def _spec(key: str) -> tuple[str, str, KeySpec | None]:
    """The prefix that the test used (none, or one word), the name behind it, and what it is."""
    head, _, rest = key.partition(":")
    for prefix, name in (("", key), (f"{head}:", rest)):
        for spec in KEYS:
            if spec.pattern.fullmatch(name):
                return prefix, name, spec
    return "", key, None


def _is_open(client: redis.Redis, task_key: str) -> bool:
    state = client.hget(task_key, "state")
    return state is not None and not State(_text(state)).terminal


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
