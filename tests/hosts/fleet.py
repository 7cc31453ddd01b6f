"""Several hosts side by side, each with a worker beside an engine of its own."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from cogrid.model.host import Host as Named
from cogrid.ops.unit.render import Rendered, render
from cogrid.ops.unit.settings import UnitSettings
from tests.hosts.carried import PLACE, carry_cogrid
from tests.hosts.host import Host, bring_up
from tests.servers import VALKEY9, Server, launch

ENGINE_PORT = 11434
ENGINE = f"""\
[Service]
Environment=PYTHONPATH={PLACE}/lib
ExecStart=/usr/bin/python3 -m cogrid.engine.fault --port {ENGINE_PORT} --delay-ms 100
"""
"""Slow enough that something runs when it is asked for."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """server: reached by every host at address. config: an ssh_config that knows them all."""

    hosts: tuple[Host, ...]
    server: Server
    address: str
    config: Path

    @property
    def url(self) -> str:
        """The server as hosts see it, without its password."""
        return f"redis://{self.address}:{self.server.port}/0"

    @property
    def named(self) -> tuple[Named, ...]:
        """As an operator names them."""
        return tuple(Named(host.ip) for host in self.hosts)

    def settings(self, host: Host, password: str, **fields: object) -> UnitSettings:
        """Of its worker, which has the host's name."""
        made = UnitSettings(id=host.name, redis_url=self.url, redis_password=password)
        return replace(made, **fields)  # type: ignore[arg-type]


@contextlib.contextmanager
def a_fleet(places: dict[str, str], address: str, password: str, home: Path) -> Iterator[Fleet]:
    """Hosts (name -> address) that have cogrid, and a server at an address of this machine's."""
    with contextlib.ExitStack() as stack:

        def start(place: tuple[str, str]) -> Host:
            host = stack.enter_context(bring_up(*place))
            carry_cogrid(host)
            (host.root / "etc/cogrid").mkdir()
            host.write("/etc/systemd/system/ollama.service", ENGINE)
            return host

        with ThreadPoolExecutor(len(places)) as pool:
            hosts = tuple(pool.map(start, places.items()))
        more_of_this_machine(address, stack)
        server = launch(VALKEY9, password=password, settings={"bind": address})
        stack.callback(server.close)
        config = home / "ssh_config"
        config.write_text(_ssh_config(hosts))
        yield Fleet(hosts, server, address, config)


def put_unit(host: Host, settings: UnitSettings, drop_in: str = "", home: str = "") -> Rendered:
    """The unit's two files, as an installation writes them, and a drop-in. home: what ``~`` is."""
    files = render(settings)
    unit, environment = (
        path.replace("~", home) for path in (files.unit_path, files.environment_path)
    )
    host.write(unit, files.unit_text)
    host.write(environment, files.environment_text, 0o600)
    if drop_in:
        (host.root / f"{unit[1:]}.d").mkdir(exist_ok=True)
        host.write(f"{unit}.d/test.conf", drop_in)
    return files


def more_of_this_machine(address: str, stack: contextlib.ExitStack) -> None:
    words = (f"{address}/24", "dev", "cogrid0")
    subprocess.run(("ip", "address", "replace", *words), check=True)
    stack.callback(subprocess.run, ("ip", "address", "del", *words), check=False)


def _ssh_config(hosts: tuple[Host, ...]) -> str:
    """Each host's own, for that host."""
    parts = (
        (host.place / "ssh_config").read_text().replace("Host *", f"Host {host.ip}")
        for host in hosts
    )
    return "".join(parts)
