"""Makes docs/commands.md from the commands themselves: ``python -m cogrid.cli.reference``.

The help of each command, its options, the JSON it prints (from the value classes that it names with
``answers``), and the exit codes. A test compares the file with what this prints.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

import click

from cogrid.cli.documents import ATTRIBUTE
from cogrid.cli.main import command as root
from cogrid.cli.output import SCHEMA

EXITS = (
    ("the answer was given, and nothing is wrong; help; a dry run", 0),
    ("the reader of a pipe has read enough (`| head -1`)", 0),
    ("what was asked for failed, does not exist, or must not be done", 1),
    ("the answer could not be written (disk full, closed standard output)", 1),
    ("`chat`, `route`: there is no answer, or no way", 1),
    ("a wrong option, argument or configuration; a question that nobody can be asked", 2),
    ("no host was named, and neither the configuration nor the grid knows one", 2),
    ("`diagnose`, `doctor`, `spof`, `worker why-idle`: something was found", 3),
    ("`status --check`: a worker, a queue or the server needs attention", 3),
    ("`model list --drift`: a model is not the same everywhere", 3),
    ("`sanity`, `drift`: something keeps a host from work, or differs", 3),
    ("`worker run --trial`: something would keep the worker from work", 3),
    ("Redis or the coordinator cannot be reached, or refuses what is needed", 4),
    ("Redis hides a part of the answer from our user: the rest is shown (`doctor`: 3)", 4),
    ("some hosts could not be asked over SSH, or failed; also in a dry run", 5),
    ("`worker run`: another machine has taken its name; a unit must not start it again", 75),
    ("interrupted (Ctrl-C)", 130),
)
"""Condition -> exit code; docs/commands.md shows them and the tests of the commands hold them."""

CLASS = re.compile(r"[\w.]+:\w+")
COMMON = frozenset({"as_json", "config_file", "redis_url", "prefix", "log_format", "log_level"})
"""Parameters that are told once for all commands."""

INTRO = f"""# Commands

*Made from the commands by `python -m cogrid.cli.reference > docs/commands.md`; do not edit.*

Standard output is the answer, standard error everything else. In a pipe: no colour, no boxes, one
row a line with tabs between its cells, names in full. A task is named by the beginning of its id.

## JSON

With `--json` a command prints one document on standard output, and exactly one in every case:
errors are documents too. `--watch`, `--follow` and `chat` print one a line. Each begins with
`"schema": {SCHEMA}`. Fields are added, never renamed. Times are ISO 8601 in UTC, durations are
seconds, what is missing is null.

What a command that only looks may not read is named in `problems`, each with the line that lets its
user (on standard error without `--json`); the rest is shown, and nothing is concluded from what is
hidden. Labels of API keys, the server's own facts (INFO) and the search for left-over hashes (SCAN)
are extras: an answer counts as whole without them.

An error is

```json
{{"schema": {SCHEMA}, "error": {{"message": "what failed", "hint": "what to do", "exit_code": 4}}}}
```

## Options that most commands have

| option | |
|---|---|
| `--json` | One JSON document instead of tables. |
| `--config FILE` | Configuration file. |
| `--redis URL` | Redis or Valkey to use. |
| `--prefix TEXT` | What stands in front of every key. |
| `--log-format`, `--log-level` | How a daemon logs, and from which level on. |
| `--help` | The help of the command. |

## Exit codes

| condition | code |
|---|---|
"""


def reference() -> str:
    """The whole page."""
    exits = "".join(f"| {_cell(condition)} | {code} |\n" for condition, code in EXITS)
    rest = "\nWhere more than one applies, the worst one wins: 4, then 5, then 3.\n"
    return INTRO + exits + rest + "".join(_pages(root, ("cogrid",)))


def commands(
    group: click.Command = root, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, with the words that call it, in the order of the help."""
    if not isinstance(group, click.Group):
        yield path, group
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        yield from commands(found, (*path, name))


def _pages(group: click.Group, path: tuple[str, ...]) -> Iterator[str]:
    context = click.Context(group, info_name=" ".join(path))
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        words = (*path, name)
        if isinstance(found, click.Group):
            yield f"\n## {' '.join(words)}\n\n{_text(found.help or '')}\n"
            yield from _pages(found, words)
        else:
            yield _page(found, words)


def _page(command: click.Command, words: tuple[str, ...]) -> str:
    heading = "#" * len(words)
    context = click.Context(command, info_name=" ".join(words))
    usage = " ".join((*words, *command.collect_usage_pieces(context)))
    parts = [f"\n{heading} {' '.join(words)}", f"```\n{usage}\n```", _text(command.help or "")]
    rows = [row for option in command.params if (row := _option(option, context))]
    if rows:
        parts.append("| option | |\n|---|---|\n" + "\n".join(rows))
    answers = getattr(command.callback, ATTRIBUTE, ())
    if answers:
        parts.append(_documents(answers))
    return "\n\n".join(parts) + "\n"


def _option(option: click.Parameter, context: click.Context) -> str:
    """A row; "" for an argument and for what most commands have."""
    told = option.get_help_record(context)
    if told is None or isinstance(option, click.Argument) or option.name in COMMON:
        return ""
    return f"| `{_cell(told[0])}` | {_cell(told[1])} |"


def _text(help_text: str) -> str:
    """Help as Markdown: paragraphs as they are, ``\\b`` blocks as they are typed."""
    blocks = [block.strip("\n") for block in inspect.cleandoc(help_text).split("\n\n")]
    return "\n\n".join(_block(block) for block in blocks)


def _block(block: str) -> str:
    if not block.startswith("\b"):
        return block
    return f"```\n{block.removeprefix(chr(8)).strip(chr(10))}\n```"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _documents(answers: tuple[str, ...]) -> str:
    """Each document's class with its fields, then every class that they are made of, once."""
    told, seen = ["`--json`:"], set[type]()
    for answer in answers:
        if CLASS.fullmatch(answer):
            module, _, name = answer.partition(":")
            told += _classes(getattr(importlib.import_module(module), name), seen)
        else:
            told.append(answer)
    return "\n\n".join(told)


def _classes(kind: type, seen: set[type]) -> Iterator[str]:
    if kind in seen or not is_dataclass(kind):
        return
    seen.add(kind)
    hints = get_type_hints(kind)
    rows = "".join(f"| `{f.name}` | {_cell(_kind(hints[f.name]))} |\n" for f in fields(kind))
    told = " ".join(inspect.cleandoc(kind.__doc__ or "").split())
    yield f"**{kind.__name__}**: {told}\n\n| field | |\n|---|---|\n{rows}".rstrip("\n")
    for each in hints.values():
        for inner in _inside(each):
            yield from _classes(inner, seen)


_WORDS = {str: "text", int: "number", float: "number", bool: "true or false", Any: "any"}


def _kind(hint: Any) -> str:
    """A type as a reader of JSON knows it."""
    if hint in _WORDS:
        return _WORDS[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        told = [_kind(each) for each in inner if each is not types.NoneType]
        return " or ".join([*told, "null"] if types.NoneType in inner else told)
    if origin in (tuple, list):
        return f"list of {_kind(inner[0])}"
    if origin is dict:
        return f"object: {_kind(inner[1])} by name"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "one of " + ", ".join(str(each.value) for each in hint)
    if isinstance(hint, type):
        return hint.__name__
    return _kind(hint.__supertype__)  # a NewType


def _inside(hint: Any) -> Iterator[type]:
    if isinstance(hint, type):
        yield hint
    for inner in get_args(hint):
        yield from _inside(inner)


if __name__ == "__main__":
    sys.stdout.write(reference())
