"""The platform's metrics (B19): every family of /metrics, read from plain counters when somebody asks.

Labels are names of routes, states, classes and events; nothing about a person is ever a label or a value.
docs/operations.md lists them; deploy/grafana and deploy/alerts are made of them.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.messages.model.channel_reports import ReportKind
from frontrow.boxoffice.payments.model.disputes import DisputeState
from frontrow.boxoffice.payments.model.payments import PaymentState
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.shared.version import VERSION
from frontrow.waitingroom.service.metrics import RoomMetrics
from frontrow.web.guard.overload import Rank
from frontrow.web.guard.route_metrics import bounds_s
from frontrow.web.observability.job_health import job_families
from frontrow.web.observability.plain_pages import METRICS_TYPE, Answer
from frontrow.web.observability.room_metrics import room_families
from frontrow.web.observability.worker_metrics import Family, Sample, text
from frontrow.web.platform.platform import Platform

CONTENT_TYPE: Final = "text/plain; version=0.0.4"  # the framework adds the charset
STORES: Final = ("ledger", "claims", "room")


def metrics_page(platform: Platform) -> bytes:
    """The body of /metrics, of all workers of this server."""
    return text(platform.server.telemetry.board.joined(families(platform)))


def metrics_answer(platform: Platform, path: str) -> Answer:
    """What the port of `server.metrics` answers at this path."""
    return (200, METRICS_TYPE, metrics_page(platform)) if path == "/metrics" else (404, "text/plain", b"")


def families(platform: Platform) -> list[Family]:
    """Every family of this process."""
    parts = (_http, _gate, _seats, _money, _messages, _reports, _mails, _stores, _streams, _process)
    found = [family for part in parts for family in part(platform)]
    rooms = platform.endpoints.room
    metrics = RoomMetrics(rooms.room, rooms.counts, rooms.streams, rooms.entry.harder, rooms.entry.without_scripts)
    return [*found, *job_families(platform.server.telemetry.failures), *room_families(metrics)]


def _family(name: str, kind: str, about: str, values: Mapping[Any, float], *labels: str, add: str = "sum") -> Family:
    """`values` by label values (a string for one label, a tuple for several, () for none)."""
    samples = []
    for key, value in values.items():
        parts = (key,) if isinstance(key, str) else key
        samples.append(Sample(name, tuple(zip(labels, parts, strict=True)), float(value)))
    return Family(name, kind, about, add, samples)


def _http(platform: Platform) -> Iterator[Family]:
    done: dict[tuple[str, str, str], float] = {}
    name = "frontrow_http_request_seconds"
    samples = []
    bounds = [*(f"{bound:.9g}" for bound in bounds_s()), "+Inf"]
    for row in platform.server.telemetry.traffic.rows():
        for status, count in row.statuses.items():
            done[row.route, row.door, status] = count
        labels = (("route", row.route), ("door", row.door))
        for bound, count in zip(bounds, row.buckets, strict=True):
            samples.append(Sample(f"{name}_bucket", (*labels, ("le", bound)), float(count)))
        samples.append(Sample(f"{name}_sum", labels, row.total_ns / 1e9))
        samples.append(Sample(f"{name}_count", labels, float(row.buckets[-1])))
    about = "Requests answered, by route, path (fast path or framework) and kind of status"
    yield _family("frontrow_http_requests_total", "counter", about, done, "route", "door", "status")
    yield Family(name, "histogram", "Time from the headers to the answer", "sum", samples)
    refused = {(): platform.server.limiter.refused}
    yield _family("frontrow_rate_limited_total", "counter", "Requests refused by the limits", refused)


def _gate(platform: Platform) -> Iterator[Family]:
    gate = platform.server.telemetry.gate
    shed = {rank.name.lower(): gate.shed[rank] for rank in Rank if rank is not Rank.EXEMPT}
    yield _family("frontrow_shed_requests_total", "counter", "Requests shed by class", shed, "class")
    gauges = {
        "frontrow_overload_pressure": ("0: nobody is shed; 4: everything but paying", gate.pressure, "max"),
        "frontrow_loop_lag_seconds": ("Shortest delay of the event loop in the last interval", gate.lag.last_s, "max"),
        "frontrow_requests_in_flight": ("Requests being answered", gate.in_flight, "sum"),
        "frontrow_connections": ("Open connections", gate.connections, "sum"),
    }
    for name, (about, value, add) in gauges.items():
        yield _family(name, "gauge", about, {(): value}, add=add)
    about = "Connections over the cap"
    yield _family("frontrow_turned_away_total", "counter", about, {(): gate.turned_away})
    yield _family("frontrow_deadlines_total", "counter", "Answers that missed their deadline", {(): gate.late})


def _seats(platform: Platform) -> Iterator[Family]:
    stats = platform.box_office.holds.stats
    outcomes = {
        "won": stats.won,
        "refused_locally": stats.refused_locally,
        "refused_by_claims": stats.refused_by_claims,
        "refused_by_ledger": stats.refused_by_ledger,
        "unavailable": stats.unavailable,
    }
    yield _family("frontrow_holds_total", "counter", "Attempts to hold seats, by outcome", outcomes, "outcome")
    locked = {(): stats.seats_won}
    yield _family("frontrow_seats_locked_total", "counter", "Seats locked by holds of this server", locked)
    figures = platform.server.telemetry.figures
    bookings = {state.value: figures.get("bookings", {}).get(state.value, 0) for state in BookingState}
    yield _family("frontrow_bookings", "gauge", "Bookings in the ledger, by state", bookings, "state", add="max")
    active = {(): figures.get("seats", {}).get("active", 0)}
    yield _family("frontrow_seats_active", "gauge", "Seats held or sold", active, add="max")
    waiting = {state: figures.get("waitlist", {}).get(state, 0) for state in ("waiting", "offered")}
    yield _family("frontrow_waitlist_entries", "gauge", "Waitlist entries, by state", waiting, "state", add="max")
    offers = figures.get("offers", {}) or {"open": 0}
    yield _family("frontrow_waitlist_offers", "gauge", "Offers of the waitlist, by state", offers, "state", add="max")


def _money(platform: Platform) -> Iterator[Family]:
    by_state = platform.server.telemetry.figures.get("payments", {})
    payments = {state.value: by_state.get(state.value, 0) for state in PaymentState}
    yield _family("frontrow_payments", "gauge", "Payments in the ledger, by state", payments, "state", add="max")
    by_state = platform.server.telemetry.figures.get("refunds", {})
    refunds = {state.value: by_state.get(state.value, 0) for state in RefundState}
    yield _family("frontrow_refunds", "gauge", "Refunds in the ledger, by state", refunds, "state", add="max")
    by_state = platform.server.telemetry.figures.get("disputes", {})
    disputes = {state.value: by_state.get(state.value, 0) for state in DisputeState}
    about = "Disputes of payments in the ledger, by state"
    yield _family("frontrow_disputes", "gauge", about, disputes, "state", add="max")
    captures = platform.server.telemetry.figures.get("captures", {})
    waiting = {(): captures.get("waiting", 0)}
    yield _family(
        "frontrow_captures_waiting", "gauge", "Sold bookings whose money is not taken yet", waiting, add="max"
    )
    about = "How long the oldest sold booking has waited for its money to be taken"
    wait_s = {(): _age_s(platform, captures.get("oldest_us", 0))}
    yield _family("frontrow_capture_wait_seconds", "gauge", about, wait_s, add="max")
    about = "Payments that were tried five times or more and are not finished"
    stuck = {(): platform.server.telemetry.figures.get("payments_stuck", {}).get("all", 0)}
    yield _family("frontrow_payments_stuck", "gauge", about, stuck, add="max")
    providers: Any = platform.box_office.providers.all()
    breaker = {(): float(any(one.breaker.is_open for one in providers))}
    yield _family("frontrow_breaker_open", "gauge", "1 while the payment provider is spared", breaker, add="max")
    about = "Calls to the payment provider"
    yield _family(
        "frontrow_provider_calls_in_flight", "gauge", about, {(): sum(one.cap.in_flight for one in providers)}
    )
    about = "Calls spared by the breaker or the cap"
    yield _family("frontrow_provider_calls_spared_total", "counter", about, {(): sum(one.spared for one in providers)})


def _messages(platform: Platform) -> Iterator[Family]:
    outbox = platform.server.telemetry.figures.get("outbox", {})
    lag_s = _age_s(platform, outbox.get("oldest_us", 0))
    yield _family("frontrow_outbox_lag_seconds", "gauge", "Age of the oldest unpublished fact", {(): lag_s}, add="max")
    count = {(): outbox.get("unpublished", 0)}
    yield _family("frontrow_outbox_facts", "gauge", "Facts not yet published", count, add="max")
    behind = platform.server.telemetry.bus_lag or {("notify", "all"): 0}
    about = "Facts on the bus that a group of consumers has not finished"
    yield _family("frontrow_bus_lag_facts", "gauge", about, behind, "group", "partition", add="max")
    deliveries = platform.server.telemetry.figures.get("deliveries", {}) or {"waiting": 0}
    yield _family("frontrow_deliveries", "gauge", "Messages and webhooks, by state", deliveries, "state", add="max")


def _reports(platform: Platform) -> Iterator[Family]:
    heard = platform.messaging.reports.heard if platform.messaging.reports is not None else {}
    kinds = {(channel, kind.value): 0 for channel in ("email", "sms") for kind in ReportKind}
    about = "What providers of mail and SMS reported: bounces, complaints, STOP"
    yield _family("frontrow_channel_reports_total", "counter", about, kinds | dict(heard), "channel", "kind")


def _mails(platform: Platform) -> Iterator[Family]:
    mails = platform.server.telemetry.figures.get("mails", {})
    waiting = {(): mails.get("waiting", 0)}
    yield _family("frontrow_mails_waiting", "gauge", "Mails and messages to people, not sent yet", waiting, add="max")
    wait_s = {(): _age_s(platform, mails.get("oldest_us", 0))}
    yield _family("frontrow_mail_wait_seconds", "gauge", "How long the oldest of them has waited", wait_s, add="max")


def _age_s(platform: Platform, since_us: int) -> float:
    """How long ago that was; 0 if there is nothing."""
    return max(0.0, (platform.clock() - since_us) / 1e6) if since_us else 0.0


def _stores(platform: Platform) -> Iterator[Family]:
    by_store = platform.server.telemetry.store_errors
    room = sum(count for name, count in platform.room.service.counts.items() if "error" in name or "fail" in name)
    errors = {store: by_store[store] for store in STORES} | {"room": room}
    errors["claims"] += platform.box_office.holds.stats.unavailable
    yield _family("frontrow_store_errors_total", "counter", "Failures of a store, as seen here", errors, "store")
    rebuilds = {(): platform.box_office.recovery.stats.rebuilds}
    yield _family("frontrow_claims_rebuilds_total", "counter", "Times the claim store was filled anew", rebuilds)
    lined_up = {(): len(platform.stores.ledger.line)}
    yield _family("frontrow_ledger_line", "gauge", "Writes waiting for the next group commit", lined_up)
    yield from _replica(platform)
    used, most = platform.server.telemetry.redis_memory
    about = "Memory that the fullest Redis server uses"
    yield _family("frontrow_redis_memory_used_bytes", "gauge", about, {(): used}, add="max")
    about = "Memory that it may use: its maxmemory, or the memory of its machine"
    yield _family("frontrow_redis_memory_max_bytes", "gauge", about, {(): most}, add="max")
    ahead_s = {(): abs(platform.wall_ahead_s)}
    help_text = "How far this machine's clock is from the ledger's; above 30 the server is not ready"
    yield _family("frontrow_clock_error_seconds", "gauge", help_text, ahead_s, add="max")
    age_s = time.time() - platform.server.telemetry.read_at_s if platform.server.telemetry.read_at_s else 0.0
    yield _family("frontrow_figures_age_seconds", "gauge", "Age of the ledger's figures", {(): age_s}, add="max")


def _replica(platform: Platform) -> Iterator[Family]:
    """Zero for servers that read no replica."""
    replica = platform.stores.ledger.replica
    away, lag_s, left = 0.0, 0.0, 0
    counts: Mapping[str, float] = {"primary": 0, "replica": 0}
    if replica is not None:
        away, lag_s, left, counts = float(not replica.is_used), replica.age_s, replica.times_left, replica.counts
    about = "1 while a replica is set up and lists, figures and exports are read from the primary"
    yield _family("frontrow_replica_away", "gauge", about, {(): away}, add="max")
    about = "How far the replica is behind the ledger at most"
    yield _family("frontrow_replica_lag_seconds", "gauge", about, {(): lag_s}, add="max")
    about = "Times a replica was left because it lagged or did not answer"
    yield _family("frontrow_replica_left_total", "counter", about, {(): left})
    about = "Reads of lists, figures and exports where a replica is set up, by who answered"
    yield _family("frontrow_browsing_reads_total", "counter", about, counts, "from")


def _streams(platform: Platform) -> Iterator[Family]:
    viewers = {event: len(streams) for event, streams in platform.endpoints.seat_map.streams.items()}
    yield _family("frontrow_seat_streams", "gauge", "Open live maps, by event", viewers, "event")


def _process(platform: Platform) -> Iterator[Family]:
    yield _family("frontrow_info", "gauge", "The version that runs", {VERSION: 1.0}, "version", add="max")
    yield _family("frontrow_cpu_seconds_total", "counter", "CPU of this server's processes", {(): time.process_time()})
    yield _family(
        "frontrow_events_on_sale", "gauge", "Events on sale", {(): len(platform.box_office.openings.events)}, add="max"
    )
    now_us = platform.clock()
    selling = {(): sum(_sells(event, now_us) for event in platform.box_office.openings.events.values())}
    about = "Events that sell seats now: not sold out, not paused, within their time of sale"
    yield _family("frontrow_events_selling", "gauge", about, selling, add="max")


def _sells(event: Event, now_us: int) -> bool:
    in_time = event.sale_starts_at_us <= now_us < event.sale_ends_at_us
    return event.status is EventStatus.ON_SALE and not event.paused and in_time
