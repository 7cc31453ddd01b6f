"""The bounds that are explored: small ones in every run of the tests, the full ones as proof."""

from __future__ import annotations

from tests.model.state import Budget, Config

ONE_WORKER = (("A", 1),)
SAME_NAME = (("A", 1), ("A", 2))

PROOF: dict[str, Config] = {
    "run": Config(
        attempts=2,
        recoveries=2,
        texts=2,
        attempts_fail=True,
        submit_to=("own A", "pool A"),
        budget=Budget(crash=1, start=1, lost_reply=1, zombie=1, freeze=1, cancel=1),
    ),
    "again": Config(
        attempts=2,
        recoveries=1,
        texts=0,
        stream=False,
        attempts_fail=True,
        submit_to=("own A", "pool A"),
        budget=Budget(crash=1, start=1, lost_reply=1, zombie=1, hand_back=1),
    ),
    "operator": Config(
        recoveries=2,
        attempts_fail=True,
        submit_to=("own A", "pool A"),
        budget=Budget(crash=1, start=1, delete=1, freeze=1, forget=1, expire=1, cancel=1),
    ),
    "drain": Config(
        tasks=2,
        slots=(1, 1),
        submit_to=("own A",),
        budget=Budget(drain=1, leave=1, start=1, lost_reply=1),
    ),
    "takeover": Config(
        slots=(1,),
        processes=SAME_NAME,
        recoveries=2,
        attempts_fail=True,
        submit_to=("own A", "pool A"),
        budget=Budget(crash=1, start=1, freeze=2, lost_reply=1, cancel=1, zombie=1),
    ),
    "late": Config(
        tasks=2,
        slots=(1,),
        processes=ONE_WORKER,
        recoveries=2,
        budget=Budget(late_copy=1, lost_reply=1, cancel=1, freeze=1, crash=1, start=1),
    ),
    "late DEL": Config(
        tasks=2,
        slots=(1,),
        processes=ONE_WORKER,
        texts=0,
        budget=Budget(late_copy=1, lost_reply=1, delete=1, cancel=1),
    ),
    "late hello": Config(
        tasks=2,
        slots=(1,),
        processes=ONE_WORKER,
        texts=0,
        budget=Budget(late_copy=1, lost_reply=1, crash=1, start=1, delete=1, cancel=1),
    ),
    "stale": Config(
        recoveries=2,
        budget=Budget(stale_reap=1, freeze=2, crash=1, start=1, cancel=1),
    ),
    "slots": Config(
        slots=(2,),
        processes=ONE_WORKER,
        recoveries=3,
        stream=False,
        budget=Budget(zombie=2, lost_reply=1, cancel=1, freeze=1),
    ),
    "two": Config(
        tasks=2,
        slots=(2, 1),
        texts=0,
        stream=False,
        budget=Budget(zombie=1, lost_reply=1, cancel=1, crash=1, start=1),
    ),
    "failover": Config(texts=2, follows=True, budget=Budget(failover=1, lost_reply=1, expire=1)),
    "failover restart": Config(
        slots=(1,),
        processes=ONE_WORKER,
        recoveries=2,
        follows=True,
        budget=Budget(failover=1, crash=1, start=1),
    ),
}

QUICK: dict[str, Config] = {
    "run": Config(
        recoveries=1,
        texts=1,
        submit_to=("own A", "pool A"),
        budget=Budget(crash=1, start=1, lost_reply=1, zombie=1, freeze=1),
    ),
    "again": PROOF["again"],
    "operator": Config(
        recoveries=2,
        submit_to=("own A",),
        budget=Budget(crash=1, delete=1, freeze=1, forget=1, cancel=1),
    ),
    "late hello DEL": Config(
        slots=(1,),
        processes=ONE_WORKER,
        texts=0,
        budget=Budget(late_copy=1, crash=1, start=1, delete=1, cancel=1),
    ),
    "takeover": Config(
        slots=(1,),
        processes=SAME_NAME,
        submit_to=("own A",),
        budget=Budget(crash=1, start=1, freeze=2, cancel=1),
    ),
    "drain": Config(
        submit_to=("own A",),
        budget=Budget(drain=1, leave=1, start=1, lost_reply=1),
    ),
    "late": Config(
        tasks=2,
        slots=(1,),
        processes=ONE_WORKER,
        budget=Budget(late_copy=1, lost_reply=1, cancel=1),
    ),
    "late DEL": PROOF["late DEL"],
    "late hello": Config(
        slots=(1,),
        processes=ONE_WORKER,
        texts=0,
        budget=Budget(late_copy=1, crash=1, start=1, cancel=1),
    ),
    "slots": PROOF["slots"],
    "stale": Config(budget=Budget(stale_reap=1, freeze=2)),
    "two": Config(
        tasks=2,
        slots=(2, 1),
        texts=0,
        stream=False,
        budget=Budget(lost_reply=1, cancel=1, crash=1),
    ),
    "failover": Config(texts=2, follows=True, budget=Budget(failover=1, expire=1)),
    "failover restart": PROOF["failover restart"],
}

# These say little on their own, but some mutants show themselves nowhere sooner.
NARROW: dict[str, Config] = {
    "pipe": Config(
        texts=2,
        attempts_fail=True,
        submit_to=("own A", "pool A"),
        budget=Budget(zombie=1, lost_reply=1, expire=1),
    ),
    "count": Config(
        slots=(1,),
        processes=ONE_WORKER,
        texts=0,
        stream=False,
        budget=Budget(zombie=4),
    ),
}
