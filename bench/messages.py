"""Tickets signed, verified and rendered; facts relayed per bus; mails sent. CPU per operation and rates of one run.

    python -m bench.messages [--facts 20000]

`run()` answers the figures as a dict; `make bench-checkout` puts them beside its own.
"""

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from bench.measure import OUT, cpu_us
from frontrow.boxoffice.adapters.bus.kafka import KafkaBus
from frontrow.boxoffice.adapters.bus.memory import MemoryBus
from frontrow.boxoffice.adapters.bus.redis import RedisBus
from frontrow.boxoffice.adapters.ledger.engine.group_commit import RunStatements
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.facts.model import BookingConfirmed, encode_fact
from frontrow.boxoffice.facts.outbox_relay import OutboxRelay
from frontrow.boxoffice.facts.ports import Bus
from frontrow.boxoffice.gate.gate_bundle import make_bundle
from frontrow.boxoffice.gate.gate_check import Gate
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.tickets import qr_code as qr
from frontrow.boxoffice.tickets.calendar_entry import calendar_entry
from frontrow.boxoffice.tickets.model.tickets import Sheet
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Issuer, read_code
from frontrow.boxoffice.tickets.ticket_pdf import tickets_pdf
from frontrow.core.clock import WallClock
from tests.support.servers import Valkey

NOW_US = 1_700_000_000_000_000
EVENT = "evt_bench"
PATIENCE_S = 120.0


def ticket_figures() -> dict[str, float]:
    """CPU microseconds of everything a ticket goes through."""
    keys = TicketKeys.fresh()
    booking = Booking("bkg_1", EVENT, "fan", BookingState.PAYING, 1, tuple(range(100)), 0, "EUR", "", 0, 0, 0)
    issuer, tickets = Issuer(keys), Issuer(keys).issue(booking)
    gate = Gate(make_bundle(keys, EVENT, "Bench", [], NOW_US), "gate")
    codes = [ticket.code for ticket in tickets]
    damaged = [code[:50] + ("A" if code[50] != "A" else "B") + code[51:] for code in codes]
    sheet = Sheet("tkt_1", codes[0], "A-1-1", EVENT, "Aurora", "Hall", "Berlin", "UTC", NOW_US, 0, "bkg_1", NOW_US)

    def times(act: Any) -> Any:
        return lambda count: [act(number % 100) for number in range(count)]

    return {
        "sign": cpu_us(lambda count: issuer.issue(booking), batch=100, rounds=8),
        "read": cpu_us(times(lambda n: read_code(codes[n])), batch=500),
        "verify at the gate": cpu_us(times(lambda n: gate.verify(codes[n], NOW_US)), batch=300),
        "refuse a damaged code": cpu_us(times(lambda n: gate.verify(damaged[n], NOW_US)), batch=500),
        "QR as SVG": cpu_us(times(lambda n: qr.svg(codes[n])), batch=50),
        "QR as PNG": cpu_us(times(lambda n: qr.png(codes[n])), batch=50),
        "PDF of one ticket": cpu_us(times(lambda n: tickets_pdf([sheet])), batch=10),
        "calendar entry": cpu_us(times(lambda n: calendar_entry([sheet])), batch=50),
    }


async def fill(ledger: SqlLedger, count: int) -> None:
    """`count` facts into the outbox."""
    for start in range(0, count, 2_000):
        facts = [
            BookingConfirmed(f"bkg_{n}", EVENT, f"fan_{n}", n, (n,), NOW_US, 5_000, "EUR")
            for n in range(start, min(start + 2_000, count))
        ]
        rows = [("BookingConfirmed", encode_fact(fact), EVENT, fact.booking_id, NOW_US) for fact in facts]
        await ledger.line.submit(RunStatements((Query("add_facts", rows),), now_us=NOW_US))


async def relay_and_consume(name: str, bus: Bus, ledger: SqlLedger, count: int) -> dict[str, float]:
    """Facts a second from the outbox to the bus, and from the bus through one reader."""
    await fill(ledger, count)
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    relayed = await OutboxRelay(ledger, bus, WallClock(), batch=1_000).relay_pending()
    relay_cpu_s, relay_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    assert relayed == count, f"{name}: {relayed} of {count} relayed"
    reader, got, deadline = await bus.reader("bench"), 0, time.monotonic() + PATIENCE_S
    while not (first := await reader.read(1_000, 1.0)):  # joining a group takes seconds on Kafka
        assert time.monotonic() < deadline
    wall_s = time.perf_counter()
    await reader.done(first)
    got = len(first)
    while got < count:
        assert time.monotonic() < deadline
        facts = await reader.read(1_000, 1.0)
        await reader.done(facts)
        got += len(facts)
    read_s = time.perf_counter() - wall_s
    await reader.aclose()
    await bus.aclose()
    return {
        "relayed_per_s": count / relay_s,
        "relay_cpu_us": relay_cpu_s / count * 1e6,
        "consumed_per_s": (count - len(first)) / max(read_s, 1e-9),
    }


async def bus_figures(count: int) -> dict[str, dict[str, float]]:
    broker = Producer({"test.mock.num.brokers": 3, "bootstrap.servers": "ignored", "log_level": 0})
    servers = ",".join(f"{one.host}:{one.port}" for one in broker.list_topics(timeout=10).brokers.values())
    figures: dict[str, dict[str, float]] = {}
    with Valkey() as valkey, tempfile.TemporaryDirectory() as folder:
        for name, bus in (
            ("memory", MemoryBus(max_kept=2 * count)),
            ("Redis Streams", RedisBus(valkey.url)),
            ("Kafka", KafkaBus(servers)),
        ):
            ledger = await open_ledger(f"sqlite:///{Path(folder) / name.partition(' ')[0]}.db")
            figures[name] = await relay_and_consume(name, bus, ledger, count)
            await ledger.aclose()
    return figures


async def run(facts: int = 20_000) -> dict[str, Any]:
    """All figures of tickets and messages."""
    tickets = await asyncio.to_thread(ticket_figures)
    return {
        "tickets_cpu_us": tickets,
        "tickets_per_cpu_second": {name: 1e6 / us for name, us in tickets.items()},
        "buses": await bus_figures(facts),
    }


def show(figures: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    tickets = Table("ticket", "CPU us", "per CPU second", title="Tickets")
    for name, us in figures["tickets_cpu_us"].items():
        tickets.add_row(name, f"{us:,.0f}", f"{1e6 / us:,.0f}")
    buses = Table("bus", "relayed/s", "CPU us a fact", "consumed/s", title="Facts, from an SQLite outbox")
    for name, one in figures["buses"].items():
        buses.add_row(
            name, f"{one['relayed_per_s']:,.0f}", f"{one['relay_cpu_us']:,.1f}", f"{one['consumed_per_s']:,.0f}"
        )
    for table in (tickets, buses):
        Console(width=120).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=int, default=20_000)
    figures = asyncio.run(run(parser.parse_args().facts))
    show(figures)
    OUT.mkdir(exist_ok=True)
    (OUT / "messages.json").write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
