"""The configuration: a TOML file, then ``COGRID_*`` variables, then the command line.

``load`` gives a ``Config`` or raises one ``ConfigError`` with everything that is wrong.
"""

from cogrid.config.load import ConfigError, Effective, load, load_effective
from cogrid.config.settings import (
    Client,
    Config,
    Coordinator,
    Log,
    Redis,
    Worker,
    state_dir,
)

__all__ = [
    "Client",
    "Config",
    "ConfigError",
    "Coordinator",
    "Effective",
    "Log",
    "Redis",
    "Worker",
    "load",
    "load_effective",
    "state_dir",
]
