"""Addresses of engines: what people write for one, as a URL."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from cogrid.errors import UsageError

OLLAMA_PORT = 11434
_HERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that a server listens on, and where a client on the same machine finds it."""


def engine_url(text: str) -> str:
    """``host:port`` or a URL, as a URL without a slash at the end and without the ``/v1`` that
    OpenAI-style clients are given."""
    text = text.strip()
    url = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname is not None
        _ = parts.port
    except ValueError:
        known = False
    if not known:
        raise UsageError(f"{text!r} is not an engine's address", "write http://127.0.0.1:11434")
    return url.rstrip("/").removesuffix("/v1")


def ollama_url(host: str) -> str:
    """Where the server is that runs with this OLLAMA_HOST, which may be ``0.0.0.0``, ``:11434``,
    ``name``, ``[::]:11434`` or ``http://0.0.0.0:11434/``. ValueError on nonsense."""
    host = host.strip().strip("\"'")
    bare = "://" not in host
    parts = urlsplit(f"http://{host}" if bare else host)
    name = parts.hostname or ""
    name = _HERE.get(name, name)
    port = parts.port or (OLLAMA_PORT if bare else 443 if parts.scheme == "https" else 80)
    name = f"[{name}]" if ":" in name else name
    return f"{parts.scheme}://{name}:{port}{parts.path.rstrip('/')}"


def port(url: str) -> int:
    """The port of a URL."""
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def is_here(url: str) -> bool:
    """Whether it is on this machine, as far as the address alone tells."""
    name = urlsplit(url).hostname or ""
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
