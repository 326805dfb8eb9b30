"""OpenTelemetry traces of the framework's requests, off unless `[traces] endpoint` is set (extra `traces`).

One span per request: route, method, status; no path, no query, no address, no header. A trace that began elsewhere is
continued only if one of our own proxies sent it. The fast path is not traced: a span costs more than its response.
"""

from collections.abc import Callable
from typing import Any, Final

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from frontrow.core.errors import ConfigError
from frontrow.settings.traces import TraceSettings
from frontrow.shared.version import VERSION

SERVICE: Final = "frontrow"


def open_tracer(settings: TraceSettings, exporter: Any = None) -> tuple[Any, Callable[[], None]] | None:
    """(tracer, close), or None when traces are off; `exporter` stands in for the network."""
    if not settings.endpoint and exporter is None:
        return None
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    except ImportError:
        raise ConfigError("traces.endpoint needs a library: pip install 'frontrow[traces]'") from None
    sampler = ParentBased(TraceIdRatioBased(settings.sample))
    provider = TracerProvider(sampler=sampler, resource=Resource.create({"service.name": SERVICE}))
    if exporter is not None:
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=settings.endpoint)))
    return provider.get_tracer(SERVICE, VERSION), provider.shutdown


class TracedApp:
    """Put it around the app; every request becomes a span."""

    def __init__(self, app: ASGIApp, tracer: Any, close: Callable[[], None], is_proxy: Callable[[str], bool]) -> None:
        self._app, self._tracer, self._close, self._is_proxy = app, tracer, close, is_proxy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            try:
                await self._app(scope, receive, send)
            finally:
                self._close()
            return
        from opentelemetry.trace import SpanKind, Status, StatusCode

        with self._tracer.start_as_current_span("request", context=self._parent(scope), kind=SpanKind.SERVER) as span:
            span.set_attribute("http.request.method", scope["method"])

            async def watched(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(Status(StatusCode.ERROR))
                await send(message)

            try:
                await self._app(scope, receive, watched)
            finally:
                handler: Any = scope.get("route_handler")
                route = getattr(handler, "operation_id", None)
                if isinstance(route, str):
                    span.update_name(route)
                    span.set_attribute("http.route", route)

    def _parent(self, scope: Scope) -> Any:
        client = scope.get("client")
        if client is None or not self._is_proxy(client[0]):
            return None
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        given = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        return TraceContextTextMapPropagator().extract(given)


def traced(app: Any, settings: TraceSettings, is_proxy: Callable[[str], bool]) -> Any:
    """The app with traces, or as it is when they are off."""
    opened = open_tracer(settings)
    return app if opened is None else TracedApp(app, *opened, is_proxy)
