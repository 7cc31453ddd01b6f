"""``cogrid worker show``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from cogrid.cli.answer import answer
from cogrid.cli.documents import answers
from cogrid.cli.duration import shown
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import print_facts, print_table
from cogrid.cli.size import size
from cogrid.cli.task_show import as_word

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.workers import OfferFacts, WorkerFacts

TABLES = ("models", "runs", "report")


@click.command()
@click.argument("worker")
@answers("cogrid.ops.workers:WorkerFacts")
@with_json
@with_config
def command(config: Config, worker: str, as_json: bool) -> int:
    """Everything about one worker: its lease, its stamps, its models and what it runs.

    \b
    cogrid worker show esxi
    """
    from cogrid.cli.connect import open_view
    from cogrid.ops.workers import worker_facts

    store = open_view(config)
    return answer(store, worker_facts(store, config.limits, worker), as_json, _print)


def _print(found: WorkerFacts) -> None:
    facts = {name: value for name, value in asdict(found).items() if name not in TABLES}
    print_facts((name, _fact(name, value)) for name, value in (facts | found.report).items())
    print_table(
        "Models",
        ("MODEL", "STATE", "HOME", "LOADED", "GPU", "SIZE", "SUPPORTS", "WHY"),
        map(_model, found.models),
        ("SIZE", "GPU", "SUPPORTS"),
    )
    if found.runs:
        print_table(
            "Runs",
            ("TASK", "MODEL", "USER", "AGE"),
            ((run.id, run.model, run.user, shown(run.age_s)) for run in found.runs),
        )


def _fact(name: str, value: Any) -> object:
    return size(value) if name.endswith("_bytes") else as_word(value)


def _model(model: OfferFacts) -> tuple[object, ...]:
    return (
        model.name,
        model.state,
        as_word(model.home),
        as_word(model.loaded),
        None if model.gpu_share is None else f"{model.gpu_share:.0%}",
        size(model.size_bytes),
        ", ".join(model.supports),
        model.reason,
    )
