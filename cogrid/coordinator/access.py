"""Who asks, and whether they may: API keys, their limits, and the user behind them.

Without any key the grid answers this machine only.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
from dataclasses import dataclass
from urllib.parse import unquote

from cogrid.config import Coordinator
from cogrid.coordinator.errors import RefusedError, store_refusal
from cogrid.coordinator.exchange import Exchange
from cogrid.store.api_keys import ApiKey, digest, read_keys
from cogrid.store.async_client import AsyncStore
from cogrid.store.clients import limit
from cogrid.store.refusal import StoreError

log = logging.getLogger(__name__)

KEYS_S = 3.0
"""How long a new or revoked key may go unnoticed."""
USER_CHARS = 100
SECRETS_MOST = 1000


@dataclass(frozen=True, slots=True)
class Caller:
    """key: the API key's id, "" where there are none. user: whose turn it is. a_minute: requests
    that the key may send, 0: no limit."""

    key: str
    user: str
    a_minute: int = 0


class Access:
    """The keys as they were read last."""

    def __init__(self, store: AsyncStore, settings: Coordinator) -> None:
        self._store = store
        self._trust = settings.trust_user_headers
        self._proxies = tuple(
            ipaddress.ip_network(each, strict=False) for each in settings.trusted_proxies
        )
        self._keys: dict[str, ApiKey] | None = None
        self._error: StoreError | None = None
        self._by_header: dict[bytes, ApiKey] = {}
        self._loopback: dict[str, bool] = {}

    @property
    def known_open(self) -> bool:
        """True where it is known that no key exists, so that only this machine is answered."""
        return self._keys == {}

    async def refresh(self) -> None:
        """Read the keys now. StoreError."""
        try:
            keys = await self._store.read(read_keys(self._store.keys))
        except StoreError as error:
            self._error = error
            raise
        self._error = None
        if keys != self._keys:
            self._keys = keys
            self._by_header.clear()

    async def run(self) -> None:
        """Until cancelled: read them every few seconds."""
        while True:
            with contextlib.suppress(StoreError):  # the keys that were read last stay good
                await self.refresh()
            await asyncio.sleep(KEYS_S if self._keys is not None else KEYS_S / 10)

    def caller(self, exchange: Exchange) -> Caller:
        """Who asks; RefusedError 401, 403, or 503 while the keys were never read."""
        if self._keys is None:
            if self._error:
                raise store_refusal(self._error)
            raise RefusedError("grid_starting", "the coordinator is just starting", retry_after_s=1)
        address = self._address(exchange)
        if not self._keys:
            return self._without_key(exchange, address)
        key = self._key(exchange.headers.get(b"authorization", b""))
        told = exchange.headers.get(b"x-openwebui-user-id") if key.trusted else None
        return Caller(key.id, _user(told) or key.id, key.a_minute)

    async def count(self, caller: Caller) -> None:
        """Count one request; RefusedError 429 where the key has had its requests of this minute."""
        if not caller.a_minute:
            return
        counted = await self._store.do(limit(self._store.keys, caller.key, caller.a_minute))
        if not counted.allowed:
            message = f"this key may send {caller.a_minute} requests a minute"
            raise RefusedError("rate_limited", message, "wait", counted.retry_after_s)

    def _key(self, header: bytes) -> ApiKey:
        known = self._by_header.get(header)
        if known is not None:
            return known
        scheme, _, secret = header.decode("latin-1").partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            hint = "send it as Authorization: Bearer KEY"
            raise RefusedError("unauthorized", "this grid wants an API key", hint)
        assert self._keys is not None
        key = self._keys.get(digest(secret.strip()))
        if key is None:
            hint = "cogrid key list shows those that it knows"
            raise RefusedError("unauthorized", "this grid does not know that API key", hint)
        if len(self._by_header) < SECRETS_MOST:
            self._by_header[header] = key
        return key

    def _without_key(self, exchange: Exchange, address: str) -> Caller:
        # A proxy on this machine would make everybody local.
        proxied = b"x-forwarded-for" in exchange.headers and not self._proxies
        if proxied or not self._is_loopback(address):
            whom = "a proxy" if proxied else address
            message = f"without an API key this grid answers only its own machine, not {whom}"
            raise RefusedError("forbidden", message, "cogrid key new --label NAME makes one")
        # A page in a browser on this machine may have given its own name this machine's address.
        host = _name_in(exchange.header(b"host"))
        if not _is_ours(host):
            message = f"without an API key this grid answers to localhost, not to {host!r}"
            raise RefusedError("forbidden", message, "cogrid key new --label NAME makes one")
        told = exchange.headers.get(b"x-openwebui-user-id") if self._trust else None
        return Caller("", _user(told) or address or "local")

    def _address(self, exchange: Exchange) -> str:
        """Where the request comes from; a trusted proxy tells for whom it asks."""
        hops = exchange.header(b"x-forwarded-for").split(",")
        address = exchange.address
        while hops and hops[-1].strip() and self._is_proxy(address):
            address = hops.pop().strip()
        return address

    def _is_proxy(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._proxies)

    def _is_loopback(self, address: str) -> bool:
        known = self._loopback.get(address)
        if known is None:
            if len(self._loopback) > SECRETS_MOST:
                self._loopback.clear()
            known = self._loopback[address] = is_loopback(address)
        return known


def _name_in(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _is_ours(host: str) -> bool:
    """False for a name that anybody could have given this machine's address; an address in digits
    is none, and these endings are never somebody else's."""
    if is_loopback(host) or host.lower() == socket.gethostname().lower():
        return True
    if host.lower().endswith((".localhost", ".local", ".internal")):
        return True
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(host))
    return False


def is_loopback(host: str) -> bool:
    """True for an address, or the name, of this machine alone. A unix socket has none: ""."""
    if host in ("", "localhost"):
        return True
    try:
        parsed = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback


def _user(told: bytes | None) -> str:
    """A user's name as it may stand in Redis and in logs."""
    if not told:
        return ""
    text = unquote(told.decode("latin-1"))
    return "".join(c for c in text if c.isprintable() and c not in " |:")[:USER_CHARS]
