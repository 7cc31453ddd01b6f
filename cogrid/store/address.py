"""Where the server is and how to get in: ``redis://``, ``rediss://``, ``unix://``."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from cogrid.errors import UsageError

CONNECT_S = 3.0
_EXAMPLE = "write redis://HOST:PORT/DB, for example redis://127.0.0.1:6379/0"


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed URL. path: the unix socket, or "". ca_file: what a rediss:// server is checked
    against; None: the system's. The password is never shown."""

    host: str = "127.0.0.1"
    port: int = 6379
    path: str = ""
    db: int = 0
    tls: bool = False
    ca_file: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def shown(self) -> str:
        """The address as it may be printed: without user and password."""
        if self.path:
            return f"unix://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'rediss' if self.tls else 'redis'}://{host}:{self.port}/{self.db}"

    @property
    def is_local(self) -> bool:
        """Whether it means whichever machine asks: a socket, or a loopback address."""
        if self.path or self.host.lower() == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    def ssl_context(self) -> ssl.SSLContext | None:
        """A context that checks the server's name and chain, or None without TLS."""
        return ssl.create_default_context(cafile=self.ca_file) if self.tls else None


def parse_address(
    url: str, username: str | None = None, password: str | None = None, ca_file: str | None = None
) -> Address:
    """An address from a URL; user and password given beside it win. UsageError says what is
    wrong with it, never the password."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise UsageError(f"the Redis URL cannot be read: {error}", _EXAMPLE) from error
    query = parse_qs(parts.query)
    if parts.scheme not in ("redis", "rediss", "unix"):
        raise UsageError(
            f"the Redis URL begins with {parts.scheme or 'nothing'!r}",
            "write redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH",
        )
    user = username or (unquote(parts.username) if parts.username else None)
    secret = password or (unquote(parts.password) if parts.password else None)
    try:
        if parts.scheme == "unix":
            if not parts.path.strip("/"):
                raise UsageError("the Redis URL names no socket", "write unix:///PATH")
            db = int(query.get("db", ["0"])[0])
            return Address(path=unquote(parts.path), db=db, username=user, password=secret)
        return Address(
            host=parts.hostname or "127.0.0.1",
            port=parts.port or 6379,
            db=int(parts.path.strip("/") or "0"),
            tls=parts.scheme == "rediss",
            ca_file=ca_file,
            username=user,
            password=secret,
        )
    except ValueError as error:
        raise UsageError(
            "the Redis URL has a port or a database that is no number", _EXAMPLE
        ) from error


def read_authorities(ca_file: str | None) -> str:
    """The PEM text in it, for a machine that does not have the file; "" without one. UsageError."""
    if not ca_file:
        return ""
    try:
        return Path(os.path.expanduser(ca_file)).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"redis.ca_file {ca_file} cannot be read: {error}") from error
