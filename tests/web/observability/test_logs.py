"""Logs are JSON with a request id and without anything personal; traces are off unless wanted, and as bare."""

import contextlib
import contextvars
import io
import json
import logging
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from frontrow.boxoffice.adapters.ledger.events.catalogue import SqlCatalogue
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.tickets.ticket_pdf import tickets_pdf
from frontrow.settings.traces import TraceSettings
from frontrow.web.http.request_ids import request_id
from frontrow.web.observability import logs
from frontrow.web.observability.traces import TracedApp, open_tracer, traced
from tests.boxoffice.tickets.samples import issued, sheet
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, a_client, a_platform, a_server

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
SECRETS = {
    "e-mail": "canary.fan+1@example.org",
    "card": "4242 4242 4242 4242",
    "card without spaces": "5555555555554444",
    "booking token": "frb_01JCQ3W2N4X7Z8Y9A0B1C2D3E4.abcDEF123_-x",
    "session": "frs_abcdef0123456789",
    "api key": "frk_abcdef0123456789",
    "pass": JWT,
    "payment method": "pm_1Nabcdefgh",
    "stripe key": "sk_live_abcdefghijk",
    "IPv4": "203.0.113.77",
    "IPv6": "2001:db8::dead:beef",
    "password in a URL": "hunter2hunter2",
}


def line_of(record: logging.LogRecord) -> str:
    return logs.formatter().format(record)


@contextlib.contextmanager
def written() -> Iterator[io.StringIO]:
    """What the service logs meanwhile, as its own handler writes it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.formatter())
    logger = logging.getLogger("frontrow.web")
    logger.addHandler(handler)
    try:
        yield stream
    finally:
        logger.removeHandler(handler)


def decision(fields: dict[str, object], text: str = "seats %(action_of)s") -> logging.LogRecord:
    """A record as `LogLine` makes it."""
    logger = logging.getLogger("frontrow.test")
    return logger.makeRecord(
        logger.name, logging.INFO, "a.py", 1, text, (fields,), None, extra={"action": "seats_freed", **fields}
    )


FIELD = st.one_of(
    st.text(max_size=30),
    st.integers(-(10**11), 10**11),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False),
    st.sampled_from(
        [*SECRETS.values(), "bkg_01JD9Q9YB2C3D4E5F6G7H8J9K0", "frk_1", "4242424242424242", BookingState.HELD]
    ),
    st.lists(st.text(max_size=5), max_size=2),
)


@given(st.dictionaries(st.from_regex(r"[a-z]{3,8}_id", fullmatch=True), FIELD, min_size=1, max_size=5))
def test_the_short_way_of_a_decisions_line_writes_what_the_long_one_writes(fields):
    """Whatever is in its fields, also what must be masked."""
    short, long = logs.formatter(), logs._by_structlog()
    made = decision({"action_of": "are free", **fields})
    told, expected = (json.loads(one.format(made)) for one in (short, long))
    assert told.pop("timestamp")[:10] == expected.pop("timestamp")[:10]
    assert (told, list(told)) == (expected, list(expected))


def test_the_lines_of_decisions_take_the_short_way():
    """Its canary: a formatter that always took the long way would pass the test above."""
    short = logs.DecisionFormatter(logging.Formatter("long: %(message)s"))
    assert "long" not in short.format(decision({"booking_id": "bkg_1", "amount_minor": 5}, "sold"))
    assert short.format(record("plain")) == "long: plain"


def record(message: str, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("frontrow.test", logging.WARNING, "a.py", 1, message, None, None)
    made.__dict__.update(extra)
    return made


@pytest.mark.parametrize("kind", SECRETS)
def test_a_line_never_shows_what_belongs_to_somebody(kind):
    """Canaries in the message, in a field, in a nested field and in a stack: the security list's last net."""
    secret = SECRETS[kind]
    text = f"postgresql://user:{secret}@db/x" if kind.startswith("password") else f"about {secret}, see"
    try:
        raise ValueError(text)
    except ValueError as error:
        made = record(text, detail=text, more={"list": [text]}, exc_info=(ValueError, error, error.__traceback__))
    line = line_of(made)
    assert secret not in line
    told = json.loads(line)
    assert told["level"] == "warning"
    assert told["logger"] == "frontrow.test"


def test_what_is_nobodys_stays_readable():
    kept = {"at_us": 1763212800000001, "took": "12:37:23", "seat": "S-B-3", "version": "0.1.0", "event": EVENT_ID}
    told = json.loads(line_of(record("holds ended", **kept)))
    assert {name: told[name] for name in kept} == kept
    assert told["message"] == "holds ended"


def test_a_line_carries_the_id_of_its_request():
    def in_a_request() -> str:
        request_id.set("abc123")
        return line_of(record("x"))

    outside = contextvars.Context()  # of no request, whatever ran in this thread before
    assert json.loads(outside.copy().run(in_a_request))["request_id"] == "abc123"
    assert "request_id" not in json.loads(outside.run(line_of, record("x")))


def test_printing_a_ticket_in_another_script_logs_nothing(capsys):
    """The font library told of each table that it shortened: a dozen lines per ticket."""
    loggers = [logging.getLogger(name) for name in ("", "httpx", "fontTools")]
    handlers, levels = loggers[0].handlers, [logger.level for logger in loggers]
    try:
        logs.set_up_logs()
        tickets_pdf([replace(sheet(issued(1)[0]), name="山田 太郎")])
    finally:
        loggers[0].handlers = handlers
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
    assert capsys.readouterr().err == ""


async def test_a_failed_request_is_logged_with_its_id_and_without_its_person(tmp_path, monkeypatch):
    async with a_server(tmp_path) as (_, address), httpx.AsyncClient(base_url=address) as client:
        buyer = await a_buyer(client)
        visit = await buyer.enter(EVENT_ID)

        async def broken(*given: object, **more: object) -> None:
            raise RuntimeError(f"canary@example.org {visit} 203.0.113.9")

        monkeypatch.setattr(SqlCatalogue, "event", broken)
        with written() as stream:
            told = await client.get("/v1/events/evt_unknown", headers={"x-forwarded-for": "203.0.113.9"})
    assert told.status_code == 500
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert any(json.loads(line).get("route") == "get_event" for line in lines)
    for line in lines:
        assert json.loads(line)["request_id"] == told.headers["x-request-id"]
        for canary in ("canary@", visit, "203.0.113.9", "127.0.0.1"):
            assert canary not in line
    assert "canary" not in told.text


async def test_traces_are_off_by_default_and_show_route_and_status_only(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        app = client._transport.app  # type: ignore[attr-defined]
        assert open_tracer(platform.settings.traces) is None
        assert traced(app, platform.settings.traces, lambda peer: False) is app
        exporter = InMemorySpanExporter()
        opened = open_tracer(TraceSettings(sample=1.0), exporter)
        assert opened is not None
        spying = TracedApp(app, *opened, lambda peer: False)
        transport = httpx.ASGITransport(spying)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as asking:
            await asking.get("/v1/events?q=canary", headers={"authorization": f"Bearer {JWT}"})
            await asking.get("/v1/events/evt_canary", headers={"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"})
        spans = exporter.get_finished_spans()
        opened[1]()
    assert [span.name for span in spans] == ["list_events", "get_event"]
    assert [span.attributes["http.response.status_code"] for span in spans] == [200, 404]
    shown = " ".join(span.to_json() for span in spans)
    for canary in ("canary", JWT, "127.0.0.1", "a" * 32):
        assert canary not in shown, "a trace of a stranger is not gone on with"
