"""What a test left in a server that should not stay: unknown keys, and keys that never end."""

from __future__ import annotations

import importlib.util
import re

import redis

from cogrid.model.task import State


def leaks(client: redis.Redis) -> tuple[str, ...]:
    """One text for each key that is no key of cogrid's, is of another type than it should be, or
    has no TTL though it is neither permanent nor part of a task that is still open."""
    if importlib.util.find_spec("cogrid.store.keys") is None:
        return ()
    keys = sorted(client.scan_iter(count=1000))
    return tuple(wrong for key in keys if (wrong := _wrong(client, key)))


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _wrong(client: redis.Redis, key: bytes | str) -> str:
    from cogrid.store.keys import KEYS

    name = _text(key)
    kind = _text(client.type(key))
    if kind == "none":
        return ""
    # A prefix in front is allowed: a server that others use too wants one.
    spec = next((spec for spec in KEYS if re.search(f"(?:^|:)(?:{spec.pattern})$", name)), None)
    if spec is None:
        return f"{name} ({kind}): not in store/keys.py"
    if kind != spec.type:
        return f"{name}: a {kind}, should be a {spec.type}"
    if spec.permanent or client.ttl(key) != -1 or _of_open_task(client, name):
        return ""
    return f"{name} ({kind}): no TTL, and not permanent"


def _of_open_task(client: redis.Redis, name: str) -> bool:
    found = re.search(r"(?:^|:)task:[A-Za-z0-9]+", name)
    state = client.hget(name[: found.end()], "state") if found else None
    return state is not None and not State(_text(state)).terminal
