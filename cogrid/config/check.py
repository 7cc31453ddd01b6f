"""What a value must be beside its type, one key at a time and between keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cogrid.model.limits import Limits
from cogrid.model.names import SHARED, is_name

FEWEST_RENEWS = 3
"""A lease lasts this many renewals, so that one lost and one late renewal kill nobody."""

MAY_BE_ZERO = frozenset(
    {
        "own_queue_wait_s",
        "pool_wait_s",
        "recoveries",
        "backoff_s",
        "background_delay_s",
        "drain_timeout_s",
    }
)

_NAME = f"a name of a-z 0-9 . _ - that begins with a letter or digit, not '{SHARED}'"


def wrong(key: str, value: object) -> str:
    """What is right instead, "" where the value is right."""
    section, _, name = key.partition(".")
    if section == "limits":
        return _limit(name, value)
    check = _CHECKS.get(key)
    return check(value) if check else ""


def wrong_together(limits: Limits) -> dict[str, str]:
    """Limits that contradict each other: name -> what is wrong and right. Unscaled limits."""
    found: dict[str, str] = {}
    least_s = FEWEST_RENEWS * limits.renew_s
    if limits.lease_s < least_s:
        found["lease_s"] = f"a lease is at least {FEWEST_RENEWS} renewals: {least_s:g} s or more"
    least_s = 2 * limits.block_s + 2
    if limits.ghost_after_s < least_s:
        found["ghost_after_s"] = (
            f"a ghost has missed two blocking polls (block_s) and 2 s: {least_s:g} s or more"
        )
    if limits.tick_s > limits.pass_window_s:
        found["tick_s"] = f"passes come within pass_window_s: {limits.pass_window_s:g} s or less"
    if limits.client_renew_s >= limits.orphan_grace_s:
        found["client_renew_s"] = f"below orphan_grace_s, which is {limits.orphan_grace_s:g} s"
    for name in ("backoff", "quarantine"):
        first_s, most_s = getattr(limits, f"{name}_s"), getattr(limits, f"{name}_max_s")
        if first_s > most_s:
            found[f"{name}_max_s"] = f"not below {name}_s, which is {first_s:g} s"
    return found


def name(value: object) -> str:
    """For names of workers, pools and domains."""
    return "" if isinstance(value, str) and is_name(value) else f"write {_NAME}"


def _limit(key: str, value: object) -> str:
    assert isinstance(value, int | float)  # by its type
    if key in MAY_BE_ZERO:
        return "" if value >= 0 else "write 0 or more"
    return "" if value > 0 else "write more than 0"


def _name_or_none(value: object) -> str:
    return "" if value == "" else name(value)


def _names(value: object) -> str:
    assert isinstance(value, tuple)
    bad = next((each for each in value if name(each)), None)
    return "" if bad is None else f"{bad!r}: write {_NAME}"


def _one_of(*words: str) -> Callable[[object], str]:
    return lambda value: "" if value in words else f"write {', '.join(words[:-1])} or {words[-1]}"


def _server_url(value: object) -> str:
    text = str(value)
    if not text or text.startswith(("redis://", "rediss://", "unix://")):
        return ""
    return "write redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH"


def _web_url(value: object) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(str(value))
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        right = False
    return "" if right else "write http://HOST:PORT"


def _engine(value: object) -> str:
    text = str(value)
    if text in ("", "demo") or not _web_url(text):
        return ""
    return "write the engine's address, such as http://127.0.0.1:11434, or demo"


def _engine_key(value: object) -> str:
    """It travels in a header."""
    text = str(value)
    right = text.isascii() and text.isprintable() and " " not in text
    return "" if right else "write the key alone, without spaces or line breaks"


def _listen(value: object) -> str:
    host, _, port = str(value).rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    bracketed = host != bare
    if bare and port.isascii() and port.isdigit() and int(port) < 65536:
        if bracketed or ":" not in bare:
            return ""
        return f"write [{bare}]:{port}"
    return "write ADDRESS:PORT, such as 127.0.0.1:8700"


def _networks(value: object) -> str:
    from ipaddress import ip_network

    assert isinstance(value, tuple)
    for each in value:
        try:
            ip_network(each, strict=False)
        except ValueError:
            return f"{each!r}: write an address or a network, such as 10.0.0.0/8"
    return ""


def _prefix(value: object) -> str:
    text = str(value)
    if len(text) <= 64 and text.isprintable() and not any(c.isspace() or c in "*?[]" for c in text):
        return ""
    return "write at most 64 characters without spaces and *?[], such as cogrid: or {cogrid}:"


def _slots(value: object) -> str:
    assert isinstance(value, int)
    return "" if 0 <= value <= 1024 else "write 0 (as the engine says) to 1024"


_CHECKS: Mapping[str, Callable[[object], str]] = {
    "redis.url": _server_url,
    "redis.prefix": _prefix,
    "coordinator.listen": _listen,
    "coordinator.status_line": _one_of("headers", "always", "never"),
    "coordinator.trusted_proxies": _networks,
    "client.url": _web_url,
    "worker.id": _name_or_none,
    "worker.pool": _name_or_none,
    "worker.engine": _engine,
    "worker.engine_key": _engine_key,
    "worker.slots": _slots,
    "log.format": _one_of("text", "json"),
    "log.level": _one_of("debug", "info", "warning", "error"),
    "routing.pools": _names,
    "routing.closed": _names,
}
