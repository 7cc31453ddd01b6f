"""``/metrics``: counters of this coordinator, and the grid as it sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cogrid.coordinator.accesslog import Line
from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import Health
from cogrid.rules.health import health
from cogrid.rules.moment import Moment

SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)


class Metrics:
    """Counts requests; everything else is read when somebody asks."""

    def __init__(
        self, limits: Limits, snapshot: Callable[[], Snapshot | None], streams: Callable[[], int]
    ) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Grid(limits, snapshot, streams))
        self._requests = Counter(
            "cogrid_requests",
            "Requests answered, by how they ended.",
            ("path", "outcome"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "cogrid_request_seconds",
            "Time from a request to the end of its answer.",
            ("path",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._first = Histogram(
            "cogrid_first_text_seconds",
            "Time from a request to the first text of its stream.",
            buckets=SECONDS,
            registry=self._registry,
        )
        self._tokens = Counter(
            "cogrid_tokens", "Tokens, read and written.", ("kind",), registry=self._registry
        )
        self._prompt = self._tokens.labels("prompt")
        self._completion = self._tokens.labels("completion")

    def count(self, path: str, line: Line) -> None:
        """One request is over. path: of the route, not what the client made of it."""
        self._requests.labels(path, line.outcome).inc()
        self._seconds.labels(path).observe(line.seconds())
        if line.first_at:
            self._first.observe(line.first_at - line.began_at)
        if line.prompt_tokens:
            self._prompt.inc(line.prompt_tokens)
        if line.completion_tokens:
            self._completion.inc(line.completion_tokens)

    def text(self) -> bytes:
        """In Prometheus' own format."""
        return generate_latest(self._registry)


class _Grid(Collector):
    def __init__(
        self, limits: Limits, snapshot: Callable[[], Snapshot | None], streams: Callable[[], int]
    ) -> None:
        self._limits = limits
        self._snapshot = snapshot
        self._streams = streams

    def collect(self) -> Iterator[Metric]:
        yield _gauge("cogrid_open_requests", "Requests that wait or stream.", self._streams())
        snapshot = self._snapshot()
        if snapshot is None:
            return
        workers = GaugeMetricFamily("cogrid_workers", "Workers by health.", labels=("health",))
        at = Moment.of(snapshot, self._limits)
        seen = [health(worker, at) for worker in snapshot.workers]
        for word in Health:
            workers.add_metric((word.value,), seen.count(word))
        yield workers
        depths = GaugeMetricFamily("cogrid_queue_depth", "Tasks that wait.", labels=("queue",))
        for queue in snapshot.queues:
            depths.add_metric((queue.name,), queue.depth)
        yield depths
        tasks = GaugeMetricFamily("cogrid_tasks", "Tasks by state.", labels=("state",))
        for state, count in snapshot.counts.items():
            tasks.add_metric((state,), count)
        yield tasks
        yield _gauge("cogrid_queued_bytes", "Bytes of waiting requests.", snapshot.queued_bytes)


def _gauge(name: str, about: str, value: float) -> Metric:
    gauge = GaugeMetricFamily(name, about)
    gauge.add_metric((), value)
    return gauge
