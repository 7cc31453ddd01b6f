"""Commands of users of few rights: what may not be read is named, with the line that mends it, and
the rest is shown; nothing is concluded from what is hidden. Whoever acts does not act so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from cogrid.cli.main import run
from cogrid.store.gaps import EXTRAS, KEYLESS, READS_KEYS, Part, part_of
from cogrid.store.keys import KEYS
from cogrid.store.roles import Role, acl_line
from tests.cli.test_reads import READS, TASK, document, standing, the_incident
from tests.conftest import needs
from tests.reaper.stage import Stage
from tests.servers import REDIS7, VALKEY9, launch

ONCE = (
    "status", "diagnose all", "spof", "spof --without ai-core", "explain cb30", "task list",
    "task list --state done --state dead", "task show cb30", "dead list", "queue list", "events",
    "usage", "worker list", "worker show esxi", "worker why-idle esxi", "model list",
    "route hello",
)  # fmt: skip
"""One of each of the commands that read."""
PATTERNS = tuple(part for part in Part if part not in KEYLESS)
HIDDEN: dict[str, str] = {
    **{part.value: " ".join(f"~{p}" for p in PATTERNS if p is not part) for part in PATTERNS},
    **{command: f"~* -{command.lower()}" for command in (*READS_KEYS, *KEYLESS)},
}
"""What is hidden -> the rights of a user from whom just that is."""


def user(hidden: str) -> str:
    return "u" + "".join(char if char.isalnum() else "-" for char in hidden)


@pytest.fixture(scope="module", params=[VALKEY9, REDIS7], ids=lambda kind: kind.name)
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """The incident on a server with a user for each thing that can be hidden."""
    needs(request.param)
    server = launch(request.param)
    made = Stage(server)
    made.settle()
    the_incident(made)
    for hidden, rights in HIDDEN.items():
        acl(server.client, f"ACL SETUSER {user(hidden)} on nopass +@all {rights}")
    yield made
    made.close()
    server.close()


def acl(client: Any, line: str) -> None:
    client.execute_command(*line.split())


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COGRID_TIME_SCALE", "1")


class Asked:
    """Runs commands on the stage as one of its users."""

    def __init__(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.stage = stage
        self._env = monkeypatch
        self._capsys = capsys

    def ask(self, words: str, name: str = "default", secret: str = "x") -> tuple[int, Any]:
        self._env.setenv("COGRID_REDIS_URL", self.stage.store.shown)
        for key, value in (("USERNAME", name), ("PASSWORD", secret)):
            if name == "default":
                self._env.delenv(f"COGRID_REDIS_{key}", raising=False)
            else:
                self._env.setenv(f"COGRID_REDIS_{key}", value)
        code = run([*words.split(), "--json"])
        return code, document(self._capsys)


@pytest.fixture
def asked(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Asked:
    return Asked(stage, monkeypatch, capsys)


def told(found: Any, path: str = "") -> Iterator[tuple[str, object]]:
    """Everything that a document concludes: verdicts, each with whom it is about."""
    if isinstance(found, dict):
        name = str(found.get("id") or found.get("name") or found.get("subject") or "")
        worker = str(found.get("worker") or "")
        for key in ("health", "servable", "home", "homes", "takes", "kind", "served_by", "drift"):
            if found.get(key) not in (None, "unknown", [], ()):
                yield f"{path}/{name}/{worker}/{key}", json.dumps(found[key])
        for key, value in found.items():
            yield from told(value, f"{path}/{key}")
    elif isinstance(found, list):
        for value in found:
            yield from told(value, path)


@pytest.mark.parametrize("words", ONCE)
def test_what_is_hidden_is_named_and_the_rest_is_shown(asked: Asked, words: str) -> None:
    code, whole = asked.ask(words)
    assert (code, whole["problems"]) == (READS[words], [])
    fine, named = set(told(whole)), 0
    for hidden in HIDDEN:
        name = user(hidden)
        now, found = asked.ask(words, name)
        problems = found.get("problems", [])
        if found.get("error"):
            error = found["error"]
            problems = error.get("problems", [f"{error['message']}: {error['hint']}"])
            assert now == 4, (words, hidden, error)
        if not problems:
            assert now == code, (words, hidden)
            continue
        named += 1
        assert all(f"ACL SETUSER {name} " in each for each in problems), problems
        assert set(told(found)) <= fine, (words, hidden, set(told(found)) - fine)
        extra = all(part in EXTRAS for part in hidden_parts(hidden, problems))
        assert now == (code if extra else 4), (words, hidden, found)
        follow(asked, words, name, code)
        acl(asked.stage.redis, f"ACL SETUSER {name} reset on nopass +@all {HIDDEN[hidden]}")
    assert named, "it reads nothing"


def follow(asked: Asked, words: str, name: str, code: int) -> None:
    """Run the lines that are printed until none is: all is well then. What was hidden may hide
    more, such as a queue's name what is in it."""
    for _ in range(6):
        now, found = asked.ask(words, name)
        lines = re.findall(r"ACL SETUSER [^\n]+?(?=\"|$)", "\n".join(mends(found)), re.MULTILINE)
        if not lines:
            assert (now, found["problems"]) == (code, [])
            return
        for line in lines:
            acl(asked.stage.redis, line)
    raise AssertionError(f"{words}: the lines do not help: {found}")


def mends(found: dict[str, Any]) -> list[str]:
    error = found.get("error") or {}
    if isinstance(error, str):
        error = {}
    return [*found.get("problems", []), *error.get("problems", []), error.get("hint") or ""]


def hidden_parts(hidden: str, problems: list[str]) -> list[Part]:
    if hidden in KEYLESS:
        return [Part(hidden)]
    keys = [re.search(r"may not read (\S+):", each) for each in problems]
    return [Part(key[1]) for key in keys if key]


@pytest.mark.parametrize("prefix", ["", "cogrid:"])
@pytest.mark.parametrize("kind", [VALKEY9, REDIS7], ids=lambda kind: kind.name)
def test_a_reader_needs_no_more_than_its_line(
    kind: Any, prefix: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs(kind)
    server = launch(kind)
    made = Stage(server, prefix=prefix)
    try:
        made.settle()
        the_incident(made)
        acl(server.client, acl_line(Role.READER, prefix, password="pw"))
        asked = Asked(made, monkeypatch, capsys)
        for words in READS:
            code, found = asked.ask(f"{words} --prefix {prefix}" if prefix else words,
                                    "cogrid-reader", "pw")  # fmt: skip
            assert code == READS[words], (words, found)
            labels = f"user cogrid-reader may not read {prefix}grid:keys"
            rest = [each for each in found["problems"] if not each.startswith(labels)]
            assert rest == [], words
    finally:
        made.close()
        server.close()


def test_everything_that_can_stand_in_redis_is_a_part() -> None:
    samples = {
        "worker:[^:]+": "worker:esxi", "worker:[^:]+:tasks": "worker:esxi:tasks",
    }  # fmt: skip
    for spec in KEYS:
        key = samples.get(spec.pattern.pattern, spec.pattern.pattern)
        for sign in ("[^:]+", ".+", r"\d+"):
            key = key.replace(sign, "x")
        key = key.partition("(")[0] + (key.partition("(")[2].partition("|")[0]).rstrip(")")
        assert part_of(("HGETALL", f"p:{key}"), "p:") in Part


def test_people_are_told_beside_the_answer(
    asked: Asked, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = user("grid:models")
    monkeypatch.setenv("COGRID_REDIS_URL", asked.stage.store.shown)
    monkeypatch.setenv("COGRID_REDIS_USERNAME", name)
    monkeypatch.setenv("COGRID_REDIS_PASSWORD", "x")
    assert run(["status"]) == 4
    shown = capsys.readouterr()
    assert "esxi\tghost\tcpu" in shown.out
    assert shown.err.endswith(
        f"warning: user {name} may not read grid:models: ACL SETUSER {name} %R~grid:models\n"
    )
    monkeypatch.setenv("COGRID_REDIS_USERNAME", user("worker:*"))
    assert run(["status"]) == 4
    shown = capsys.readouterr()
    assert "esxi\tunknown\t-\t-\t?/?" in shown.out
    assert "Queues that nobody serves" not in shown.out
    assert run(["diagnose"]) == 4
    shown = capsys.readouterr()
    assert "nothing was found in what could be looked at" in shown.out
    assert "warning: ghosts could not be looked for without worker:*" in shown.err
    assert run(["spof"]) == 4
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "no single point" not in shown.err
    monkeypatch.setenv("COGRID_REDIS_USERNAME", user("XREVRANGE"))
    assert run(["explain", TASK]) == 4
    shown = capsys.readouterr()
    assert "it waits in tasks:cpu:esxi, place 1" in shown.out
    assert "may not read grid:events: ACL SETUSER uXREVRANGE +xrevrange\n" in shown.err


ACTS = (
    f"task cancel {TASK} --yes", f"task requeue {TASK} --yes", f"task purge {TASK} --yes",
    "task cancel --all --dry-run", f"dead retry {TASK} --yes", "dead purge --all --yes",
    "worker drain ai-core --yes --no-wait", "worker forget esxi --force --yes --timeout 0s",
    "worker resume esxi --dry-run", "model remove llama3.2:1b --worker esxi --force --dry-run",
    "model forget llama3.2:1b --yes", "model warm gemma3:1b --dry-run",
    "model pull gemma3:1b --worker ai-core --dry-run",
    "spof --fix --dry-run", "reaper --dry-run", "drill ghost --dry-run", "key list",
    "key new --label webui", "key revoke webui",
)  # fmt: skip
HALVES = ("grid:workers", "worker:*", "grid:due", "task:*", "grid:keys", "grid:finished",
          "grid:dead", "grid:events", "ZRANGE", "HGETALL", "TIME")  # fmt: skip


@pytest.mark.parametrize("words", ACTS)
def test_nobody_acts_on_half_of_what_there_is(asked: Asked, words: str) -> None:
    stage, refused = asked.stage, 0
    stage.redis.flushall()
    stage.settle()
    the_incident(stage)
    before = standing(stage)
    for hidden in HALVES:
        code, found = asked.ask(words, user(hidden))
        if code == 4:
            refused += 1
            error = found["error"]
            assert f"ACL SETUSER {user(hidden)} " in error["hint"], (words, hidden, error)
            assert standing(stage) == before, (words, hidden)
        elif standing(stage) != before:  # it needed nothing of what is hidden
            stage.redis.flushall()
            stage.settle()
            the_incident(stage)
            before = standing(stage)
    assert refused, words


@pytest.mark.parametrize("hidden", ["grid:models", "worker:*", "ZRANGE", "INFO", "SCAN", "TIME"])
def test_a_check_up_tells_what_is_hidden_and_checks_the_rest(asked: Asked, hidden: str) -> None:
    name = user(hidden)
    code, found = asked.ask("doctor", name)
    checks = {(each["area"], each["what"]): each for each in found["checks"]}
    line = f"ACL SETUSER {name} "
    assert any((each["mend"] or "").startswith(line) for each in checks.values())
    areas = {area for area, _ in checks}
    assert {"here", "redis", "coordinator"} <= areas
    assert ("workers" in areas) is (hidden not in ("worker:*", "ZRANGE"))
    assert ("clock" in areas) is (hidden != "TIME")
    assert code == 3
