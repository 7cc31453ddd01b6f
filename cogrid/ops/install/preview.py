"""A unit as it would be written, without a connection."""

from __future__ import annotations

from cogrid.config import Config
from cogrid.model.host import Host
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
