"""What a pass of the reaper costs the server, with 100,000 runs in it.

The runs are written straight into the server, as their scripts would leave them: making them one
by one would take longer than everything that is measured. Server time is the sum of what the slow
log, told to log everything, has of the pass's commands.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import redis

from benchmarks.server import PREFIX, Server
from benchmarks.table import Row, row
from cogrid.model.limits import Limits
from cogrid.reaper.one_pass import one_pass
from cogrid.rules.routing import Routing
from cogrid.store.client import Store
from cogrid.store.keys import Keys

GOAL_IDLE_MS = 1.0
GOAL_LONGEST_MS = 20.0
SLOTS = 5000
"""Runs a worker. A pass reads every worker, 3 us each, and no run; 100,000 runs have 20 workers."""
HOUR_MS = 3_600_000
MOST_PASSES = 100
ENTRIES = 1_000_000
"""Of the slow log."""
SETTLE_S = 10.0
OWN = (b"SLOWLOG", b"CONFIG")
"""What the measuring itself asks."""
ENDS = ("requeue", "fail", "dead")

# A pass holds back for one lease on a server that it has not seen before; all else is as it is.
LIMITS = replace(Limits(), lease_s=0.2)
ROUTING = Routing()

_SEED = """
local P, worker, first, count = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local far_ms = tonumber(ARGV[5])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function int(number) return string.format('%.0f', number) end
redis.call('ZADD', P .. 'grid:workers', int(now + far_ms), worker)
redis.call('HSET', P .. 'worker:' .. worker, 'worker_id', worker, 'instance', worker .. 'i', 'lock',
  'l', 'host', worker, 'pool', 'cpu', 'slots', ARGV[6], 'version', '0', 'engine', 'mock', 'state',
  'ready', 'claim', '1', 'beat_at', int(now), 'polled_at', int(now), 'hello_at', int(now),
  'freed_at', int(now), 'registered_at', '2026-06-07T02:39:00Z', 'models', ARGV[7], 'supports',
  '["cpu_inference"]')
redis.call('ZADD', P .. 'grid:models', int(now), 'gemma3:1b')
for i = first, first + count - 1 do
  local id = 'run' .. i
  redis.call('HSET', P .. 'task:' .. id, 'kind', 'chat', 'state', 'running', 'queue',
    'tasks:cpu:shared:gemma3:1b', 'model', 'gemma3:1b', 'domain', 'general', 'user', 'bench',
    'band', '0', 'size', '2', 'queue_timeout_ms', '300000', 'keep_ms', '600000', 'client', '0',
    'followers', '', 'submitted_at', int(now), 'queued_at', int(now), 'claimed_at', int(now),
    'streamed', '0', 'announce', '0', 'on_close', 'keep', 'key', '', 'max_attempts', '3',
    'max_recoveries', '3', 'run', int(now), 'n', '0', 'worker', worker, 'token',
    worker .. 'i:1:' .. i)
  redis.call('SET', P .. 'task:' .. id .. ':body', '{}')
  redis.call('XADD', P .. 'task:' .. id .. ':out', int(now) .. '-0', 'kind', 'claimed', 'worker',
    worker, 'queue', 'tasks:cpu:shared:gemma3:1b')
  redis.call('SADD', P .. 'worker:' .. worker .. ':tasks', id)
  redis.call('ZADD', P .. 'grid:due', int(now + far_ms), id)
end
"""
_FALL_DUE = """
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('ZADD', KEYS[1], 1, id) end
"""
_OFFERS = '[{"name":"gemma3:1b","state":"ok","loaded":true,"supports":["chat"]}]'


@dataclass(frozen=True, slots=True)
class Cost:
    """server_ms: all commands of some passes; some servers log what a script calls too, which then
    counts twice. scripts_ms: the scripts alone. longest_ms: the longest command. ended: tasks that
    the passes took back."""

    server_ms: float
    scripts_ms: float
    longest_ms: float
    ended: int


def measure(running: int, due: int, repeats: int) -> list[Row]:
    """Two rows of the table."""
    idle = _idle(running, repeats)
    storms = [_storm(due) for _ in range(repeats)]
    middle = sorted(storms, key=lambda cost: cost.scripts_ms)[len(storms) // 2]
    a_task_us = middle.scripts_ms * 1000 / max(1, middle.ended)
    return [
        row(
            f"a pass, {running:,} running, none due",
            [cost.server_ms for cost in idle],
            "ms of the server",
            GOAL_IDLE_MS,
            most=True,
            note=f"{max(1, running // SLOTS)} workers",
        ),
        row(
            f"{due:,} due, longest command",
            [cost.longest_ms for cost in storms],
            "ms",
            GOAL_LONGEST_MS,
            most=True,
            note=f"{middle.ended:,} taken back, {a_task_us:.0f} us of the server each",
        ),
    ]


def _idle(running: int, repeats: int) -> list[Cost]:
    with Server() as server, _client(server) as client:
        _seed(client, running)
        store = server.store()
        _settle(store)
        costs = [_cost(client, store, 1) for _ in range(repeats)]
        store.close()
    return costs


def _storm(due: int) -> Cost:
    with Server() as server, _client(server) as client:
        _seed(client, due)
        store = server.store()
        _settle(store)
        _fall_due(client)
        cost = _cost(client, store, MOST_PASSES)
        store.close()
    assert cost.ended == due, f"{cost.ended} of {due} were taken back"
    return cost


def _cost(client: redis.Redis, store: Store, most: int) -> Cost:
    """The cost of passes until one finds nothing more to do, or of so many."""
    client.config_set("slowlog-log-slower-than", 0)
    client.slowlog_reset()
    ended = 0
    for _ in range(most):
        report = one_pass(store, LIMITS, ROUTING)
        ended += sum(line.edge in ENDS for line in report.lines)
        if not report.more:
            break
    client.config_set("slowlog-log-slower-than", -1)
    took = [(e["command"], e["duration"] / 1000) for e in client.slowlog_get(ENTRIES)]
    ours = [(command, ms) for command, ms in took if not command.startswith(OWN)]
    return Cost(
        server_ms=sum(ms for _, ms in ours),
        scripts_ms=sum(ms for command, ms in ours if command.startswith(b"EVALSHA")),
        longest_ms=max(ms for _, ms in ours),
        ended=ended,
    )


def _settle(store: Store) -> None:
    """Passes until none holds back: the first on a new server has to."""
    deadline = time.monotonic() + SETTLE_S
    while one_pass(store, LIMITS, ROUTING).held:
        if time.monotonic() > deadline:
            raise RuntimeError("the reaper does not stop holding back")
        time.sleep(0.02)


def _seed(client: redis.Redis, runs: int) -> None:
    """So many runs, a hundred workers' worth, all of which may be silent for an hour."""
    seed = client.register_script(_SEED)
    for first in range(0, runs, SLOTS):
        worker = f"worker{first // SLOTS}"
        count = min(SLOTS, runs - first)
        seed(args=[PREFIX, worker, first, count, HOUR_MS, SLOTS, _OFFERS])


def _fall_due(client: redis.Redis) -> None:
    """All runs have been silent for too long, from this instant on."""
    client.eval(_FALL_DUE, 1, Keys(PREFIX).due)


@contextlib.contextmanager
def _client(server: Server) -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(server.url)
    client.config_set("slowlog-max-len", ENTRIES)
    try:
        yield client
    finally:
        client.close()
