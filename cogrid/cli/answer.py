"""How a command that looks ends: with what it found, and beside it what it could not read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, asdict
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from cogrid.cli.output import note, print_json
from cogrid.errors import Exit

if TYPE_CHECKING:
    from cogrid.store.client import Store


class Fact(Protocol):
    """Any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


T = TypeVar("T", bound=Fact)


def answer(
    store: Store, found: T, as_json: bool, show: Callable[[T], None], code: int = Exit.OK
) -> int:
    """Print it; the exit code. code: without what could not be read. show: prints it for people."""
    hidden = problems(store)
    if as_json:
        print_json({**asdict(found), "problems": hidden})
    else:
        show(found)
        for problem in hidden:
            note(f"warning: {problem}")
    return ended(store, code)


def problems(store: Store) -> list[str]:
    """What was hidden from our user, each with the line that lets it be read. HiddenError where
    that was everything."""
    if store.gaps is None:
        return []
    store.gaps.check()
    return [str(gap) for gap in store.gaps.all]


def ended(store: Store, code: int) -> int:
    """The exit code: the worst one wins."""
    from cogrid.store.gaps import EXTRAS

    return Exit.UNREACHABLE if store.unread - EXTRAS else code
