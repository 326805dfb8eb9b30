"""The Ledger's contract: placing holds (B3, B4, B16, N4)."""

from frontrow.boxoffice.facts.model import HoldChanged, HoldExpired, HoldPlaced
from frontrow.boxoffice.holds.model.bookings import BookingNotFound, BookingState, HoldEnded, MoveRefused, StaleFence
from frontrow.boxoffice.holds.model.holds import CapExceeded, IdempotencyMismatch, SeatsTaken, VisitEnded
from frontrow.core.errors import InvalidInput
from tests.contracts.ledger_contract import CALLERS, TEN_MINUTES_US, Bench, check, outcomes, refusal


@check
async def a_hold_is_there_with_its_fence_price_and_fact(bench: Bench) -> None:
    wish = bench.wish(7, 3, amount_minor=9_000, currency="CHF", prices_minor=(5_000, 4_000), visit_id="pass-1")
    placed = await bench.one.place_hold(wish)
    booking = await bench.two.booking(wish.booking_id)
    assert booking is not None
    assert (booking.state, booking.fence, booking.seats) == (BookingState.HELD, placed.fence, (3, 7))
    assert (booking.amount_minor, booking.currency, booking.visit_id) == (9_000, "CHF", "pass-1")
    assert (booking.created_at_us, booking.hold_expires_at_us) == (wish.now_us, wish.expires_at_us)
    assert await bench.seats() == {3: ("held", wish.booking_id), 7: ("held", wish.booking_id)}
    (fact,) = await bench.facts()
    assert isinstance(fact, HoldPlaced)
    assert (fact.booking_id, fact.fence, fact.seats) == (wish.booking_id, placed.fence, (3, 7))


@check
async def of_many_racing_for_one_seat_exactly_one_wins(bench: Bench) -> None:
    calls = [bench.either(n).place_hold(bench.wish(5)) for n in range(CALLERS)]
    won, refused = await outcomes(calls)
    assert len(won) == 1, f"{len(won)} winners of one seat"
    assert len(refused) == CALLERS - 1
    assert all(isinstance(error, SeatsTaken) and error.seats == (5,) for error in refused)
    assert await bench.seats() == {5: ("held", won[0].booking_id)}


@check
async def several_seats_are_held_all_or_none_in_any_race(bench: Bench) -> None:
    """Chains of overlapping pairs: no seat twice, no half hold, and nobody refused for a seat that stayed free."""
    wishes = [bench.wish(n, n + 1) for n in range(CALLERS)]
    won, refused = await outcomes([bench.either(n // 7).place_hold(wish) for n, wish in enumerate(wishes)])
    seats = [seat for placed in won for seat in placed.seats]
    assert len(seats) == len(set(seats)), "a seat was held twice"
    active = await bench.seats()
    assert sorted(active) == sorted(seats)
    for error in refused:
        assert isinstance(error, SeatsTaken)
        assert set(error.seats) <= set(seats), "refused for a seat that nobody has"


@check
async def a_visit_that_has_bought_tickets_holds_no_more_seats(bench: Bench) -> None:
    """Its second hold was accepted until the servers knew that the visit had ended, and could then not be paid."""
    visit = {"fan": "ada", "visit_id": "visit-1", "cap": 10, "ends_with_sale": True}
    first = await bench.paid(1, **visit)
    await bench.hold(2, **visit)  # nothing is bought yet
    await bench.one.confirm(first.booking_id, first.fence, bench.now_us)
    calls = [bench.either(n).place_hold(bench.wish(10 + n, **visit)) for n in range(CALLERS)]
    won, refused = await outcomes(calls)
    assert won == []
    assert {type(error) for error in refused} == {VisitEnded}
    assert sorted(await bench.seats()) == [1, 2], "and no seat is taken by it"
    wish = bench.wish(1, booking=first.booking_id, **visit)
    assert (await bench.two.place_hold(wish)).repeated, "the request that was answered before gets its answer"
    for other in ({"visit_id": "visit-2"}, {"visit_id": ""}, {"ends_with_sale": False}, {"fan": "bob"}):
        await bench.two.place_hold(bench.wish(20 + len(await bench.seats()), **(visit | other)))


@check
async def a_refusal_names_exactly_the_taken_seats(bench: Bench) -> None:
    await bench.hold(1, 2)
    await bench.hold(8)
    error = await refusal(bench.two.place_hold(bench.wish(0, 2, 5, 8, 9)), SeatsTaken)
    assert error.seats == (2, 8)
    assert sorted(await bench.seats()) == [1, 2, 8]


@check
async def a_hold_ends_at_its_instant_and_not_before(bench: Bench) -> None:
    """Half-open: alive at expires_at_us - 1, dead at expires_at_us; a new hold then ends the old one itself."""
    old = await bench.hold(4, 5, fan="first")
    bench.clock.advance(us=TEN_MINUTES_US - 1)
    error = await refusal(bench.hold(5), SeatsTaken)
    assert error.seats == (5,)
    bench.clock.advance(us=1)
    assert await bench.seats() == {}, "a dead hold shows as active"
    new = await bench.hold(5)
    assert new.fence > old.fence
    assert [(ended.booking_id, ended.seats) for ended in new.ended] == [(old.booking_id, (4, 5))]
    assert await bench.seats() == {5: ("held", new.booking_id)}
    kinds = [type(fact) for fact in await bench.facts()]
    assert kinds == [HoldPlaced, HoldExpired, HoldPlaced]
    booking = await bench.one.booking(old.booking_id)
    assert booking is not None
    assert booking.state is BookingState.EXPIRED


@check
async def of_many_racing_for_a_dead_holds_seat_one_wins(bench: Bench) -> None:
    old = await bench.hold(1)
    bench.clock.advance(us=TEN_MINUTES_US)
    won, refused = await outcomes([bench.either(n).place_hold(bench.wish(1)) for n in range(CALLERS)])
    assert (len(won), len(refused)) == (1, CALLERS - 1)
    assert won[0].fence > old.fence
    assert sum(isinstance(fact, HoldExpired) for fact in await bench.facts()) == 1


@check
async def a_cap_holds_under_any_race(bench: Bench) -> None:
    calls = [bench.either(n).place_hold(bench.wish(n, fan="greedy", cap=4)) for n in range(CALLERS)]
    won, refused = await outcomes(calls)
    assert len(won) == 4, f"{len(won)} seats for one person with a cap of 4"
    assert all(isinstance(error, CapExceeded) for error in refused)
    assert len(await bench.seats()) == 4


@check
async def a_cap_counts_sold_and_live_seats_only(bench: Bench) -> None:
    sold = await bench.paid(1, 2, fan="fan", cap=4)
    await bench.one.confirm(sold.booking_id, sold.fence, bench.now_us)
    await bench.hold(3, fan="fan", cap=4, expires_at_us=bench.now_us + 1)
    error = await refusal(bench.hold(4, 5, fan="fan", cap=4), CapExceeded)
    assert (error.cap, error.active, error.asked) == (4, 3, 2)
    await bench.hold(6, fan="somebody else", cap=4)
    bench.clock.advance(us=1)
    await bench.hold(4, 5, fan="fan", cap=4)
    await refusal(bench.hold(9, fan="fan", cap=4), CapExceeded)


@check
async def the_same_booking_again_is_answered_as_before(bench: Bench) -> None:
    wish = bench.wish(1, 2)
    won, refused = await outcomes([bench.either(n).place_hold(wish) for n in range(CALLERS)])
    assert not refused
    assert len({placed.fence for placed in won}) == 1
    assert sum(not placed.repeated for placed in won) == 1
    assert len(await bench.facts()) == 1
    await refusal(bench.one.place_hold(bench.wish(3, booking=wish.booking_id, fan=wish.fan)), IdempotencyMismatch)
    await refusal(bench.one.place_hold(bench.wish(1, 2, booking=wish.booking_id, fan="other")), IdempotencyMismatch)
    assert sorted(await bench.seats()) == [1, 2]


@check
async def a_booking_that_has_ended_does_not_come_back(bench: Bench) -> None:
    wish = bench.wish(1)
    placed = await bench.one.place_hold(wish)
    await bench.one.release_hold(placed.booking_id, placed.fence, bench.now_us)
    await refusal(bench.one.place_hold(wish), MoveRefused)
    dead = bench.wish(2)
    await bench.one.place_hold(dead)
    bench.clock.advance(us=TEN_MINUTES_US)
    await bench.one.expire_due(bench.now_us, 10)
    again = bench.wish(2, booking=dead.booking_id, fan=dead.fan)
    await refusal(bench.one.place_hold(again), HoldEnded)
    assert await bench.seats() == {}


@check
async def one_idempotency_key_makes_one_booking(bench: Bench) -> None:
    wishes = [bench.wish(1, fan="fan", idempotency_key="k", request_hash="h") for _ in range(CALLERS)]
    won, refused = await outcomes([bench.either(n).place_hold(wish) for n, wish in enumerate(wishes)])
    assert not refused
    assert len({(placed.booking_id, placed.fence) for placed in won}) == 1
    assert sum(not placed.repeated for placed in won) == 1
    other = bench.wish(2, fan="fan", idempotency_key="k", request_hash="another")
    await refusal(bench.one.place_hold(other), IdempotencyMismatch)
    await bench.hold(2, fan="somebody else", idempotency_key="k", request_hash="h")
    bench.clock.advance(us=TEN_MINUTES_US)
    late = bench.wish(1, fan="fan", idempotency_key="k", request_hash="h")
    await refusal(bench.one.place_hold(late), HoldEnded)


@check
async def a_refused_request_may_be_sent_again_under_its_key(bench: Bench) -> None:
    rival = await bench.hold(1)
    wish = bench.wish(1, fan="fan", idempotency_key="k", request_hash="h")
    await refusal(bench.one.place_hold(wish), SeatsTaken)
    await bench.one.release_hold(rival.booking_id, rival.fence, bench.now_us)
    assert not (await bench.one.place_hold(wish)).repeated


@check
async def fences_grow_with_every_hold_of_a_seat(bench: Bench) -> None:
    fences = []
    for number in range(10):
        placed = await bench.either(number).place_hold(bench.wish(1))
        fences.append(placed.fence)
        await bench.either(number + 1).release_hold(placed.booking_id, placed.fence, bench.now_us)
    assert fences == sorted(set(fences))


@check
async def what_can_never_be_right_is_refused_at_once(bench: Bench) -> None:
    now_us = bench.now_us
    for wish in (
        bench.wish(),
        bench.wish(1, 1),
        bench.wish(-1),
        bench.wish(*range(10_000)),
        bench.wish(1, expires_at_us=now_us),
        bench.wish(1, prices_minor=(1, 2)),
        bench.wish(1, fan="nul\0"),
        bench.wish(1, fan="\ud800"),
        bench.wish(1, amount_minor=1 << 70),
        bench.wish(1, amount_minor=-1),
    ):
        await refusal(bench.one.place_hold(wish), InvalidInput)
    assert await bench.seats() == {}


@check
async def events_do_not_mix(bench: Bench) -> None:
    await bench.hold(1, fan="fan", cap=1)
    other = Bench(bench.one, bench.two)
    await other.hold(1, fan="fan", cap=1)
    assert list(await bench.seats()) == list(await other.seats()) == [1]


@check
async def a_changed_hold_keeps_what_is_in_both_choices_and_its_end(bench: Bench) -> None:
    old = await bench.hold(1, 2, fan="fan", amount_minor=200, prices_minor=(100, 100))
    bench.clock.advance(us=1_000)
    wish = bench.wish(2, 3, 4, fan="fan", booking=old.booking_id, amount_minor=360, prices_minor=(100, 120, 140))
    changed = await bench.two.change_hold(wish, old.fence)
    booking = await bench.one.booking(old.booking_id)
    assert booking is not None
    assert (changed.booking, changed.left) == (booking, (1,))
    assert (booking.seats, booking.amount_minor, booking.fence) == ((2, 3, 4), 360, old.fence)
    assert (booking.state, booking.hold_expires_at_us) == (BookingState.HELD, old.expires_at_us)
    assert sorted(await bench.seats()) == [2, 3, 4]
    assert (await bench.one.change_hold(wish, old.fence)).left == (), "again: no change"
    back = bench.wish(1, fan="fan", booking=old.booking_id)
    assert (await bench.two.change_hold(back, old.fence)).left == (2, 3, 4), "a seat that it had before can come back"
    await bench.hold(2, 3, 4)
    facts = [fact for fact in await bench.facts() if isinstance(fact, HoldChanged)]
    assert [(fact.seats, fact.left) for fact in facts] == [((2, 3, 4), (1,)), ((1,), (2, 3, 4))]


@check
async def a_refused_change_leaves_the_hold_as_it_was(bench: Bench) -> None:
    old = await bench.hold(1, 2, fan="fan", cap=3)
    await bench.hold(5, fan="other")
    await bench.hold(6, fan="fan", cap=3)

    async def refused(kind: type[Exception], *seats: int, fence: int = old.fence, fan: str = "fan") -> Exception:
        wish = bench.wish(*seats, fan=fan, booking=old.booking_id, cap=3)
        error: Exception = await refusal(bench.two.change_hold(wish, fence), kind)
        assert sorted(await bench.seats()) == [1, 2, 5, 6]
        return error

    taken = await refused(SeatsTaken, 4, 5)
    assert isinstance(taken, SeatsTaken)
    assert taken.seats == (5,)
    await refused(CapExceeded, 1, 2, 3)
    await refused(StaleFence, 1, 3, fence=old.fence + 1)
    await refused(BookingNotFound, 1, 3, fan="thief")
    await bench.one.begin_payment(old.booking_id, old.fence, bench.now_us)
    await refused(MoveRefused, 1, 3)
    await bench.one.step_back(old.booking_id, old.fence, bench.now_us)
    bench.clock.advance(us=TEN_MINUTES_US)
    await refusal(bench.one.change_hold(bench.wish(1, fan="fan", booking=old.booking_id), old.fence), HoldEnded)


@check
async def of_many_changes_to_one_seat_exactly_one_wins_and_nobody_loses_seats(bench: Bench) -> None:
    holds = [await bench.hold(n, fan=f"fan {n}") for n in range(CALLERS)]
    calls = [
        bench.either(n).change_hold(bench.wish(CALLERS, fan=hold.fan, booking=hold.booking_id), hold.fence)
        for n, hold in enumerate(holds)
    ]
    won, refused = await outcomes(calls)
    assert (len(won), len(refused)) == (1, CALLERS - 1)
    assert all(isinstance(error, SeatsTaken) for error in refused)
    assert len(await bench.seats()) == CALLERS
