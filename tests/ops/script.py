"""What happens while a verb waits: a step at each of its pauses."""

from __future__ import annotations

from collections.abc import Callable


class Meanwhile:
    """Given to a verb as its ``sleep``. Each pause is one step; a pause too many fails the test."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._steps = list(steps)

    def __call__(self, _: float) -> None:
        assert self._steps, "the verb waits for something that does not come"
        self._steps.pop(0)()
