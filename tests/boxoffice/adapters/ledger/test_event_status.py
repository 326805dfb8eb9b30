"""B20: an event is sold out, on sale again and completed by itself, each move once, with its fact and its note."""

import asyncio
from dataclasses import replace

import msgspec
import pytest

from bench.events import DAY_US, NOW_US
from frontrow.boxoffice.adapters.ledger.audit_verification import verify
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.model.event_search import EventSearch
from frontrow.boxoffice.events.model.events import Event, EventMove, EventStatus, PriceTier, over_at_us
from frontrow.boxoffice.events.status_updates import EventStatusKeeper
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.model.holds import NewHold
from frontrow.boxoffice.seats.formats.plan_document import plan_bytes, plan_hash
from frontrow.boxoffice.seats.model.venues import Plan, area
from frontrow.boxoffice.waitlist.model.waitlist import NewEntry
from frontrow.core.errors import Unavailable
from frontrow.shared.money import Money
from frontrow.testing.clock import ManualClock
from tests.boxoffice.conftest import opened
from tests.support.booking_moves import refund_booking

PLAN = Plan("Cellar", (area("GA", 4),))
SHOW = Event(
    "evt_show",
    "Aurora",
    "ven_1",
    plan_hash(PLAN),
    "EUR",
    NOW_US + 2 * DAY_US,
    NOW_US - DAY_US,
    NOW_US + DAY_US,
    (PriceTier("standing", Money(5_000, "EUR")),),
    status=EventStatus.ON_SALE,
    organiser_id="org_hall",
)
CALLERS = 50
SYSTEM_FACTS = {"EventSoldOut", "EventReopened", "EventCompleted"}


@pytest.fixture
async def show(ledger: SqlLedger) -> SqlLedger:
    await ledger.catalogue.put_plan(SHOW.plan_hash, PLAN, plan_bytes(PLAN).decode(), NOW_US)
    await ledger.catalogue.put_event(SHOW, NOW_US)
    return ledger


async def hold(ledger: SqlLedger, *seats: int, at_us: int = NOW_US) -> Booking:
    number = f"{seats[0]}{at_us}"
    placed = await ledger.place_hold(
        NewHold(f"bkg_{number}", SHOW.id, f"fan_{number}", seats, at_us, at_us + 60_000_000, 5_000 * len(seats))
    )
    booking = await ledger.booking(placed.booking_id)
    assert booking is not None
    return booking


async def buy(ledger: SqlLedger, *seats: int) -> Booking:
    held = await hold(ledger, *seats)
    await ledger.begin_payment(held.id, held.fence, NOW_US)
    return await ledger.confirm(held.id, held.fence, NOW_US)


async def settled(ledger: SqlLedger, now_us: int = NOW_US) -> tuple[EventStatus, int | None, EventMove | None]:
    told = await ledger.catalogue.update_event_status(SHOW.id, now_us)
    assert told is not None
    assert told.event == await ledger.catalogue.event(SHOW.id)
    return told.event.status, told.free, told.move


async def told(ledger: SqlLedger) -> list[str]:
    claimed = await ledger.claim_facts(NOW_US, 1, 1_000)
    return [name for name in (type(one.fact).__name__ for one in claimed) if name in SYSTEM_FACTS]


async def test_b20_the_last_seat_sold_sells_out_and_a_refund_reopens(show: SqlLedger) -> None:
    await buy(show, 0, 1, 2)
    assert await settled(show) == (EventStatus.ON_SALE, 1, None)
    held = await hold(show, 3)
    assert await settled(show) == (EventStatus.ON_SALE, 0, None), "a held seat may still come back"
    await show.begin_payment(held.id, held.fence, NOW_US)
    await show.confirm(held.id, held.fence, NOW_US)
    assert await settled(show) == (EventStatus.SOLD_OUT, 0, EventMove.SELL_OUT)
    assert await settled(show) == (EventStatus.SOLD_OUT, 0, None)
    found, _ = await show.catalogue.find_events(EventSearch(free=1, status=None))
    assert found == []
    await refund_booking(show, held.id, held.fence, NOW_US)
    assert await settled(show) == (EventStatus.ON_SALE, 1, EventMove.REOPEN)
    assert len((await show.catalogue.find_events(EventSearch(free=1)))[0]) == 1
    assert await told(show) == ["EventSoldOut", "EventReopened"]
    notes = await show.organiser.changes("org_hall", SHOW.id, 0, 10)
    assert [(one.actor, one.act) for one in notes] == [("Frontrow", "reopen_event"), ("Frontrow", "sell_out_event")]
    assert (await verify(show.store))[0] == []


async def test_b20_seats_that_somebody_waits_for_do_not_reopen_the_sale(show: SqlLedger) -> None:
    sold = await buy(show, 0, 1, 2, 3)
    await settled(show)
    await show.waitlist.join_waitlist(NewEntry("wle_1", SHOW.id, "fan_waits", 1), NOW_US)
    await refund_booking(show, sold.id, sold.fence, NOW_US)
    assert await settled(show) == (EventStatus.SOLD_OUT, 4, None)


async def test_b20_withheld_seats_are_neither_free_nor_sold(show: SqlLedger) -> None:
    await show.catalogue.put_event(replace(SHOW, withheld=frozenset({2, 3})), NOW_US)
    assert await settled(show) == (EventStatus.ON_SALE, 2, None)
    await show.catalogue.put_event(replace(SHOW, withheld=frozenset(range(4))), NOW_US)
    assert await settled(show) == (EventStatus.ON_SALE, 0, None), "nothing is sold"
    await show.catalogue.put_event(replace(SHOW, withheld=frozenset({2, 3})), NOW_US)
    await buy(show, 0, 1)
    assert await settled(show) == (EventStatus.SOLD_OUT, 0, EventMove.SELL_OUT)
    await show.catalogue.put_event(replace(SHOW, status=EventStatus.SOLD_OUT), NOW_US)  # the organiser lets them go
    assert await settled(show) == (EventStatus.ON_SALE, 2, EventMove.REOPEN)


@pytest.mark.parametrize("status", [EventStatus.ON_SALE, EventStatus.SOLD_OUT])
async def test_b20_an_event_is_completed_exactly_when_it_is_over(show: SqlLedger, status: EventStatus) -> None:
    await show.catalogue.put_event(replace(SHOW, status=status), NOW_US)
    await buy(show, 0, 1, 2, 3)
    over = over_at_us(SHOW)
    assert await show.catalogue.ended_events(over - 1, 10) == []
    assert (await settled(show, over - 1))[0] is EventStatus.SOLD_OUT
    assert await show.catalogue.ended_events(over, 10) == [SHOW.id]
    assert await settled(show, over) == (EventStatus.COMPLETED, 0, EventMove.COMPLETE)
    assert await show.catalogue.ended_events(over, 10) == []
    assert await settled(show, over) == (EventStatus.COMPLETED, 0, None)
    assert (await told(show))[-1] == "EventCompleted"


def test_over_is_when_show_and_sale_have_ended() -> None:
    assert over_at_us(SHOW) == SHOW.starts_at_us + 6 * 3_600_000_000
    assert over_at_us(replace(SHOW, ends_at_us=SHOW.starts_at_us + 1)) == SHOW.starts_at_us + 1
    assert over_at_us(replace(SHOW, sale_ends_at_us=NOW_US + 9 * DAY_US)) == NOW_US + 9 * DAY_US


async def test_b20_of_fifty_callers_on_two_servers_one_makes_the_move(ledger_url: str) -> None:
    async with opened(ledger_url) as one, opened(ledger_url) as two:
        await one.catalogue.put_plan(SHOW.plan_hash, PLAN, plan_bytes(PLAN).decode(), NOW_US)
        await one.catalogue.put_event(SHOW, NOW_US)
        sold = await buy(one, 0, 1, 2, 3)
        for move in (EventMove.SELL_OUT, EventMove.REOPEN):
            answers = await asyncio.gather(
                *((one, two)[number % 2].catalogue.update_event_status(SHOW.id, NOW_US) for number in range(CALLERS))
            )
            assert [answer.move for answer in answers if answer and answer.move] == [move]
            if move is EventMove.SELL_OUT:
                await refund_booking(two, sold.id, sold.fence, NOW_US)
        assert await told(one) == ["EventSoldOut", "EventReopened"]


async def test_b20_fifty_buyers_and_refunds_racing_the_keeper_leave_the_right_status(ledger_url: str) -> None:
    """Whatever the order, the look after the last change sees it all."""
    async with opened(ledger_url) as one, opened(ledger_url) as two:
        await one.catalogue.put_plan(SHOW.plan_hash, PLAN, plan_bytes(PLAN).decode(), NOW_US)
        await one.catalogue.put_event(SHOW, NOW_US)

        async def come(number: int) -> None:
            ledger, seat = (one, two)[number % 2], number % 4
            try:
                placed = await ledger.place_hold(
                    NewHold(f"bkg_r{number}", SHOW.id, f"fan_r{number}", (seat,), NOW_US, NOW_US + 60_000_000, 5_000)
                )
            except Exception:
                return
            await ledger.begin_payment(placed.booking_id, placed.fence, NOW_US)
            await ledger.confirm(placed.booking_id, placed.fence, NOW_US)
            await ledger.catalogue.update_event_status(SHOW.id, NOW_US)
            if number % 3 == 0:
                await refund_booking(ledger, placed.booking_id, placed.fence, NOW_US)
                await ledger.catalogue.update_event_status(SHOW.id, NOW_US)

        await asyncio.gather(*(come(number) for number in range(CALLERS)))
        status, free, _ = await settled(one)
        taken = [seat.seat_index async for seat in one.active_seats(SHOW.id, NOW_US)]
        assert free == 4 - len(taken)
        assert status is (EventStatus.ON_SALE if free else EventStatus.SOLD_OUT)


async def test_b20_a_move_never_undoes_what_the_organiser_changed(show: SqlLedger) -> None:
    await buy(show, 0, 1, 2, 3)
    await asyncio.gather(
        *(show.catalogue.put_event(replace(SHOW, name=f"Aurora {number}"), NOW_US) for number in range(10)),
        *(show.catalogue.update_event_status(SHOW.id, NOW_US) for _ in range(10)),
    )
    await settled(show)
    event = await show.catalogue.event(SHOW.id)
    assert (event.status, event.name.startswith("Aurora ")) == (EventStatus.SOLD_OUT, True)
    assert (await show.catalogue.update_event_status("evt_none", NOW_US)) is None


async def test_b20_the_keeper_hears_sweeps_and_survives_a_silent_ledger(show: SqlLedger) -> None:
    clock = ManualClock(NOW_US)
    keeper = EventStatusKeeper(show.catalogue, clock)
    await buy(show, 0, 1, 2, 3)
    for claimed in await show.claim_facts(NOW_US, 1, 100):
        keeper.add_fact(claimed.fact)
    settle, away = show.catalogue.update_event_status, 1

    async def flaky(event_id: str, now_us: int) -> object:
        nonlocal away
        if away:
            away -= 1
            raise Unavailable("no answer")
        return await settle(event_id, now_us)

    show.catalogue.update_event_status = flaky  # type: ignore[method-assign, assignment]
    with pytest.raises(Unavailable):
        await keeper.update_changed()
    await keeper.update_changed()
    assert (await show.catalogue.event(SHOW.id)).status is EventStatus.SOLD_OUT
    clock.advance(us=over_at_us(SHOW) - NOW_US)
    await keeper.sweep()  # nobody said anything
    assert (await show.catalogue.event(SHOW.id)).status is EventStatus.COMPLETED
    assert keeper.moved == 2


def test_the_facts_of_an_event_travel_like_all_others() -> None:
    from frontrow.boxoffice.facts.model import EventSoldOut, decode_fact, encode_fact

    fact = EventSoldOut("", SHOW.id, "", 0, (), NOW_US)
    assert decode_fact(encode_fact(fact)) == fact
    assert msgspec.json.decode(encode_fact(fact))["fact"] == "EventSoldOut"
