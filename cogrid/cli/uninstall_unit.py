"""``cogrid uninstall-unit``."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from cogrid.cli.access import with_access
from cogrid.cli.consent import ask, with_consent
from cogrid.cli.documents import answers
from cogrid.cli.hosts_option import NO_HOST, ROLES, SCOPES, with_hosts
from cogrid.cli.installed import print_removals, print_removed
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_json, print_line
from cogrid.errors import UsageError
from cogrid.rules.counted import counted

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.model.host import Host
    from cogrid.remote.access import Access


@click.command("uninstall-unit")
@click.option("--role", type=click.Choice(ROLES), help="What it runs (worker).")
@click.option(
    "--scope", type=click.Choice(SCOPES), help="A unit of the machine, or of your user there."
)
@click.option(
    "--id", "worker_id", metavar="NAME", help="The worker's name; else the host's short name."
)
@click.option("--unit-name", default="", metavar="NAME", help="Else cogrid-worker@ID.service.")
@click.option("--force", is_flag=True, help="Also a unit that was edited, or is not cogrid's.")
@with_consent
@answers("cogrid.ops.install.uninstall:Uninstall")
@with_json
@with_access
@with_config
@with_hosts
def command(
    config: Config,
    hosts: tuple[Host, ...],
    access: Access,
    role: str | None,
    scope: str | None,
    worker_id: str | None,
    unit_name: str,
    force: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Take a unit away from machines over SSH: drain, stop, disable, remove.

    Only cogrid's own files go: the unit, its environment file, what the worker has kept, and cogrid
    itself where no other unit there uses it. Drop-ins stay, and what stays is said. The worker is
    struck off the grid. Interrupted, it can be begun again.

    \b
    cogrid uninstall-unit --host 192.168.0.41 --dry-run
    cogrid uninstall-unit --host 192.168.0.41
    cogrid uninstall-unit --host ai-core --role reaper --yes

    \b
    Exit code 5: some hosts were refused, failed or could not be asked.
    """
    from cogrid.cli.connect import address_of
    from cogrid.ops.install.given import Wishes
    from cogrid.ops.install.order import Order
    from cogrid.ops.install.uninstall import look_at, planned, uninstall
    from cogrid.store.client import Store

    if not hosts:
        raise NO_HOST
    if len(hosts) > 1 and (unit_name or worker_id):
        raise UsageError("one name for several hosts: --id and --unit-name are for one")
    chosen = tuple(
        replace(host, role=role or host.role, scope=scope or host.scope, id=worker_id or host.id)
        for host in hosts
    )
    order = Order(address_of(config), config, Wishes(force=force), unit_name)
    open_store = partial(Store.connect, order.redis, config.redis.prefix)
    found = look_at(chosen, order, access, open_store)
    shown = planned(found)
    todo = sum(host.state == "planned" for host in shown.hosts)
    if dry_run or not todo:
        print_json(shown) if as_json else print_removals(shown, print_line)
        return shown.exit_code
    if not as_json:
        print_removals(shown, note)
    ask(f"Do this on {counted(todo, 'host')}?", yes)
    done = uninstall(found, order, access, open_store, lambda host, line: note(f"{host}: {line}"))
    print_json(done) if as_json else print_removed(done)
    return done.exit_code
