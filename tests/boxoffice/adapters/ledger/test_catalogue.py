"""The catalogue in the ledger (B1, B20): plans, venues, events with tiers, and the waiting room's audit."""

from dataclasses import replace

import pytest

from frontrow.boxoffice.adapters.ledger.audit_verification import verify
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.model.events import Event, EventMove, EventNotFound, EventStatus, Fee, PriceTier
from frontrow.boxoffice.seats.formats.plan_document import plan_bytes, plan_hash
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, SeatFlag, Section, Venue, area
from frontrow.shared.money import Money

NOW_US = 1_700_000_000_000_000
PLAN = Plan("Hall", (Section("A", (Row("1", (Seat("1"), Seat("2", flags=SeatFlag.STEP_FREE))),)), area("GA1", 30)))
EVENT = Event(
    "evt_1",
    "Gala",
    "ven_1",
    plan_hash(PLAN),
    "EUR",
    100,
    10,
    90,
    tiers=(PriceTier("standard", Money(5_000, "EUR"), "Stalls"), PriceTier("standing", Money(3_000, "EUR"))),
    fees=(Fee("service", 100, 0, 250),),
    withheld=frozenset({1, 4}),
    description='zum "ersten" Mal',
)


async def test_plan_venue_and_event_come_back_as_they_were(ledger: SqlLedger) -> None:
    digest, document = plan_hash(PLAN), plan_bytes(PLAN).decode()
    for _ in range(2):  # again changes nothing
        await ledger.catalogue.put_plan(digest, PLAN, document, NOW_US)
    assert await ledger.catalogue.plan_document(digest) == document
    assert await ledger.catalogue.plan_document("unknown") is None
    venue = Venue("ven_1", "Hall", digest, "Basel", "CH", "Europe/Zurich")
    await ledger.catalogue.put_venue(venue, NOW_US)
    assert await ledger.catalogue.venue("ven_1") == venue
    assert await ledger.catalogue.venue("ven_2") is None
    await ledger.catalogue.put_event(EVENT, NOW_US)
    assert await ledger.catalogue.event("evt_1") == EVENT
    with pytest.raises(EventNotFound):
        await ledger.catalogue.event("evt_2")
    assert (await verify(ledger.store))[0] == []


async def test_changing_an_event_changes_its_tiers_with_it(ledger: SqlLedger) -> None:
    await ledger.catalogue.put_event(EVENT, NOW_US)
    changed = replace(EVENT.moved(EventMove.PUBLISH), tiers=EVENT.tiers[:1], paused=True)
    await ledger.catalogue.put_event(changed, NOW_US + 1)
    assert await ledger.catalogue.event("evt_1") == changed
    counts = dict(await ledger.store.read(Query("ledger_counts")))  # type: ignore[arg-type]
    assert counts["events"] == 1


async def test_events_are_listed_by_start_in_pages(ledger: SqlLedger) -> None:
    """B1."""
    events = [
        replace(
            EVENT, id=f"evt_{n}", starts_at_us=100 + n % 3, status=EventStatus.ON_SALE if n % 2 else EventStatus.DRAFT
        )
        for n in range(7)
    ]
    for event in events:
        await ledger.catalogue.put_event(event, NOW_US)
    ordered = sorted(events, key=lambda event: (event.starts_at_us, event.id))
    first = await ledger.catalogue.events(limit=4)
    rest = await ledger.catalogue.events(after=(first[-1].starts_at_us, first[-1].id))
    assert first + rest == ordered
    on_sale = await ledger.catalogue.events(EventStatus.ON_SALE)
    assert [event.id for event in on_sale] == [event.id for event in ordered if event.status is EventStatus.ON_SALE]


async def test_published_facts_may_be_purged_unpublished_never(ledger: SqlLedger) -> None:
    from tests.contracts.ledger_contract import Bench

    bench = Bench(ledger, ledger)
    for seat in range(3):
        await bench.hold(seat)
    facts = await ledger.claim_facts(NOW_US, 1, 2)
    await ledger.facts_published([fact.number for fact in facts], NOW_US)
    await ledger.purge_facts(NOW_US, 100)
    assert dict(await ledger.store.read(Query("ledger_counts")))["facts unpublished"] == 1  # type: ignore[arg-type]
    await ledger.purge_facts(NOW_US + 1, 100)
    assert [fact.number for fact in await ledger.claim_facts(NOW_US + 9, 1, 9)] == [facts[-1].number + 1]
