"""``cogrid dead list``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.answer import answer
from cogrid.cli.documents import answers
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_table

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.tasks import Letters


@click.command()
@click.option("--model", default="", metavar="NAME", help="Only of this model.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=100, metavar="N", help="At most so many (100)."
)
@answers("cogrid.ops.tasks:Letters")
@with_json
@with_config
def command(config: Config, model: str, limit: int, as_json: bool) -> int:
    """Tasks that were given up, the latest first, with why and until when they are kept.

    \b
    cogrid dead list
    cogrid dead list --model gemma3:1b --json
    """
    from cogrid.cli.connect import open_view
    from cogrid.ops.tasks import dead_letters

    store = open_view(config)
    return answer(store, dead_letters(store, model, limit), as_json, _print)


def _print(found: Letters) -> None:
    print_table(
        "Dead letters",
        ("TASK", "MODEL", "WORKER", "USER", "DIED", "KEPT UNTIL", "BYTES", "TRIES", "WHY"),
        (
            (
                letter.id,
                letter.model,
                letter.worker,
                letter.user,
                letter.died_at,
                letter.kept_until,
                letter.body_bytes,
                f"{letter.attempts}+{letter.recoveries}",
                letter.error,
            )
            for letter in found.letters
        ),
        ("TRIES", "BYTES", "KEPT UNTIL", "DIED"),
    )
    if found.total > len(found.letters):
        note(f"{len(found.letters)} of {found.total} are shown: --limit shows more")
