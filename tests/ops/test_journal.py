"""Entries of a journal as journalctl prints them."""

from __future__ import annotations

import json

from cogrid.ops.journal import JournalLine, journal_line

ENTRY = {"__REALTIME_TIMESTAMP": "1780799147000001", "__CURSOR": "s=1", "MESSAGE": "waiting",
         "PRIORITY": "4", "SYSLOG_IDENTIFIER": "cogrid",
         "_SYSTEMD_UNIT": "cogrid-worker@esxi.service"}  # fmt: skip


def test_an_entry() -> None:
    assert journal_line(json.dumps(ENTRY)) == JournalLine(
        1780799147000001, "cogrid-worker@esxi.service", "waiting", 4, "s=1", "cogrid"
    )


def test_what_systemd_says_of_a_unit_is_that_units() -> None:
    said = {**ENTRY, "_SYSTEMD_UNIT": "init.scope", "UNIT": "cogrid-reaper.service"}
    line = journal_line(json.dumps(said))
    assert line is not None
    assert line.unit == "cogrid-reaper.service"


def test_a_message_that_is_no_text_comes_as_bytes() -> None:
    line = journal_line(json.dumps({**ENTRY, "MESSAGE": [104, 105, 255]}))
    assert line is not None
    assert line.text == "hi\ufffd"
    empty = journal_line(json.dumps({**ENTRY, "MESSAGE": None}))
    assert empty is not None
    assert empty.text == ""


def test_what_is_no_entry() -> None:
    for text in ("", "#readable", '{"MESSAGE": "no time"}', "[1]", '{"__REALTIME_TIMESTAMP": "x"}'):
        assert journal_line(text) is None, text
