"""One small whole grid over every way to every server: TLS, sockets, passwords, users, prefixes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from cogrid.engine.fault import FaultEngine
from tests.e2e.daemon import Daemon
from tests.e2e.grid import MODEL, chats, said
from tests.servers import KINDS, REDIS7, VALKEY9, Kind, Server, free_port
from tests.wait import until_async

pytestmark = pytest.mark.e2e

SECRET = "p w%/@:é"
UP_S = 30.0
COMMAND_S = 30.0
ACL = (
    "user default on nopass ~* &* +@all",
    f"user cogrid on >{SECRET.replace(' ', '_')} ~{{cogrid}}:* &* +@all -@admin -@dangerous +info",
)


@dataclass(frozen=True, slots=True)
class Way:
    """To a server. launch: how that is started. env: what the processes are told, with ``{port}``,
    ``{socket}``, ``{tls_port}``, ``{ca}`` and ``{file}`` (of the password) filled in."""

    env: Mapping[str, str]
    prefix: str = ""
    launch: Mapping[str, Any] = field(default_factory=dict)
    secret: str = ""


WAYS = {
    "socket": Way({"COGRID_REDIS_URL": "unix://{socket}"}),
    "password": Way(
        {"COGRID_REDIS_URL": "redis://127.0.0.1:{port}", "COGRID_REDIS_PASSWORD": SECRET},
        prefix="cogrid:",
        launch={"password": SECRET},
        secret=SECRET,
    ),
    "user": Way(
        {
            "COGRID_REDIS_URL": "redis://127.0.0.1:{port}/0",
            "COGRID_REDIS_USERNAME": "cogrid",
            "COGRID_REDIS_PASSWORD_FILE": "{file}",
        },
        prefix="{cogrid}:",
        launch={"acl": ACL},
        secret=SECRET.replace(" ", "_"),
    ),
}
TLS = Way(
    {
        "COGRID_REDIS_URL": "rediss://127.0.0.1:{tls_port}/0",
        "COGRID_REDIS_CA_FILE": "{ca}",
        "COGRID_REDIS_PASSWORD_FILE": "{file}",
    },
    launch={"tls": True, "password": SECRET},
    secret=SECRET,
)
CASES = [
    *(pytest.param(kind, way, id=f"{kind.name}-{name}") for kind in KINDS
      for name, way in WAYS.items()),
    pytest.param(REDIS7, TLS, id="redis7-tls"),
]  # fmt: skip


class Small:
    """A coordinator, a reaper and a worker, told of the server by their environment alone."""

    def __init__(self, directory: Path, env: Mapping[str, str], scale: float) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        kept = {name: text for name, text in os.environ.items() if not name.startswith("COGRID_")}
        self.env = {
            **kept,
            **env,
            "HOME": str(directory),
            "XDG_STATE_HOME": str(directory / "state"),
            "XDG_CONFIG_HOME": str(directory / "config"),
            "COGRID_CLIENT_URL": self.url,
            "COGRID_TIME_SCALE": f"{scale:g}",
        }
        self.daemons: list[Daemon] = []
        self._directory = directory

    def start(self, name: str, *words: str) -> None:
        daemon = Daemon(name, words, self.env, self._directory)
        self.daemons.append(daemon)
        daemon.start()

    def cogrid(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """A command of the command line."""
        return subprocess.run(
            (sys.executable, "-m", "cogrid.cli.main", *words),
            env={**self.env, **env},
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )

    @property
    def logs(self) -> str:
        return "\n".join(daemon.log for daemon in self.daemons)


@contextlib.asynccontextmanager
async def small_grid(
    directory: Path, env: Mapping[str, str], scale: float
) -> AsyncIterator[tuple[Small, FaultEngine]]:
    """It, up; at the end each of its processes ends well when it is asked to."""
    small = Small(directory, env, scale)
    async with FaultEngine((MODEL,)) as engine:
        try:
            small.start("coordinator", "coordinator", "run", "--listen", small.url[7:])
            small.start("reaper", "reaper", "--daemon")
            small.start("esxi", "worker", "run", "--id", "esxi", "--engine", engine.url)
            async with httpx.AsyncClient(base_url=small.url, timeout=5) as http:
                await until_async(lambda: _ready(http), UP_S, "the grid to be up")
            yield small, engine
            codes = [await daemon.stop() for daemon in reversed(small.daemons)]
            assert codes == [0, 0, 0]
        except BaseException as error:
            for daemon in small.daemons:
                error.add_note(daemon.tail)
            raise
        finally:
            for daemon in small.daemons:
                daemon.end()


async def _ready(http: httpx.AsyncClient) -> bool:
    try:
        return (await http.get("/readyz")).status_code == 200
    except httpx.TransportError:
        return False


def told(way: Way, server: Server, directory: Path) -> dict[str, str]:
    """The environment of the grid's processes."""
    file = directory / "password"
    file.write_text(way.secret + "\n")
    file.chmod(0o600)
    ca = str(server.certificates.authority) if server.certificates else ""
    places = {
        "port": str(server.port),
        "socket": str(server.socket_path),
        "tls_port": server.tls_url.partition("?")[0].rpartition(":")[2].partition("/")[0],
        "ca": ca,
        "file": str(file),
    }
    env = {}
    for name, text in way.env.items():
        for place, value in places.items():
            text = text.replace(f"{{{place}}}", value)
        env[name] = text
    return env | ({"COGRID_REDIS_PREFIX": way.prefix} if way.prefix else {})


@pytest.mark.parametrize(("kind", "way"), CASES)
async def test_one_chat(
    own_server: Callable[..., Server], tmp_path: Path, scale: float, kind: Kind, way: Way
) -> None:
    """It is answered; every key stands behind the prefix; no word shows the password."""
    server = own_server(kind, **way.launch)
    async with small_grid(tmp_path, told(way, server, tmp_path), scale) as (small, engine):
        asked = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
        async with httpx.AsyncClient(base_url=small.url, timeout=30) as http:
            answer = await http.post("/v1/chat/completions", json=asked)
        assert answer.status_code == 200, answer.text
        assert answer.json()["choices"][0]["message"]["content"] == said(8)
        assert len(chats(engine)) == 1

        status = await _in_thread(small, "status", "--json")
        assert status.returncode == 0, status.stderr
        assert [worker["id"] for worker in json.loads(status.stdout)["workers"]] == ["esxi"]
        ghosts = await _in_thread(small, "diagnose", "ghosts")
        assert ghosts.returncode == 0, ghosts.stderr

        keys = [key.decode() for key in server.client.scan_iter(count=1000)]
        assert f"{way.prefix}worker:esxi" in keys
        assert [key for key in keys if not key.startswith(way.prefix)] == []
        if way.secret:
            for text in (small.logs, status.stdout, status.stderr, json.dumps(keys)):
                assert way.secret not in text


async def _in_thread(small: Small, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(lambda: small.cogrid(*words, **env))


async def test_two_grids_share_a_server(
    own_server: Callable[..., Server], tmp_path: Path, scale: float
) -> None:
    """Each behind its own prefix sees only its own worker."""
    server = own_server(VALKEY9)
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    url = {"COGRID_REDIS_URL": server.url}
    async with (
        small_grid(tmp_path / "one", url | {"COGRID_REDIS_PREFIX": "one:"}, scale) as (one, first),
        small_grid(tmp_path / "two", url | {"COGRID_REDIS_PREFIX": "two:"}, scale) as (_, second),
    ):
        chat = await _in_thread(one, "chat", "--model", MODEL, "hi")
        assert chat.stdout.strip() == said(8).strip()
        assert [len(chats(engine)) for engine in (first, second)] == [1, 0]
        for prefix in ("one:", "two:"):
            status = await _in_thread(one, "status", "--json", COGRID_REDIS_PREFIX=prefix)
            assert len(json.loads(status.stdout)["workers"]) == 1


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ({"COGRID_REDIS_PASSWORD": "wrong"}, "password"),
        ({}, "password"),
        ({"COGRID_REDIS_CA_FILE": ""}, "certificate"),
    ],
)
def test_what_does_not_get_in(
    own_server: Callable[..., Server], tmp_path: Path, scale: float, env: dict[str, str],
    sentence: str,
) -> None:  # fmt: skip
    """A wrong password, none, and a certificate of an unknown authority: one sentence, exit 4."""
    server = own_server(REDIS7, tls=True, password=SECRET)
    given = told(TLS, server, tmp_path)
    del given["COGRID_REDIS_PASSWORD_FILE"]
    small = Small(tmp_path, given, scale)
    done = small.cogrid("status", **env)
    assert done.returncode == 4, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stderr
