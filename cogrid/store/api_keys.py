"""API keys: what is kept is the SHA-256 of a key, never the key."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import msgspec

from cogrid.store.keys import Keys
from cogrid.store.reading import Reading, certain
from cogrid.store.script import text


@dataclass(frozen=True, slots=True)
class ApiKey:
    """id: the first 12 digits of the hash, the key's public name. a_minute: requests, 0: no limit.
    trusted: its ``X-OpenWebUI-User-Id`` header is believed. created_at: ISO 8601, UTC."""

    id: str
    label: str
    a_minute: int = 0
    trusted: bool = False
    created_at: str = ""


_json = msgspec.json.Encoder()
_key = msgspec.json.Decoder(ApiKey)


def digest(secret: str) -> str:
    """What a key is stored and looked up under."""
    return hashlib.sha256(secret.encode()).hexdigest()


def put_key(keys: Keys, secret: str, facts: ApiKey) -> Reading[None]:
    """Add a key."""
    (reply,) = yield [("HSET", keys.api_keys, digest(secret), _json.encode(facts))]
    certain(reply)


def read_keys(keys: Keys) -> Reading[dict[str, ApiKey]]:
    """All keys, by digest."""
    (reply,) = yield [("HGETALL", keys.api_keys)]
    flat = certain(reply)
    pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
    return {text(name): _key.decode(value) for name, value in pairs}


def drop_key(keys: Keys, hashed: str) -> Reading[bool]:
    """Revoke a key by its digest; False where there was none."""
    (reply,) = yield [("HDEL", keys.api_keys, hashed)]
    return bool(certain(reply))
