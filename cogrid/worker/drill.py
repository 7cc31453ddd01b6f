"""A switch for drills: a claim loop that hangs while everything else goes on.

While the file that COGRID_TEST_HANG_CLAIMS names exists, nothing is claimed: the loop does not
turn, and no finish claims along. Renewals and runs go on. That is a worker which looks alive and
takes nothing, the ghost that the grid must notice; the drills and tests make one with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

HANG_ENV = "COGRID_TEST_HANG_CLAIMS"


class Hang:
    """Whether the claim loop should stand still."""

    def __init__(self, env: Mapping[str, str] = os.environ) -> None:
        self._file = env.get(HANG_ENV, "")

    def on(self) -> bool:
        """True while the file is there."""
        return bool(self._file) and os.path.exists(self._file)
