"""What can be set. docs/configuration.md and cogrid.example.toml tell every key, and tests compare
both with these classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cogrid.model.host import Host
from cogrid.model.limits import Limits
from cogrid.rules.routing import Routing


@dataclass(frozen=True, slots=True)
class Redis:
    """The server. url: "" for the one that ``cogrid up`` runs on this machine. It may hold a
    password, so it is shown as little as ``password`` is."""

    url: str = field(default="", repr=False)
    prefix: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    password_file: str = ""
    ca_file: str = ""


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The HTTP side. status_line: who gets Open WebUI's status events: ``headers``: clients that
    ask for them, ``always``, ``never``. status_stays: the last one stays above the answer.
    trusted_proxies: addresses or networks whose X-Forwarded-For is believed.
    trust_user_headers: also without an API key, X-OpenWebUI-User-Id says who the user is."""

    listen: str = "127.0.0.1:8700"
    access_log: bool = True
    status_line: str = "headers"
    status_stays: bool = True
    trusted_proxies: tuple[str, ...] = ()
    trust_user_headers: bool = False


@dataclass(frozen=True, slots=True)
class Client:
    """What ``cogrid chat`` and others that ask a coordinator use."""

    url: str = "http://127.0.0.1:8700"
    api_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker. "" and 0: found out at its start (id: the short host name; pool: gpu or cpu;
    engine: the usual ports; slots: what the engine runs in parallel). engine_key: the engine's own
    API key, if it wants one. models: (): all."""

    id: str = ""
    pool: str = ""
    engine: str = ""
    engine_key: str = field(default="", repr=False)
    engine_key_file: str = ""
    slots: int = 0
    models: tuple[str, ...] = ()
    state_dir: str = ""


@dataclass(frozen=True, slots=True)
class Log:
    """How the daemons log. format: ``text`` or ``json``."""

    format: str = "text"
    level: str = "info"


@dataclass(frozen=True, slots=True)
class Config:
    """Everything. limits are already multiplied by time_scale. file: the one that was read, or
    "" where there is none."""

    redis: Redis = field(default_factory=Redis)
    coordinator: Coordinator = field(default_factory=Coordinator)
    client: Client = field(default_factory=Client)
    worker: Worker = field(default_factory=Worker)
    log: Log = field(default_factory=Log)
    limits: Limits = field(default_factory=Limits)
    routing: Routing = field(default_factory=Routing)
    hosts: tuple[Host, ...] = ()
    time_scale: float = 1.0
    file: str = ""


def state_dir(config: Config, env: Mapping[str, str]) -> Path:
    """Where this machine keeps what must outlive a process: ``worker.state_dir``, else cogrid's
    place in the user's state directory."""
    if config.worker.state_dir:
        return Path(config.worker.state_dir).expanduser()
    base = env.get("XDG_STATE_HOME") or str(
        Path(env.get("HOME", "~")).expanduser() / ".local/state"
    )
    return Path(base) / "cogrid"
