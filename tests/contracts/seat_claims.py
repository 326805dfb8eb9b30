"""The contract of the SeatClaims port: plain functions, run over every adapter and, by the canaries, over broken ones.

Each gets `one` and `two`: two servers' views of the same filled, empty store (in memory they are the same object).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import pytest

from frontrow.boxoffice.holds.model.claims import (
    BestClaim,
    ClaimedSeats,
    ClaimKind,
    ClaimRefused,
    ClaimsLost,
    SeatClaim,
    TakenSeat,
    sold_seat,
)
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.seats.model.best_seats import Grade
from frontrow.boxoffice.seats.model.map_format import SeatState
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, Section, UnknownSeats, area
from frontrow.core.clock import US_PER_S

NOW = 1_700_000_000_000_000
HOLD_US = 600 * US_PER_S
EVENT = "evt_contract"
Contract = Callable[[SeatClaims, SeatClaims], Awaitable[None]]


def small_plan() -> Plan:
    """Sections A and B of 4 rows of 10 and a standing area of 60: 140 seats; A is 0…39, B 40…79, S 80…139."""
    rows = tuple(Row(f"{n}", tuple(Seat(f"{m}") for m in range(1, 11)), rank=n) for n in range(1, 5))
    return Plan("small", (Section("A", rows), Section("B", rows), area("S", 60)))


async def seats_of(seats: Iterable[TakenSeat] = ()) -> AsyncIterator[TakenSeat]:
    for seat in seats:
        yield seat


def wish(name: str, *seats: int, until_us: int = NOW + HOLD_US) -> SeatClaim:
    return SeatClaim(EVENT, seats, f"fan_{name}", f"bkg_{name}", until_us)


def best(name: str, count: int, *, section: int = 0, worst: Grade = Grade.ADJACENT_ROWS, size: int = 40) -> BestClaim:
    return BestClaim(EVENT, section, b"\1" * size, count, worst, f"fan_{name}", f"bkg_{name}", NOW + HOLD_US)


async def taken(claims: SeatClaims, now_us: int = NOW) -> set[int]:
    """The taken seats. What the map shows of them is the same."""
    found = await claims.states(EVENT, now_us)
    assert await claims.map_states(EVENT, now_us) == {
        seat: SeatState.SOLD if one.kind is ClaimKind.SOLD else SeatState.HELD for seat, one in found.items()
    }
    return set(found)


async def a_claimed_seat_is_refused_to_everybody_else_with_its_name(one: SeatClaims, two: SeatClaims) -> None:
    """B2, B3: all or none; the refusal names exactly the seats in the way."""
    assert await one.claim(wish("ann", 3, 4), NOW) == ClaimedSeats((3, 4))
    refusal = await two.claim(wish("bob", 2, 3, 4, 5), NOW)
    assert isinstance(refusal, ClaimRefused)
    assert [seat.seat for seat in refusal.taken] == [3, 4]
    assert {seat.booking_id for seat in refusal.taken} == {"bkg_ann"}
    assert await taken(two) == {3, 4}
    assert await two.claim(wish("bob", 2, 5), NOW) == ClaimedSeats((2, 5))


async def of_64_callers_for_one_seat_exactly_one_wins(one: SeatClaims, two: SeatClaims) -> None:
    """B3, N4: the check and the claim are one step."""
    told = await asyncio.gather(*((one, two)[n % 2].claim(wish(f"f{n}", 7), NOW) for n in range(64)))
    assert sum(isinstance(answer, ClaimedSeats) for answer in told) == 1


async def overlapping_groups_never_deadlock_and_never_share(one: SeatClaims, two: SeatClaims) -> None:
    """B4: 60 callers want chains of seats that overlap, in both directions and across sections."""
    wishes = [wish(f"g{n}", *((n, n + 1, 40 + n) if n % 2 else (40 + n, n + 1, n))) for n in range(30)] * 2
    wishes = [
        SeatClaim(w.event_id, w.seats, w.fan, f"{w.booking_id}_{n}", w.expires_at_us) for n, w in enumerate(wishes)
    ]
    told = await asyncio.gather(*((one, two)[n % 2].claim(w, NOW) for n, w in enumerate(wishes)))
    won = [seat for answer in told if isinstance(answer, ClaimedSeats) for seat in answer.seats]
    assert len(won) == len(set(won))
    assert won, "somebody must win"
    assert await taken(one) == set(won)


async def the_same_booking_may_ask_again(one: SeatClaims, two: SeatClaims) -> None:
    """Asking again after a lost answer is harmless, also for a group across sections."""
    for seats in ((1, 2), (10, 50)):
        assert await one.claim(wish("ann", *seats), NOW) == ClaimedSeats(seats)
        assert await two.claim(wish("ann", *seats), NOW + 5) == ClaimedSeats(seats)
    assert isinstance(await one.claim(wish("bob", 10), NOW), ClaimRefused)


async def only_the_owner_releases(one: SeatClaims, two: SeatClaims) -> None:
    """B3."""
    await one.claim(wish("ann", 1, 2, 45), NOW)
    assert await two.release(EVENT, (1, 2, 45), "bkg_bob") == 0
    assert await taken(two) == {1, 2, 45}
    assert await two.release(EVENT, (1, 2, 45, 46), "bkg_ann") == 3
    assert await two.release(EVENT, (1, 2, 45), "bkg_ann") == 0
    assert await taken(one) == set()


async def a_claim_ends_exactly_at_its_expiry(one: SeatClaims, two: SeatClaims) -> None:
    """N5, B14: taken until the last microsecond, free from the next on, without any sweeper."""
    await one.claim(wish("ann", 5), NOW)
    assert isinstance(await two.claim(wish("bob", 5, until_us=NOW + 2 * HOLD_US), NOW + HOLD_US - 1), ClaimRefused)
    assert await taken(two, NOW + HOLD_US - 1) == {5}
    assert await taken(two, NOW + HOLD_US) == set()
    assert await two.claim(wish("bob", 5, until_us=NOW + 2 * HOLD_US), NOW + HOLD_US) == ClaimedSeats((5,))
    assert await one.release(EVENT, (5,), "bkg_ann") == 0


async def the_stores_own_clock_decides_nothing(one: SeatClaims, two: SeatClaims) -> None:
    """B14: callers whose clock is an hour before or behind the store's see claims neither end early nor stay."""
    for shift_us, seat in ((-3600 * US_PER_S, 1), (3600 * US_PER_S, 2), (-50 * 365 * 86400 * US_PER_S, 3)):
        import time

        now_us = time.time_ns() // 1000 + shift_us
        claim = wish(f"c{seat}", seat, until_us=now_us + US_PER_S)
        assert await one.claim(claim, now_us) == ClaimedSeats((seat,))
        other = wish(f"d{seat}", seat, until_us=now_us + HOLD_US)
        assert isinstance(await two.claim(other, now_us + US_PER_S - 1), ClaimRefused)
        assert await two.claim(other, now_us + US_PER_S) == ClaimedSeats((seat,))


async def a_hold_is_extended_by_its_owner_only(one: SeatClaims, two: SeatClaims) -> None:
    await one.claim(wish("ann", 5, 6), NOW)
    longer_us = NOW + 2 * HOLD_US
    assert isinstance(await two.claim(wish("bob", 5, until_us=longer_us), NOW), ClaimRefused)
    assert await two.claim(wish("ann", 5, 6, until_us=longer_us), NOW) == ClaimedSeats((5, 6))
    assert await taken(one, longer_us - 1) == {5, 6}
    assert isinstance(await one.claim(wish("bob", 6), longer_us - 1), ClaimRefused)


async def a_sold_seat_never_ends_and_a_late_repeat_does_not_unsell_it(one: SeatClaims, two: SeatClaims) -> None:
    """B16: sold seats are claims without an end."""
    await one.claim(wish("ann", 5), NOW)
    await one.put(EVENT, [sold_seat(5, "fan_ann", "bkg_ann", NOW), sold_seat(70, "fan_zed", "bkg_zed", NOW)], NOW)
    assert await two.claim(wish("ann", 5), NOW) == ClaimedSeats((5,))
    much_later_us = NOW + 1000 * HOLD_US
    assert await taken(two, much_later_us) == {5, 70}
    refusal = await two.claim(wish("bob", 5), much_later_us)
    assert isinstance(refusal, ClaimRefused)
    assert [seat.kind for seat in refusal.taken] == [ClaimKind.SOLD]
    assert await two.release(EVENT, (5,), "bkg_ann") == 1
    assert await two.claim(wish("bob", 5), NOW) == ClaimedSeats((5,))


async def seats_sold_together_are_all_taken(one: SeatClaims, two: SeatClaims) -> None:
    """Bookings next to each other and one across two sections: each seat is its own booking's."""
    seats = {"ann": (5, 6, 7), "bob": (8, 9), "eve": (1, 51, 100)}
    sold = [sold_seat(seat, f"fan_{fan}", f"bkg_{fan}", NOW) for fan, own in seats.items() for seat in own]
    await one.put(EVENT, sold, NOW)
    found = await two.states(EVENT, NOW)
    assert {seat: taken.booking_id for seat, taken in found.items()} == {one.seat: one.booking_id for one in sold}
    assert {taken.kind for taken in found.values()} == {ClaimKind.SOLD}


async def a_group_across_sections_is_all_or_nothing(one: SeatClaims, two: SeatClaims) -> None:
    """B4: refused in its second section, it leaves nothing in its first."""
    await one.claim(wish("ann", 50), NOW)
    refusal = await two.claim(wish("bob", 1, 50, 100), NOW)
    assert isinstance(refusal, ClaimRefused)
    assert [seat.seat for seat in refusal.taken] == [50]
    assert await taken(one) == {50}
    assert await one.claim(wish("cyd", 1), NOW) == ClaimedSeats((1,)), "not even for a moment"
    assert await one.release(EVENT, (1,), "bkg_cyd") == 1
    assert await two.claim(wish("bob", 1, 51, 100), NOW) == ClaimedSeats((1, 51, 100))
    assert await taken(one) == {1, 50, 51, 100}


async def half_a_group_is_never_seen(one: SeatClaims, two: SeatClaims) -> None:
    """B4: while groups that must fail are being tried, the map never shows a part of them."""
    await one.claim(wish("ann", 79), NOW)
    done = asyncio.Event()

    async def watch() -> int:
        looked = 0
        while not done.is_set() or looked < 3:
            assert await taken(two) == {79}
            looked += 1
            await asyncio.sleep(0)
        return looked

    watcher = asyncio.create_task(watch())
    told = await asyncio.gather(*(one.claim(wish(f"g{n}", n % 40, 79), NOW) for n in range(60)))
    done.set()
    assert all(isinstance(answer, ClaimRefused) for answer in told)
    assert await watcher >= 3


async def a_crowd_for_the_best_two_does_not_collide(one: SeatClaims, two: SeatClaims) -> None:
    """B4: 20 pairs fill the 40 seats of section A; the 30 others are refused with the section as it is."""
    told = await asyncio.gather(*((one, two)[n % 2].claim_best(best(f"b{n}", 2), NOW) for n in range(50)))
    won = [answer.seats for answer in told if isinstance(answer, ClaimedSeats)]
    seats = [seat for pair in won for seat in pair]
    assert sorted(seats) == list(range(40))
    assert all(right == left + 1 and left // 10 == right // 10 for left, right in won)
    refused = [answer for answer in told if isinstance(answer, ClaimRefused)]
    assert len(refused) == 30
    assert len(await taken(one)) == 40


async def best_available_repeats_for_the_same_booking(one: SeatClaims, two: SeatClaims) -> None:
    first = await one.claim_best(best("ann", 3), NOW)
    assert isinstance(first, ClaimedSeats)
    assert await two.claim_best(best("ann", 3), NOW) == first
    assert await taken(two) == set(first.seats)


async def best_available_sees_expired_seats_as_free(one: SeatClaims, two: SeatClaims) -> None:
    await one.claim(wish("ann", *range(40)), NOW)
    refused = await two.claim_best(best("bob", 2), NOW)
    assert isinstance(refused, ClaimRefused)
    assert len(refused.taken) == 40
    assert isinstance(await two.claim_best(best("bob", 2), NOW + HOLD_US), ClaimedSeats)


async def a_standing_area_gives_any_free_places(one: SeatClaims, two: SeatClaims) -> None:
    """An area of 60 for 40 pairs: 30 get places, nobody shares one."""
    wishes = [best(f"s{n}", 2, section=2, size=60) for n in range(40)]
    told = await asyncio.gather(*((one, two)[n % 2].claim_best(w, NOW) for n, w in enumerate(wishes)))
    won = [seat for answer in told if isinstance(answer, ClaimedSeats) for seat in answer.seats]
    assert sorted(won) == list(range(80, 140))


async def unknown_seats_are_an_error(one: SeatClaims, two: SeatClaims) -> None:
    for seat in (-1, 140, 10_000):
        with pytest.raises(UnknownSeats):
            await one.claim(wish("ann", seat), NOW)


async def a_rebuild_replaces_everything(one: SeatClaims, two: SeatClaims) -> None:
    """F1: what the ledger does not know is gone, what it knows is there, and both servers go on."""
    await one.claim(wish("ghost", 1, 2), NOW)
    held = TakenSeat(3, ClaimKind.HELD, "fan_ann", "bkg_ann", NOW, NOW + HOLD_US)
    real = [held, sold_seat(45, "fan_zed", "bkg_zed", NOW)]
    assert await two.rebuild(EVENT, lambda: seats_of(real), NOW)
    assert set((await one.states(EVENT, NOW)).values()) == set(real)
    assert await one.claim(wish("bob", 1), NOW) == ClaimedSeats((1,))
    assert isinstance(await one.claim(wish("bob", 3), NOW), ClaimRefused)
    assert await two.claim(wish("ann", 3), NOW) == ClaimedSeats((3,))


async def while_it_is_being_filled_the_store_refuses(one: SeatClaims, two: SeatClaims) -> None:
    """F1: 503 until the ledger has been read; never a guess."""
    reading, go_on = asyncio.Event(), asyncio.Event()

    async def slowly() -> AsyncIterator[TakenSeat]:
        reading.set()
        await go_on.wait()
        yield sold_seat(9, "fan_zed", "bkg_zed", NOW)

    rebuild = asyncio.create_task(one.rebuild(EVENT, slowly, NOW))
    await reading.wait()
    assert await two.lost(EVENT)
    with pytest.raises(ClaimsLost):
        await two.claim(wish("ann", 1), NOW)
    with pytest.raises(ClaimsLost):
        await two.claim_best(best("ann", 1), NOW)
    with pytest.raises(ClaimsLost):
        await two.states(EVENT, NOW)
    with pytest.raises(ClaimsLost):
        await two.map_states(EVENT, NOW)
    go_on.set()
    assert await rebuild
    assert not await two.lost(EVENT)
    assert await taken(two) == {9}


async def a_later_rebuild_overtakes_an_abandoned_one(one: SeatClaims, two: SeatClaims) -> None:
    """F5: a server that dies in the middle of a rebuild blocks nobody for longer than a moment."""
    reading, go_on = asyncio.Event(), asyncio.Event()

    async def stuck() -> AsyncIterator[TakenSeat]:
        reading.set()
        await go_on.wait()
        yield sold_seat(1, "fan_old", "bkg_old", NOW)

    abandoned = asyncio.create_task(one.rebuild(EVENT, stuck, NOW))
    await reading.wait()
    later_us = NOW + 10 * US_PER_S
    assert await two.rebuild(EVENT, lambda: seats_of([sold_seat(2, "fan_new", "bkg_new", NOW)]), later_us)
    go_on.set()
    assert not await abandoned
    assert await taken(one) == {2}


CONTRACT: list[Contract] = [
    a_claimed_seat_is_refused_to_everybody_else_with_its_name,
    of_64_callers_for_one_seat_exactly_one_wins,
    overlapping_groups_never_deadlock_and_never_share,
    the_same_booking_may_ask_again,
    only_the_owner_releases,
    a_claim_ends_exactly_at_its_expiry,
    the_stores_own_clock_decides_nothing,
    a_hold_is_extended_by_its_owner_only,
    a_sold_seat_never_ends_and_a_late_repeat_does_not_unsell_it,
    seats_sold_together_are_all_taken,
    a_group_across_sections_is_all_or_nothing,
    half_a_group_is_never_seen,
    a_crowd_for_the_best_two_does_not_collide,
    best_available_repeats_for_the_same_booking,
    best_available_sees_expired_seats_as_free,
    a_standing_area_gives_any_free_places,
    unknown_seats_are_an_error,
    a_rebuild_replaces_everything,
    while_it_is_being_filled_the_store_refuses,
    a_later_rebuild_overtakes_an_abandoned_one,
]
