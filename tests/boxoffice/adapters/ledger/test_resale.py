"""Return to pool: the old ticket dies first, the money comes with the resale, once (B11, B12, F5, N4)."""

import asyncio
import functools
from collections.abc import AsyncIterator

import pytest

from frontrow.boxoffice.adapters.ledger.audit_verification import verify
from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.facts.model import TicketResold, TicketReturned
from frontrow.boxoffice.holds.model.bookings import Booking, BookingNotFound, BookingState, StaleFence
from frontrow.boxoffice.holds.model.holds import SeatsTaken
from frontrow.boxoffice.refunds.model.ticket_returns import NotReturnable, ReturnState
from frontrow.boxoffice.refunds.ticket_returns import TicketReturns
from frontrow.core.errors import FrontrowError, Unavailable
from frontrow.testing.clock import ManualClock
from tests.boxoffice import shop
from tests.boxoffice.adapters.ledger.broken_ledgers import broken
from tests.boxoffice.shop import EVENT
from tests.boxoffice.waiting import Waiting, second_server, sold_out
from tests.support.booking_moves import refund_booking
from tests.support.eventually import eventually


@pytest.fixture
async def waiting(ledger_url: str) -> AsyncIterator[Waiting]:
    async with sold_out(ledger_url) as made:
        yield made
        assert (await verify(made.ledger.store))[0] == []


async def booking_of(waiting: Waiting, fan: str) -> Booking:
    (booking,) = await waiting.ledger.bookings_of(EVENT, fan)
    return booking


async def states(waiting: Waiting, booking: Booking) -> dict[int, ReturnState]:
    return {one.seat_index: one.state for one in await waiting.ledger.returns.returns_of(booking.id)}


async def buy_offer(waiting: Waiting, fan: str) -> Booking:
    """Claim the fan's open offer and pay."""
    (offer,) = await waiting.list.offers(EVENT, fan)
    claimed = await waiting.list.claim(offer.id, fan)
    await waiting.ledger.begin_payment(claimed.booking_id, claimed.fence, waiting.clock())
    booking = await waiting.ledger.confirm(claimed.booking_id, claimed.fence, waiting.clock())
    await waiting.shop.holds.held.sold(booking)
    return booking


async def test_one_seat_of_a_booking_is_given_back_offered_resold_and_paid_once(waiting: Waiting) -> None:
    """The whole way; the other seats of the booking stay its own."""
    old = await booking_of(waiting, "row2")
    await waiting.list.join(EVENT, "ada", 1)
    await waiting.facts()
    (given,) = await waiting.resale.give_back(old.id, "row2", old.fence, [5])
    assert (given.state, given.price_minor, given.currency) == (ReturnState.LISTED, 5_000, "EUR")
    assert waiting.hooks.dead == {(old.id, 5)}
    kept = await booking_of(waiting, "row2")
    assert (kept.state, kept.seats, kept.amount_minor) == (BookingState.CONFIRMED, (4, 6, 7), 15_000)
    await waiting.tell()
    assert await waiting.offered("ada") == {"ada": (5,)}
    await waiting.resale.sweep()
    assert waiting.hooks.paid == {}, "paid before it was sold"
    new = await buy_offer(waiting, "ada")
    assert [type(fact) for fact in await waiting.facts()].count(TicketResold) == 0
    for _ in range(3):
        await waiting.resale.sweep()
    assert waiting.hooks.paid == {given.id: 5_000}
    assert waiting.hooks.calls == 1
    (done,) = await waiting.ledger.returns.returns_of(old.id)
    assert (done.state, done.resold_booking_id) == (ReturnState.REFUNDED, new.id)
    (resold,) = [fact for fact in await waiting.facts() if isinstance(fact, TicketResold)]
    assert (resold.fan, resold.amount_minor, resold.seats) == ("row2", 5_000, (5,))


async def test_a_whole_booking_given_back_is_sold_to_everybody_when_nobody_waits(waiting: Waiting) -> None:
    old = await booking_of(waiting, "row2")
    await waiting.ledger.waitlist.shift_event(EVENT, EventStatus.ON_SALE, EventStatus.SOLD_OUT, waiting.clock())
    await waiting.resale.give_back(old.id, "row2", old.fence)
    assert (await booking_of(waiting, "row2")).state is BookingState.CANCELLED
    await waiting.worker.sweep()
    assert await waiting.status() is EventStatus.ON_SALE
    bought = await waiting.bought("public", 4, 5)
    for fact in await waiting.facts():
        waiting.resale.note_fact(fact)
    await waiting.resale.sweep()
    assert await states(waiting, old) == {
        4: ReturnState.REFUNDED,
        5: ReturnState.REFUNDED,
        6: ReturnState.LISTED,
        7: ReturnState.LISTED,
    }
    assert sum(waiting.hooks.paid.values()) == 10_000
    # The new holder returns one of them before anybody looks again: both chains end where they should.
    await waiting.resale.give_back(bought.booking_id, "public", bought.fence, [4])
    await waiting.bought("third", 4)
    await waiting.resale.sweep()
    assert sum(waiting.hooks.paid.values()) == 15_000


async def test_a_seat_returned_twice_before_anybody_looks_pays_both_holders(waiting: Waiting) -> None:
    first = await booking_of(waiting, "s0")
    await waiting.resale.give_back(first.id, "s0", first.fence)
    second = await waiting.bought("second", 0)
    await waiting.resale.give_back(second.booking_id, "second", second.fence)
    await waiting.bought("third", 0)
    await waiting.resale.sweep()
    owed = {
        one.fan: one.state
        for one in [
            *await waiting.ledger.returns.returns_of(first.id),
            *await waiting.ledger.returns.returns_of(second.booking_id),
        ]
    }
    assert owed == {"s0": ReturnState.REFUNDED, "second": ReturnState.REFUNDED}
    assert len(waiting.hooks.paid) == 2


async def test_the_seat_is_not_free_before_the_old_ticket_is_dead(waiting: Waiting) -> None:
    """F5: the revocation fails or the process dies there: nobody else gets the seat; the sweep goes on."""
    old = await booking_of(waiting, "s0")
    waiting.hooks.failing = 1
    with pytest.raises(Unavailable):
        await waiting.resale.give_back(old.id, "s0", old.fence)
    assert await states(waiting, old) == {0: ReturnState.GIVING}
    with pytest.raises(SeatsTaken):
        await waiting.shop.hold("eve", 0)
    after_restart = TicketReturns(
        waiting.shop.sales, waiting.ledger, waiting.shop.holds.held, waiting.hooks, waiting.clock, tickets=waiting.hooks
    )
    await after_restart.sweep()
    assert waiting.hooks.dead == {(old.id, 0)}
    assert await states(waiting, old) == {0: ReturnState.LISTED}
    await waiting.bought("eve", 0)
    waiting.hooks.failing = 1
    await after_restart.sweep()
    assert (after_restart.stats.failures, waiting.hooks.paid) == (1, {})
    await after_restart.sweep()
    assert list(waiting.hooks.paid.values()) == [5_000]


async def test_the_running_worker_pays_and_survives_a_silent_hook(sqlite_ledger_url: str) -> None:
    async with sold_out(sqlite_ledger_url) as waiting:
        old = await booking_of(waiting, "s0")
        await waiting.resale.give_back(old.id, "s0", old.fence)
        other = await booking_of(waiting, "s1")
        await waiting.ledger.returns.begin_return(other.id, "s1", other.fence, [1], waiting.clock())
        await waiting.bought("eve", 0)
        waiting.hooks.failing = 3
        worker = TicketReturns(
            waiting.shop.sales,
            waiting.ledger,
            waiting.shop.holds.held,
            waiting.hooks,
            waiting.clock,
            tickets=waiting.hooks,
            every_s=0.01,
        )
        task = asyncio.create_task(worker.run())
        try:
            await eventually(lambda: bool(waiting.hooks.paid and worker.stats.listed))
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert worker.stats.failures == 3
        assert await states(waiting, other) == {1: ReturnState.LISTED}


async def test_an_unsold_return_is_not_paid_and_a_mere_hold_is_no_sale(waiting: Waiting) -> None:
    old = await booking_of(waiting, "s0")
    await waiting.resale.give_back(old.id, "s0", old.fence)
    hold = await waiting.shop.hold("eve", 0)
    await waiting.resale.sweep()
    assert await states(waiting, old) == {0: ReturnState.LISTED}
    await waiting.shop.holds.held.release(hold.booking_id, hold.fence)
    await waiting.resale.sweep()
    assert waiting.hooks.paid == {}


async def test_only_the_holder_returns_and_only_what_was_bought(waiting: Waiting) -> None:
    old = await booking_of(waiting, "s0")
    give = waiting.resale.give_back
    with pytest.raises(BookingNotFound):
        await give(old.id, "eve", old.fence)
    with pytest.raises(BookingNotFound):
        await give("bkg_none", "s0", 1, [0])
    with pytest.raises(StaleFence):
        await give(old.id, "s0", old.fence + 1)
    with pytest.raises(NotReturnable):
        await give(old.id, "s0", old.fence, [0, 1])
    assert await waiting.ledger.returns.returns_of(old.id) == []
    await waiting.ledger.waitlist.shift_event(EVENT, EventStatus.ON_SALE, EventStatus.COMPLETED, waiting.clock())
    with pytest.raises(NotReturnable, match="resold"):
        await give(old.id, "s0", old.fence)
    assert waiting.hooks.dead == set()


async def test_a_booking_refunded_meanwhile_is_not_listed(waiting: Waiting) -> None:
    old = await booking_of(waiting, "s0")
    await waiting.ledger.returns.begin_return(old.id, "s0", old.fence, [0], waiting.clock())
    await refund_booking(waiting.ledger, old.id, old.fence, waiting.clock())
    await waiting.resale.sweep()
    assert await states(waiting, old) == {0: ReturnState.VOID}
    await waiting.shop.holds.held.freed(EVENT, old.seats, old.id)
    await waiting.bought("eve", 0)
    await waiting.resale.sweep()
    assert waiting.hooks.paid == {}


async def test_sixty_returns_and_sweeps_at_once_free_and_pay_each_seat_once(
    postgres_ledger_url: str, redis_url: str
) -> None:
    """N4: two servers over one PostgreSQL ledger; the same return 60 times, then 60 sweeps."""
    clock = ManualClock()
    async with (
        sold_out(postgres_ledger_url, redis_url, clock=clock) as one,
        second_server(postgres_ledger_url, redis_url, one) as two,
    ):
        old = await booking_of(one, "row2")
        gives = [(one if n % 2 else two).resale.give_back(old.id, "row2", old.fence, [5, 6]) for n in range(60)]
        answers = await asyncio.gather(*gives)
        assert {one_.state for answer in answers for one_ in answer} == {ReturnState.LISTED}
        returned = [fact for fact in await one.facts() if isinstance(fact, TicketReturned)]
        assert [fact.seats for fact in returned] == [(5, 6)]
        assert (await booking_of(one, "row2")).seats == (4, 7)
        clock.advance(2)  # what this server believed of the seats is old by then
        await one.bought("eve", 5, 6)
        await asyncio.gather(*((one if n % 2 else two).resale.sweep() for n in range(60)))
        resold = [fact for fact in await one.facts() if isinstance(fact, TicketResold)]
        assert sorted(fact.seats for fact in resold) == [(5,), (6,)]
        assert len(one.hooks.paid | two.hooks.paid) == 2
        assert (await verify(one.ledger.store))[0] == []


# A ledger with one guard taken out: the statement, the change, and the test that must fail.
CANARIES = {
    "pays before the resale": (
        "resold_returns",
        ("AND b.fence > t.fence", ""),
        test_one_seat_of_a_booking_is_given_back_offered_resold_and_paid_once,
    ),
    "takes a hold for a sale": (
        "resold_returns",
        ("AND b.confirmed_at_us IS NOT NULL", ""),
        test_an_unsold_return_is_not_paid_and_a_mere_hold_is_no_sale,
    ),
    "lists without freeing": (
        "free_some_seats",
        ("SET active = 0", "SET active = 1"),
        test_one_seat_of_a_booking_is_given_back_offered_resold_and_paid_once,
    ),
}


@pytest.mark.parametrize("canary", CANARIES)
async def test_these_tests_catch_a_ledger_that(canary: str, ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, change, test = CANARIES[canary]
    blind = functools.partial(shop.open_ledger, sql=broken(ledger_url, name, change))
    monkeypatch.setattr(shop, "open_ledger", blind)
    async with sold_out(ledger_url) as waiting:
        with pytest.raises((AssertionError, FrontrowError)):
            await test(waiting)
