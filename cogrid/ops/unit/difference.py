"""What is another between a file that stands on a host and the one that would be written."""

from __future__ import annotations

import re
from difflib import unified_diff

from cogrid.ops.unit.environment import read_environment
from cogrid.ops.unit.seal import unsealed

HIDDEN = "***"
_IN_A_URL = re.compile(r"(://[^/\s@]*?:)[^/\s@]+@")
_NAMES = "(?:password|passwd|secret|token|key)"
_NAMED = re.compile(rf"(?i)({_NAMES}=|--[\w-]*{_NAMES} ).+")
"""A variable or an option of such a name; how far its value goes, its quotes would say, so all that
follows is hidden."""


def difference(path: str, old: str, new: str) -> tuple[str, ...]:
    """A unified diff, a line each; () where nothing but the checksum differs. Ours hold no secret,
    but what somebody else wrote may, and is shown without. old: "" where there is no such file."""
    return tuple(
        _without_secrets(line.rstrip("\n"))
        for line in unified_diff(
            unsealed(old).splitlines(keepends=True),
            unsealed(new).splitlines(keepends=True),
            f"{path} (there)" if old else "/dev/null",
            f"{path} (new)",
        )
    )


def _without_secrets(line: str) -> str:
    return _NAMED.sub(rf"\g<1>{HIDDEN}", _IN_A_URL.sub(rf"\g<1>{HIDDEN}@", line))


def changed_variables(old: str, new: str) -> tuple[str, ...]:
    """Which variables of an environment file are added, removed or have another value. Names only:
    the values are secrets."""
    before, after = read_environment(old), read_environment(new)
    return tuple(
        f"{'+' if name not in before else '-' if name not in after else '~'}{name}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )
