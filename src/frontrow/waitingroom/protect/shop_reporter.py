"""Measures the shop's own requests and reports p95 latency and errors to its room, as ASGI or WSGI middleware.

    reporter = ShopReporter("https://room/v1/events/aurora/room/shop-health", "shop-1", key)
    app = MeasuredApp(app, reporter)          # WSGI: MeasuredWsgiApp

A daemon thread sends one report per `every_s` seconds. A room that does not answer costs the shop nothing: the report
is dropped, a warning is logged once, and the next one is sent. At most `MAX_SAMPLES` requests are kept per report.
"""

import json
import logging
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from typing import Any

from frontrow.core.errors import ConfigError
from frontrow.waitingroom.credentials.report_keys import SIGNATURE_HEADER, check_reporter, sign_report

MAX_SAMPLES = 2_000
TIMEOUT_S = 3.0

log = logging.getLogger("frontrow.protect")


def post_report(url: str, body: bytes, headers: dict[str, str]) -> None:
    """Send it; raises OSError when it was not taken."""
    request = urllib.request.Request(url, body, headers, method="POST")  # noqa: S310  # the scheme is checked below
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            answer.read(1_024)
    except urllib.error.HTTPError as error:
        error.close()
        raise


class ShopReporter:
    """Collects the requests of one process and reports them. Each process of the shop has a name and key of its own."""

    def __init__(
        self,
        url: str,
        name: str,
        key: str,
        *,
        every_s: float = 5.0,
        post: Callable[[str, bytes, dict[str, str]], None] = post_report,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigError("reports are sent to an http(s) URL", param="url")
        if not key:
            raise ConfigError("reports are signed with a key; `frontrow room report-key` prints it", param="key")
        self._url, self._name, self._key = url, check_reporter(name), key
        self._every_s, self._post, self._clock = max(1.0, every_s), post, clock
        self._lock = threading.Lock()
        self._samples: list[float] = []
        self._requests = self._errors = self._last_number = 0
        self._failed = False
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def observe(self, seconds: float, *, failed: bool) -> None:
        """Count one request. Beyond `MAX_SAMPLES`, a random sample of them is kept."""
        with self._lock:
            self._requests += 1
            self._errors += failed
            if len(self._samples) < MAX_SAMPLES:
                self._samples.append(seconds)
            elif (index := random.randrange(self._requests)) < MAX_SAMPLES:  # statistics
                self._samples[index] = seconds

    def report(self) -> dict[str, Any]:
        """What was measured since the last call."""
        with self._lock:
            samples, requests, errors = sorted(self._samples), self._requests, self._errors
            self._samples, self._requests, self._errors = [], 0, 0
            self._last_number = max(self._last_number + 1, round(self._clock() * 1000))
            number = self._last_number
        p95 = samples[min(len(samples) - 1, int(len(samples) * 0.95))] if samples else 0.0
        p95_ms = min(600_000, round(p95 * 1000))
        return {"reporter": self._name, "number": number, "p95_ms": p95_ms, "requests": requests, "errors": errors}

    def send(self) -> bool:
        """Send one report now. False, and a warning, if the room does not take it."""
        body = json.dumps(self.report()).encode()
        headers = {"Content-Type": "application/json", SIGNATURE_HEADER: sign_report(self._key, body)}
        try:
            self._post(self._url, body, headers)
        except Exception as error:  # whatever it is, the shop goes on
            if not self._failed:
                log.warning("the waiting room at %s does not take reports (%r); the next one is sent", self._url, error)
            self._failed = True
            return False
        self._failed = False
        return True

    def start(self) -> None:
        """Report from now on, in a thread of its own. Repeating it is harmless."""
        with self._lock:
            if self._thread is not None:
                return
            self._thread = threading.Thread(target=self._run, name="frontrow shop reporter", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Send no more reports."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._every_s):
            self.send()


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class MeasuredApp:
    """ASGI middleware: measures each request until its response begins. Put it inside `PassMiddleware`."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], reporter: ShopReporter) -> None:
        self.app = app
        self.reporter = reporter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self.reporter.start()
        began_s, seen = time.perf_counter(), False

        async def measure(message: Any) -> None:
            nonlocal seen
            if message["type"] == "http.response.start" and not seen:
                seen = True
                self.reporter.observe(time.perf_counter() - began_s, failed=message["status"] >= 500)
            await send(message)

        try:
            await self.app(scope, receive, measure)
        except Exception:
            if not seen:
                self.reporter.observe(time.perf_counter() - began_s, failed=True)
            raise


class MeasuredWsgiApp:
    """WSGI middleware: measures each request until the application has returned its response."""

    def __init__(self, app: Callable[..., Iterable[bytes]], reporter: ShopReporter) -> None:
        self.app = app
        self.reporter = reporter

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        self.reporter.start()
        began_s, status = time.perf_counter(), ["200"]

        def start(line: str, *rest: Any) -> Any:
            status[0] = line
            return start_response(line, *rest)

        try:
            answer = self.app(environ, start)
        except Exception:
            self.reporter.observe(time.perf_counter() - began_s, failed=True)
            raise
        return _Measured(answer, self.reporter, began_s, status)


class _Measured:
    """The response of a WSGI application. Measures when its first part is ready, and passes its `close` on."""

    def __init__(self, answer: Iterable[bytes], reporter: ShopReporter, began_s: float, status: list[str]) -> None:
        self._answer, self._reporter, self._began_s, self._status = answer, reporter, began_s, status
        self._seen = False

    def __iter__(self) -> Iterator[bytes]:
        try:
            for part in self._answer:
                self._observe()
                yield part
        finally:
            self._observe()

    def _observe(self) -> None:
        if not self._seen:
            self._seen = True
            self._reporter.observe(time.perf_counter() - self._began_s, failed=self._status[0].startswith("5"))

    def close(self) -> None:
        close = getattr(self._answer, "close", None)
        self._observe()
        if close is not None:
            close()
