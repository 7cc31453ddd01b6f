"""A whole grid whose processes have exactly the rights that docs/security.md grants their roles."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from cogrid.engine.fault import FaultEngine
from cogrid.store.roles import Role, acl_line
from tests.e2e.grid import MODEL, said
from tests.e2e.test_servers import Small
from tests.servers import REDIS7, VALKEY9, Kind, Server
from tests.wait import until_async

pytestmark = pytest.mark.e2e
UP_S = 30.0


def env_of(role: Role, server: Server, prefix: str) -> dict[str, str]:
    """How a process is told who it is."""
    return {
        "COGRID_REDIS_URL": f"redis://127.0.0.1:{server.port}/0",
        "COGRID_REDIS_USERNAME": f"cogrid-{role}",
        "COGRID_REDIS_PASSWORD": f"pw-{role}",
        "COGRID_REDIS_PREFIX": prefix,
    }


@pytest.mark.parametrize("prefix", ["", "cogrid:"])
@pytest.mark.parametrize("kind", [VALKEY9, REDIS7], ids=lambda kind: kind.name)
async def test_every_process_lives_on_its_own_rights(
    own_server: Callable[..., Server], tmp_path: Path, scale: float, kind: Kind, prefix: str
) -> None:
    server = own_server(kind)
    for role in Role:
        line = acl_line(role, prefix, password=f"pw-{role}").split()
        server.client.execute_command(*line)  # type: ignore[no-untyped-call]
    server.client.execute_command("ACL", "SETUSER", "default", "resetpass", ">none")  # type: ignore[no-untyped-call]
    small = Small(tmp_path, {}, scale)
    words_of = {
        Role.COORDINATOR: ("coordinator", "run", "--listen", small.url[7:]),
        Role.REAPER: ("reaper", "--daemon"),
    }
    base = dict(small.env)

    async def command(role: Role, *words: str) -> str:
        small.env = base | env_of(role, server, prefix)
        done = await asyncio.to_thread(small.cogrid, *words)
        assert done.returncode in (0, 3), done.stdout + done.stderr
        return done.stdout

    async with FaultEngine((MODEL,)) as engine:
        try:
            worker = ("worker", "run", "--id", "esxi", "--engine", engine.url)
            for role, words in (*words_of.items(), (Role.WORKER, worker)):
                small.env = base | env_of(role, server, prefix)
                small.start(role, *words)
            async with httpx.AsyncClient(base_url=small.url, timeout=30) as http:

                async def ready() -> bool:
                    try:
                        return (await http.get("/readyz")).status_code == 200
                    except httpx.TransportError:
                        return False

                await until_async(ready, UP_S, "the grid to be up")
                asked = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
                answer = await http.post("/v1/chat/completions", json=asked)
                assert answer.json()["choices"][0]["message"]["content"] == said(8)
            status = json.loads(await command(Role.READER, "status", "--json"))
            assert [each["health"] for each in status["workers"]] == ["healthy"]
            await command(Role.READER, "diagnose", "all")
            await command(Role.OPERATOR, "worker", "drain", "esxi", "--yes")
            await command(Role.OPERATOR, "worker", "resume", "esxi", "--yes")
            await command(Role.OPERATOR, "key", "new", "--label", "webui")
            # Whether it came in time is for the other tests; here it must be allowed.
            small.env = base | env_of(Role.OPERATOR, server, prefix)
            drill = await asyncio.to_thread(small.cogrid, "drill", "zombie", "--yes", "--json")
            assert json.loads(drill.stdout)["reason"] == "zombie_running", drill.stdout
            assert "NOPERM" not in small.logs
            assert "does not allow" not in small.logs
            assert [await daemon.stop() for daemon in reversed(small.daemons)] == [0, 0, 0]
        except BaseException as error:
            for daemon in small.daemons:
                error.add_note(daemon.tail)
            raise
        finally:
            for daemon in small.daemons:
                daemon.end()
