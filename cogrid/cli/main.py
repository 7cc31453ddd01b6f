"""``cogrid``: finds the command, and is the only place that prints an error and exits.

Commands are loaded when they are called, so that ``--help`` and completion need neither redis nor
httpx nor paramiko.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import click

from cogrid import __version__
from cogrid.cli.lazy import LazyGroup, Members
from cogrid.cli.output import print_error
from cogrid.cli.streams import give_up, mend
from cogrid.errors import CogridError, Exit, UsageError

COMMANDS: Members = {
    "up": ("cogrid.cli.up", "Run the whole grid on this machine."),
    "chat": ("cogrid.cli.chat", "Ask the grid a question and stream the answer."),
    "status": ("cogrid.cli.status", "Workers, queues, tasks, reaper and Redis at a glance."),
    "diagnose": ("cogrid.cli.diagnose", "What is wrong, the evidence, and the command that mends."),
    "spof": ("cogrid.cli.spof", "Models that only one worker or host can serve."),
    "explain": ("cogrid.cli.explain", "The life of one task, and what it waits for."),
    "events": ("cogrid.cli.events", "What has happened, and what happens now."),
    "usage": ("cogrid.cli.usage", "Requests, tokens and seconds by user, key, model and worker."),
    "task": ("cogrid.cli.task", "Tasks: what waits, runs, has ended."),
    "dead": ("cogrid.cli.dead", "Tasks that were given up."),
    "queue": ("cogrid.cli.queue", "Queues: how deep, how quick, who serves them."),
    "model": ("cogrid.cli.model", "Models: which worker has which."),
    "route": ("cogrid.cli.route", "Where a prompt would go, and why."),
    "coordinator": ("cogrid.cli.coordinator", "The HTTP side of the grid."),
    "worker": ("cogrid.cli.worker", "The worker beside an engine."),
    "reaper": ("cogrid.cli.reaper", "Free what is stuck: once, as a dry run, or as a daemon."),
    "doctor": ("cogrid.cli.doctor", "A check-up: what is wrong here, and how to mend it."),
    "drill": ("cogrid.cli.drill", "A fire drill: make a fault, measure the recovery."),
    "install-unit": ("cogrid.cli.install_unit", "Make machines workers over SSH, and prove it."),
    "uninstall-unit": ("cogrid.cli.uninstall_unit", "Free machines of a unit, over SSH."),
    "sanity": ("cogrid.cli.sanity", "Ask hosts over SSH what keeps them from work."),
    "host": ("cogrid.cli.host", "Hosts: what runs there, its logs; start, stop, restart it."),
    "drift": ("cogrid.cli.drift", "What differs between hosts: versions, models, units."),
    "key": ("cogrid.cli.key", "API keys."),
    "config": ("cogrid.cli.config", "The configuration: show, check, begin one."),
    "completion": ("cogrid.cli.completion", "Completion for bash, zsh and fish."),
}
"""The commands in the order in which ``--help`` shows them."""


class _ReaderLeftError(Exception):
    """Nobody reads the pipe any more. Not an OSError, of which click would make exit code 1."""


class _Root(LazyGroup):
    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with _noticed():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _noticed():
            return super().invoke(ctx)


@contextlib.contextmanager
def _noticed() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise _ReaderLeftError from error


@click.group(
    cls=_Root,
    members=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="cogrid")
def command() -> None:
    """Join the language-model engines of your machines into one grid, and keep it running.

    \b
    Exit codes: 0 fine, 1 failed, 2 usage, 3 findings, 4 Redis or coordinator not reachable,
    5 some hosts failed, 130 interrupted.
    """


def main(argv: list[str] | None = None) -> None:
    """Run one command and exit with its code."""
    mend()
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def run(argv: list[str]) -> int:
    """Run one command; its exit code. Errors become one sentence, or one JSON document where
    ``--json`` was asked for; bugs stay tracebacks."""
    as_json = "--json" in argv
    try:
        code = command.main(argv, prog_name="cogrid", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else Exit.OK
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return Exit.USAGE
    except click.ClickException as error:
        return print_error(UsageError(_one_line(error), _usage_hint(error)), as_json)
    except CogridError as error:
        return print_error(error, as_json)
    except (KeyboardInterrupt, click.Abort):
        return print_error(_InterruptedError("interrupted"), as_json)
    except (_ReaderLeftError, BrokenPipeError):  # ``| head -1`` has read enough
        give_up(sys.stdout)
        return Exit.OK
    except OSError as error:
        if error.filename is None and error.errno is not None:
            return _unwritten(error)
        raise


class _InterruptedError(CogridError):
    exit_code = Exit.INTERRUPTED


def _one_line(error: click.ClickException) -> str:
    """Some messages of click are lists, with tabs and line ends."""
    return " ".join(error.format_message().split())


def _usage_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"see {context.command_path} --help" if context else ""


def _unwritten(error: OSError) -> int:
    """Said beside the answer, also where that was to be a document: it cannot be written."""
    give_up(sys.stdout)
    return print_error(CogridError(f"cannot write the answer: {error.strerror}"), as_json=False)


if __name__ == "__main__":
    main()
