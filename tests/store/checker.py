"""The invariants of what stands in Redis, as code that reads only Redis.

They hold between any two commands of a run without faults in the server; after one (a script that
was stopped, a failover) they hold again once a pass, a renewal and a claim have met what is left:
``mended=True`` then allows the ``repaired`` events that say so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import redis

from cogrid.model.names import queue_worker, token_instance
from cogrid.model.task import CHORES, TERMINAL, State
from cogrid.store.keys import KEYS, KeySpec
from tests.store.dump import Dump, Entry, dump, task_ids, value

BAND = 1 << 50
TURN = 1 << 25
END_N = 1 << 63
TERMINAL_EDGES = {str(state) for state in TERMINAL}
OVER_EDGES = {"reaped", "retried", "handed_back", "requeued", *TERMINAL_EDGES}
"""Events after which a run is over."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Everything that was read, as the checks want it. unarmed: shared queues whose marker was
    popped and that nobody has tended since."""

    state: Dump
    now_ms: int
    mended: bool = False
    unarmed: frozenset[str] = frozenset()

    def at(self, key: str, absent: Any) -> Any:
        return value(self.state, key, absent)

    def hash(self, key: str) -> dict[str, str]:
        found: dict[str, str] = self.at(key, {})
        return found

    @property
    def tasks(self) -> dict[str, dict[str, str]]:
        return {task: self.hash(f"task:{task}") for task in task_ids(self.state)}

    @property
    def queues(self) -> dict[str, dict[str, float]]:
        return {key: k.value for key, k in self.state.items() if key.startswith("tasks:")}

    @property
    def workers(self) -> dict[str, dict[str, str]]:
        heads = [k for k in self.state if k.startswith("worker:") and k.count(":") == 1]
        return {key.removeprefix("worker:"): self.hash(key) for key in heads}

    @property
    def held(self) -> dict[str, frozenset[str]]:
        """Every worker's ``:tasks``, also of workers that have no hash."""
        found = [k for k in self.state if k.startswith("worker:") and k.endswith(":tasks")]
        return {key.split(":")[1]: self.state[key].value for key in found}

    @property
    def chores(self) -> dict[str, frozenset[str]]:
        """What workers do beside their slots."""
        found = [k for k in self.state if k.startswith("worker:") and k.endswith(":chores")]
        return {key.split(":")[1]: self.state[key].value for key in found}

    def log(self, task: str) -> tuple[Entry, ...]:
        found: tuple[Entry, ...] = self.at(f"task:{task}:out", ())
        return found


def violations(
    client: redis.Redis,
    prefix: str = "",
    *,
    now_ms: int | None = None,
    mended: bool = False,
    unarmed: frozenset[str] = frozenset(),
) -> list[str]:
    """What does not hold, each as a sentence; [] where all is well. now_ms: the scripts' clock
    where it is not the server's."""
    if now_ms is None:
        seconds, micros = client.time()
        now_ms = int(seconds) * 1000 + int(micros) // 1000
    return faults(Grid(dump(client, prefix), now_ms, mended, unarmed))


def faults(grid: Grid) -> list[str]:
    """The same for a state that has been read."""
    return [fault for check in CHECKS for fault in check(grid)]


def keys_are_known(grid: Grid) -> Iterator[str]:
    for key, found in grid.state.items():
        spec = spec_of(key)
        if spec is None:
            yield f"{key} is in no list"
        elif spec.type != found.kind:
            yield f"{key} is a {found.kind}"
        elif not spec.permanent and found.ttl_ms == -1 and not renews_its_ttl(grid, key):
            yield f"{key} has no TTL"


def renews_its_ttl(grid: Grid, key: str) -> bool:
    """The next write gives it a TTL again, where a script was stopped before that."""
    return grid.mended and key.startswith(("wake:@", "usage:", "rate:", "worker:"))


def spec_of(key: str) -> KeySpec | None:
    """What keys.py says of a key."""
    return next((spec for spec in KEYS if spec.pattern.fullmatch(key)), None)


def open_tasks_stand_where_they_should(grid: Grid) -> Iterator[str]:
    queues, held = grid.queues, grid.held
    due, clients = grid.hash("grid:due"), grid.hash("grid:clients")
    finished, dead = grid.hash("grid:finished"), grid.hash("grid:dead")
    for task, told in grid.tasks.items():
        state = State(told["state"])
        places = [q for q, ids in queues.items() if task in ids]
        sets = grid.chores if told.get("kind") in CHORES else held
        places += [w for w, ids in sets.items() if task in ids]
        expected = {State.PENDING: [told["queue"]], State.RUNNING: [told.get("worker", "")]}
        if sorted(places) != expected.get(state, []):
            yield f"{task} is {state} and stands in {places}"
        if (task in due) != (not state.terminal):
            yield f"{task} is {state}, in grid:due: {task in due}"
        if (task in clients) != (not state.terminal and told["client"] == "1"):
            yield f"{task} is {state}, in grid:clients: {task in clients}"
        index = [name for name, ids in (("finished", finished), ("dead", dead)) if task in ids]
        if index != ([] if not state.terminal else ["dead" if state is State.DEAD else "finished"]):
            yield f"{task} is {state}, retained by {index}"
        if bool(told.get("token")) != (state is State.RUNNING):
            yield f"{task} is {state} with the token {told.get('token')!r}"


def no_entry_is_without_a_task(grid: Grid) -> Iterator[str]:
    tasks = grid.tasks
    indexes = {**grid.queues, **{f"worker:{w}:tasks": ids for w, ids in grid.held.items()}}
    indexes |= {f"worker:{w}:chores": ids for w, ids in grid.chores.items()}
    for name in ("grid:due", "grid:clients"):
        indexes[name] = grid.hash(name)
    for name, ids in indexes.items():
        yield from (f"{task} of {name} has no hash" for task in ids if task not in tasks)
    for key, found in grid.state.items():
        # A body may be handed over before its task is submitted; it has a TTL until then.
        if key.startswith("task:") and key.split(":")[1] not in tasks and found.ttl_ms == -1:
            yield f"{key} has no hash beside it"


def ttls_begin_with_the_end(grid: Grid) -> Iterator[str]:
    for task, told in grid.tasks.items():
        over = told["state"] in TERMINAL_EDGES
        for key in (f"task:{task}", f"task:{task}:out", f"task:{task}:body"):
            if key in grid.state and (grid.state[key].ttl_ms != -1) != over:
                yield f"{task} is {told['state']}, and {key} ends in {grid.state[key].ttl_ms} ms"
        body = f"task:{task}:body" in grid.state
        if body != (not over or told["state"] == "dead"):
            yield f"{task} is {told['state']}, its body is there: {body}"


def counts_are_kept(grid: Grid) -> Iterator[str]:
    for task, told in grid.tasks.items():
        attempts, recoveries = int(told.get("attempts", 0)), int(told.get("recoveries", 0))
        if recoveries > int(told["max_recoveries"]) or attempts > int(told["max_attempts"]):
            yield f"{task} has had {attempts} attempts and {recoveries} recoveries"


def logs_end_once(grid: Grid) -> Iterator[str]:
    for task, told in grid.tasks.items():
        log, over = grid.log(task), told["state"] in TERMINAL_EDGES
        ends = [entry for entry in log if entry.fields["kind"] == "end"]
        if len(ends) != over:
            yield f"{task} is {told['state']} and has {len(ends)} ends"
        elif over:
            last = log[-1]
            at = (last.run, last.n, last.fields["state"])
            if last is not ends[0] or at != (int(told.get("run", 0)), END_N, told["state"]):
                yield f"{task} is {told['state']} in run {told.get('run')}, and ends with {last}"


def text_is_whole_and_of_one_run(grid: Grid) -> Iterator[str]:
    for task, told in grid.tasks.items():
        runs: dict[int, list[int]] = defaultdict(list)
        for entry in grid.log(task):
            if entry.fields["kind"] == "text":
                runs[entry.run].append(entry.n)
        for run, numbers in runs.items():
            if numbers != list(range(1, len(numbers) + 1)):
                yield f"{task} has the entries {numbers} in run {run}"
        if told["streamed"] == "1" and len(runs) > 1:
            yield f"{task} is streamed and has text of the runs {sorted(runs)}"
        said = len(runs.get(int(told.get("run", 0)), ()))
        if told["state"] == "running" and int(told.get("n", 0)) != said:
            yield f"{task} has said {said} entries, and its hash knows {told.get('n')}"


def runs_begin_and_end(grid: Grid) -> Iterator[str]:
    """A run begins with ``claimed``; the next one only after the last was reset."""
    for task in grid.tasks:
        running = 0
        for entry in grid.log(task):
            kind = entry.fields["kind"]
            if kind == "claimed":
                if running and not grid.mended:
                    yield f"{task} was claimed in run {entry.run} while run {running} went on"
                running = entry.run
            elif kind == "text" and entry.run != running:
                yield f"{task} has text of run {entry.run} while {running or 'none'} goes on"
            elif kind in ("reset", "end"):
                if kind == "reset" and entry.run != running and not grid.mended:
                    yield f"{task} reset run {entry.run} while {running or 'none'} went on"
                running = 0


def slots_are_kept(grid: Grid) -> Iterator[str]:
    for worker, told in grid.workers.items():
        tokens = [grid.hash(f"task:{task}").get("token", "") for task in grid.held.get(worker, ())]
        mine = [token for token in tokens if token_instance(token) == told.get("instance")]
        revoked = grid.at(f"worker:{worker}:revoked", frozenset())
        if len(mine) + len(revoked) > int(told.get("slots", 0)):
            yield f"{worker} has {told.get('slots')} slots for {sorted(mine)} and {sorted(revoked)}"
        strange = [token for token in revoked if token_instance(token) != told.get("instance")]
        if strange:
            yield f"{worker} is {told.get('instance')} and cannot let go of {strange}"


def tokens_are_unique(grid: Grid) -> Iterator[str]:
    held: dict[str, list[str]] = defaultdict(list)
    for task, told in grid.tasks.items():
        if told.get("token"):
            held[told["token"]].append(task)
    yield from (f"{token} runs {tasks}" for token, tasks in held.items() if len(tasks) > 1)
    revoked = {t for key, k in grid.state.items() if key.endswith(":revoked") for t in k.value}
    if not grid.mended:
        yield from (f"{token} is revoked and runs" for token in revoked if token in held)


def queues_are_listed(grid: Grid) -> Iterator[str]:
    queues, listed = set(grid.queues), set(grid.hash("grid:queues"))
    if queues != listed:
        yield f"the queues {sorted(queues)} are listed as {sorted(listed)}"
    for key in grid.state:
        for kind in ("turns:", "wake:tasks:"):
            queue = key.removeprefix(kind.removesuffix("tasks:"))
            if key.startswith(kind) and queue not in queues:
                yield f"{key} has no queue"
    for queue in queues - grid.unarmed:
        if queue_worker(queue) is None and not grid.hash(f"wake:{queue}"):
            yield f"{queue} has no marker"


def turns_are_of_those_who_wait(grid: Grid) -> Iterator[str]:
    for queue, entries in grid.queues.items():
        turns = grid.hash(f"turns:{queue}")
        waiting: dict[tuple[str, str], list[int]] = defaultdict(list)
        for task, score in entries.items():
            told = grid.hash(f"task:{task}")
            band, turn = divmod(int(score), BAND)
            if told and str(band) != told["band"]:
                yield f"{task} is of band {told['band']} and stands in {band} of {queue}"
            if told:
                waiting[told["band"], told["user"]].append(turn // TURN)
        for field, said in turns.items():
            if not field.startswith("f:"):
                continue
            _, band_name, user = field.split(":", 2)
            theirs = waiting.get((band_name, user), [])
            if not theirs and not grid.mended:
                yield f"{user} has the turn {said} in {queue} and nothing waits"


def bytes_are_counted(grid: Grid) -> Iterator[str]:
    total = 0
    for task, told in grid.tasks.items():
        if told["state"] in TERMINAL_EDGES:
            continue
        total += int(told["size"])
        body = grid.at(f"task:{task}:body", "")
        if len(body.encode("utf-8", "surrogateescape")) != int(told["size"]):
            yield f"{task} has a body of {len(body)} bytes and counts {told['size']}"
    counted = int(grid.hash("grid:totals").get("queued_bytes", 0))
    if counted != total and not grid.mended:
        yield f"{counted} bytes are counted, {total} are there"


def history_is_possible(grid: Grid) -> Iterator[str]:
    """From the event log, as far as it goes back: one end, and nothing after it; between two
    claims of a task the first run was over; nothing had to be repaired."""
    ended: set[str] = set()
    running: dict[str, str] = {}
    for entry in grid.at("grid:events", ()):
        edge, task = entry.fields["edge"], entry.fields["task"]
        if edge == "repaired":
            if not grid.mended:
                yield f"repaired: {entry.fields}"
            continue
        if edge == "revived":
            ended.discard(task)
        if task in ended:
            yield f"{task} was {edge} after its end"
        if edge in ("claimed", "claimed_again"):
            if task in running and not grid.mended:
                yield f"{task} was claimed under {entry.fields['token']} beside {running[task]}"
            running[task] = entry.fields["token"]
        if edge in OVER_EDGES:
            running.pop(task, None)
        if edge in TERMINAL_EDGES:
            ended.add(task)


CHECKS: tuple[Callable[[Grid], Iterator[str]], ...] = (
    keys_are_known,
    open_tasks_stand_where_they_should,
    no_entry_is_without_a_task,
    ttls_begin_with_the_end,
    counts_are_kept,
    logs_end_once,
    text_is_whole_and_of_one_run,
    runs_begin_and_end,
    slots_are_kept,
    tokens_are_unique,
    queues_are_listed,
    turns_are_of_those_who_wait,
    bytes_are_counted,
    history_is_possible,
)
