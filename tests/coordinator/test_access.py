"""API keys, limits, users, and who is answered without a key."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from cogrid.config import Coordinator as Settings
from cogrid.coordinator.access import is_loopback
from cogrid.errors import ConflictError, NotFoundError
from cogrid.ops.keys import keys, new_key, revoke_key
from cogrid.store.address import parse_address
from cogrid.store.client import Store
from tests.coordinator.stage import Stage, chat, stage
from tests.servers import Server


def store(server: Server) -> Store:
    return Store.connect(parse_address(server.url))


async def user_of(grid: Stage, **headers: str) -> str:
    """Whose turn a request with these headers takes."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    asked = asyncio.create_task(grid.http.post("/v1/chat/completions", json=chat(), headers=names))
    task = await grid.pending()
    found = await grid.task(task)
    await grid.workers["esxi"].answer("x")
    assert (await asked).status_code == 200
    assert found is not None
    return found.user


async def test_without_a_key_the_address_is_the_user(grid: Stage) -> None:
    assert await user_of(grid, X_OpenWebUI_User_Id="ada") == "127.0.0.1"


async def test_user_headers_count_where_they_are_trusted(server: Server) -> None:
    made = store(server)
    plain, plain_facts = new_key(made, "plain")
    trusted, trusted_facts = new_key(made, "webui", trusted=True)
    async with stage(server.url) as grid:
        await grid.worker()
        ada = {"X_OpenWebUI_User_Id": "ada%20l|v:1"}
        assert await user_of(grid, Authorization=f"Bearer {plain}", **ada) == plain_facts.id
        assert await user_of(grid, Authorization=f"Bearer {trusted}", **ada) == "adalv1"
        assert await user_of(grid, Authorization=f"Bearer {trusted}") == trusted_facts.id
    made.close()


async def test_with_keys_nobody_is_answered_without(server: Server) -> None:
    made = store(server)
    secret, _ = new_key(made, "one")
    async with stage(server.url) as grid:
        for path in ("/v1/models", "/api/tags", "/workers", "/metrics", "/task/x"):
            refused = await grid.http.get(path)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == "Bearer"
        wrong = await grid.http.get("/v1/models", headers={"Authorization": "Bearer cg-wrong"})
        assert wrong.status_code == 401
        assert "does not know that API key" in wrong.json()["error"]["message"]
        right = {"Authorization": f"Bearer {secret}"}
        assert (await grid.http.get("/v1/models", headers=right)).status_code == 200
        for path in ("/", "/healthz", "/readyz"):
            assert (await grid.http.get(path)).status_code in (200, 503)
        revoke_key(made, "one")
        await grid.coordinator.services.access.refresh()
        assert (await grid.http.get("/v1/models", headers=right)).status_code == 200  # none is left
    made.close()


async def test_a_key_has_so_many_requests_a_minute(server: Server) -> None:
    made = store(server)
    secret, _ = new_key(made, "slow", 2)
    headers = {"Authorization": f"Bearer {secret}"}
    async with stage(server.url) as grid:
        worker = await grid.worker()
        serving = asyncio.create_task(worker.serve("x"))
        asked = [
            await grid.http.post("/v1/chat/completions", json=chat(), headers=headers)
            for _ in range(5)
        ]
        serving.cancel()
        refused = [answer for answer in asked if answer.status_code == 429]
        assert len(refused) >= 1  # a minute may have begun between them
        assert 1 <= int(refused[0].headers["retry-after"]) <= 60
        assert refused[0].json()["error"]["code"] == "rate_limited"
        assert "2 requests a minute" in refused[0].json()["error"]["message"]
    made.close()


async def test_tasks_of_another_key_are_not_there(server: Server) -> None:
    made = store(server)
    mine, yours = new_key(made, "mine")[0], new_key(made, "yours")[0]
    async with stage(server.url) as grid:
        await grid.worker()
        headers = {"Authorization": f"Bearer {mine}"}
        task = (await grid.http.post("/task", json={"request": chat()}, headers=headers)).json()
        path = f"/task/{task['task']}"
        assert (await grid.http.get(path, headers=headers)).status_code == 200
        other = {"Authorization": f"Bearer {yours}"}
        for method, where in (("GET", path), ("DELETE", path), ("GET", f"{path}/events")):
            assert (await grid.http.request(method, where, headers=other)).status_code == 404
        assert (await grid.http.delete(path, headers=headers)).json()["cancelled"] is True
    made.close()


async def test_without_a_key_it_listens_to_this_machine_only(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "cogrid")
    async with stage(server.url, settings=Settings(listen="0.0.0.0:0")) as grid:
        assert grid.url.startswith("http://127.0.0.1:")
    assert "no API key exists: listening on 127.0.0.1, not on 0.0.0.0" in caplog.text
    made = store(server)
    new_key(made, "one")
    async with stage(server.url, settings=Settings(listen="0.0.0.0:0")) as grid:
        assert grid.url.startswith("http://0.0.0.0:")
    made.close()


async def test_a_proxy_does_not_make_everybody_local(server: Server) -> None:
    async with stage(server.url) as grid:
        refused = await grid.http.get("/v1/models", headers={"X-Forwarded-For": "203.0.113.9"})
        assert refused.status_code == 403
        assert "not a proxy" in refused.json()["error"]["message"]
    settings = Settings(listen="127.0.0.1:0", trusted_proxies=("127.0.0.0/8",))
    async with stage(server.url, settings=settings) as grid:

        async def get(forwarded: str) -> httpx.Response:
            return await grid.http.get("/v1/models", headers={"X-Forwarded-For": forwarded})

        refused = await get("127.0.0.1, 203.0.113.9")
        assert refused.status_code == 403
        assert "not 203.0.113.9" in refused.json()["error"]["message"]
        assert (await get("203.0.113.9, 127.0.0.1, 127.0.0.2")).status_code == 403
        assert (await get("127.0.0.1")).status_code == 200


@pytest.mark.parametrize(
    ("host", "is_it"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.41", False),
        ("esxi", False),
    ],
)
def test_loopback(host: str, is_it: bool) -> None:
    assert is_loopback(host) is is_it


def test_keys_are_made_listed_and_revoked(server: Server) -> None:
    made = store(server)
    secret, facts = new_key(made, "webui", 60, trusted=True)
    assert secret.startswith("cg-")
    assert keys(made) == (facts,)
    assert (facts.label, facts.a_minute, facts.trusted) == ("webui", 60, True)
    stored = server.client.hgetall("grid:keys")
    assert isinstance(stored, dict)
    assert secret not in str(stored)
    with pytest.raises(ConflictError, match="a key 'webui' already"):
        new_key(made, "webui")
    with pytest.raises(NotFoundError, match="no key 'other'"):
        revoke_key(made, "other")
    assert revoke_key(made, facts.id[:6]) == facts
    assert keys(made) == ()
    made.close()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8700", 200),
        ("localhost", 200),
        ("[::1]:8700", 200),
        ("192.168.0.10:8700", 200),
        ("grid.local:8700", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example:8700", 403),
    ],
)
async def test_without_a_key_a_name_of_somebody_else_is_refused(
    server: Server, host: str, status: int
) -> None:
    """A page may have given its own name this machine's address (DNS rebinding)."""
    async with stage(server.url) as grid:
        reply = await grid.http.get("/v1/models", headers={"host": host})
        assert reply.status_code == status
