"""The reporter of a Python shop: what it measures of ASGI and WSGI requests, and that a room takes its reports."""

import asyncio
import io
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest

from frontrow.app.room_wiring import open_rooms
from frontrow.core.errors import ConfigError
from frontrow.settings.room import RoomSettings
from frontrow.waitingroom.credentials.report_keys import report_key
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.protect.shop_reporter import (
    MAX_SAMPLES,
    MeasuredApp,
    MeasuredWsgiApp,
    ShopReporter,
)
from frontrow.web.room.app import room_app
from tests.web.room.served import serving

URL = "http://127.0.0.1:1/shop-health"


def quiet(url: str = URL, **options: Any) -> ShopReporter:
    """A reporter whose thread sends nothing during a test."""
    return ShopReporter(url, "shop-1", options.pop("key", "k"), every_s=3_600, **options)


def test_the_report_has_the_p95_of_the_requests_since_the_last_one() -> None:
    reporter = quiet(clock=lambda: 1_800_000_000.0)
    for number in range(100):
        reporter.observe(number / 1000, failed=number >= 98)
    first = reporter.report()
    assert first == {"reporter": "shop-1", "number": 1_800_000_000_000, "p95_ms": 95, "requests": 100, "errors": 2}
    again = reporter.report()
    assert (again["p95_ms"], again["requests"], again["errors"]) == (0, 0, 0)
    assert again["number"] == first["number"] + 1, "numbers grow, also while the clock stands"


def test_of_very_many_requests_a_sample_is_kept() -> None:
    reporter = quiet()
    for _ in range(10 * MAX_SAMPLES):
        reporter.observe(0.2, failed=False)
    assert len(reporter._samples) == MAX_SAMPLES
    report = reporter.report()
    assert (report["requests"], report["p95_ms"]) == (10 * MAX_SAMPLES, 200)


@pytest.mark.parametrize("status", [200, 404, 503])
async def test_asgi_requests_are_measured_and_only_failures_of_the_shop_are_errors(status: int) -> None:
    async def shop(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    reporter, sent = quiet(), []

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await MeasuredApp(shop, reporter)({"type": "http"}, asyncio.Queue[Any]().get, send)
    assert sent == ["http.response.start", "http.response.body"]
    report = reporter.report()
    assert (report["requests"], report["errors"]) == (1, int(status >= 500))
    reporter.stop()


async def test_an_asgi_shop_that_raises_is_an_error_and_other_scopes_pass() -> None:
    async def shop(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            raise RuntimeError("broken")

    reporter = quiet()
    app = MeasuredApp(shop, reporter)
    await app({"type": "lifespan"}, asyncio.Queue[Any]().get, asyncio.Queue[Any]().put)
    with pytest.raises(RuntimeError):
        await app({"type": "http"}, asyncio.Queue[Any]().get, asyncio.Queue[Any]().put)
    report = reporter.report()
    assert (report["requests"], report["errors"]) == (1, 1)
    reporter.stop()


class Answer(io.BytesIO):
    """A response that knows whether it was closed."""


@pytest.mark.parametrize("line", ["200 OK", "500 Internal Server Error"])
def test_wsgi_requests_are_measured_and_the_response_is_closed(line: str) -> None:
    answer = Answer(b"a\nb\n")

    def shop(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response(line, [])
        return answer

    reporter = quiet()
    environ: dict[str, Any] = {}
    setup_testing_defaults(environ)
    response = MeasuredWsgiApp(shop, reporter)(environ, lambda *_: None)
    assert list(response) == [b"a\n", b"b\n"]
    response.close()  # type: ignore[attr-defined]
    assert answer.closed
    report = reporter.report()
    assert (report["requests"], report["errors"]) == (1, int(line.startswith("5")))
    reporter.stop()


def test_a_wsgi_shop_that_raises_is_an_error() -> None:
    def shop(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        raise RuntimeError("broken")

    reporter = quiet()
    with pytest.raises(RuntimeError):
        MeasuredWsgiApp(shop, reporter)({}, lambda *_: None)
    assert reporter.report()["errors"] == 1
    reporter.stop()


def test_a_room_that_does_not_answer_costs_a_warning_once(caplog: pytest.LogCaptureFixture) -> None:
    reporter = quiet()
    with caplog.at_level(logging.WARNING, "frontrow.protect"):
        assert [reporter.send() for _ in range(3)] == [False] * 3
    assert len(caplog.records) == 1
    assert "does not take reports" in caplog.text


@pytest.mark.parametrize(
    ("url", "name", "key"), [("ftp://room", "shop-1", "k"), (URL, "shop-1", "")], ids=["url", "key"]
)
def test_a_reporter_that_could_never_report_is_refused(url: str, name: str, key: str) -> None:
    with pytest.raises(ConfigError):
        ShopReporter(url, name, key)


async def test_a_served_room_takes_the_reports_and_refuses_those_of_others(tmp_path: Path) -> None:
    settings = RoomSettings(events=("aurora",), folder=str(tmp_path), max_p95_ms=400, organiser_key="o" * 20)
    opened = await open_rooms(settings)
    endpoints = opened.endpoints
    key = report_key(RoomKeys.load(tmp_path).master_secret, "aurora", "shop-1")
    with serving(room_app(endpoints, root_event="aurora"), ws="none") as port:
        for path in ("/shop-health", "/v1/events/aurora/room/shop-health"):
            reporter = quiet(f"http://127.0.0.1:{port}{path}", key=key)
            reporter.observe(0.25, failed=False)
            assert await asyncio.to_thread(reporter.send)
        stranger = quiet(f"http://127.0.0.1:{port}/shop-health", key="guessed")
        assert not await asyncio.to_thread(stranger.send)
        (report,) = await endpoints.rooms.room.store.reports("aurora")
        assert (report.reporter, report.p95_ms, report.requests) == ("shop-1", 250, 1)
    if opened.console is not None:
        await opened.console.aclose()
