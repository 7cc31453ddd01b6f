"""``cogrid doctor`` as an operator types it, and what its bundle holds."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from cogrid.cli.main import run
from cogrid.store.roles import Role, acl_line
from tests.cli.test_asking import cogrid
from tests.coordinator.stage import stage as coordinator_stage
from tests.reaper.stage import Stage
from tests.servers import Server, free_port

Said = pytest.CaptureFixture[str]
Checks = dict[str, list[tuple[str, str, str | None]]]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No configuration, no engine and no coordinator of this machine counts."""
    for name in [name for name in os.environ if name.startswith("COGRID_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("cogrid.engine.find.USUAL_PORTS", {free_port(): "nothing"})
    monkeypatch.setenv("COGRID_CLIENT_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checks(capsys: Said) -> Checks:
    """area -> (verdict, what, mend)."""
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    found: Checks = {}
    for check in document["checks"]:
        found.setdefault(check["area"], []).append((check["verdict"], check["what"], check["mend"]))
        assert (check["mend"] is None) is (check["verdict"] == "pass"), check
    return found


def test_what_is_wrong_comes_with_its_mend(
    stage: Stage, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.setenv("COGRID_REDIS_URL", server.url)
    stage.worker("esxi")
    stage.worker("old")
    stage.redis.hset("worker:old", "version", "0.0.1")
    stage.let_pass(21)
    stage.worker("ai-core")
    stage.redis.hset("grid:reaper", "last_pass", 1)
    assert run(["doctor", "--json"]) == 3
    found = checks(capsys)
    assert [mend for _, _, mend in found["workers"]] == [
        "start it again there, or: cogrid worker forget esxi",
        "start it again there, or: cogrid worker forget old",
    ]
    (reaper,) = found["reaper"]
    assert reaper[0] == "fail"
    assert "no reaper is running" in reaper[1]
    assert found["coordinator"][0][0] == "fail"
    assert ("warn", "old 0.0.1" in found["versions"][1][1]) == (found["versions"][1][0], True)
    assert any("append-only file is off" in what for _, what, _ in found["redis"])
    assert any(what.startswith("its user has the rights of: coordinator, worker, reaper, operator")
               for _, what, _ in found["redis"])  # fmt: skip
    assert found["clock"][0][0] == "pass"
    assert found["engine"][0][:2] == (
        "pass", "none on this machine; only one that runs a worker needs it",
    )  # fmt: skip


@pytest.fixture
async def whole(own_server: Callable[..., Server]) -> AsyncIterator[tuple[Server, str]]:
    """A server that keeps what it has, a coordinator, a worker and a reaper at work."""
    server = own_server(persist=True)
    reaper = Stage(server)
    reaper.settle()
    async with coordinator_stage(server.url) as made:
        await made.worker()
        reaper.sweep()
        reaper.redis.hset("worker:esxi", "version", _version())
        yield server, made.url
    reaper.close()


def _version() -> str:
    from cogrid import __version__

    return __version__


async def test_a_grid_that_is_well_passes(
    whole: tuple[Server, str], monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    server, url = whole
    monkeypatch.setenv("COGRID_REDIS_URL", server.url)
    monkeypatch.setenv("COGRID_CLIENT_URL", url)
    code = await cogrid("doctor", "--json")
    found = checks(capsys)
    assert {verdict for each in found.values() for verdict, _, _ in each} == {"pass"}
    assert code == 0
    assert [what for _, what, _ in found["coordinator"]] == [
        f"alive at {url}", "ready: it can write to Redis, and some worker could take a task",
    ]  # fmt: skip
    assert found["workers"][0][1] == "1 worker: 1 healthy"


def test_the_coordinator_of_cogrid_up_is_asked_where_none_is_configured(
    alone: Path, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.setenv("COGRID_REDIS_URL", server.url)
    monkeypatch.delenv("COGRID_CLIENT_URL")
    left = f"http://127.0.0.2:{free_port()}"
    (alone / "cogrid").mkdir()
    (alone / "cogrid" / "coordinator_url").write_text(f"{left}\n")
    run(["doctor", "--json"])
    ((verdict, what, _),) = checks(capsys)["coordinator"]
    assert (verdict, what.partition(": ")[0]) == ("fail", f"nothing answers at {left}")


def test_without_redis_it_is_exit_4_and_shows_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.setenv("COGRID_REDIS_URL", f"redis://:hunter2@127.0.0.1:{free_port()}/0")
    assert run(["doctor", "--json"]) == 4
    told = capsys.readouterr()
    assert "hunter2" not in told.out + told.err
    document = json.loads(told.out)
    assert document["reached"] is False
    areas = {check["area"]: check["verdict"] for check in document["checks"]}
    assert areas["redis"] == "fail"
    assert {"configuration", "engine", "coordinator", "here"} <= set(areas)


def test_a_configuration_that_is_wrong_is_told_key_by_key(
    monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.setenv("COGRID_LIMITS_LEASE_S", "two")
    monkeypatch.setenv("COGRID_WORKER_SLOTS", "many")
    assert run(["doctor", "--json"]) == 3
    found = checks(capsys)
    assert [what.partition(":")[0] for _, what, _ in found["configuration"]] == [
        "COGRID_LIMITS_LEASE_S", "COGRID_WORKER_SLOTS",
    ]  # fmt: skip


def test_a_readable_secret_and_a_state_directory_that_is_none(
    alone: Path, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.setenv("COGRID_REDIS_URL", server.url)
    file = alone / "cogrid.toml"
    file.write_text('[redis]\npassword = "hunter2"\n[worker]\nstate_dir = "/dev/null/x"\n')
    file.chmod(0o644)
    monkeypatch.setenv("COGRID_REDIS_PASSWORD", "")
    run(["doctor", "--json"])
    assert checks(capsys)["here"][0][:2] == (
        "fail", "the state directory /dev/null/x cannot be written",
    )  # fmt: skip
    monkeypatch.delenv("COGRID_REDIS_PASSWORD")
    run(["doctor", "--json"])
    found = checks(capsys)
    assert (
        "warn",
        "cogrid.toml holds a secret and others may read it",
        "chmod 600 cogrid.toml",
    ) in (found["configuration"])


@pytest.mark.parametrize("role", [Role.READER, Role.WORKER])
def test_a_user_of_few_rights_is_told_what_it_may(
    own_server: Callable[..., Server], role: Role, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    server = own_server()
    words = acl_line(role, user="few", password="pw").split()
    server.client.execute_command(*words)  # type: ignore[no-untyped-call]
    url = f"redis://few:pw@127.0.0.1:{server.port}/0"
    monkeypatch.setenv("COGRID_REDIS_URL", url)
    assert run(["doctor", "--json"]) == 3
    told = [what for _, what, _ in checks(capsys)["redis"]]
    expected = {
        Role.READER: "its user may run no scripts, so it can only look",
        Role.WORKER: "its user has the rights of: worker, reader",
    }
    assert expected[role] in told


def texts(file: Path) -> dict[str, str]:
    """The files in a bundle."""
    with tarfile.open(file) as archive:
        found = {}
        for entry in archive.getmembers():
            content = archive.extractfile(entry)
            assert content is not None
            found[entry.name] = content.read().decode()
        return found


def test_the_bundle_has_no_prompt_secret_key_or_user(
    own_server: Callable[..., Server], alone: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    server = own_server(password='hun"ter2')
    monkeypatch.setenv("COGRID_REDIS_URL", f"redis://127.0.0.1:{server.port}/0")
    monkeypatch.setenv("COGRID_REDIS_PASSWORD", 'hun"ter2')
    monkeypatch.setenv("COGRID_CLIENT_API_KEY", "cg-veryverysecret")
    stage = Stage(server)
    stage.settle()
    stage.worker("esxi", slots=2)
    stage.submit("t1", "tasks:cpu:esxi")
    stage.submit("t2", "tasks:cpu:esxi")
    stage.redis.set("task:t1:body", "my very own prompt")
    stage.redis.hset("grid:keys", "digest", '{"id":"publickeyid","label":"webui"}')
    handed, _ = (*stage.claim("esxi", "tasks:cpu:esxi"), *stage.claim("esxi", "tasks:cpu:esxi"))
    stage.finish("esxi", handed, "failed", message="cannot parse: my very own prompt", retry=True)
    stage.close()
    assert run(["worker", "drain", "esxi", "--yes", "--no-wait"]) == 0
    capsys.readouterr()
    file = alone / "b.tar.gz"
    run(["doctor", "--bundle", str(file)])
    assert "look into it before you send it" in capsys.readouterr().err
    assert file.stat().st_mode & 0o777 == 0o600
    found = texts(file)
    assert sorted(name.rpartition("/")[2] for name in found) == [
        "config.json", "doctor.json", "events.json", "status.json", "versions.json",
    ]  # fmt: skip
    whole = "\n".join(found.values())
    for secret in ("very own prompt", 'hun"ter2', 'hun\\"ter2', "veryverysecret", "publickeyid",
                   "webui", "ada"):  # fmt: skip
        assert secret not in whole, secret
    status: Any = json.loads(found["cogrid-bundle/status.json"])
    assert status["workers"][0]["runs"][0]["user"] == "***"
    events: Any = json.loads(found["cogrid-bundle/events.json"])
    assert {"claimed", "retried", "wish"} <= {event["kind"] for event in events}
    assert [e["reason"] for e in events if e["kind"] == "wish"] == ["drain"]
    assert run(["doctor", "--bundle", str(file)]) == 1
    assert "is there already" in capsys.readouterr().err
