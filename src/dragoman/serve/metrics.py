"""What the server has done, for Prometheus to fetch."""

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from dragoman.serve.batching import Batch, Batcher
from dragoman.serve.limits import Admission
from dragoman.serve.models import Models, Pair

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counts as they happen what cannot be read from the server's state later."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "dragoman_http_requests", "Answered", ["route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "dragoman_http_request_seconds",
            "From the head of a request to the end of its answer",
            ["route"],
            registry=registry,
            buckets=_SECONDS,
        )
        self._characters = Counter(
            "dragoman_characters", "Translated", ["source", "target"], registry=registry
        )
        self._batches = Histogram(
            "dragoman_batch_sentences",
            "Sentences that were searched together",
            registry=registry,
            buckets=_SENTENCES,
        )
        self._batch_seconds = Histogram(
            "dragoman_batch_seconds", "To search a batch", registry=registry, buckets=_SECONDS
        )

    def count_batch(self, batch: Batch) -> None:
        self._batches.observe(batch.sentences)
        self._batch_seconds.observe(batch.seconds)

    def count_characters(self, pair: Pair, characters: int) -> None:
        self._characters.labels(*pair).inc(characters)

    def count_request(self, route: str, status: int, seconds: float) -> None:
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def watch(self, models: Models, batcher: Batcher, admission: Admission) -> None:
        """Adds what is read when Prometheus asks."""
        self._registry.register(_State(models, batcher, admission))

    def text(self) -> bytes:
        return bytes(generate_latest(self._registry))


class _State:
    def __init__(self, models: Models, batcher: Batcher, admission: Admission) -> None:
        self._models, self._batcher, self._admission = models, batcher, admission

    def collect(self) -> Iterator[Any]:
        for name, meaning, value in (
            ("requests_running", "Being worked on", self._admission.running),
            ("queue_sentences", "That wait for a worker", self._batcher.waiting_sentences),
            ("queue_characters", "Of these sentences", self._batcher.waiting_characters),
        ):
            yield GaugeMetricFamily(f"dragoman_{name}", meaning, value)
        pair = ["source", "target"]
        step = GaugeMetricFamily(
            "dragoman_model_step", "Of the weights that translate", labels=pair
        )
        for model in self._models.loaded:
            step.add_metric([*model.pair], model.card.steps[-1])
        yield step
        reloads = CounterMetricFamily("dragoman_reloads", "Better checkpoints loaded", labels=pair)
        for of_pair, count in self._models.reloads.items():
            reloads.add_metric([*of_pair], count)
        yield reloads
