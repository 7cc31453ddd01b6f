"""The configuration: a TOML file, then ``COGRID_*`` variables, then the command line.

``load`` gives a ``Config`` or raises one ``ConfigError`` with everything that is wrong.
"""

from cogrid.config.load import ConfigError, load
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
    "Log",
    "Redis",
    "Worker",
    "load",
    "state_dir",
]
