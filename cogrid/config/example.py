"""The example file: every key with its default, all commented out, so that what is not changed
follows the defaults of later versions."""

from __future__ import annotations

import re
from importlib import resources

_VALUE = re.compile(r"^(\w+ = )", re.MULTILINE)


def example() -> str:
    """The text of a file that changes nothing."""
    text = (resources.files("cogrid.config") / "example.toml").read_text("utf-8")
    _, section, rest = text.partition("\n[redis]\n")
    told = (
        "# cogrid's configuration. Everything stands at its default and is commented out: take\n"
        "# the `# ` away from what you change. docs/configuration.md explains each key.\n"
    )
    return told + _VALUE.sub(r"# \1", section + rest)
