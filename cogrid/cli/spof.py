"""``cogrid spof``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from cogrid.cli.answer import answer
from cogrid.cli.consent import with_consent
from cogrid.cli.documents import answers
from cogrid.cli.findings import code_of, print_findings
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import print_gap, print_line, print_table

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.spof import Spof, Without


@click.command()
@click.option("--model", metavar="NAME", help="Only this model.")
@click.option("--without", "gone", metavar="WORKER", multiple=True, help="What if it were gone?")
@click.option(
    "--without-host", "hosts", metavar="HOST", multiple=True, help="What if the host were gone?"
)
@click.option("--fix", "mend", is_flag=True, help="Pull what is missing, so that none is left.")
@with_consent
@answers("cogrid.ops.spof:Spof", "cogrid.ops.spof:Without", "cogrid.ops.fix:Fixed")
@with_json
@with_config
def command(
    config: Config,
    model: str | None,
    gone: tuple[str, ...],
    hosts: tuple[str, ...],
    mend: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Models that only one worker or one host can serve, or none: single points of failure.

    With --without and --without-host: which models and which queued tasks would have no home, or
    only one. Exit code 3 when there is something to say.

    With --fix: the smallest set of pulls after which two hosts serve every model, as far as disks
    and memory allow it; shown, confirmed, and done with progress. Else nothing is changed.

    \b
    cogrid spof
    cogrid spof --model gemma3:1b
    cogrid spof --without esxi
    cogrid spof --fix --dry-run
    cogrid spof --without-host 192.168.0.41 --without-host ai-core
    """
    from cogrid.cli.connect import open_store, open_view
    from cogrid.errors import UsageError
    from cogrid.ops.spof import spof, without

    if model and (gone or hosts):
        raise UsageError("--model and --without exclude each other", "leave one of them out")
    if (dry_run or yes) and not mend:
        raise UsageError("--dry-run and --yes belong to --fix", "add --fix, or leave them out")
    if mend and (gone or hosts):
        raise UsageError("--fix and --without exclude each other", "leave one of them out")
    if mend:
        from cogrid.cli.spof_fix import fix

        return fix(open_store(config), config, model, dry_run, yes, as_json)
    store = open_view(config)
    if gone or hosts:
        lost = without(store, config.limits, gone, hosts)
        return answer(store, lost, as_json, _print_without, code_of(lost.findings))
    found = spof(store, config.limits, model)
    return answer(store, found, as_json, partial(_print, model), code_of(found.findings))


def _print(model: str | None, found: Spof) -> None:
    from cogrid.cli.spof_fix import NO_MODEL

    what = f"{model} is" if model else "every model is"
    none = f"no single point of failure: {what} on two hosts" if found.models else NO_MODEL
    print_findings(found.findings, none)
    if found.losses:
        print_gap()
        print_table(
            "Whose loss takes models away",
            ("LOSS", "NAME", "WORKERS", "MODELS"),
            ((e.kind, e.name, ", ".join(e.workers), ", ".join(e.models)) for e in found.losses),
        )


def _print_without(found: Without) -> None:
    names = ", ".join(found.workers) or "nobody"
    none = f"without {names} no further model would be lost or left with one worker"
    print_findings(found.findings, none)
    print_line(
        f"without {names}: {found.running} running would be taken back, {found.moved} waiting in "
        "their own queues would move"
    )
