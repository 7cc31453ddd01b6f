"""``cogrid chat``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from cogrid.cli.documents import answers
from cogrid.cli.options import in_config, with_config, with_json
from cogrid.cli.output import note, print_json, print_piece

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogrid.config import Config
    from cogrid.ops.ask import Done, Status, Text


@click.command()
@click.argument("prompt")
@click.option(
    "--model", default="auto", metavar="NAME", help="The model (auto: the grid's choice)."
)
@click.option("--worker", default="", metavar="NAME", help="The worker that should answer.")
@click.option("--url", metavar="URL", help="The coordinator (http://127.0.0.1:8700).")
@answers(
    "One document a line: `status` (where it waits or runs), `thinking` or `text` (a piece of the "
    "answer), and last `done` (model, worker, queue, task) with `finish_reason`."
)
@with_json
@with_config
@in_config(url="client.url")
def command(config: Config, prompt: str, model: str, worker: str, as_json: bool) -> None:
    """Ask the grid a question and stream the answer; "-" reads it from standard input.

    Where it waits and runs is told on standard error. With --json: one document a line.

    \b
    cogrid chat "Why is the sky blue?"
    cogrid chat --model gemma3:1b --worker esxi hello
    git diff | cogrid chat -
    """
    from cogrid.cli.connect import coordinator_of
    from cogrid.ops.ask import Question, ask

    said = sys.stdin.read() if prompt == "-" else prompt
    pieces = ask(*coordinator_of(config), Question(said, model, worker))
    if as_json:
        _print_documents(pieces)
    else:
        _print(pieces)


def _print(pieces: Iterable[Status | Text | Done]) -> None:
    from cogrid.ops.ask import Done, Status, Text

    told = last = ""
    try:
        for piece in pieces:
            match piece:
                case Status(description) if description != told:
                    told = description
                    note(description)
                case Text(text, thinking=False):
                    last = text
                    print_piece(text)
                case Done(ran, reason) if reason == "length":
                    last = _new_line(last)
                    note(f"cut off at the limit of tokens ({ran.get('model', '')})")
    finally:
        _new_line(last)


def _new_line(last: str) -> str:
    if last and not last.endswith("\n"):
        print_piece("\n")
    return ""


def _print_documents(pieces: Iterable[Status | Text | Done]) -> None:
    from cogrid.ops.ask import Done, Status, Text

    for piece in pieces:
        match piece:
            case Status(description):
                print_json({"status": description})
            case Text(text, thinking):
                print_json({"thinking" if thinking else "text": text})
            case Done(ran, reason):
                print_json({"done": ran, "finish_reason": reason})
