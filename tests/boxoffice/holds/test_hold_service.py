"""The hold service, embedded (memory and SQLite): what is asked for, what is refused and how, what is left behind."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frontrow.boxoffice.events.model.events import NotOnSale
from frontrow.boxoffice.holds.model.claims import ClaimRefused
from frontrow.boxoffice.holds.model.holds import (
    CapExceeded,
    Hold,
    IdempotencyMismatch,
    NoSuchSeats,
    SeatsTaken,
    ShopPass,
)
from frontrow.boxoffice.holds.model.requested_seats import (
    CapReached,
    DuplicateSeats,
    LonelySeat,
    SeatsWithheld,
    Wish,
    WrongSeatCount,
)
from frontrow.boxoffice.seats.model.venues import UnknownSeats
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError, Overloaded, Unauthorised
from frontrow.shared.money import Money
from frontrow.testing.clock import ManualClock
from tests.boxoffice.shop import EVENT, NOW, Shop, open_shop, sqlite_url
from tests.support.booking_moves import refund_booking

HOLD_US = 600 * US_PER_S


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    async with open_shop(sqlite_url(tmp_path), clock=ManualClock(NOW)) as opened:
        yield opened


async def test_a_hold_has_seats_a_price_a_fence_and_an_end(shop: Shop) -> None:
    """B3, B4."""
    hold = await shop.hold("ann", 3, 4)
    assert hold.seats == ("A-1-4", "A-1-5")
    assert (hold.amount_minor, hold.currency, hold.expires_at_us) == (10_000, "EUR", NOW + HOLD_US)
    later = await shop.hold("bob", 5)
    assert later.fence > hold.fence > 0
    booking = await shop.ledger.booking(hold.booking_id)
    assert booking is not None
    assert (booking.seats, booking.visit_id) == ((3, 4), "ps_ann")
    assert await shop.taken() == {3, 4, 5}
    assert shop.changed == [3, 4, 5]


async def test_a_taken_seat_is_409_with_the_list_of_the_taken_ones(shop: Shop) -> None:
    """B2, N4: first refused by the claim store, then by this server's memory, with the same words."""
    await shop.hold("ann", 3, 4)
    shop.sale.seats.mark_free([3, 4])  # as on a server that has not heard of it
    problems = []
    for fan in ("bob", "bob"):
        with pytest.raises(SeatsTaken) as refusal:
            await shop.hold(fan, 2, 3, 4)
        assert refusal.value.http_status == 409
        problems.append(refusal.value.problem())
    assert problems[0]["seats"] == ["A-1-4", "A-1-5"]
    assert problems[0] == problems[1]
    assert (shop.holds.stats.refused_by_claims, shop.holds.stats.refused_locally) == (1, 1)
    assert await shop.taken() == {3, 4}


@pytest.mark.parametrize(
    ("seats", "error", "status", "named"),
    [
        (["A-1-99", "A-1-1", "Z-1-1"], UnknownSeats, 422, ["A-1-99", "Z-1-1"]),
        (["evt_other:A-1-1"], UnknownSeats, 422, ["evt_other:A-1-1"]),
        (["A-1-1", "A-1-2", "A-1-1"], DuplicateSeats, 422, ["A-1-1"]),
        ([], WrongSeatCount, 422, None),
        ([f"A-1-{n}" for n in range(10_000)], WrongSeatCount, 422, None),
        ([f"A-{r}-{s}" for r in (1, 2) for s in range(1, 11)], CapReached, 409, None),
        (["A-4-10", "A-4-9"], SeatsWithheld, 409, ["A-4-10"]),
    ],
    ids=["unknown", "foreign", "duplicate", "zero", "10000", "over the cap", "withheld"],
)
async def test_what_cannot_be_held_is_a_clear_error_naming_the_seats(
    tmp_path: Path, seats: list[str], error: type[FrontrowError], status: int, named: list[str] | None
) -> None:
    """B4: nothing is claimed, nothing is written."""
    async with open_shop(sqlite_url(tmp_path), withheld=frozenset({39})) as shop:
        with pytest.raises(error) as refusal:
            await shop.holds.place(EVENT, shop.shop_pass("ann"), seats)
        assert refusal.value.http_status == status
        if named is not None:
            assert refusal.value.problem()["seats"] == named
        assert await shop.taken() == set()


@pytest.mark.parametrize("count", [0, -1, 10_000])
async def test_a_wish_for_no_seats_or_far_too_many_is_422(shop: Shop, count: int) -> None:
    with pytest.raises(WrongSeatCount):
        await shop.holds.place_best(EVENT, shop.shop_pass("ann"), Wish(count))


async def test_nothing_works_without_a_living_pass_for_this_event(shop: Shop) -> None:
    """W7, B17."""
    passes: list[Any] = [
        None,
        ShopPass("evt_other", "ann", NOW + HOLD_US),
        ShopPass(EVENT, "ann", NOW),
    ]
    for bad in passes:
        with pytest.raises(Unauthorised):
            await shop.holds.place(EVENT, bad, ["A-1-1"])
        with pytest.raises(Unauthorised):
            await shop.holds.place_best(EVENT, bad, Wish(2))
    assert await shop.taken() == set()


async def test_an_event_that_is_not_on_sale_holds_nothing(tmp_path: Path) -> None:
    async with open_shop(sqlite_url(tmp_path), sale_starts_at_us=NOW + 1) as shop:
        with pytest.raises(NotOnSale):
            await shop.hold("ann", 1)


async def test_the_same_idempotency_key_is_the_same_hold(shop: Shop) -> None:
    """Also concurrently, also for the best seats, also after this server forgot everything."""
    holds = await asyncio.gather(*(shop.hold("ann", 3, 4, key="k1") for _ in range(50)))
    assert len({(hold.booking_id, hold.fence) for hold in holds}) == 1
    assert (await shop.hold("ann", 3, 4, key="k1")).repeated
    with pytest.raises(IdempotencyMismatch):
        await shop.hold("ann", 4, 5, key="k1")
    assert await shop.taken() == {3, 4}
    best = [await shop.holds.place_best(EVENT, shop.shop_pass("bob"), Wish(2), idempotency_key="k2") for _ in range(3)]
    assert len({hold.seats for hold in best}) == 1
    assert len(await shop.taken()) == 4
    shop.sale.seats.mark_taken(range(40), "somebody", NOW + HOLD_US, NOW)  # this server now thinks section A is full
    again = await shop.holds.place_best(EVENT, shop.shop_pass("bob"), Wish(2), idempotency_key="k2")
    assert again.seats == best[0].seats
    assert len(await shop.taken()) == 4
    assert (await shop.hold("zed", 50, key="k1")).fan == "zed"  # keys belong to the fan


async def test_a_repeated_request_is_told_the_price_of_its_hold_and_not_todays(shop: Shop) -> None:
    """Also if other seats, at another price, would be the best by now."""
    ann, bob = shop.shop_pass("ann"), shop.shop_pass("bob")
    first = await shop.hold("ann", 3, 4, key="k1")
    best = await shop.holds.place_best(EVENT, bob, Wish(2), idempotency_key="k2")
    dearer = tuple(replace(tier, price=Money(tier.price.minor + 100, "EUR")) for tier in shop.sale.event.tiers)
    shop.sale.update_event(replace(shop.sale.event, tiers=dearer))
    assert (await shop.holds.place(EVENT, ann, ["A-2-1"])).amount_minor == first.amount_minor // 2 + 100
    again = await shop.hold("ann", 3, 4, key="k1")
    assert (again.repeated, again.amount_minor, again.lines) == (True, first.amount_minor, first.lines)
    shop.sale.seats.mark_taken(range(40), "somebody", NOW + HOLD_US, NOW)
    same = await shop.holds.place_best(EVENT, bob, Wish(2), idempotency_key="k2")
    assert (same.seats, same.amount_minor, same.lines) == (best.seats, best.amount_minor, best.lines)
    cyd = shop.shop_pass("cyd")
    many = await asyncio.gather(*(shop.holds.place_best(EVENT, cyd, Wish(2), idempotency_key="k3") for _ in range(9)))
    assert len({(hold.seats, hold.amount_minor, hold.lines) for hold in many}) == 1


async def test_the_cap_of_a_person_holds_under_races(tmp_path: Path) -> None:
    """B4: 60 requests of one fan for one seat each, at once, with a cap of 4."""
    async with open_shop(sqlite_url(tmp_path), max_per_person=4) as shop:
        told = await asyncio.gather(*(shop.hold("ann", seat) for seat in range(60)), return_exceptions=True)
        assert sum(isinstance(answer, Hold) for answer in told) == 4
        assert sum(isinstance(answer, CapExceeded) for answer in told) == 56
        taken = await shop.taken()
        assert len(taken) == 4
        assert isinstance(await shop.hold("bob", min(set(range(60)) - taken)), Hold)  # what ann did not get is free


async def test_of_60_fans_for_one_seat_one_wins_and_59_hear_that_it_is_taken(shop: Shop) -> None:
    """N4."""
    told = await asyncio.gather(*(shop.hold(f"fan{n}", 7) for n in range(60)), return_exceptions=True)
    assert sum(isinstance(answer, Hold) for answer in told) == 1
    assert sum(isinstance(answer, SeatsTaken) for answer in told) == 59


async def test_a_crowd_for_the_best_two_fills_the_house_without_collisions(shop: Shop) -> None:
    """B4: 50 pairs for 80 seats: 40 win, side by side, the best section first; 10 hear that nothing fits."""
    wishes = [shop.holds.place_best(EVENT, shop.shop_pass(f"fan{n}"), Wish(2)) for n in range(50)]
    told = await asyncio.gather(*wishes, return_exceptions=True)
    won = [answer for answer in told if isinstance(answer, Hold)]
    assert len(won) == 40
    assert sorted(seat for hold in won for seat in hold.indexes) == list(range(80))
    assert all(hold.indexes[1] == hold.indexes[0] + 1 for hold in won)
    assert sum(isinstance(answer, NoSuchSeats) for answer in told) == 10


async def test_others_who_are_faster_every_time_are_no_sold_out_house(shop: Shop) -> None:
    """B4: the claim store refuses each choice, but seats are still free: "try again", not "nothing fits"."""

    async def too_late(*_: Any) -> ClaimRefused:
        return ClaimRefused(())

    shop.claims.claim_best = too_late  # type: ignore[method-assign]
    with pytest.raises(Overloaded, match="try again") as refused:
        await shop.holds.place_best(EVENT, shop.shop_pass("ann"), Wish(2))
    assert (refused.value.http_status, refused.value.retry_after_s) == (503, 1.0)


async def test_a_wish_for_a_section_and_a_price_gets_them(shop: Shop) -> None:
    hold = await shop.holds.place_best(EVENT, shop.shop_pass("ann"), Wish(3, sections=("B",)))
    assert {seat.split("-")[0] for seat in hold.seats} == {"B"}
    standing = await shop.holds.place_best(EVENT, shop.shop_pass("bob"), Wish(3, max_price_minor=3000, standing=True))
    assert standing.amount_minor == 9000
    with pytest.raises(NoSuchSeats):
        await shop.holds.place_best(EVENT, shop.shop_pass("cid"), Wish(2, max_price_minor=2999))


async def test_no_lonely_seat_is_left_unless_it_cannot_be_helped(tmp_path: Path) -> None:
    """B4: the rule, its relaxation, and that it asks the claim store before it refuses."""
    async with open_shop(sqlite_url(tmp_path), lonely_rule_until_percent=90) as shop:
        with pytest.raises(LonelySeat) as refusal:
            await shop.hold("ann", 1, 2)
        assert refusal.value.problem()["seats"] == ["A-1-1"]
        await shop.hold("ann", 0, 1)
        await shop.hold("bob", *range(4, 10))
        await shop.hold("cid", 3)  # of two free seats one may be taken: the other is alone either way
        await shop.hold("dan", 10)  # another server sells row 2, seat 1 …
        shop.sale.seats.mark_free([10])
        await shop.hold("eve", 11, 12)  # … so seat 2 leaves nobody alone, whatever this server believed


async def test_the_lonely_rule_ends_when_the_house_is_nearly_full(tmp_path: Path) -> None:
    async with open_shop(sqlite_url(tmp_path), lonely_rule_until_percent=5) as shop:
        await shop.hold("ann", *range(20, 28))
        await shop.hold("bob", 1)


async def test_released_and_expired_seats_are_on_sale_at_once(shop: Shop) -> None:
    """B3, B14, N5."""
    clock = shop.clock
    assert isinstance(clock, ManualClock)
    hold = await shop.hold("ann", 3)
    await shop.holds.held.release(hold.booking_id, hold.fence)
    again = await shop.hold("bob", 3)
    clock.advance(us=HOLD_US - 1)
    with pytest.raises(SeatsTaken):
        await shop.hold("cid", 3)
    clock.advance(us=1)
    assert (await shop.hold("cid", 3)).fence > again.fence


async def test_a_sold_seat_stays_taken_and_a_refunded_one_returns(shop: Shop) -> None:
    """B12, B16."""
    clock = shop.clock
    assert isinstance(clock, ManualClock)
    hold = await shop.hold("ann", 3)
    await shop.buy(hold)
    clock.advance(3600)
    with pytest.raises(SeatsTaken):
        await shop.hold("bob", 3)
    refunded = await refund_booking(shop.ledger, hold.booking_id, hold.fence, clock())
    await shop.holds.held.freed(EVENT, refunded.seats, refunded.id)
    assert (await shop.hold("bob", 3)).fence > hold.fence


async def test_an_extended_hold_keeps_its_seats(shop: Shop) -> None:
    clock = shop.clock
    assert isinstance(clock, ManualClock)
    hold = await shop.hold("ann", 3)
    await shop.holds.held.extend(hold.booking_id, hold.fence, NOW + 2 * HOLD_US)
    clock.advance(us=2 * HOLD_US - 1)
    with pytest.raises(SeatsTaken):
        await shop.hold("bob", 3)


async def test_a_caller_who_leaves_in_the_middle_leaves_no_claim_behind(shop: Shop) -> None:
    """F5: 60 callers are cancelled at different points of the way."""
    tasks = [asyncio.create_task(shop.hold(f"fan{n}", n)) for n in range(60)]
    for turn, task in enumerate(tasks):
        if turn % 3 == 0:
            await asyncio.sleep(0)
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await shop.holds.aclose()
    await shop.ledger.line.aclose()
    written = {seat.seat_index async for seat in shop.ledger.active_seats(EVENT, NOW)}
    assert await shop.taken() == written


async def test_a_map_in_step_with_its_feed_keeps_refusing_and_frees_at_once(shop: Shop) -> None:
    """N2, B2: while the map is in step, taken seats are refused without asking; its news of a free seat counts."""
    clock = shop.clock
    assert isinstance(clock, ManualClock)
    await shop.hold("ann", 3)
    seats = shop.sale.seats
    shown = bytearray(shop.plan.size)
    shown[3] = 1
    clock.advance(30)
    assert not seats.any_taken_by_other((3,), "bob", clock())  # told long ago, and no map: ask the claim store
    seats.trust_map(shown, clock())
    assert seats.any_taken_by_other((3,), "bob", clock())
    assert not seats.any_taken_by_other((3,), "ann", clock())
    shown[3] = 0
    assert not seats.any_taken_by_other((3,), "bob", clock())
    shown[3] = 1
    clock.advance(2)
    assert not seats.any_taken_by_other((3,), "bob", clock())  # the map has not been in step for two seconds
    seats.trust_map(shown, clock())
    seats.apply_map_changes({3: 0})
    assert not seats.any_taken_by_other((3,), "bob", clock())


async def test_local_refusals_of_free_seats_are_measured_and_end_with_the_next_update(shop: Shop) -> None:
    """N2: this server missed that ann's seat was given back; it is wrong for at most one update, and counts it."""
    clock = shop.clock
    assert isinstance(clock, ManualClock)
    hold = await shop.hold("ann", 3)
    await shop.ledger.release_hold(hold.booking_id, hold.fence, clock())
    await shop.claims.release(EVENT, (3,), hold.booking_id)
    for n in range(64):
        with pytest.raises(SeatsTaken):
            await shop.hold(f"fan{n}", 3)
    await shop.holds.aclose()
    assert (shop.holds.stats.audited, shop.holds.stats.audited_free) == (1, 1)
    assert (await shop.hold("bob", 3)).seats == ("A-1-4",)  # the audit corrected the belief
    await shop.claims.release(EVENT, (3,), (await shop.ledger.bookings_of(EVENT, "bob"))[0].id)
    clock.advance(1.0)
    with pytest.raises(SeatsTaken):
        await shop.hold("cid", 3)
    assert shop.holds.stats.refused_by_ledger == 1  # asked again after one update; here the ledger is the judge
