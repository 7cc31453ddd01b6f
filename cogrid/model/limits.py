"""Every time limit and count of the grid, with its default and where the number comes from."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in seconds (``_s``) or counts. docs/configuration.md tells them one by one.

    The detection times follow from them: a dead worker's task runs elsewhere within lease_s +
    tick_s + 1 s, a ghost's waiting tasks within ghost_after_s + tick_s + 1 s.
    """

    renew_s: float = 5.0
    lease_s: float = 20.0
    block_s: float = 5.0
    ghost_after_s: float = 15.0
    start_timeout_s: float = 300.0
    tick_s: float = 1.0
    pass_window_s: float = 3.0
    home_grace_s: float = 7.0
    quarantine_home_s: float = 60.0
    wedged_after_s: float = 10.0
    stuck_after_s: float = 30.0
    own_queue_wait_s: float = 1.0
    pool_wait_s: float = 2.0
    starve_after_s: float = 30.0
    attempts: int = 3
    recoveries: int = 3
    backoff_s: float = 1.0
    backoff_max_s: float = 30.0
    queue_timeout_s: float = 300.0
    orphan_grace_s: float = 60.0
    client_renew_s: float = 5.0
    background_delay_s: float = 0.5
    keepalive_s: float = 10.0
    submit_timeout_s: float = 2.0
    keep_s: float = 600.0
    load_s: float = 180.0
    prompt_s: float = 120.0
    prompt_tokens_per_s: float = 10.0
    idle_s: float = 30.0
    total_s: float = 3600.0
    drain_timeout_s: float = 120.0
    pull_stall_s: float = 60.0
    quarantine_after: int = 3
    quarantine_s: float = 10.0
    quarantine_max_s: float = 300.0
    queue_max: int = 1000
    body_max_bytes: int = 8 * 1024 * 1024

    def scaled(self, factor: float) -> Limits:
        """The same limits with every duration multiplied; for tests that cannot wait."""
        durations = {
            f.name: getattr(self, f.name) * factor
            for f in fields(self)
            if f.name.endswith("_s") and not f.name.endswith("_per_s")
        }
        return replace(self, **durations)
