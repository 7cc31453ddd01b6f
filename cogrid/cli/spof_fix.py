"""``cogrid spof --fix``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cogrid.cli.chores import carry_out, print_outcome
from cogrid.cli.consent import ask
from cogrid.cli.findings import print_finding
from cogrid.cli.output import note, print_json, print_line
from cogrid.cli.size import size
from cogrid.errors import Exit
from cogrid.rules.counted import counted

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.rules.fix import Fix
    from cogrid.store.client import Store

NO_MODEL = "no worker has told of a model yet, so there is none to lose; see cogrid status"


def fix(
    store: Store, config: Config, model: str | None, dry_run: bool, yes: bool, as_json: bool
) -> int:
    """Show the pulls, ask, have them done, and look again; the exit code."""
    from cogrid.ops.fix import Fixed, plan_fix

    plan = plan_fix(store, config.limits, model)
    if dry_run or not plan.pulls:
        if as_json:
            print_json(Fixed(dry_run, None, plan.pulls, plan.unfixed, plan.exact))
        else:
            _say(plan, print_line)
        return Exit.FINDINGS if plan.unfixed else Exit.OK
    if not as_json:
        _say(plan, note)
    count = len(plan.pulls)
    ask(f"Have {counted(count, 'pull')} done?", yes)
    return _carry_out(store, config, plan, model, as_json)


def _carry_out(store: Store, config: Config, plan: Fix, model: str | None, as_json: bool) -> int:
    from cogrid.ops.fix import Fixed, left, wanted
    from cogrid.ops.operator import operator

    chores = carry_out(store, wanted(plan), as_json)
    failed = {step.model for step in chores if not step.done}
    unfixed = {each.model for each in plan.unfixed}
    pulled = {pull.model for pull in plan.pulls} - failed - unfixed
    found = left(store, config.limits, model, pulled)
    if as_json:
        by = operator()
        print_json(Fixed(False, by, plan.pulls, plan.unfixed, plan.exact, chores, found))
    else:
        print_outcome(chores)
        for finding in found:
            print_finding(finding)
        if not found:
            print_line("no single point of failure is left")
    if failed:
        return Exit.FAILED
    return Exit.FINDINGS if found else Exit.OK


def _say(plan: Fix, say: Callable[[object], None]) -> None:
    if not plan.pulls and not plan.unfixed:
        say("nothing to fix: every model is on two hosts" if plan.models else NO_MODEL)
    for pull in plan.pulls:
        amount = f" ({size(pull.size_bytes)})" if pull.size_bytes else ""
        say(f"pull {pull.model}{amount} on {pull.worker}, host {pull.host}")
    for each in plan.unfixed:
        say(f"not on two hosts: {each.model}: {each.why}")
    if not plan.exact:
        say("placed one after another: a smaller set may exist")
