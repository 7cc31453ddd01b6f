"""``cogrid diagnose``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from cogrid.cli.answer import answer
from cogrid.cli.documents import answers
from cogrid.cli.findings import code_of, print_findings
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.diagnose import Diagnosis

NONE = {
    "all": "nothing is wrong",
    "ghosts": "no ghosts: every worker that is alive works",
    "zombies": "no zombies: every run makes progress",
    "dead": "no worker is dead",
    "stuck": "nothing is stuck: everything that waits waits for somebody",
    "consistency": "consistent: lists and tasks agree",
}
"""What can be diagnosed, and what is said where nothing is found."""


@click.command()
@click.argument("what", type=click.Choice(tuple(NONE)), default="all")
@answers("cogrid.ops.diagnose:Diagnosis")
@with_json
@with_config
def command(config: Config, what: str, as_json: bool) -> int:
    """What is wrong, the evidence in numbers, and the command that mends it.

    Nothing is changed. Exit code 3 when something was found.

    \b
    ghosts       workers that look alive and are not, dead ones that hold work, hashes left over;
                 workers that take and never produce, whose claim loop is frozen, that nothing is
                 handed to, or whose name another machine asks for
    zombies      runs without progress, and workers that only make such
    dead         workers that are gone
    stuck        tasks that wait for nothing: no home, behind one without, or beside a free slot
    consistency  lists and tasks that do not agree
    all          everything; so without a word

    \b
    cogrid diagnose
    cogrid diagnose ghosts
    cogrid diagnose stuck --json | jq '.findings[].mend'
    """
    import time

    from cogrid.cli.connect import open_view
    from cogrid.ops.diagnose import About, diagnose

    store = open_view(config)
    found = diagnose(store, config.limits, About(what), time.sleep)
    return answer(store, found, as_json, partial(_print, what), code_of(found.findings))


def _print(what: str, found: Diagnosis) -> None:
    none = "nothing was found in what could be looked at" if found.notes else NONE[what]
    print_findings(found.findings, none)
    for each in found.notes:
        note(f"warning: {each}")
