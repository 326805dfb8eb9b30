"""The Ledger's contract: moves, expiry and the outbox (B5, B9, B14, F4)."""

import asyncio
from collections.abc import Awaitable, Callable

from frontrow.boxoffice.facts.model import BookingConfirmed, HoldExpired, HoldExtended, HoldReleased
from frontrow.boxoffice.holds.model.bookings import (
    MOVES,
    Booking,
    BookingNotFound,
    BookingState,
    HoldEnded,
    Move,
    MoveRefused,
    StaleFence,
)
from frontrow.boxoffice.holds.model.holds import PlacedHold
from frontrow.core.errors import InvalidInput
from tests.contracts.ledger_contract import CALLERS, TEN_MINUTES_US, Bench, check, outcomes, refusal
from tests.support.booking_moves import cancel_booking, decline_booking, refund_booking

FREE = {BookingState.EXPIRED, BookingState.CANCELLED, BookingState.REFUNDED}


async def _in_state(bench: Bench, state: BookingState, seat: int) -> PlacedHold:
    """A booking of `seat` brought into `state` by allowed moves."""
    hold = await bench.hold(seat)
    key = (hold.booking_id, hold.fence, bench.now_us)
    if state in {BookingState.PAYING, BookingState.CONFIRMED, BookingState.REFUNDED}:
        await bench.one.begin_payment(*key)
    if state in {BookingState.CONFIRMED, BookingState.REFUNDED}:
        await bench.one.confirm(*key)
    if state is BookingState.REFUNDED:
        await refund_booking(bench.one, *key)
    if state is BookingState.CANCELLED:
        await bench.one.release_hold(*key)
    if state is BookingState.EXPIRED:
        bench.clock.advance(us=TEN_MINUTES_US)
        await bench.one.expire_due(bench.now_us, 100)
    return hold


def _asker(bench: Bench, move: Move, hold: PlacedHold) -> Callable[[], Awaitable[Booking]]:
    key = (hold.booking_id, hold.fence, bench.now_us)
    ledger = bench.two
    return {
        Move.EXTEND: lambda: ledger.extend_hold(*key, bench.now_us + TEN_MINUTES_US + 5),
        Move.BEGIN_PAYMENT: lambda: ledger.begin_payment(*key),
        Move.STEP_BACK: lambda: ledger.step_back(*key),
        Move.CONFIRM: lambda: ledger.confirm(*key),
        Move.DECLINE: lambda: decline_booking(ledger, *key),
        Move.RELEASE: lambda: ledger.release_hold(*key),
        Move.CANCEL: lambda: cancel_booking(ledger, *key),
        Move.REFUND: lambda: refund_booking(ledger, *key),
    }[move]


ASKED = (
    Move.EXTEND,
    Move.BEGIN_PAYMENT,
    Move.STEP_BACK,
    Move.CONFIRM,
    Move.DECLINE,
    Move.RELEASE,
    Move.CANCEL,
    Move.REFUND,
)


@check
async def every_cell_of_the_state_table_is_obeyed(bench: Bench) -> None:
    """B5: no step can be skipped, whichever way it is asked."""
    stored = [state for state in BookingState if state not in {BookingState.QUEUED, BookingState.SELECTING}]
    for number, (state, move) in enumerate((state, move) for state in stored for move in ASKED):
        hold = await _in_state(bench, state, seat=number)
        cell, where = MOVES[state, move], f"{state} x {move}"
        ask = _asker(bench, move, hold)
        if cell.to is None:
            error = await refusal(ask(), HoldEnded if state is BookingState.EXPIRED else MoveRefused)
            assert error.booking_id == hold.booking_id, where
            after = state
        else:
            after = cell.to
            assert (await ask()).state is after, where
        booking = await bench.one.booking(hold.booking_id)
        assert booking is not None
        assert booking.state is after, where
        assert (number in await bench.seats()) == (after not in FREE), where


@check
async def only_the_fence_of_the_hold_moves_it(bench: Bench) -> None:
    hold = await bench.paid(1)
    for fence in (hold.fence + 1, hold.fence - 1, 0, -1, 1 << 63, 1 << 70):
        error = await refusal(bench.one.confirm(hold.booking_id, fence, bench.now_us), StaleFence)
        assert error.fence == fence
        await refusal(bench.one.release_hold(hold.booking_id, fence, bench.now_us), StaleFence)
    await refusal(bench.one.confirm("bkg_nobody", hold.fence, bench.now_us), BookingNotFound)
    assert await bench.seats() == {1: ("paying", hold.booking_id)}


@check
async def a_confirm_succeeds_until_the_hold_ends_and_not_at_that_instant(bench: Bench) -> None:
    """F4: both sides of the boundary; the late one is 410 and changes nothing."""
    just, late = await bench.paid(1), await bench.paid(2)
    bench.clock.advance(us=TEN_MINUTES_US - 1)
    booking = await bench.one.confirm(just.booking_id, just.fence, bench.now_us)
    assert (booking.state, booking.confirmed_at_us) == (BookingState.CONFIRMED, bench.now_us)
    bench.clock.advance(us=1)
    error = await refusal(bench.one.confirm(late.booking_id, late.fence, bench.now_us), HoldEnded)
    assert error.http_status == 410
    assert await bench.seats() == {1: ("confirmed", just.booking_id)}


@check
async def racing_confirms_confirm_once(bench: Bench) -> None:
    hold = await bench.paid(1, amount_minor=500)
    calls = [bench.either(n).confirm(hold.booking_id, hold.fence, bench.now_us) for n in range(CALLERS)]
    done, refused = await outcomes(calls)
    assert not refused
    assert {booking.state for booking in done} == {BookingState.CONFIRMED}
    confirmed = [fact for fact in await bench.facts() if isinstance(fact, BookingConfirmed)]
    assert [(fact.booking_id, fact.amount_minor) for fact in confirmed] == [(hold.booking_id, 500)]


@check
async def a_confirm_racing_a_new_hold_of_a_dying_one_never_sells_twice(bench: Bench) -> None:
    """F4, N4: clocks differ by a microsecond around the end; each seat goes to exactly one side."""
    holds = [await bench.paid(seat) for seat in range(CALLERS)]
    end_us = holds[0].expires_at_us
    confirms = [bench.one.confirm(hold.booking_id, hold.fence, end_us - 1) for hold in holds]
    wishes = [bench.wish(seat, now_us=end_us, expires_at_us=end_us + 5) for seat in range(CALLERS)]
    (kept, late), (taken, lost) = await asyncio.gather(
        outcomes(confirms), outcomes([bench.two.place_hold(wish) for wish in wishes])
    )
    assert len(kept) + len(taken) == CALLERS
    assert len(late) == len(taken)
    assert len(lost) == len(kept)
    assert len(await bench.seats(end_us)) == CALLERS


@check
async def an_extension_moves_the_end_and_never_back(bench: Bench) -> None:
    hold = await bench.hold(1)
    later_us = hold.expires_at_us + 1_000
    booking = await bench.one.extend_hold(hold.booking_id, hold.fence, bench.now_us, later_us)
    assert booking.hold_expires_at_us == later_us
    booking = await bench.one.extend_hold(hold.booking_id, hold.fence, bench.now_us, bench.now_us + 1)
    assert booking.hold_expires_at_us == later_us
    bench.clock.now_us = later_us
    await refusal(bench.one.extend_hold(hold.booking_id, hold.fence, later_us, later_us + 9), HoldEnded)
    assert [type(fact) for fact in await bench.facts()][1:] == [HoldExtended, HoldExtended]


@check
async def a_released_seat_is_free_at_once(bench: Bench) -> None:
    hold = await bench.hold(1, 2)
    await bench.one.release_hold(hold.booking_id, hold.fence, bench.now_us)
    await bench.two.place_hold(bench.wish(2, 3))
    assert sorted(await bench.seats()) == [2, 3]
    assert any(isinstance(fact, HoldReleased) for fact in await bench.facts())


@check
async def the_sweep_ends_dead_holds_only_oldest_first_in_bounded_batches(bench: Bench) -> None:
    """B14: never early, never more than asked for."""
    ends = [bench.now_us + 100 + n for n in range(7)]
    holds = [await bench.hold(n, n + 100, expires_at_us=end) for n, end in enumerate(ends)]
    assert await bench.one.expire_due(ends[0] - 1, 100) == []
    first = await bench.one.expire_due(ends[4], 3)
    assert [hold.booking_id for hold in first] == [hold.booking_id for hold in holds[:3]]
    assert [hold.seats for hold in first] == [(0, 100), (1, 101), (2, 102)]
    second = await bench.two.expire_due(ends[4], 100)
    assert [hold.booking_id for hold in second] == [hold.booking_id for hold in holds[3:5]]
    assert sorted(await bench.seats(0)) == [5, 6, 105, 106]
    expired = [fact.booking_id for fact in await bench.facts() if isinstance(fact, HoldExpired)]
    assert expired == [hold.booking_id for hold in holds[:5]]
    for limit in (0, -1, 1_000_000):
        await refusal(bench.one.expire_due(ends[6], limit), InvalidInput)


@check
async def any_number_of_sweepers_end_each_hold_once(bench: Bench) -> None:
    """B14: 60 sweepers over two servers; every due hold is answered to one of them, with one fact."""
    wishes = [bench.wish(n, expires_at_us=bench.now_us + 1) for n in range(200)]
    await outcomes([bench.one.place_hold(wish) for wish in wishes])
    bench.clock.advance(us=1)
    for _ in range(20):
        batches, refused = await outcomes([bench.either(n).expire_due(bench.now_us, 7) for n in range(CALLERS)])
        assert not refused
        ended = [hold.booking_id for batch in batches for hold in batch]
        assert len(ended) == len(set(ended))
        wishes = [wish for wish in wishes if wish.booking_id not in ended]
        if not wishes:
            break
    assert not wishes, "dead holds were left over"
    expired = [fact.booking_id for fact in await bench.facts() if isinstance(fact, HoldExpired)]
    assert len(expired) == len(set(expired)) == 200
    assert await bench.seats(0) == {}


@check
async def a_sweep_says_when_money_may_have_to_be_given_back(bench: Bench) -> None:
    held, paying = await bench.hold(1), await bench.paid(2)
    bench.clock.advance(us=TEN_MINUTES_US)
    ended = {hold.booking_id: hold.was for hold in await bench.one.expire_due(bench.now_us, 10)}
    assert ended[held.booking_id] is BookingState.HELD
    assert ended[paying.booking_id] is BookingState.PAYING


@check
async def facts_are_claimed_to_one_worker_until_published(bench: Bench) -> None:
    for seat in range(10):
        await bench.hold(seat)
    batches, _ = await outcomes([bench.either(n).claim_facts(bench.now_us, 1_000, 1) for n in range(CALLERS)])
    mine = [fact.number for batch in batches for fact in batch]
    assert len(mine) == len(set(mine)) >= 10
    await bench.one.facts_published(mine[:-1], bench.now_us)
    assert await bench.one.claim_facts(bench.now_us + 999, 1_000, 100) == []
    again = await bench.two.claim_facts(bench.now_us + 1_000, 1_000, 100)
    assert [fact.number for fact in again] == [mine[-1]]
    await bench.two.facts_published(mine, bench.now_us)
    assert await bench.one.claim_facts(bench.now_us + 9_000, 1_000, 100) == []


@check
async def a_message_is_new_once(bench: Bench) -> None:
    calls = [bench.either(n).messages.seen_before("stripe", bench.event, bench.now_us) for n in range(CALLERS)]
    answers, _ = await outcomes(calls)
    assert answers.count(False) == 1


@check
async def a_broken_operation_fails_only_its_own_caller(bench: Bench) -> None:
    """N4: a text that no store can take sits in the middle of a batch of good ones."""
    good = [bench.one.place_hold(bench.wish(n)) for n in range(CALLERS)]
    bad = bench.one.confirm("bkg_\ud800", 1, bench.now_us)
    won, refused = await outcomes([*good[:30], bad, *good[30:]])
    assert len(won) == CALLERS
    assert [type(error) for error in refused] == [InvalidInput]
    assert len(await bench.seats()) == CALLERS
