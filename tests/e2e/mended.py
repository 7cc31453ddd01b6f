"""The findings that ``test_mended`` brings about with processes."""

from __future__ import annotations

BY_PROCESSES = (
    "frozen_claims",
    "excluded",
    "refused_twin",
    "stuck_no_home",
    "no_home",
    "single_worker",
    "single_host",
    "lost_model",
    "left_with_one",
    "drift",
)
