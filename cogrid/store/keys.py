"""Every key in Redis: its name, its type, and who deletes it. Nobody else puts a colon into a key.

Names are meant to be read with redis-cli; the prefix stands in front of each (empty by default).
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeySpec:
    """One kind of key. pattern: the whole name without the prefix. permanent: it may stand without
    a TTL; gone: who removes it."""

    pattern: re.Pattern[str]
    type: str
    permanent: bool
    gone: str


def _spec(pattern: str, kind: str, permanent: bool, gone: str) -> KeySpec:
    return KeySpec(re.compile(pattern), kind, permanent, gone)


KEYS: tuple[KeySpec, ...] = (
    _spec(r"worker:[^:]+", "hash", True, "forget"),
    _spec(r"worker:[^:]+:tasks", "set", True, "empty once its runs are over"),
    _spec(r"worker:[^:]+:chores", "set", True, "empty once its chores are over"),
    _spec(r"worker:[^:]+:revoked", "set", False, "an hour after the lease ran out"),
    _spec(r"worker:[^:]+:fenced", "string", False, "7 days after it was struck off"),
    _spec(r"tasks:[^:]+:shared:.+", "zset", True, "empty once served"),
    _spec(r"tasks:[^:]+:[^:]+", "zset", True, "empty once served"),
    _spec(r"turns:tasks:.+", "hash", True, "with its queue"),
    _spec(r"wake:tasks:.+", "zset", True, "popped, or with its queue"),
    _spec(r"wake:@.+", "zset", False, "60 s"),
    _spec(r"task:[^:]+", "hash", True, "TTL from its end on"),
    _spec(r"task:[^:]+:body", "string", True, "its end; a dead letter's after 7 days"),
    _spec(r"task:[^:]+:body:[^:]+", "string", False, "60 s, or with the submit that takes it over"),
    _spec(r"task:[^:]+:withdrawn:[^:]+", "string", False, "an hour"),
    _spec(r"task:[^:]+:out", "stream", True, "TTL from its end on"),
    _spec(r"grid:(workers|due|clients|queues|models|finished|dead)", "zset", True, "never"),
    _spec(r"grid:(reaper|totals|keys)", "hash", True, "never"),
    _spec(r"grid:events", "stream", True, "never; capped at about 100,000 entries"),
    _spec(r"usage:\d{4}-\d\d-\d\d", "hash", False, "35 days; 15,000 fields at most"),
    _spec(r"limit:[^:]+:\d+", "string", False, "2 minutes"),
    _spec(r"rate:tasks:.+", "hash", False, "10 minutes"),
)


@dataclass(frozen=True, slots=True)
class Keys:
    """Builds names under one prefix, such as ``{cogrid}:`` on a cluster."""

    prefix: str = ""

    def worker(self, worker: str) -> str:
        """hash"""
        return f"{self.prefix}worker:{worker}"

    def worker_tasks(self, worker: str) -> str:
        """set of task ids that it runs"""
        return f"{self.prefix}worker:{worker}:tasks"

    def worker_chores(self, worker: str) -> str:
        """set of ids of chores (operator's kinds of task) that it does beside its runs"""
        return f"{self.prefix}worker:{worker}:chores"

    def worker_revoked(self, worker: str) -> str:
        """set of tokens taken from it and not yet confirmed"""
        return f"{self.prefix}worker:{worker}:revoked"

    def worker_fenced(self, worker: str) -> str:
        """string: the process of that name that an operator has struck off"""
        return f"{self.prefix}worker:{worker}:fenced"

    def queue(self, queue: str) -> str:
        """zset of ready task ids by score"""
        return self.prefix + queue

    def turns(self, queue: str) -> str:
        """hash: whose turn it is in that queue"""
        return f"{self.prefix}turns:{queue}"

    def wake(self, queue: str) -> str:
        """zset: a shared queue's marker"""
        return f"{self.prefix}wake:{queue}"

    def inbox(self, name: str) -> str:
        """zset: ids with news for one worker or coordinator"""
        return f"{self.prefix}wake:@{name}"

    def task(self, task: str) -> str:
        """hash"""
        return f"{self.prefix}task:{task}"

    def body(self, task: str) -> str:
        """string: the request"""
        return f"{self.prefix}task:{task}:body"

    def body_beside(self, task: str, ticket: str) -> str:
        """string: a large request of one submission, until that takes it over"""
        return f"{self.body(task)}:{ticket}"

    def withdrawn(self, task: str, ticket: str) -> str:
        """string: that submission of the task is void"""
        return f"{self.task(task)}:withdrawn:{ticket}"

    def out(self, task: str) -> str:
        """stream: the answer"""
        return f"{self.prefix}task:{task}:out"

    def rate(self, queue: str) -> str:
        """hash: seconds between claims"""
        return f"{self.prefix}rate:{queue}"

    def usage(self, day: str) -> str:
        """hash: ``<user>\\t<key>\\t<model>\\t<worker>\\t<requests|tokens|ms>`` -> the sum of one
        day (YYYY-MM-DD, UTC)"""
        return f"{self.prefix}usage:{day}"

    @property
    def workers(self) -> str:
        """zset: worker -> lease (Redis ms)"""
        return f"{self.prefix}grid:workers"

    @property
    def due(self) -> str:
        """zset: open task -> when someone must look again (Redis ms)"""
        return f"{self.prefix}grid:due"

    @property
    def clients(self) -> str:
        """zset: task -> until when a client is known to want it (Redis ms)"""
        return f"{self.prefix}grid:clients"

    @property
    def queues(self) -> str:
        """zset: non-empty queue -> when it was last served or became non-empty (Redis ms)"""
        return f"{self.prefix}grid:queues"

    @property
    def models(self) -> str:
        """zset: model -> when it last had a home (Redis ms)"""
        return f"{self.prefix}grid:models"

    @property
    def finished(self) -> str:
        """zset: ended task -> end of retention (Redis ms)"""
        return f"{self.prefix}grid:finished"

    @property
    def dead(self) -> str:
        """zset: dead letter -> end of retention (Redis ms)"""
        return f"{self.prefix}grid:dead"

    @property
    def reaper(self) -> str:
        """hash: run and replication id of the server, last_pass, hold_until, schema"""
        return f"{self.prefix}grid:reaper"

    @property
    def totals(self) -> str:
        """hash: bytes of queued bodies; tasks by how they ended"""
        return f"{self.prefix}grid:totals"

    @property
    def api_keys(self) -> str:
        """hash: SHA-256 of a key -> what it may do (JSON)"""
        return f"{self.prefix}grid:keys"

    @property
    def events(self) -> str:
        """stream: every transition"""
        return f"{self.prefix}grid:events"
