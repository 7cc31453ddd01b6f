"""Rules left out one at a time, each with the view and the bounds that must show it.

A name says what the mutant does wrong. Where two rules cover for each other, only leaving out
both is an error: their names are joined with a plus, and `ENOUGH` lists those that are
harmless alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.model import configs
from tests.model.clients import Clients
from tests.model.explore import System
from tests.model.ghost import RULES, Ghost
from tests.model.machine import Machine
from tests.model.partial import Partial
from tests.model.turns import Queue
from tests.model.wake import Wake

View = Callable[[frozenset[str]], System[Any]]


@dataclass(frozen=True, slots=True)
class Mutant:
    """What is left out, where it shows, and as what: "violation", "stuck" or "spins"."""

    name: str
    view: View
    kind: str = "violation"

    @property
    def rules(self) -> frozenset[str]:
        return frozenset(self.name.split("+"))

    def system(self) -> System[Any]:
        return self.view(self.rules)


def _machine(config: str) -> View:
    bounds = {**configs.NARROW, **configs.QUICK}[config]
    return lambda rules: Machine(bounds, rules)


def _clients(mode: str) -> View:
    return lambda rules: Clients(mode, rules)


def _weak_duty(rules: frozenset[str]) -> Ghost:
    """A loop that claims only when it could take something, and is never solo or quarantined."""
    return Ghost(rules | {"poll_only_when_it_could_take"}, without=RULES)


def _backlog(rules: frozenset[str]) -> Ghost:
    return Ghost(rules, slots=1, backlog=True, without=RULES)


def _turns(rules: frozenset[str]) -> Queue:
    return Queue(rules, users="XY", bands=1)


def _bands(rules: frozenset[str]) -> Queue:
    return Queue(rules, users="XY", bands=2, submits=4)


CLAIM = (
    Mutant("two_step_claim", _machine("slots")),
    Mutant("claim_no_instance", _machine("takeover")),
    Mutant("claim_no_lease", _machine("takeover")),
    Mutant("claim_not_ready", _machine("takeover")),
    Mutant("claim_no_free", _machine("late")),
    Mutant("claim_repeat_takes_new", _machine("late")),
    Mutant("claim_repeat_needs_ready", _machine("drain"), "stuck"),
    Mutant("claim_nonce_unordered", _machine("late")),
    Mutant("claim_nonce_not_remembered", _machine("late")),
    Mutant("claim_keeps_queue", _machine("late")),
    Mutant("claim_avoid_enforced", _machine("count"), "stuck"),
)
RUN = (
    Mutant("append_no_n", _machine("late")),
    Mutant("append_no_token", _machine("pipe")),
    Mutant("append_gap", _machine("failover")),
    Mutant("finish_no_token", _machine("slots")),
    Mutant("finish_keeps_token", _machine("slots")),
    Mutant("finish_keeps_tasks", _machine("slots")),
    Mutant("cancel_keeps_token", _machine("slots")),
    Mutant("cancel_no_revoke", _machine("slots")),
    Mutant("cancel_terminal", _machine("slots")),
    Mutant("rerun_after_text", _machine("pipe")),
)
REAPER = (
    Mutant("reap_no_token", _machine("stale")),
    Mutant("reap_on_stale_read", _machine("stale")),
    Mutant("reap_no_revoke", _machine("slots")),
    Mutant("reap_keeps_tasks", _machine("slots")),
    Mutant("reap_no_dead", _machine("takeover"), "stuck"),
    Mutant("reap_no_instance", _machine("takeover"), "stuck"),
    Mutant("reap_not_counted", _machine("count")),
    Mutant("no_move", _machine("operator"), "stuck"),
    Mutant("no_pool_move", _machine("operator"), "stuck"),
    Mutant("move_keeps_old", _machine("operator")),
    Mutant("expire_running", _machine("pipe")),
    Mutant("homeless_never", _machine("takeover"), "stuck"),
)
WORKER = (
    Mutant("renew_no_instance", _machine("takeover")),
    Mutant("renew_held_unsettled", _machine("late")),
    Mutant("renew_held_any_instance", _machine("takeover")),
    Mutant("renew_no_held", _machine("failover"), "stuck"),
    Mutant("renew_no_revoked_cleanup", _machine("late"), "stuck"),
    Mutant("hello_no_lock", _machine("takeover")),
    Mutant("hello_drops_tasks", _machine("takeover")),
    Mutant("hello_keeps_revoked+renew_no_revoked_cleanup", _machine("takeover"), "stuck"),
    Mutant("hello_repeat_replaces_revoked", _machine("late hello")),
    Mutant("again_without_pairs", _machine("operator")),
    Mutant("again_new_instance", _machine("operator")),
    Mutant("again_clears_revoked", _machine("operator")),
    Mutant("again_forgets_claim", _machine("late DEL")),
    Mutant("no_revoke_without_hash", _machine("late hello DEL")),
    Mutant("revoked_by_id", _machine("slots")),
    Mutant("revoked_not_counted", _machine("slots")),
)
FAILOVER = (
    Mutant("failover_run_counter", _machine("failover")),
    Mutant("reader_no_policy", _machine("failover")),
    Mutant("reader_no_rollback", _machine("failover"), "stuck"),
    Mutant("absent_not_told", _machine("failover"), "stuck"),
    Mutant("no_hold", _machine("failover")),
    Mutant("hold_only_after_begin_pass", _machine("failover")),
    Mutant("superseded_exits", _machine("failover restart")),
)
CLIENTS = (
    Mutant("coordinator_counts", _clients("close")),
    Mutant("names_are_coordinators", _clients("close")),
    Mutant("attach_makes_lease", _clients("post")),
    Mutant("withdrawal_leaves_nothing", _clients("post"), "stuck"),
    Mutant("submit_no_lease", _clients("close"), "stuck"),
)
PARTIAL = (
    Mutant("hash_first", Partial),
    Mutant("hash_last", Partial),
    Mutant("old_first", Partial),
    Mutant("no_repair", Partial, "stuck"),
    Mutant("end_not_looked_at", Partial),
)
WAKE = (
    Mutant("rearm_when_nothing_taken", Wake, "spins"),
    Mutant("reaper_no_rearm+timeout_no_claim", Wake, "stuck"),
    Mutant("claim_never_rearms+reaper_no_rearm+timeout_no_claim", Wake, "stuck"),
)
GHOST = (
    Mutant("age_rule", _backlog),
    Mutant("no_registered_stamp+ready_no_freed", Ghost),
    Mutant("drain_no_poll+ready_no_freed", Ghost),
    Mutant("no_hold_for_ghosts", Ghost),
    Mutant("poll_only_when_it_could_take", Ghost),
    Mutant("finish_no_freed", _weak_duty),
    Mutant("confirm_no_freed", _weak_duty),
)
TURNS = (
    Mutant("order_of_arrival", _turns),
    Mutant("newcomer_starts_at_one", _turns),
    Mutant("f_not_moved_on", _turns),
    Mutant("v_not_moved_on", _turns),
    Mutant("f_never_dropped", _turns),
    Mutant("f_dropped_early", _turns),
    Mutant("leaving_keeps_f", _turns),
    Mutant("returns_at_the_end", _turns),
    Mutant("returns_with_a_new_number", _turns),
    Mutant("band_ignored", _bands),
)
MUTANTS = (
    *CLAIM,
    *RUN,
    *REAPER,
    *WORKER,
    *FAILOVER,
    *CLIENTS,
    *PARTIAL,
    *WAKE,
    *GHOST,
    *TURNS,
)

# Belts that have braces: leaving out one of the two costs time at most.
ENOUGH = (
    Mutant("hello_keeps_revoked", _machine("takeover")),
    Mutant("reaper_no_rearm", Wake),
    Mutant("timeout_no_claim", Wake),
    Mutant("claim_never_rearms", Wake),
    Mutant("no_registered_stamp", Ghost),
    Mutant("ready_no_freed", Ghost),
    Mutant("drain_no_poll", Ghost),
    Mutant("finish_no_freed", Ghost),
    Mutant("confirm_no_freed", Ghost),
)
