"""Run by the Python of a host that has no worker's unit yet: engine and Redis, as seen from there.

It is sent as text, with what it is asked as JSON in place of ``None`` in the last line, and knows
nothing of cogrid. It prints one JSON document. Any Python from 3.7 on can run it.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
import urllib.request
from typing import Any

QUESTIONS = (("ollama", "/api/version", "version"), ("openai", "/v1/models", "data"))


def engine(urls: list[str], limit_s: float) -> dict[str, str]:
    """The first that answers as an engine does; {} where none does."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for url in urls:
        for kind, path, field in QUESTIONS:
            try:
                with opener.open(url + path, timeout=limit_s) as answer:
                    said = json.loads(answer.read(1 << 20).decode("utf-8", "replace"))
            except (OSError, ValueError):
                continue
            if isinstance(said, dict) and field in said:
                return {"url": url, "kind": kind, "version": str(said.get("version", ""))}
    return {}


def connected(place: dict[str, Any], limit_s: float) -> socket.socket:
    if place["path"]:
        found = socket.socket(socket.AF_UNIX)
        found.settimeout(limit_s)
        found.connect(place["path"])
        return found
    found = socket.create_connection((place["host"], place["port"]), timeout=limit_s)
    if not place["tls"]:
        return found
    context = ssl.create_default_context(cadata=place["authorities"] or None)
    return context.wrap_socket(found, server_hostname=place["host"])


def words(*parts: str) -> bytes:
    """A command as Redis reads it."""
    sent = [b"*%d\r\n" % len(parts)]
    for part in parts:
        data = part.encode("utf-8")
        sent.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(sent)


def redis(place: dict[str, Any], limit_s: float) -> dict[str, Any]:
    """error: why it cannot be used from here, None where it answers. ahead_s: this clock's lead."""
    try:
        with connected(place, limit_s) as link, link.makefile("rb") as lines:
            if place["password"]:
                login = [part for part in (place["username"], place["password"]) if part]
                link.sendall(words("AUTH", *login))
                said(lines.readline(), "+")
            link.sendall(words("TIME"))
            said(lines.readline(), "*2")
            seconds, micros = (number(lines) for _ in range(2))
            return {"error": None, "ahead_s": round(time.time() - seconds - micros / 1e6, 3)}
    except (OSError, ValueError) as error:
        return {"error": str(error) or type(error).__name__, "ahead_s": None}


def number(lines: Any) -> float:
    """A bulk string: its length, then itself."""
    lines.readline()
    return float(lines.readline())


def said(line: bytes, wanted: str) -> None:
    answer = line.decode("utf-8", "replace").strip()
    if not answer.startswith(wanted):
        raise ValueError(answer.lstrip("-") or "it hung up")


def look(asked: dict[str, Any]) -> dict[str, Any]:
    limit_s = asked["limit_s"]
    return {
        "engine": engine(asked["engines"], limit_s),
        "redis": redis(asked["redis"], limit_s) if asked["redis"] else None,
    }


ASKED: Any = None
if ASKED:
    print(json.dumps(look(ASKED)))
