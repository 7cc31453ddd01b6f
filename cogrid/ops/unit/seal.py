"""The first line of what cogrid installs: a checksum of the rest. It tells a file that somebody has
edited from one that a later version of cogrid would merely write in another way."""

from __future__ import annotations

import hashlib
from enum import StrEnum

MARK = "# cogrid-unit: sha256:"


class Origin(StrEnum):
    """Who has written a file as it is."""

    INSTALLED = "as installed"
    EDITED = "edited"
    FOREIGN = "foreign"


def sealed(text: str) -> str:
    """The text with its checksum in front."""
    return f"{MARK}{_sum(text)}\n{text}"


def unsealed(text: str) -> str:
    """Without the first line, where that is a checksum."""
    first, _, rest = text.partition("\n")
    return rest if first.startswith(MARK) else text


def origin(text: str) -> Origin:
    """As it was installed, edited since, or not of cogrid's making."""
    first, _, rest = text.partition("\n")
    if not first.startswith(MARK):
        return Origin.FOREIGN
    return Origin.INSTALLED if first == f"{MARK}{_sum(rest)}" else Origin.EDITED


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
