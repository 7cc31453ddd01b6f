"""API keys: made, listed, revoked."""

from __future__ import annotations

import secrets
import time

from cogrid.errors import ConflictError, NotFoundError, UsageError
from cogrid.store.api_keys import ApiKey, digest, drop_key, put_key, read_keys
from cogrid.store.client import Store

SECRET_BYTES = 24
ID_CHARS = 12


def new_key(
    store: Store, label: str, a_minute: int = 0, trusted: bool = False
) -> tuple[str, ApiKey]:
    """A new key and its facts; the key itself is nowhere else."""
    if not label.strip() or not label.isprintable():
        raise UsageError(
            "a key's label must be a text that can be read", "write --label open-webui"
        )
    if any(key.label == label for key in keys(store)):
        raise ConflictError(f"there is a key {label!r} already", "choose another label")
    secret = new_secret()
    return secret, _put(store, secret, label, a_minute, trusted)


def new_secret() -> str:
    """A key that nobody has."""
    return f"cg-{secrets.token_urlsafe(SECRET_BYTES)}"


def know_key(store: Store, secret: str, label: str, trusted: bool) -> None:
    """Let a key that exists already be known, once however often it is said."""
    if digest(secret) not in store.read(read_keys(store.keys)):
        _put(store, secret, label, 0, trusted)


def _put(store: Store, secret: str, label: str, a_minute: int, trusted: bool) -> ApiKey:
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    facts = ApiKey(digest(secret)[:ID_CHARS], label, a_minute, trusted, created)
    store.read(put_key(store.keys, secret, facts))
    return facts


def keys(store: Store) -> tuple[ApiKey, ...]:
    """All keys, the oldest first."""
    found = store.read(read_keys(store.keys)).values()
    return tuple(sorted(found, key=lambda key: (key.created_at, key.label)))


def revoke_key(store: Store, name: str) -> ApiKey:
    """Void the one key with this label, or whose id begins so."""
    found = store.read(read_keys(store.keys))
    named = [(hashed, key) for hashed, key in found.items() if key.label == name]
    named = named or [(hashed, key) for hashed, key in found.items() if key.id.startswith(name)]
    if not named or not name:
        raise NotFoundError(f"there is no key {name!r}", "cogrid key list shows them")
    if len(named) > 1:
        raise ConflictError(f"{len(named)} keys begin with {name!r}", "write more of the id")
    hashed, key = named[0]
    store.read(drop_key(store.keys, hashed))
    return key
