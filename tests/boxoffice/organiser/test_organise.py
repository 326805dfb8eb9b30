"""What organisers do with venues and events (B13), over both ledgers."""

import asyncio

import msgspec
import pytest

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.checkout.model.receipts import Seller
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.events.event_editing import EventEdit
from frontrow.boxoffice.events.model.event_changes import Change, ChangedMeanwhile
from frontrow.boxoffice.events.model.events import EventMoveRefused, EventNotFound, EventStatus, Fee, PriceTier
from frontrow.boxoffice.events.model.published_changes import FixedOncePublished
from frontrow.boxoffice.holds.model.holds import SeatsTaken
from frontrow.boxoffice.pricing.model.taxes import SELLERS_TAX
from frontrow.boxoffice.refunds.model.refund_policy import RefundPolicy
from frontrow.boxoffice.seats.formats.pretix_format import to_pretix
from frontrow.boxoffice.seats.model.venues import VenueNotFound
from frontrow.boxoffice.seats.venues import PlanSource, VenueEdit
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.core.errors import InvalidInput
from frontrow.shared.money import Money
from tests.boxoffice.organiser.support import (
    ADA,
    BOB,
    KEYS,
    NOW_US,
    TIERS,
    a_clock,
    a_draft,
    a_hold,
    a_purchase,
    a_venue,
    an_office,
    on_sale,
    small_document,
)
from tests.boxoffice.plan_samples import small_plan

CSV = "section,row,seat,tier\nA,1,1,gold\nA,1,2,gold\n"


@pytest.mark.parametrize(
    ("source", "seats"),
    [
        (PlanSource(generate="theatre", seats=300), 300),
        (PlanSource(csv=CSV), 2),
        (PlanSource(pretix=to_pretix(small_plan())), 56),
        (PlanSource(document=small_document()), 56),
    ],
    ids=["generator", "csv", "pretix", "document"],
)
async def test_b13_a_venues_plan_comes_from_any_of_four_sources(ledger, source, seats):
    office = an_office(ledger, a_clock())
    made = await office.venues.create(ADA, VenueEdit(name="Hall", time_zone="Europe/Vienna", plan=source))
    assert made.seat_count == seats
    assert (await office.venues.plan(made.venue.plan_hash)).size == seats
    assert [one.venue.id for one in await office.venues.page(ADA, "", 10)] == [made.venue.id]
    with pytest.raises(VenueNotFound):
        await office.venues.get(BOB, made.venue.id)


@pytest.mark.parametrize(
    ("edit", "param"),
    [
        (VenueEdit(name="", plan=PlanSource(csv=CSV)), "name"),
        (VenueEdit(name="Hall"), "plan"),
        (VenueEdit(name="Hall", plan=PlanSource()), "plan"),
        (VenueEdit(name="Hall", plan=PlanSource(csv=CSV, generate="arena", seats=500)), "plan"),
        (VenueEdit(name="Hall", plan=PlanSource(generate="barn", seats=500)), "kind"),
        (VenueEdit(name="Hall", plan=PlanSource(csv="section,row\nA,1\n")), "csv"),
        (VenueEdit(name="Hall", time_zone="Mars/Base", plan=PlanSource(csv=CSV)), "time_zone"),
        (VenueEdit(name="Hall", country="Austria", plan=PlanSource(csv=CSV)), "country"),
    ],
)
async def test_b13_a_venue_that_cannot_be_right_names_the_field(sqlite_ledger, edit, param):
    with pytest.raises(InvalidInput) as refused:
        await an_office(sqlite_ledger, a_clock()).venues.create(ADA, edit)
    assert refused.value.param == param


async def test_b13_an_event_goes_from_draft_to_published_with_everything_changed_on_the_way(ledger):
    clock = a_clock()
    office = an_office(ledger, clock)
    draft = await office.create(ADA, a_draft(await a_venue(office), tiers=None))
    assert draft.event.status is EventStatus.DRAFT
    with pytest.raises(InvalidInput) as unpriced:
        await office.publish(ADA, draft.event.id)
    assert unpriced.value.param == "tiers"
    edit = EventEdit(
        name="Aurora II",
        tiers=TIERS,
        fees=(Fee("service", per_seat_minor=150),),
        max_per_person=4,
        card_tries=3,
        sale_starts_at_us=NOW_US + 60,
        refunds=RefundPolicy(window_s=3600),
        withheld=("S-A-1", "S-A-2"),
        hold_ttl_s=300,
        description="A show",
    )
    changed = await office.change(ADA, draft.event.id, edit, draft.tag)
    assert (changed.event.max_per_person, changed.event.withheld) == (4, frozenset({0, 1}))
    assert changed.event.card_tries == 3
    assert changed.event.refunds.window_s == 3600
    assert changed.tag != draft.tag
    published = await office.publish(ADA, draft.event.id, changed.tag)
    assert published.event.status is EventStatus.ON_SALE
    assert (await ledger.catalogue.event(draft.event.id)) == published.event
    with pytest.raises(EventMoveRefused):
        await office.publish(ADA, draft.event.id)
    noted = await ledger.organiser.changes("org_hall", draft.event.id, 0, 10)
    assert [one.act for one in noted] == ["publish_event", "change_event", "create_event"]
    assert {one.actor for one in noted} == {"stf_ada"}
    detail = msgspec.json.decode(noted[1].detail)
    assert detail["fields"] == edit.fields()
    assert detail["changes"]["name"] == ["Aurora", "Aurora II"]
    assert detail["changes"]["withheld"] == [0, 2]
    assert detail["changes"]["fees"] == ["", "service 1.50 EUR per seat"]
    assert detail["changes"]["tiers"] == ["", "front 50.00 EUR, back 20.00 EUR, standing 30.00 EUR"]


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"name": "  "}, "name"),
        ({"currency": "euro"}, "currency"),
        ({"sale_ends_at_us": NOW_US - 10**15}, "sale_ends_at"),
        ({"ends_at_us": NOW_US}, "ends_at"),
        ({"max_per_person": 0}, "max_per_person"),
        ({"hold_ttl_s": 0}, "hold_ttl_s"),
        ({"tiers": TIERS[:2]}, "tiers"),
        ({"tiers": (*TIERS[:2], PriceTier("standing", Money(1, "USD")))}, "tiers"),
        ({"fees": (Fee("x", per_seat_minor=-1),)}, "fees"),
        ({"refunds": RefundPolicy(window_s=-1)}, "refunds"),
        ({"withheld": ("S-Z-99",)}, "withheld"),
        ({"venue_id": "ven_nowhere"}, "venue"),
        ({"description": "x" * 20_000}, "description"),
    ],
)
async def test_b13_an_event_that_cannot_be_right_names_the_field(sqlite_ledger, changes, param):
    office = an_office(sqlite_ledger, a_clock())
    with pytest.raises(InvalidInput) as refused:
        await office.create(ADA, a_draft(await a_venue(office), **changes))
    assert refused.value.param == param


async def test_b13_what_people_bought_by_is_fixed_once_published_and_all_of_it_once_over(sqlite_ledger):
    office = an_office(sqlite_ledger, a_clock())
    event = await on_sale(office)
    other = await a_venue(office)
    for edit in (EventEdit(currency="USD"), EventEdit(venue_id=other)):
        with pytest.raises(FixedOncePublished):
            await office.change(ADA, event.id, edit)
    dearer = (PriceTier("front", Money(9900, "EUR")), *TIERS[1:])
    assert (await office.change(ADA, event.id, EventEdit(tiers=dearer))).event.tiers[0].price.minor == 9900
    await office.complete(ADA, event.id)
    with pytest.raises(FixedOncePublished):
        await office.change(ADA, event.id, EventEdit(name="Too late"))
    with pytest.raises(FixedOncePublished):
        await office.pause(ADA, event.id, paused=True)


async def test_b13_of_fifty_edits_of_one_version_one_is_made_and_the_others_are_told(ledger):
    office = an_office(ledger, a_clock())
    event = await on_sale(office)
    tag = (await office.get(ADA, event.id)).tag
    edits = [office.change(ADA, event.id, EventEdit(name=f"Name {n}"), tag) for n in range(50)]
    answers = await asyncio.gather(*edits, return_exceptions=True)
    won = [one for one in answers if not isinstance(one, BaseException)]
    assert len(won) == 1
    assert sum(isinstance(one, ChangedMeanwhile) for one in answers) == 49
    assert (await ledger.catalogue.event(event.id)).name == won[0].event.name
    acts = [one.act for one in await ledger.organiser.changes("org_hall", event.id, 0, 10)]
    assert acts == ["change_event", "publish_event", "create_event"]


async def test_b13_edits_of_different_fields_without_a_version_are_all_kept(sqlite_ledger):
    office = an_office(sqlite_ledger, a_clock())
    event = await on_sale(office)
    await asyncio.gather(
        office.change(ADA, event.id, EventEdit(name="New")),
        office.change(ADA, event.id, EventEdit(max_per_person=3)),
        office.pause(ADA, event.id, paused=True),
    )
    now = await sqlite_ledger.catalogue.event(event.id)
    assert (now.name, now.max_per_person, now.paused) == ("New", 3, True)
    assert not (await office.pause(ADA, event.id, paused=False)).event.paused


async def test_b13_venues_too_are_changed_over_the_version_that_was_read(ledger):
    office = an_office(ledger, a_clock())
    venue_id = await a_venue(office)
    first = await office.venues.get(ADA, venue_id)
    second = await office.venues.change(ADA, venue_id, VenueEdit(city="Graz"), first.tag)
    assert (second.venue.city, second.venue.name) == ("Graz", "Small Hall")
    with pytest.raises(ChangedMeanwhile):
        await office.venues.change(ADA, venue_id, VenueEdit(city="Linz"), first.tag)
    third = await office.venues.change(ADA, venue_id, VenueEdit(plan=PlanSource(csv=CSV)))
    assert third.seat_count == 2


async def test_b13_a_seat_that_somebody_has_cannot_be_withheld(ledger):
    office = an_office(ledger, a_clock())
    event = await on_sale(office)
    await a_hold(ledger, event, (4,), number=1)
    with pytest.raises(SeatsTaken) as taken:
        await office.change(ADA, event.id, EventEdit(withheld=("S-A-5", "S-A-6")))
    assert taken.value.problem()["seats"] == ["S-A-5"]
    assert (await office.change(ADA, event.id, EventEdit(withheld=("S-A-6",)))).event.withheld == {5}


async def test_b13_another_organisers_event_does_not_exist(sqlite_ledger):
    office = an_office(sqlite_ledger, a_clock())
    event = await on_sale(office)
    for attempt in (
        office.get(BOB, event.id),
        office.change(BOB, event.id, EventEdit(name="Mine")),
        office.publish(BOB, event.id),
        office.pause(BOB, event.id, paused=True),
        office.cancel(BOB, event.id),
    ):
        with pytest.raises(EventNotFound):
            await attempt
    assert (await sqlite_ledger.catalogue.event(event.id)) == event
    assert await sqlite_ledger.organiser.changes("org_other", "", 0, 10) == []


async def test_a_copy_is_a_draft_with_the_same_rules_and_nothing_of_the_sale(sqlite_ledger: SqlLedger) -> None:
    clock = a_clock()
    office = an_office(sqlite_ledger, clock)
    event = await on_sale(office, max_per_person=3)
    await office.pause(ADA, event.id, paused=True)
    made = (await office.copy(ADA, event.id, "Again")).event
    assert (made.status, made.paused, made.name) == (EventStatus.DRAFT, False, "Again")
    assert made.id != event.id
    assert (made.tiers, made.max_per_person, made.plan_hash) == (event.tiers, 3, event.plan_hash)
    with pytest.raises(EventNotFound):
        await office.copy(BOB, event.id, "Mine")


async def test_a_receipt_shows_seller_and_tax_rate_as_of_the_sale(ledger: SqlLedger) -> None:
    """Issue 11: it showed the seller's present details."""
    clock = a_clock()
    office = an_office(ledger, clock)
    receipts = Receipts(ledger, TicketRenderer(ledger, KEYS))
    event = await on_sale(office)
    sold: list[tuple[str, str, int]] = []
    steps: list[tuple[Seller | None, int | None]] = [
        (None, None),
        (Seller(ADA.organiser_id, "Hall", "Street 1", "T1", 1300), None),
        (None, 700),
        (Seller(ADA.organiser_id, "Renamed", "Street 2", "T2", 1900), None),
        (None, SELLERS_TAX),
    ]
    for number, (seller, rate) in enumerate(steps):
        clock.advance(60)
        if seller is not None:
            await ledger.organiser.put_seller(seller, Change(ADA, "change_seller", "", clock()))
        if rate is not None:
            await office.change(ADA, event.id, EventEdit(tax_basis_points=rate))
        booking = await a_purchase(ledger, event, (number,), number=number, at_us=clock(), took_us=0)
        receipt = await receipts.of(booking.id)
        assert receipt is not None
        sold.append((booking.id, receipt.seller.name, receipt.tax_basis_points))
    assert [one[1:] for one in sold] == [
        (ADA.organiser_id, 0),
        ("Hall", 1300),
        ("Hall", 700),
        ("Renamed", 700),
        ("Renamed", 1900),
    ]
    for booking_id, name, rate in sold:
        again = await receipts.of(booking_id)
        assert again is not None
        assert (again.seller.name, again.tax_basis_points) == (name, rate), "later changes are for later sales"
