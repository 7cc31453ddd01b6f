"""From what was named on the command line to the machines that it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.model.host import Host
    from cogrid.model.snapshot import Snapshot
    from cogrid.remote.access import Access
    from cogrid.store.address import Address


def meant_hosts(
    config: Config, access: Access, hosts: tuple[Host, ...], workers: tuple[str, ...] = ()
) -> tuple[Host, ...]:
    """The machines. Redis is asked only where the configuration does not know enough."""
    from cogrid.ops.hosts.machines import look_up, meant

    return meant(
        hosts,
        workers,
        config.hosts,
        lambda: read_grid(config),
        lambda names: look_up(names, access.config),
    )


def read_grid(config: Config) -> Snapshot:
    """The grid now. UnreachableError."""
    from contextlib import closing

    from cogrid.cli.connect import open_store
    from cogrid.store.snapshot import read_snapshot

    with closing(open_store(config)) as store:
        return store.read(read_snapshot(store.keys, info=False, stray=True))


def redis_for_hosts(config: Config) -> Address | None:
    """The server that this side uses as other machines reach it; None where it is for this machine
    only."""
    from cogrid.cli.connect import address_for_hosts
    from cogrid.errors import UsageError

    try:
        return address_for_hosts(config)
    except UsageError:
        return None


def settings_for_hosts(config: Config, redis: Address | None) -> dict[str, str]:
    """What a worker on another machine needs of this side's configuration, as its environment."""
    said = {
        "COGRID_REDIS_URL": redis.shown if redis else "",
        "COGRID_REDIS_USERNAME": (redis and redis.username) or "",
        "COGRID_REDIS_PASSWORD": (redis and redis.password) or "",
        "COGRID_REDIS_PREFIX": config.redis.prefix,
        "COGRID_WORKER_ENGINE_KEY": config.worker.engine_key,
    }
    return {name: value for name, value in said.items() if value}
