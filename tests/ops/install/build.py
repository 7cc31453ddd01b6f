"""What a host says of itself, with defaults for what a test does not care about: a good host with
nothing of cogrid on it."""

from __future__ import annotations

from typing import Any

from cogrid.config import load
from cogrid.model.host import Host
from cogrid.ops.install.facts import Account, Login, Look, Place, Reach, Running, Unit
from cogrid.ops.install.given import Delivery, Seen, Wishes
from cogrid.ops.install.order import Order, unit_settings
from cogrid.ops.install.plan import Plan, plan
from cogrid.ops.unit.render import Rendered, render
from cogrid.ops.unit.settings import UnitSettings
from cogrid.store.address import parse_address

URL = "redis://:s3cret@192.168.0.10:6379/0"
NEW = Delivery(
    coming="0.1.0-1f0f54a2", packages=29, packed_bytes=17_400_000, needed_bytes=90_000_000
)
THERE = Delivery(there="0.1.0-1f0f54a2")
UP = (
    "Id=cogrid-worker@esxi.service\nLoadState=loaded\nActiveState=active\nSubState=running\n"
    "UnitFileState=enabled\nFragmentPath=/etc/systemd/system/cogrid-worker@esxi.service\n"
)
ALIVE = Seen(alive=True, host="esxi", polls=True, runs=0, instance="one")


def a_login(**fields: Any) -> Login:
    """Root on esxi."""
    usual: dict[str, Any] = {
        "user": "root",
        "uid": 0,
        "home": "/root",
        "name": "esxi",
        "init": "systemd",
        "systemd": True,
        "data_home": "/root/.local/share",
    }
    return Login(**{**usual, **fields})


def an_order(url: str = URL, **fields: Any) -> Order:
    """With the server of the grid."""
    config = load("/dev/null", {"COGRID_REDIS_URL": url, **fields.pop("env", {})})
    return Order(parse_address(url), config, **fields)


def some_settings(login: Login | None = None, **fields: Any) -> UnitSettings:
    """Of the worker esxi; fields of its [[host]]."""
    return unit_settings(Host("192.168.0.41", **fields), login or a_login(), an_order())


def a_look(**fields: Any) -> Look:
    """Nothing is wrong, and nothing is installed."""
    usual: dict[str, Any] = {
        "clock_ms": 0,
        "redis": Reach("", ""),
        "engine": "http://127.0.0.1:11434",
        "account": Account(999, "/nonexistent"),
        "workdir": "",
        "place": Place(10_000_000_000, noexec=False, readonly=False, path="/opt"),
        "lingers": True,
        "unit": Unit(None, ""),
        "environment": None,
        "authorities": None,
        "workers": (),
    }
    return Look(**{**usual, **fields})


def installed(rendered: Rendered, **fields: Any) -> Look:
    """As a look finds it after an installation."""
    usual: dict[str, Any] = {
        "unit": Unit(rendered.unit_text, UP),
        "environment": rendered.environment_text,
    }
    return a_look(**{**usual, **fields})


def planned(
    look: Look,
    delivery: Delivery = NEW,
    *,
    settings: UnitSettings | None = None,
    login: Login | None = None,
    seen: Seen | None = None,
    **wishes: bool,
) -> Plan:
    """What would be done on that host."""
    login = login or a_login()
    settings = settings or some_settings(login)
    return plan(
        settings, render(settings), login, look, delivery, seen or Seen(), Wishes(**wishes),
        an_order().server,
    )  # fmt: skip


def a_process(words: str, **fields: Any) -> Running:
    """One that was started by hand."""
    return Running(
        **{"pid": 4242, "started": "17", "user": "ada", "words": tuple(words.split()), **fields}
    )


def a_unit(name: str, start: str, state: str = "active", enabled: str = "enabled") -> Running:
    """Another unit, whose program is a worker."""
    path = f"/etc/systemd/system/{name}"
    said = (
        f"Id={name}\nLoadState=loaded\nActiveState={state}\nSubState=running\n"
        f"UnitFileState={enabled}\nFragmentPath={path}\n"
    )
    text = f"[Service]\nExecStart={start}\n"
    return Running(unit=name, path=path, command=start, text=text, state=said)
