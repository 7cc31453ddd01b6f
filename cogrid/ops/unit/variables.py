"""The variables of a unit's environment file: made from settings, and read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cogrid.ops.unit.settings import UnitSettings

FIELDS = {
    "COGRID_REDIS_URL": "redis_url",
    "COGRID_REDIS_USERNAME": "redis_username",
    "COGRID_REDIS_PASSWORD": "redis_password",
    "COGRID_REDIS_PREFIX": "prefix",
    "COGRID_CLIENT_API_KEY": "api_key",
}
"""Variable -> field of UnitSettings; all others are its ``environment``."""


def variables(settings: UnitSettings) -> tuple[tuple[str, str], ...]:
    """Those that are set, in a fixed order."""
    ours = ((name, getattr(settings, field)) for name, field in FIELDS.items())
    return (*((name, value) for name, value in ours if value), *settings.environment)


def read_variables(found: Mapping[str, str]) -> dict[str, Any]:
    """The fields that they set."""
    ours: dict[str, Any] = {FIELDS[name]: found[name] for name in FIELDS.keys() & found.keys()}
    more = tuple((name, value) for name, value in found.items() if name not in FIELDS)
    return {**ours, "environment": more}
