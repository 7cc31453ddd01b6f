"""``cogrid model list``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.answer import answer
from cogrid.cli.documents import answers
from cogrid.cli.findings import print_finding
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import on_terminal, print_table
from cogrid.cli.size import size
from cogrid.cli.task_show import as_word
from cogrid.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogrid.config import Config
    from cogrid.ops.models import ModelList, ModelRow

DIGEST_CHARS = 12


@click.command()
@click.option("--model", default="", metavar="NAME", help="Only this model.")
@click.option(
    "--drift", is_flag=True, help="Only what is not the same everywhere; exit with 3 if any is."
)
@answers("cogrid.ops.models:ModelList")
@with_json
@with_config
def command(config: Config, model: str, drift: bool, as_json: bool) -> int:
    """Who has what: digest, size, whether it is loaded, and how much of it on the GPU.

    \b
    cogrid model list
    cogrid model list --drift
    cogrid model list --model gemma3:1b --json
    """
    from cogrid.cli.connect import open_view
    from cogrid.ops.models import models

    store = open_view(config)
    found = models(store, config.limits, model, drift)
    code = Exit.FINDINGS if drift and found.findings else Exit.OK
    return answer(store, found, as_json, _print, code)


def _print(found: ModelList) -> None:
    print_table(
        "Models",
        ("MODEL", "WORKER", "HOST", "STATE", "HOME", "LOADED", "GPU", "SIZE", "DIGEST", "WHY"),
        _rows(found.models),
        ("SIZE", "GPU", "LOADED"),
    )
    for finding in found.findings:
        print_finding(finding)


def _digest(digest: str | None) -> str | None:
    return digest[:DIGEST_CHARS] if digest and on_terminal() else digest


def _rows(models: Iterable[ModelRow]) -> Iterable[tuple[object, ...]]:
    for model in models:
        for copy in model.copies:
            yield (
                model.name,
                copy.worker,
                copy.host,
                copy.state,
                as_word(copy.home),
                "yes" if copy.loaded else "no",
                None if copy.gpu_share is None else f"{copy.gpu_share:.0%}",
                size(copy.size_bytes),
                _digest(copy.digest),
                copy.reason,
            )
        if not model.copies:
            known = model.homes is not None
            where = ("nowhere", "no", "no") if known else (None, None, None)
            yield (model.name, None, None, *where, None, None, None, None)
