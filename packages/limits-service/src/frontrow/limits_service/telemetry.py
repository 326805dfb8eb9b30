"""What the service tells about itself: Prometheus metrics of all workers, and OpenTelemetry if it is wanted.

Each worker writes its metrics into a file once per second, because a scrape reaches only one of them. That one answers
for all, with a label `worker`.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from frontrow.core.errors import ConfigError
from frontrow.limits_service.http_connection import Connections, Request, Response
from frontrow.limits_service.http_routes import Later
from frontrow.limits_service.limit_service import LimitService

WRITE_EVERY_S = 1.0
SPAN_NAME = "frontrow.limits"


class _ServiceCollector:
    """Figures of the service itself."""

    def __init__(self, service: LimitService, connections: Connections) -> None:
        self._service = service
        self._connections = connections

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        stats = self._service.store.stats
        yield GaugeMetricFamily(
            "frontrow_limits_store_up", "1 while the limit store answers", float(not stats.store_error)
        )
        yield CounterMetricFamily("frontrow_limits_store_calls", "Calls that the store answered", stats.store_calls)
        yield CounterMetricFamily("frontrow_limits_store_call_errors", "Calls that failed", stats.store_errors)
        yield GaugeMetricFamily("frontrow_limits_http_connections", "Open connections", len(self._connections.open))
        yield CounterMetricFamily(
            "frontrow_limits_http_connections_refused", "Connections beyond the bound", self._connections.refused
        )
        yield CounterMetricFamily(
            "frontrow_limits_quotas_dropped",
            "Quotas of requests that were forgotten for newer ones",
            self._service.quotas.dropped,
        )


class WorkerMetrics:
    """The metrics of this worker, and of the others from their files."""

    def __init__(self, service: LimitService, connections: Connections, worker: int, folder: Path | None) -> None:
        from prometheus_client import CollectorRegistry

        self._registry = CollectorRegistry()
        service.metrics.register(self._registry)
        self._registry.register(_ServiceCollector(service, connections))
        self._worker = worker
        self._file = folder / f"{worker}.json" if folder is not None else None

    def write(self) -> None:
        """Write this worker's metrics for the others."""
        if self._file is None:
            return
        with tempfile.NamedTemporaryFile("w", dir=self._file.parent, suffix=".part", delete=False) as written:
            json.dump(self._families(), written)
        os.replace(written.name, self._file)

    def forget(self) -> None:
        """Take this worker's file away."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def page(self, _request: Request) -> Response:
        """What Prometheus reads."""
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.exposition import CONTENT_TYPE_LATEST

        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Merged([(self._worker, self._families()), *self._others()]))
        return Response(200, generate_latest(registry), [(b"content-type", CONTENT_TYPE_LATEST.encode())])

    def _families(self) -> list[Any]:
        return [
            (each.name, each.documentation, each.type, [(row.name, row.labels, row.value) for row in each.samples])
            for each in self._registry.collect()
        ]

    def _others(self) -> Iterator[tuple[int, list[Any]]]:
        for path in sorted(self._file.parent.glob("*.json")) if self._file is not None else ():
            if path != self._file and path.stem.isdecimal():
                with contextlib.suppress(OSError, ValueError):  # it ended meanwhile
                    yield int(path.stem), json.loads(path.read_text())


class _Merged:
    """The families of several workers as one."""

    def __init__(self, by_worker: Iterable[tuple[int, list[Any]]]) -> None:
        self._by_worker = list(by_worker)

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import Metric

        families: dict[str, Any] = {}
        for worker, listed in self._by_worker:
            for name, doc, kind, rows in listed:
                family = families.setdefault(name, Metric(name, doc, kind))
                for row, labels, value in rows:
                    family.add_sample(row, {**labels, "worker": str(worker)}, value)
        return iter(families.values())


class OpenTelemetry:
    """Exports decisions as metrics, and a span of each request that comes with a sampled trace."""

    def __init__(self, service: LimitService, *, reader: Any = None, processor: Any = None) -> None:
        """`reader` and `processor` are of the OpenTelemetry SDK. Without them, OTLP over HTTP as its variables say."""
        try:
            from opentelemetry.sdk.metrics import MeterProvider
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError:
            message = "OpenTelemetry needs its SDK: pip install 'frontrow-limits[serve,otel]'"
            raise ConfigError(message, param="opentelemetry") from None
        self._service = service
        self._propagator = TraceContextTextMapPropagator()
        self._meters = MeterProvider(metric_readers=[reader or _otlp_reader()])
        meter = self._meters.get_meter(SPAN_NAME)
        meter.create_observable_counter("frontrow.limits.decisions", [self._observe], "1", "Decisions by outcome")
        self._traces = TracerProvider()
        self._traces.add_span_processor(processor or _otlp_processor())
        self._tracer = self._traces.get_tracer(SPAN_NAME)

    def _observe(self, _options: Any) -> Iterator[Any]:
        from opentelemetry.metrics import Observation

        for rule, counts in self._service.metrics.snapshot().items():
            for outcome in ("allowed", "refused", "shadow_refused"):
                yield Observation(counts[outcome], {"rule": rule, "outcome": outcome})

    def trace(self, request: Request, answer: Later) -> Later:
        """Record a request of a sampled trace. Others cost nothing but a look at the header."""
        from opentelemetry import trace

        header = request.headers[b"traceparent"].decode("latin-1")
        context = self._propagator.extract({"traceparent": header})
        parent = trace.get_current_span(context).get_span_context()
        if not parent.trace_flags.sampled:
            return answer
        span = self._tracer.start_span(f"{request.method.decode()} {request.path[:64]}", context)
        if isinstance(answer, Response):
            _end(span, answer)
            return answer
        return self._finish(span, answer)

    async def _finish(self, span: Any, answer: Any) -> Response:
        try:
            response: Response = await answer
        except BaseException as error:
            span.record_exception(error)
            span.end()
            raise
        _end(span, response)
        return response

    def close(self) -> None:
        """Export the rest."""
        self._meters.shutdown()
        self._traces.shutdown()


def _end(span: Any, response: Response) -> None:
    span.set_attribute("http.response.status_code", response.status)
    span.end()


def _otlp_reader() -> Any:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    return PeriodicExportingMetricReader(OTLPMetricExporter())


def _otlp_processor() -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    return BatchSpanProcessor(OTLPSpanExporter())
