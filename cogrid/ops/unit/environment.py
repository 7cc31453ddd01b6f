"""Environment files (systemd.exec(5), EnvironmentFile=).

A value stands in double quotes with a backslash before ``"``, ``\\``, ``$`` and `````: systemd and
``sh`` read that alike, so a file can be tried out with ``set -a; . FILE``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from cogrid.ops.unit.quoting import BLANK

_SPECIAL = re.compile(r'(["\\$`])')
_LINE = re.compile(r"^(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>.*)$")


def environment_text(variables: Iterable[tuple[str, str]]) -> str:
    """A line for each."""
    return "".join(f'{name}="{_SPECIAL.sub(_BACKSLASH, value)}"\n' for name, value in variables)


def read_environment(text: str) -> Mapping[str, str]:
    """Name -> value, of files of ours; of what somebody else wrote, the plain lines."""
    found = (_LINE.match(line.strip(BLANK)) for line in text.split("\n"))
    return {line["name"]: _value(line["value"]) for line in found if line}


_BACKSLASH = r"\\\1"


def _value(text: str) -> str:
    text = text.strip(BLANK)
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r'\\(["\\$`])', r"\1", text[1:-1])
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    return re.sub(r"\\(.)", r"\1", text)
