"""A grid on a real server whose workers are played by the test, and whose time can be let pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from cogrid.model.limits import Limits
from cogrid.model.names import Queue, TaskId, Token, WorkerId, shared_queue
from cogrid.model.task import Kind
from cogrid.model.worker import Offer, WorkerState
from cogrid.reaper.one_pass import Report, one_pass
from cogrid.rules.routing import Routing
from cogrid.store import tasks, workers
from cogrid.store.address import parse_address
from cogrid.store.client import Store
from tests.servers import Server

MODEL = "gemma3:1b"
STAMPS = ("hello_at", "beat_at", "polled_at", "freed_at", "revoked_at")
TASK_STAMPS = ("submitted_at", "queued_at", "claimed_at", "first_at")


class Stage:
    """Every method is one step that a worker, a client or the reaper makes."""

    def __init__(self, server: Server, limits: Limits | None = None, prefix: str = "") -> None:
        self.limits = limits or Limits()
        self.routing = Routing()
        self.store = Store.connect(parse_address(server.url), prefix)
        self.redis: Any = server.client
        self.keys = self.store.keys
        self._k = 0
        self._lives: dict[str, dict[str, Any]] = {}

    def close(self) -> None:
        self.store.close()

    # workers

    def hello(
        self, name: str, *models: str, pool: str = "cpu", slots: int = 1, process: int = 1,
        lock: str = "",
    ) -> None:  # fmt: skip
        """A process takes the name."""
        who = workers.Who(
            WorkerId(name), f"{name}-{process}", lock or f"lock-{name}", name, pool, slots, "0", ""
        )
        said = self.store.do(workers.hello(self.keys, who, self._ms(self.limits.lease_s)))
        assert said.status == "ok"
        self._lives[name] = {
            "instance": who.instance, "lock": who.lock, "slots": slots, "models": models or (MODEL,)
        }  # fmt: skip

    def renew(
        self, name: str, state: WorkerState = WorkerState.READY,
        held: tuple[workers.Held, ...] = (), offers: tuple[Offer, ...] = (),
    ) -> workers.Renewed:  # fmt: skip
        """It renews its lease."""
        life = self._lives[name]
        told = workers.Life(
            state=state, offers=offers or tuple(Offer(model) for model in life["models"]),
            supports=("cpu_inference",), slots=life["slots"], claim_age_ms=0, settled=self._k,
            held=held, lease_ms=self._ms(self.limits.lease_s),
        )  # fmt: skip
        call = workers.renew(self.keys, WorkerId(name), life["instance"], life["lock"], told)
        return self.store.do(call)

    def worker(self, name: str, *models: str, pool: str = "cpu", slots: int = 1) -> None:
        """A worker that is ready and has polled."""
        self.hello(name, *models, pool=pool, slots=slots)
        self.renew(name)
        self.poll(name)

    def poll(self, name: str) -> None:
        """Its claim loop turns and takes nothing."""
        self.claim(name, free=0)

    def claim(
        self, name: str, *queues: str, free: int = 1, allowed_s: float = 300
    ) -> tuple[tasks.Handed, ...]:
        """It asks for work."""
        life = self._lives[name]
        self._k += 1
        asked = tasks.Claim(
            WorkerId(name), life["instance"], self._k, free,
            tuple((queue, True) for queue in queues), self._ms(allowed_s),
        )  # fmt: skip
        return self.store.do(tasks.claim(self.keys, asked)).tasks

    def say(self, task: tasks.Handed, n: int = 1) -> None:
        """It sends a piece of text."""
        piece = (b'{"content":"a"}',)
        said = self.store.do(tasks.append(self.keys, task.id, task.token, n, piece, 30_000))
        assert said.status == "ok"

    def finish(
        self, name: str, task: tasks.Handed, what: str = "done", **fields: Any
    ) -> tasks.Finished:
        """Its run is over."""
        outcome = tasks.Outcome(what, **fields)
        call = tasks.finish(self.keys, WorkerId(name), task.id, task.token, outcome)
        return self.store.do(call)

    # clients

    def submit(self, task: str, queue: str = "", model: str = MODEL, **fields: Any) -> TaskId:
        """A client asks."""
        shared = shared_queue("cpu", model)
        asked = tasks.Submission(
            TaskId(task), Kind.CHAT, model, Queue(queue) if queue else shared, shared, b"{}",
            user="ada", **fields,
        )  # fmt: skip
        said = self.store.do(tasks.submit(self.keys, asked))
        assert said.status == "new"
        return asked.id

    # the reaper, and time

    def sweep(self) -> Report:
        """One pass."""
        return one_pass(self.store, self.limits, self.routing)

    def settle(self) -> None:
        """The reaper has been at work for long: what it holds back for at first is over."""
        self.sweep()
        self.redis.hset(self.keys.reaper, mapping={"hold_until": 0, "hold_from": 0})

    def let_pass(self, seconds: float, listening: bool = True) -> None:
        """Everything gets older, while the reaper goes on with its passes and, unless told
        otherwise, coordinators with listening."""
        ms = self._ms(seconds)
        indexes = [self.keys.workers, self.keys.due, self.keys.models]
        for index in indexes if listening else (*indexes, self.keys.clients):
            for member, score in self.redis.zrange(index, 0, -1, withscores=True):
                self.redis.zadd(index, {member: score - ms})
        for key in self.redis.scan_iter(match=self.keys.worker("*"), _type="hash"):
            self._age(key.decode(), STAMPS, ms)
            since = self.redis.hget(key, "registered_at")
            if since:
                at = datetime.fromisoformat(since.decode()) - timedelta(seconds=seconds)
                self.redis.hset(key, "registered_at", at.astimezone(UTC).isoformat())
        for key in self.redis.scan_iter(match=self.keys.task("*"), _type="hash"):
            self._age(key.decode(), TASK_STAMPS, ms)

    def task(self, task: str) -> dict[str, str]:
        """Its hash."""
        found = self.redis.hgetall(self.keys.task(task))
        return {name.decode(): value.decode() for name, value in found.items()}

    def end(self, task: str) -> dict[str, str]:
        """The fields of its end entry."""
        (entry,) = self.redis.xrevrange(self.keys.out(task), count=1)
        fields = {name.decode(): value.decode() for name, value in entry[1].items()}
        assert fields["kind"] == "end"
        return fields

    def edges(self, edge: str) -> list[str]:
        """Tasks (or workers, where there is none) of all events of this kind."""
        events = self.redis.xrange(self.keys.events)
        return [
            (fields[b"task"] or fields[b"worker"]).decode()
            for _, fields in events
            if fields[b"edge"] == edge.encode()
        ]

    def _age(self, key: str, names: tuple[str, ...], ms: int) -> None:
        for name in names:
            if self.redis.hget(key, name):
                self.redis.hincrby(key, name, -ms)

    def _ms(self, seconds: float) -> int:
        return round(seconds * 1000)


def held(task: tasks.Handed, silent_s: float = 0, allowed_s: float = 30) -> workers.Held:
    """A run as its worker reports it."""
    return workers.Held(task.id, Token(task.token), round(silent_s * 1000), round(allowed_s * 1000))
