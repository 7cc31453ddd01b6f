"""One table of errors: every code that anybody can raise is in it, and means one thing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import cogrid.coordinator
from cogrid.coordinator.errors import TABLE, RefusedError, body_of, failed, store_refusal
from cogrid.model.chat import Code, Dialect, End
from cogrid.model.task import State
from cogrid.rules import admission
from cogrid.store.refusal import refusal, silence

HERE = Path(cogrid.coordinator.__file__).parent


@pytest.mark.parametrize("code", Code)
def test_every_way_in_which_a_task_ends_has_a_row(code: Code) -> None:
    assert TABLE[code].status >= 400


def test_admission_and_the_table_agree() -> None:
    source = Path(admission.__file__).read_text()
    found = re.findall(r'Refused\((\d+), "(\w+)"', source)
    assert len(found) >= 7
    for status, code in found:
        assert TABLE[code].status == int(status), code


def test_no_refusal_has_a_code_of_its_own() -> None:
    for file in HERE.glob("*.py"):
        for code in re.findall(r'RefusedError\(\s*"(\w+)"', file.read_text()):
            assert code in TABLE, (file.name, code)


def test_types_follow_from_statuses() -> None:
    for code, row in TABLE.items():
        wanted = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
        default = "server_error" if row.status >= 500 else "invalid_request_error"
        assert row.type == wanted.get(row.status, default), code


def test_bodies_in_both_dialects() -> None:
    refused = RefusedError("no_home", "no worker can serve model 'm' now", "start one", 10)
    assert json.loads(body_of(refused, Dialect.OPENAI)) == {
        "error": {
            "message": "no worker can serve model 'm' now: start one",
            "type": "server_error",
            "param": None,
            "code": "no_home",
        }
    }
    said = {"error": "no worker can serve model 'm' now: start one"}
    assert json.loads(body_of(refused, Dialect.OLLAMA)) == said


def test_the_incidents_sentence_reaches_the_client_as_it_is() -> None:
    sentence = (
        "no alternative worker can serve model 'gemma3:1b' (reason=dead_worker);"
        " single point of failure"
    )
    made = failed(End(State.FAILED, message=sentence, code="no_home", worker="esxi"))
    assert (made.status, made.sentence) == (503, sentence)


def test_what_ends_without_a_word_still_gets_one() -> None:
    assert failed(End(State.DEAD)).sentence == "the task ended as dead"


def test_redis_that_will_not_come_back_by_itself_is_not_to_be_tried_again() -> None:
    assert store_refusal(silence("redis://x", "refused")).retry_after_s > 0
    assert store_refusal(refusal("redis://x", "NOPERM this user")).retry_after_s == 0
