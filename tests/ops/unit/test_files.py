"""Unit files as values, their seal, and what differs."""

from __future__ import annotations

import pytest

from cogrid.model.host import Role
from cogrid.ops.unit.difference import changed_variables, difference
from cogrid.ops.unit.environment import read_environment
from cogrid.ops.unit.file import Entry, parse_unit
from cogrid.ops.unit.render import render, template
from cogrid.ops.unit.seal import Origin, origin, sealed, unsealed
from cogrid.ops.unit.settings import UnitSettings

FOREIGN = """\
[Unit]
Description=Coordinator worker
After=network.target

[Service]
User=user
WorkingDirectory=/home/user
ExecStart=/home/user/venv/bin/python \\
# not now: -v
  /home/user/worker.py
Environment=A=1
Environment=B=2
Restart=always
RestartSec=10

[Install]
WantedBy=multi-user.target
"""


def test_a_template_is_the_same_after_it_was_read() -> None:
    for role in Role:
        assert parse_unit(template(role)).text == template(role)


def test_a_foreign_unit_is_read_with_its_continued_lines() -> None:
    unit = parse_unit(FOREIGN)
    assert unit.last("Service", "ExecStart") == "/home/user/venv/bin/python  /home/user/worker.py"
    assert unit.values("Service", "Environment") == ("A=1", "B=2")
    assert unit.last("Service", "Nothing") == ""
    assert unit.values("Install", "Restart") == ()
    assert [section.name for section in unit.sections] == ["Unit", "Service", "Install"]


def test_an_entry_takes_the_comments_above_it_away() -> None:
    unit = parse_unit("[A]\n# of x\nx=1\n# of y\n; still\ny=2\n# last\n")
    gone = unit.mapped("A", lambda entry: () if entry.key == "y" else (entry,))
    assert gone.text == "[A]\n# of x\nx=1\n# last\n"
    more = unit.mapped("A", lambda entry: (entry, Entry("z", "3")))
    assert more.values("A", "z") == ("3", "3")


def test_the_seal_tells_who_wrote_a_file() -> None:
    text = sealed("[Unit]\nDescription=x\n")
    assert origin(text) is Origin.INSTALLED
    assert unsealed(text) == "[Unit]\nDescription=x\n"
    for edited in (text.replace("x\n", "y\n"), text + "\n", text[:-1], text.replace(":", "=", 2)):
        assert origin(edited) is not Origin.INSTALLED
    assert origin(text + "# mine\n") is Origin.EDITED
    assert origin(FOREIGN) is Origin.FOREIGN
    assert origin("") is Origin.FOREIGN
    assert unsealed(FOREIGN) == FOREIGN


def test_both_files_are_sealed() -> None:
    made = render(UnitSettings(id="esxi", redis_url="redis://h"))
    assert origin(made.unit_text) is origin(made.environment_text) is Origin.INSTALLED


def test_a_difference_is_that_of_the_lines_not_of_the_seal() -> None:
    old = render(UnitSettings(id="esxi"))
    new = render(UnitSettings(id="esxi", slots=2))
    lines = difference(new.unit_path, old.unit_text, new.unit_text)
    assert lines[0] == "--- /etc/systemd/system/cogrid-worker@esxi.service (there)"
    assert [line for line in lines[2:] if line[0] in "+-"] == [
        "-ExecStart=/opt/cogrid/current/bin/cogrid worker run --id esxi",
        "+ExecStart=/opt/cogrid/current/bin/cogrid worker run --id esxi --slots 2",
    ]
    assert difference("x", old.unit_text, old.unit_text) == ()
    assert difference("x", old.unit_text, unsealed(old.unit_text)) == ()
    first = difference("x", "", new.unit_text)
    assert first[0] == "--- /dev/null"
    assert all(line.startswith("+") for line in first[3:])


def test_of_variables_only_the_names_are_told() -> None:
    old = render(UnitSettings(id="esxi", redis_url="redis://a", api_key="k")).environment_text
    new = render(UnitSettings(id="esxi", redis_url="redis://b", prefix="p:")).environment_text
    assert changed_variables(old, new) == (
        "-COGRID_CLIENT_API_KEY", "+COGRID_REDIS_PREFIX", "~COGRID_REDIS_URL",
    )  # fmt: skip
    assert changed_variables(new, new) == ()


def test_files_that_somebody_wrote_by_hand_are_read() -> None:
    text = "# mine\nA=plain text \n B='it \\ is'\nC=\"a\\$b\"\nD=\nnothing\nE=a\\ b\n"
    assert read_environment(text) == {
        "A": "plain text", "B": "it \\ is", "C": "a$b", "D": "", "E": "a b",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Environment=COGRID_REDIS_PASSWORD=s3cret", "Environment=COGRID_REDIS_PASSWORD=***"),
        ('Environment=A=1 "HF_TOKEN=s3 cret"', 'Environment=A=1 "HF_TOKEN=***'),
        ("Environment=U=redis://:s3cret@h:6379/0", "Environment=U=redis://:***@h:6379/0"),
        ("Environment=U=rediss://ann:s3c:ret@h/0", "Environment=U=rediss://ann:***@h/0"),
        ("ExecStart=/bin/x --api-key s3cret --slots 2", "ExecStart=/bin/x --api-key ***"),
        ("Environment=CUDA_VISIBLE_DEVICES=1", "Environment=CUDA_VISIBLE_DEVICES=1"),
        ("KeyringMode=private", "KeyringMode=private"),
        ("# the password is elsewhere", "# the password is elsewhere"),
        ("#Environment=A_KEY=s3cret", "#Environment=A_KEY=***"),
    ],
)
def test_a_secret_of_somebody_elses_is_in_no_difference(line: str, shown: str) -> None:
    lines = difference("x", f"[Service]\n{line}\n", "[Service]\n")
    assert lines[-1] == f"-{shown}"
    changed = difference("x", f"{line}\n", f"{line}x\n")
    assert (len(changed), changed[-2]) == (5, f"-{shown}"), "that it is another is still seen"
