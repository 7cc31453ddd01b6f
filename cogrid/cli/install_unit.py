"""``cogrid install-unit``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cogrid.cli.access import with_access
from cogrid.cli.consent import agreed, ask, with_consent
from cogrid.cli.documents import answers
from cogrid.cli.hosts_option import NO_HOST, ROLES, SCOPES, with_hosts
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_json, print_line
from cogrid.errors import Exit, UsageError
from cogrid.rules.counted import counted

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.model.host import Host
    from cogrid.ops.install.fleet import Lost
    from cogrid.ops.install.inspect import Job
    from cogrid.ops.install.order import Order
    from cogrid.remote.access import Access

OF_HOST = ("role", "scope", "id", "pool", "engine", "slots", "models", "user", "workdir", "python")
"""Options that are keys of a ``[[host]]``, and win over it."""

WHICH = ("role", "scope", "id", "python")
"""Those of them that say which unit is meant, and with what it is looked at."""


@click.command("install-unit")
@click.option("--role", type=click.Choice(ROLES), help="What it is to run (worker).")
@click.option(
    "--scope", type=click.Choice(SCOPES), help="A unit of the machine, or of your user there."
)
@click.option("--id", metavar="NAME", help="The worker's name; else the host's short name.")
@click.option("--pool", metavar="NAME", help="Its pool; else gpu or cpu, as the engine computes.")
@click.option("--engine", metavar="URL", help="As the host sees it; else the usual ports there.")
@click.option("--models", metavar="A,B", help="Offer only these; else all that the engine has.")
@click.option("--slots", type=int, metavar="N", help="Runs at once; else as many as the engine.")
@click.option("--user", metavar="NAME", help="Whom it runs as; else the SSH user; not root.")
@click.option("--workdir", metavar="DIR", help="Where it runs; it needs none.")
@click.option("--python", metavar="PATH", help="To install into; else the host's own.")
@click.option(
    "--restart-sec", type=click.IntRange(1, 3600), default=10, metavar="N",
    help="Seconds between an end and the next start (10).",
)  # fmt: skip
@click.option("--unit-name", default="", metavar="NAME", help="Else cogrid-worker@ID.service.")
@click.option(
    "--wheels", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
    help="Take cogrid and its packages from here, not from the package index.",
)  # fmt: skip
@click.option("--upgrade", is_flag=True, help="Install what runs here also over the same version.")
@click.option("--rollback", is_flag=True, help="Instead: use the cogrid again that ran before.")
@click.option("--replace", "replaces", is_flag=True, help="Replace a worker that runs there.")
@click.option("--force", is_flag=True, help="Write over a unit that was edited by hand.")
@click.option("--print", "only_print", is_flag=True, help="Print the unit; connect to nothing.")
@with_consent
@answers("cogrid.ops.install.fleet:Install")
@with_json
@with_access
@with_config
@with_hosts
def command(
    config: Config,
    hosts: tuple[Host, ...],
    access: Access,
    restart_sec: int,
    unit_name: str,
    wheels: Path | None,
    upgrade: bool,
    rollback: bool,
    replaces: bool,
    force: bool,
    only_print: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **of_host: Any,
) -> int:
    """Make machines workers over SSH: check, show what would be done, do it, prove it.

    A host needs Python 3.11 or later and systemd, and nothing else: cogrid and its packages go
    there over SSH. Nothing is touched before everything is checked. It is done when systemd calls
    the unit active and the grid has seen the worker poll; whatever fails before that is taken back,
    also when the connection breaks. Twice is once: what is as it should be is neither written nor
    restarted.

    With --rollback: the version that the unit ran before --upgrade is used again, and the unit is
    restarted once, after its worker has finished what it runs; unit and settings stay.

    Redis' password and other secrets go into a file there that only its owner may read.

    \b
    cogrid install-unit --host 192.168.0.41 --dry-run
    cogrid install-unit --host 192.168.0.41
    cogrid install-unit --host ops@ai-core:2222 --id ai-core --pool gpu --slots 2
    cogrid install-unit --host 192.168.0.41 --role reaper
    cogrid install-unit --all --upgrade --yes
    cogrid install-unit --host 192.168.0.41 --rollback
    cogrid install-unit --host 192.168.0.41 --print

    \b
    Exit code 5: some hosts were refused, failed or could not be asked.
    """
    from cogrid.ops.install.given import Wishes
    from cogrid.ops.install.order import Order, authorities

    chosen = _with_options(hosts, unit_name, of_host)
    if rollback:
        _only_back(
            {
                **of_host,
                "upgrade": upgrade,
                "wheels": wheels,
                "replace": replaces,
                "force": force,
                "print": only_print,
            }
        )
    if only_print:
        return _print_units(chosen, config, unit_name, restart_sec, as_json)
    from cogrid.cli.connect import address_for_hosts

    order = Order(
        address_for_hosts(config),
        config,
        Wishes(upgrade, replaces, force, rollback),
        unit_name,
        restart_sec,
        wheels,
        authorities(config),
    )
    return _install(chosen, order, access, dry_run, yes, as_json)


def _with_options(
    hosts: tuple[Host, ...], unit_name: str, of_host: dict[str, Any]
) -> tuple[Host, ...]:
    """The hosts as the options would have them. UsageError."""
    from cogrid.config.check import wrong
    from cogrid.model.names import normal_model

    if not hosts:
        raise NO_HOST
    given = {key: of_host[key] for key in OF_HOST if of_host[key] is not None}
    for key in ("id", "pool", "engine", "slots"):
        if key in given and (right := wrong(f"worker.{key}", given[key])):
            raise UsageError(f"--{key} is {given[key]!r}: {right}")
    if "models" in given:
        names = (name.strip() for name in given["models"].split(","))
        given["models"] = tuple(normal_model(name) for name in names if name)
    if len(hosts) > 1 and (unit_name or "id" in given):
        raise UsageError(
            "one name for several hosts: --id and --unit-name are for one",
            "leave them out, or write the hosts down as [[host]] with an id each",
        )
    return tuple(replace(host, **given) for host in hosts)


def _only_back(given: dict[str, Any]) -> None:
    """UsageError where something is asked that a way back does not do."""
    more = [name for name, value in given.items() if value and name not in WHICH]
    if more:
        raise UsageError(
            f"--rollback changes neither unit nor settings, and --{more[0]} would",
            "first go back, then install anew without --rollback",
        )


def _install(
    hosts: tuple[Host, ...], order: Order, access: Access, dry_run: bool, yes: bool, as_json: bool
) -> int:
    from functools import partial

    from cogrid.cli.installed import print_done, print_plans
    from cogrid.ops.install.fleet import install, look_at, planned
    from cogrid.ops.install.inspect import Job
    from cogrid.store.client import Store

    open_store = partial(Store.connect, order.redis, order.config.redis.prefix)
    found = look_at(hosts, order, access, open_store, _progress)
    if not dry_run and not order.wishes.replace and _may_replace(found):
        order = replace(order, wishes=replace(order.wishes, replace=True))
        found = look_at(hosts, order, access, open_store, _progress)
    shown = planned(found)
    todo = sum(isinstance(each, Job) and each.plan.is_todo for each in found)
    if dry_run or not todo:
        if as_json:
            print_json(shown)
        else:
            print_plans(shown, print_line)
        return shown.exit_code
    if not as_json:
        print_plans(shown, note)
    ask(f"Do this on {counted(todo, 'host')}?", yes)
    done = install(found, order, access, open_store, _progress)
    if as_json:
        print_json(done)
    else:
        print_done(done)
    return done.exit_code


def _may_replace(found: tuple[Job | Lost, ...]) -> bool:
    """Asked where workers run there already and somebody is there to ask."""
    from cogrid.ops.install.inspect import Job

    others = [
        f"{each.shown}: {other.what}"
        for each in found
        if isinstance(each, Job)
        for other in each.plan.others
    ]
    for line in others:
        note(line)
    return bool(others) and agreed("Replace what runs there already?")


def _progress(host: str, line: str) -> None:
    note(f"{host}: {line}")


def _print_units(
    hosts: tuple[Host, ...], config: Config, unit_name: str, restart_s: int, as_json: bool
) -> int:
    from cogrid.cli.output import print_piece
    from cogrid.ops.install.preview import preview

    units = tuple(preview(host, config, unit_name, restart_s) for host in hosts)
    if as_json:
        print_json({"units": [{"name": each.unit_name, "text": each.unit_text} for each in units]})
        return Exit.OK
    for each in units:
        note(f"{each.unit_path}, beside {each.environment_path} with the secrets")
        print_piece(each.unit_text)
    return Exit.OK
