"""A unit as it would be written, without a connection."""

from __future__ import annotations

import ipaddress

from cogrid.config import Config
from cogrid.errors import UsageError
from cogrid.model.host import Host, Role
from cogrid.ops.install.facts import Login
from cogrid.ops.install.order import ROOT, Order, unit_settings
from cogrid.ops.unit.render import Rendered, render
from cogrid.remote.target import parse_target
from cogrid.store.address import Address

NOBODY_YET = 1
"""Any user but root."""


def preview(host: Host, config: Config, unit: str, restart_s: int) -> Rendered:
    """What only the host knows is taken from its address: its name, and who logs in there. No
    secret is in the unit, so Redis is not asked for. UsageError."""
    target = parse_target(host.address)
    if host.role is Role.WORKER and not host.id and _is_number(target.name):
        raise UsageError(
            f"what {target.name} calls itself is not known without a connection",
            "give the worker's name: --id NAME",
        )
    root = target.user in ("", "root")
    login = Login(
        user=target.user or "root",
        uid=ROOT if root else NOBODY_YET,
        home="~",
        name=target.name,
        init="systemd",
        systemd=True,
        data_home="/home/USER/.local/share",
    )
    return render(
        unit_settings(host, login, Order(Address(), config, unit=unit, restart_s=restart_s))
    )


def _is_number(name: str) -> bool:
    """An IP address, of which no part is a name."""
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True
