"""Where a task goes on: the queues that one pass hands out, counted so that it never puts
everything into one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from cogrid.model.names import Queue, WorkerId, queue_pool, shared_queue
from cogrid.model.snapshot import QueueDepth
from cogrid.model.task import Task
from cogrid.model.worker import Worker
from cogrid.rules.grid import Grid, Seat
from cogrid.rules.pick import fits
from cogrid.rules.request import ask_of
from cogrid.rules.route import best_pool, pools_of
from cogrid.rules.routing import Routing


class Places:
    """Chooses queues for the tasks of one pass; made anew for each.

    Pools are preferred as the configuration says; a closed one is open to the tasks that are in it.
    """

    def __init__(self, grid: Grid, routing: Routing) -> None:
        self._before = grid
        # Depths grow with each task that is placed; nobody else sees this copy.
        self._queues = dict(grid.queues)
        self._grid = replace(grid, queues=self._queues)
        self._routing = routing
        self._lent: Counter[WorkerId] = Counter()

    def homes(self, task: Task) -> tuple[WorkerId, ...]:
        """Who can serve it, in the order of the snapshot."""
        return tuple(seat.worker.id for seat in self._seats(task))

    def shared(self, task: Task) -> Queue:
        """The shared queue of the first pool with a free slot, else of the one with the shortest
        wait; where nobody is at home, that of the pool it is in."""
        routing, ask = self._open_to(task), ask_of(task)
        pools = pools_of(self._seats(task), task.model, ask, self._grid, routing)
        if not pools:
            return shared_queue(queue_pool(task.queue), task.model)
        return self._count(best_pool(pools).queue)

    def own(self, task: Task, avoid: WorkerId | None) -> Queue:
        """The own queue of the home that can take it soonest, never of ``avoid``; the shared one
        where there is no other."""
        seats = [seat for seat in self._open(task) if seat.able and seat.worker.id != avoid]
        if not seats:
            return self.shared(task)
        return self._count(min(seats, key=self._rank).worker.queue)

    def to_free(self, task: Task) -> Queue | None:
        """The shared queue of a pool where a slot is free that nothing waits for; None where there
        is none. A task that must run alone wants a whole worker."""
        owner = self._before.queue(task.queue).worker
        away_from = None if owner else queue_pool(task.queue)
        seats = [seat for seat in self._open(task) if seat.worker.id != owner]
        for pool in self._ordered({seat.worker.pool for seat in seats} - {away_from or ""}):
            here = [seat for seat in seats if seat.worker.pool == pool]
            spare = {seat.worker.id: self._spare(seat, task) for seat in here}
            queue = shared_queue(pool, task.model)
            if sum(spare.values()) > self._before.queue(queue).depth:
                self._lent[max(spare, key=lambda worker: spare[worker])] += 1
                return self._count(queue)
        return None

    def _seats(self, task: Task) -> tuple[Seat, ...]:
        ask = ask_of(task)
        seats = self._grid.homes.get(task.model, ())
        return tuple(seat for seat in seats if fits(seat, ask)) or seats

    def _open(self, task: Task) -> Iterable[Seat]:
        closed = self._open_to(task).closed
        return (seat for seat in self._seats(task) if seat.worker.pool not in closed)

    def _open_to(self, task: Task) -> Routing:
        pool = queue_pool(task.queue)
        closed = tuple(name for name in self._routing.closed if name != pool)
        return replace(self._routing, closed=closed)

    def _ordered(self, pools: set[str]) -> list[str]:
        return sorted(pools, key=lambda pool: (self._preference(pool), pool))

    def _preference(self, pool: str) -> int:
        pools = self._routing.pools
        return pools.index(pool) if pool in pools else len(pools)

    def _spare(self, seat: Seat, task: Task) -> int:
        worker = seat.worker
        if task.solo and worker.busy:
            return 0
        return max(0, seat.free - self._backlog(worker) - self._lent[worker.id])

    def _backlog(self, worker: Worker) -> int:
        return self._grid.queue(worker.queue).depth

    def _rank(self, seat: Seat) -> tuple[bool, int, float, str]:
        worker = seat.worker
        waits = seat.free <= self._backlog(worker)
        load = (worker.busy + self._backlog(worker)) / max(1, worker.slots)
        return waits, self._preference(worker.pool), load, worker.id

    def _count(self, queue: Queue) -> Queue:
        known = self._queues.get(queue) or QueueDepth(queue, 0)
        self._queues[queue] = replace(known, depth=known.depth + 1)
        return queue
