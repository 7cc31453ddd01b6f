"""The server's own facts, from INFO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cogrid.model.snapshot import Server
from cogrid.store.script import text


def server_facts(info: Any) -> Server:
    """The server's facts from INFO; what it does not say stays unknown."""
    if info is None:
        return Server()
    said = info if isinstance(info, Mapping) else _info(text(info))

    def number(name: str) -> int:
        return int(said.get(name) or 0)

    valkey = "valkey_version" in said
    return Server(
        version=str(said.get("valkey_version" if valkey else "redis_version", "")),
        flavour="valkey" if valkey else "redis",
        mode=str(said.get("server_mode", said.get("redis_mode", ""))),
        role=str(said.get("role", "")),
        run_id=str(said.get("run_id", "")),
        replication_id=str(said.get("master_replid", "")),
        maxmemory_bytes=number("maxmemory"),
        used_memory_bytes=number("used_memory"),
        policy=str(said.get("maxmemory_policy", "")),
        append_only=bool(number("aof_enabled")) if "aof_enabled" in said else None,
        rdb_ok=said["rdb_last_bgsave_status"] == "ok" if "rdb_last_bgsave_status" in said else None,
        loading=bool(number("loading")),
    )


def _info(told: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in told.splitlines() if not line.startswith("#"))
    return {name: value.strip() for name, colon, value in pairs if colon}
