"""100,000 events: how long a search and a page take, and what a process does that has nothing to do.

Run: python -m bench.events [events] [--postgres]. Prints the fastest, median and slowest of 40 runs of each search, and
the time to load the catalogue, on SQLite or on PostgreSQL.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.event_listing import EventBrowser
from frontrow.boxoffice.events.model.event_search import EventSearch
from frontrow.boxoffice.events.model.events import Event, EventStatus, PriceTier
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.seats.formats.plan_document import plan_bytes, plan_hash
from frontrow.boxoffice.seats.model.venues import Plan, Venue, area
from frontrow.shared.money import Money
from tests.support.servers import Postgres

NOW_US = 1_800_000_000_000_000
HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
BATCH = 1_000
RUNS = 40
PLAN = Plan("Hall", (area("GA", 100),))
PLAN_HASH = plan_hash(PLAN)
NAMED = ("Wien", "Zürich", "Łódź", "New York", "東京", "Αθήνα", "Reykjavík", "القاهرة", "São Paulo", "Graz")
CITIES = [*NAMED, *(f"Stadt{number}" for number in range(190))]
KINDS = ("Jazz", "Rock", "Oper", "Kabarett", "Ballett", "Lesung", "Fußball", "Musical", "Zirkus", "Café-Konzert")


def many_events(count: int, *, live_every: int = 1, now_us: int = NOW_US) -> Iterator[Event]:
    """Events in 200 cities, an hour apart; one in `live_every` is on sale, the others are drafts or over."""
    for number in range(count):
        city, kind = number % len(CITIES), KINDS[(number // 7) % len(KINDS)]
        live = number % live_every == 0
        past = (EventStatus.DRAFT, EventStatus.COMPLETED, EventStatus.CANCELLED)[number % 3]
        starts_at_us = now_us + DAY_US + number * HOUR_US // 10
        price = 1_000 + 500 * (number % 40)
        yield Event(
            f"evt_{number:08d}",
            f"{kind} mit Künstler{number % 5_000} Nacht {number}",
            f"ven_{city}",
            PLAN_HASH,
            "EUR",
            starts_at_us,
            now_us - DAY_US,
            starts_at_us,
            (PriceTier("standing", Money(price, "EUR")),),
            status=EventStatus.ON_SALE if live else past,
            description="Ein Abend voller Musik, Licht und Überraschungen für alle.",
        )


async def load_events(ledger: SqlLedger, events: Iterator[Event], *, now_us: int = NOW_US) -> None:
    """Venues, plan and events, in batches."""
    await ledger.catalogue.put_plan(PLAN_HASH, PLAN, plan_bytes(PLAN).decode(), now_us)
    for number, city in enumerate(CITIES):
        await ledger.catalogue.put_venue(
            Venue(f"ven_{number}", f"Halle {number}", PLAN_HASH, city, "AT", "Europe/Vienna"), now_us
        )
    batch: list[Event] = []
    for event in events:
        batch.append(event)
        if len(batch) == BATCH:
            await ledger.catalogue.put_events(batch, now_us)
            batch = []
    if batch:
        await ledger.catalogue.put_events(batch, now_us)


def searches(count: int) -> dict[str, EventSearch]:
    """What is measured: usual questions and the hardest ones."""
    middle = NOW_US + DAY_US + count * HOUR_US // 20
    return {
        "first page": EventSearch(),
        "page 50": EventSearch(page=50),
        "a page from the middle": EventSearch(after=(middle, "")),
        "one rare word": EventSearch("kunstler4711"),
        "a beginning of a word": EventSearch("kunstler47"),
        "a common word": EventSearch("jazz"),
        "a word of every event": EventSearch("abend"),
        "three words": EventSearch("cafe konzert zurich"),
        "city and dates": EventSearch(city="lodz", from_us=middle, before_us=middle + 30 * DAY_US),
        "venue, price and seats": EventSearch(venue="halle 12", max_price_minor=2_000, free=4),
        "text, city, date, price": EventSearch("jazz", city="new york", from_us=middle, max_price_minor=9_000),
        "price nobody asks": EventSearch(max_price_minor=10),
        "no such word": EventSearch("xylophon"),
        "two common words that never meet": EventSearch("jazz oper"),
    }


async def measure(url: str, count: int) -> None:
    ledger = await open_ledger(url)
    try:
        began = time.perf_counter()
        await load_events(ledger, many_events(count))
        print(f"{count:,} events loaded in {time.perf_counter() - began:.0f} s")
        browse = EventBrowser(ledger.catalogue, Sales())
        print(f"{'search':36}{'found':>6}{'fastest ms':>12}{'median':>8}{'slowest':>9}")
        for name, search in searches(count).items():
            page = await browse.search(search)
            print(f"{name:36}{len(page.listings):>6}{await timed(lambda search=search: browse.search(search))}")
        print(f"{'the look of an idle process':42}{await timed(ledger.catalogue.newest_change)}")
    finally:
        await ledger.aclose()


async def timed(act: Callable[[], Awaitable[object]]) -> str:
    """The fastest, median and slowest of some runs, in milliseconds."""
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        await act()
        times.append(1000 * (time.perf_counter() - began))
    return f"{min(times):>12.2f}{statistics.median(times):>8.2f}{max(times):>9.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=100_000)
    parser.add_argument("--postgres", action="store_true")
    asked = parser.parse_args()
    if asked.postgres:
        with Postgres() as server:
            migrate(server.url)
            asyncio.run(measure(server.url, asked.events))
        return
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(f"sqlite:///{Path(folder) / 'ledger.db'}", asked.events))


if __name__ == "__main__":
    main()
