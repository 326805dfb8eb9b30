"""Servers of schema 40 and of schema 41 read each other's bookings (ADR 0189): they run side by side in an upgrade."""

import asyncio
import sqlite3
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import read_session_column
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState, Origin
from frontrow.boxoffice.holds.model.holds import VisitEnded, VisitHold
from frontrow.boxoffice.organiser.model.box_office_sales import BoxOfficeTotal, PaidBy, buyer_id
from tests.boxoffice.conftest import opened
from tests.contracts.ledger_contract import TEN_MINUTES_US, Bench, refusal

EVENT = "evt_upgrade"
VISIT, OFFER, STAFF = f"{EVENT}.0.1.7", "ofr_01M9TYNX1GHZ7MGTTWDCKT5WJT", "stf_01M9TYNX1GHZ7MGTTWDCKT5WJT"
BUYER = buyer_id(EVENT, "bkg_box_office")
# What a server of schema 40 writes and reads.
WRITTEN = (
    "id, event_id, fan, state, seat_count, seats, amount_minor, currency, session, created_at_us, changed_at_us, "
    "hold_expires_at_us, price_lines, confirmed_at_us"
)
READ = "id, fan, state, seats, session"
SESSIONS = {
    "bkg_shop": (VISIT, "ada", Origin.SHOP, VISIT, ""),
    "bkg_plain": ("", "bob", Origin.SHOP, "", ""),
    "bkg_offer": (OFFER, "eve", Origin.OFFER, "", ""),
    "bkg_box_office": (STAFF, BUYER, Origin.BOX_OFFICE, "", STAFF),
}

NAMED_BY = {"bkg_shop": "visit_id", "bkg_plain": "visit_id", "bkg_offer": "offer_id", "bkg_box_office": "sold_by"}


@pytest.fixture(params=["sqlite", "postgres", "partitioned"])
def ledger_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_ledger_url"))


def run(url: str, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Run one statement as the server of schema 40 that is still there."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        rows = connection.execute(sql.replace("%s", "?"), values).fetchall()
        connection.commit()
        connection.close()
        return rows
    with psycopg.connect(url) as connection:
        cursor = connection.execute(sql, values)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


async def write_as_schema_40(url: str, bench: Bench, booking_id: str, seat: int, state: str = "held") -> None:
    session, fan, *_ = SESSIONS[booking_id]
    now_us, sold_at_us = bench.now_us, bench.now_us if state == "confirmed" else None
    values = (
        *(booking_id, EVENT, fan, state, 1, f"[{seat}]", 5_000, "EUR", session),
        *(now_us, now_us, now_us + TEN_MINUTES_US, "", sold_at_us),
    )
    await asyncio.to_thread(run, url, f"INSERT INTO bookings ({WRITTEN}) VALUES (%s{', %s' * 13})", values)
    columns = "event_id, seat_index, booking_id, price_minor, active"
    taken = (EVENT, seat, booking_id)
    await asyncio.to_thread(run, url, f"INSERT INTO booking_seats ({columns}) VALUES (%s, %s, %s, 0, 1)", taken)


async def read(bench: Bench, booking_id: str) -> Booking:
    booking = await bench.one.booking(booking_id)
    assert booking is not None
    return booking


@pytest.mark.parametrize("booking_id", SESSIONS)
def test_the_column_of_older_servers_says_the_origin(booking_id: str) -> None:
    session, fan, *expected = SESSIONS[booking_id]
    assert read_session_column(session, fan) == tuple(expected)


async def test_a_new_server_reads_what_an_old_one_wrote(ledger_url: str) -> None:
    async with opened(ledger_url) as one, opened(ledger_url) as two:
        bench = Bench(one, two)
        for seat, booking_id in enumerate(SESSIONS):
            await write_as_schema_40(ledger_url, bench, booking_id, seat)
        for booking_id, (_, _, *expected) in SESSIONS.items():
            for booking in (await read(bench, booking_id), *await one.bookings_of(EVENT, SESSIONS[booking_id][1])):
                assert [booking.origin, booking.visit_id, booking.sold_by] == expected, booking_id
                assert booking.payment_begun_at_us is None
        held = {hold.visit: hold.booking_id for hold in await one.visit_holds(EVENT, bench.now_us, 10)}
        assert held[VISIT] == "bkg_shop"


async def test_an_old_server_reads_what_a_new_one_wrote(ledger_url: str) -> None:
    async with opened(ledger_url) as one, opened(ledger_url) as two:
        bench = Bench(one, two)
        bench.event = EVENT
        for seat, (booking_id, (session, fan, *expected)) in enumerate(SESSIONS.items()):
            await bench.hold(seat, booking=booking_id, fan=fan, **{NAMED_BY[booking_id]: session})
            booking = await read(bench, booking_id)
            assert [booking.origin, booking.visit_id, booking.sold_by] == expected
        rows = await asyncio.to_thread(run, ledger_url, f"SELECT {READ} FROM bookings")
        assert {row[0]: row[4] for row in rows} == {name: expected[0] for name, expected in SESSIONS.items()}
        assert await one.visit_holds(EVENT, bench.now_us, 10) == [
            VisitHold(VISIT, "bkg_shop", bench.now_us + TEN_MINUTES_US)
        ], "an offer and a sale at the box office keep no visit"


async def test_a_visit_that_bought_at_an_old_server_holds_no_more_seats_at_a_new_one(ledger_url: str) -> None:
    async with opened(ledger_url) as one, opened(ledger_url) as two:
        bench = Bench(one, two)
        bench.event = EVENT
        await write_as_schema_40(ledger_url, bench, "bkg_shop", 1, "confirmed")
        again = bench.wish(2, fan="ada", visit_id=VISIT, cap=10, ends_with_sale=True)
        await refusal(one.place_hold(again), VisitEnded)
        await bench.hold(3, fan="ada", visit_id=f"{EVENT}.0.1.8", cap=10, ends_with_sale=True)


async def test_sales_at_the_box_office_are_counted_together_whoever_wrote_them(ledger_url: str) -> None:
    async with opened(ledger_url) as one, opened(ledger_url) as two:
        bench = Bench(one, two)
        bench.event = EVENT
        await write_as_schema_40(ledger_url, bench, "bkg_box_office", 1, "confirmed")
        sold = await bench.paid(2, booking="bkg_2", fan=buyer_id(EVENT, "bkg_2"), sold_by=STAFF)
        await one.confirm(sold.booking_id, sold.fence, bench.now_us)
        await bench.paid(3, fan="ada", visit_id=VISIT)
        totals = await one.organiser.box_office_totals(EVENT, 0, bench.now_us + 1)
        assert totals == [BoxOfficeTotal(STAFF, PaidBy.FREE, 2, 2, 0, 0)]


async def test_a_booking_says_when_its_payment_was_begun(ledger_url: str) -> None:
    """Extending does not change it, nor does stepping back; beginning again does. Older servers write none."""
    async with opened(ledger_url) as one, opened(ledger_url) as two:
        bench = Bench(one, two)
        bench.event = EVENT
        await write_as_schema_40(ledger_url, bench, "bkg_shop", 1)
        for booking_id in ("bkg_shop", (await bench.hold(2)).booking_id):
            fence = (await read(bench, booking_id)).fence
            await one.extend_hold(booking_id, fence, bench.now_us, bench.now_us + 2 * TEN_MINUTES_US)
            assert (await read(bench, booking_id)).payment_begun_at_us is None
            begun = await one.begin_payment(booking_id, fence, bench.now_us + 1)
            back = await one.step_back(booking_id, fence, bench.now_us + 2)
            assert (back.state, back.payment_begun_at_us) == (BookingState.HELD, bench.now_us + 1)
            assert begun.payment_begun_at_us == bench.now_us + 1
            again = await one.begin_payment(booking_id, fence, bench.now_us + 3)
            assert again.payment_begun_at_us == bench.now_us + 3
            assert (await one.confirm(booking_id, fence, bench.now_us + 4)).payment_begun_at_us == bench.now_us + 3
