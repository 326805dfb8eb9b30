"""The waitlist from joining to an ordinary hold (B11, B12, B14), over a real ledger and claim store."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from frontrow.boxoffice.events.model.events import EventStatus, NotOnSale
from frontrow.boxoffice.facts.model import OfferClaimed, OfferLapsed, OfferMade
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.requested_seats import CapReached
from frontrow.boxoffice.waitlist.model.offers import OfferNotFound, OfferOver
from frontrow.boxoffice.waitlist.model.waitlist import (
    AlreadyWaiting,
    EntryState,
    NotWaiting,
    SeatsStillFree,
    WaitOrder,
    rules_for,
)
from frontrow.core.errors import FrontrowError, InvalidInput, NotFound
from tests.boxoffice.shop import EVENT, sqlite_url
from tests.boxoffice.waiting import (
    Waiting,
    by_cancellation,
    by_decline,
    by_expiry,
    by_refund,
    by_release,
    by_return,
    clock_of,
    refund_seat,
    second_server,
    sold_out,
)

OFFER_S = 15 * 60


@pytest.fixture
async def waiting(tmp_path: Path) -> AsyncIterator[Waiting]:
    async with sold_out(sqlite_url(tmp_path)) as made:
        yield made


WAYS = [by_refund, by_cancellation, by_release, by_decline, by_expiry, by_return]


@pytest.mark.parametrize("facts_arrive", [True, False], ids=["facts", "lost facts"])
@pytest.mark.parametrize("free", WAYS, ids=lambda way: way.__name__)
async def test_a_freed_seat_is_offered_to_the_next_in_line(
    free: Callable[[Waiting], Awaitable[None]], facts_arrive: bool, waiting: Waiting
) -> None:
    """B11, B12, B14: freed by whatever, with every fact heard or with every fact lost."""
    await waiting.list.join(EVENT, "ada", 1)
    await waiting.list.join(EVENT, "bob", 1)
    await waiting.facts()
    await free(waiting)
    made = await waiting.tell() if facts_arrive else await waiting.worker.sweep()
    assert made == 1
    assert await waiting.offered("ada", "bob") == {"ada": (0,)}
    assert await waiting.status() is EventStatus.SOLD_OUT
    with pytest.raises(NotOnSale):
        await waiting.shop.hold("public", 0)


async def test_an_offer_passes_on_until_somebody_claims_it(waiting: Waiting) -> None:
    """B11: five minutes each; the lapsed and the declining are not offered the same seat again in a row."""
    for fan in ("ada", "bob", "cyd"):
        await waiting.list.join(EVENT, fan, 1)
    await refund_seat(waiting, "s0")
    await waiting.worker.sweep()
    clock_of(waiting).advance(OFFER_S, us=-1)
    await waiting.worker.sweep()
    assert await waiting.offered("ada", "bob", "cyd") == {"ada": (0,)}
    clock_of(waiting).advance(us=1)
    await waiting.worker.sweep()
    assert await waiting.offered("ada", "bob", "cyd") == {"bob": (0,)}
    (offer,) = await waiting.list.offers(EVENT, "bob")
    with pytest.raises(OfferNotFound):
        await waiting.list.decline(offer.id, "ada")
    await waiting.list.decline(offer.id, "bob")
    assert 0 not in await waiting.shop.taken()
    await waiting.worker.sweep()
    assert await waiting.offered("ada", "bob", "cyd") == {"ada": (0,)}, "ada is first in line and did not have it last"
    clock_of(waiting).advance(OFFER_S)
    await waiting.worker.sweep()  # ada did not answer twice: she is out; bob has the seat again, cyd never yet
    assert await waiting.offered("ada", "bob", "cyd") == {"bob": (0,)}
    with pytest.raises(NotWaiting):
        await waiting.list.position(EVENT, "ada")
    lapsed = [fact for fact in await waiting.facts() if isinstance(fact, OfferLapsed)]
    assert [(fact.fan, fact.last) for fact in lapsed] == [("ada", False), ("ada", True)]


async def test_accepting_an_offer_early_takes_no_time_away(waiting: Waiting) -> None:
    await waiting.list.join(EVENT, "ada", 1, sections=["A"])
    await refund_seat(waiting, "s1")
    await waiting.worker.sweep()
    (offer,) = await waiting.list.offers(EVENT, "ada")
    claimed = await waiting.list.claim(offer.id, "ada")
    assert claimed.hold_expires_at_us == offer.expires_at_us == waiting.clock() + OFFER_S * 1_000_000


async def test_a_claimed_offer_is_an_ordinary_hold_ready_for_checkout(waiting: Waiting) -> None:
    await waiting.list.join(EVENT, "ada", 2, sections=["A"])
    for fan in ("s1", "s2"):
        await refund_seat(waiting, fan)
    await waiting.worker.sweep()
    (offer,) = await waiting.list.offers(EVENT, "ada")
    clock_of(waiting).advance(OFFER_S, us=-1)
    claimed = await waiting.list.claim(offer.id, "ada")
    assert claimed.hold_expires_at_us == waiting.clock() + 600_000_000
    clock_of(waiting).advance(300)  # the offer's time is over, the hold's is not
    await waiting.expiry.sweep()
    await waiting.worker.sweep()
    assert {1, 2} <= await waiting.shop.taken()
    await waiting.ledger.begin_payment(offer.booking_id, offer.fence, waiting.clock())
    booking = await waiting.ledger.confirm(offer.booking_id, offer.fence, waiting.clock())
    assert (booking.state, booking.seats, booking.amount_minor) == (BookingState.CONFIRMED, (1, 2), 10_000)
    await waiting.shop.holds.held.sold(booking)
    again = await waiting.list.claim(offer.id, "ada")
    assert again.booking_state is BookingState.CONFIRMED
    kinds = [type(fact) for fact in await waiting.facts()]
    assert (kinds.count(OfferMade), kinds.count(OfferClaimed)) == (1, 1)
    clock_of(waiting).advance(700)
    assert {1, 2} <= await waiting.shop.taken(), "claiming again turned a sold seat into a hold"


async def test_a_late_claim_is_gone_and_the_seat_is_the_next_ones(waiting: Waiting) -> None:
    """B9's rule for offers: 410."""
    await waiting.list.join(EVENT, "ada", 1)
    await waiting.list.join(EVENT, "bob", 1)
    await refund_seat(waiting, "s0")
    await waiting.worker.sweep()
    (offer,) = await waiting.list.offers(EVENT, "ada")
    clock_of(waiting).advance(OFFER_S)
    with pytest.raises(OfferOver) as over:
        await waiting.list.claim(offer.id, "ada")
    assert over.value.http_status == 410
    await waiting.worker.sweep()
    assert await waiting.offered("ada", "bob") == {"bob": (0,)}


async def test_positions_and_leaving(waiting: Waiting) -> None:
    entries = [await waiting.list.join(EVENT, fan, 1) for fan in ("ada", "bob", "cyd")]
    assert [(await waiting.list.position(EVENT, fan)).position for fan in ("ada", "bob", "cyd")] == [1, 2, 3]
    assert (await waiting.list.join(EVENT, "bob", 1)).id == entries[1].id
    with pytest.raises(AlreadyWaiting):
        await waiting.list.join(EVENT, "bob", 2)
    await refund_seat(waiting, "s0")
    await waiting.worker.sweep()
    assert (await waiting.list.position(EVENT, "ada")).position == 0
    left = await waiting.list.leave(entries[0].id, "ada")
    assert left.state is EntryState.LEFT
    assert 0 not in await waiting.shop.taken()
    await waiting.worker.sweep()
    assert await waiting.offered("ada", "bob", "cyd") == {"bob": (0,)}
    assert (await waiting.list.position(EVENT, "cyd")).position == 1


async def test_seats_that_nobody_in_line_wants_go_back_on_sale(waiting: Waiting) -> None:
    """B12: to the waitlist first, then to everybody; sold out again as soon as they are gone."""
    await waiting.list.join(EVENT, "pair", 2)
    await waiting.worker.sweep()
    assert await waiting.status() is EventStatus.SOLD_OUT
    await refund_seat(waiting, "s0")
    assert await waiting.worker.sweep() == 0
    assert await waiting.status() is EventStatus.ON_SALE
    await waiting.shop.hold("public", 0)
    await waiting.worker.sweep()
    assert await waiting.status() is EventStatus.SOLD_OUT
    await waiting.list.leave((await waiting.list.position(EVENT, "pair")).entry.id, "pair")
    await refund_seat(waiting, "s1")
    await waiting.worker.sweep()
    assert await waiting.status() is EventStatus.ON_SALE, "nobody waits"


async def test_what_cannot_be_waited_for_is_refused(waiting: Waiting) -> None:
    with pytest.raises(CapReached):
        await waiting.list.join(EVENT, "ada", 11)
    with pytest.raises(InvalidInput):
        await waiting.list.join(EVENT, "ada", 0)
    with pytest.raises((NotFound, InvalidInput)):
        await waiting.list.join(EVENT, "ada", 1, sections=["Z"])
    await refund_seat(waiting, "s0")
    clock_of(waiting).advance(2)
    with pytest.raises(SeatsStillFree):
        await waiting.list.join(EVENT, "ada", 1)
    await waiting.list.join(EVENT, "pair", 2)
    await waiting.list.join(EVENT, "in_b", 1, sections=["B"])
    event = waiting.shop.event
    await waiting.ledger.waitlist.shift_event(event.id, EventStatus.ON_SALE, EventStatus.CANCELLED, waiting.clock())
    with pytest.raises(NotOnSale):
        await waiting.list.join(EVENT, "bob", 1)
    assert await waiting.worker.sweep() == 0


async def test_nothing_is_offered_while_the_sale_is_paused(waiting: Waiting) -> None:
    """An offer is a sale. Whoever pauses a sale wants nobody to buy."""
    await waiting.list.join(EVENT, "ada", 1)
    event = await waiting.ledger.catalogue.event(EVENT)
    await waiting.ledger.catalogue.put_event(replace(event, paused=True), waiting.clock())
    await refund_seat(waiting, "s0")
    assert await waiting.worker.sweep() == 0
    assert await waiting.offered("ada") == {}
    event = await waiting.ledger.catalogue.event(EVENT)
    await waiting.ledger.catalogue.put_event(replace(event, paused=False), waiting.clock())
    assert await waiting.worker.sweep() == 1


@pytest.mark.parametrize("change", ["withheld", "over"])
async def test_a_seat_that_is_not_sold_is_offered_to_nobody(waiting: Waiting, change: str) -> None:
    """Kept back by the organiser, or free after the sale has ended."""
    await waiting.list.join(EVENT, "ada", 1)
    await waiting.worker.sweep()
    event = await waiting.ledger.catalogue.event(EVENT)
    changed = {"withheld": frozenset({0})} if change == "withheld" else {"sale_ends_at_us": waiting.clock()}
    await waiting.ledger.catalogue.put_event(replace(event, **changed), waiting.clock())
    await refund_seat(waiting, "s0")
    assert await waiting.worker.sweep() == 0
    assert (await waiting.offered("ada"), await waiting.status()) == ({}, EventStatus.SOLD_OUT)


async def test_a_lottery_serves_in_the_order_of_its_seed(waiting: Waiting) -> None:
    rules = rules_for(EVENT, WaitOrder.LOTTERY, "the organiser's secret")
    await waiting.ledger.waitlist.put_waitlist_rules(rules, waiting.clock())
    fans = [f"f{n}" for n in range(6)]
    for fan in fans:
        await waiting.list.join(EVENT, fan, 1)
    drawn = sorted(fans, key=rules.rank)
    assert (await waiting.list.position(EVENT, drawn[0])).position == 1
    for seat in (0, 1):
        await refund_seat(waiting, f"s{seat}")
        await waiting.worker.sweep()
    assert set(await waiting.offered(*fans)) == set(drawn[:2])


async def test_a_fan_at_the_cap_is_passed_over_and_the_next_is_served(tmp_path: Path) -> None:
    async with sold_out(sqlite_url(tmp_path), max_per_person=4) as waiting:
        await waiting.list.join(EVENT, "row2", 1)  # has four seats
        await waiting.list.join(EVENT, "bob", 1)
        await refund_seat(waiting, "s0")
        assert await waiting.worker.sweep() == 1
        assert await waiting.offered("row2", "bob") == {"bob": (0,)}
        assert (await waiting.list.position(EVENT, "row2")).position == 1


async def test_the_line_is_served_past_everybody_who_does_not_fit(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looks are bounded: a line longer than one look is gone through in several."""
    monkeypatch.setattr("frontrow.boxoffice.waitlist.offers.PAGE", 3)
    monkeypatch.setattr("frontrow.boxoffice.waitlist.offers.PAGES_PER_ROUND", 2)
    for n in range(13):
        await waiting.list.join(EVENT, f"pair{n}", 2)
    await waiting.list.join(EVENT, "single", 1)
    for fan in ("s0", "s2"):  # two seats free, not side by side: a look's question cannot tell
        await refund_seat(waiting, fan)
    made = [await waiting.worker.sweep() for _ in range(3)]
    assert made == [0, 0, 1]
    assert len(await waiting.offered("single")) == 1


async def test_many_servers_serving_one_line_make_each_offer_once(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """N4: 60 looks at once from two servers over PostgreSQL and Redis; 15 free seats, 60 fans in line."""
    async with sold_out(postgres_url, redis_url) as one, second_server(postgres_url, redis_url, one) as two:
        fans = [f"f{n}" for n in range(60)]
        for fan in fans:
            await one.list.join(EVENT, fan, 1)
        for fan in ("s0", "s1", "s2", "s3", "row2", "b", "s"):
            await refund_seat(one, fan)
        looks = [(one if n % 2 else two).worker.sweep() for n in range(60)]
        done = await asyncio.gather(*looks, return_exceptions=True)
        assert [
            error for error in done if isinstance(error, BaseException) and not isinstance(error, FrontrowError)
        ] == []
        await one.worker.sweep()
        offers = await one.offered(*fans)
        assert sorted(seat for seats in offers.values() for seat in seats) == list(range(15))
        assert set(offers) == set(fans[:15]), "somebody jumped the line"
        made = [fact for fact in await one.facts() if isinstance(fact, OfferMade)]
        assert len(made) == 15
        claims = [
            (one if n % 2 else two).list.claim(o.id, fan)
            for fan in fans[:4]
            for o in await one.list.offers(EVENT, fan)
            for n in range(15)
        ]
        assert {(offer.fan, offer.state.value) for offer in await asyncio.gather(*claims)} == {
            (fan, "claimed") for fan in fans[:4]
        }


async def test_a_sweep_serves_only_events_with_a_line(waiting: Waiting) -> None:
    """N7: hundreds of events on sale without a line cost a sweep one read."""
    await waiting.worker.sweep()
    served = waiting.worker.stats.events_served
    await waiting.worker.sweep()
    assert waiting.worker.stats.events_served == served
    await waiting.list.join(EVENT, "ada", 1)
    await waiting.worker.sweep()
    assert waiting.worker.stats.events_served == served + 1
