"""The configuration of routing; apart, because reading a configuration needs nothing else of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cogrid.rules.domain import Domain


@dataclass(frozen=True, slots=True)
class Routing:
    """domains: rules in order. pools: preferred first; pools that
    are not named come after them, by name. closed: pools that only take what asks for one of
    their workers by name."""

    domains: tuple[Domain, ...] = ()
    pools: tuple[str, ...] = ("gpu", "cpu")
    closed: tuple[str, ...] = ()
