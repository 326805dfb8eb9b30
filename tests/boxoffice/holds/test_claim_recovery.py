"""Recovery: filling the claim store from the ledger, and mending what drifted apart (F1, F5)."""

from dataclasses import replace
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.claims.redis import RedisClaims
from frontrow.boxoffice.holds.claim_recovery import ROUNDS, WRITE_GRACE_US, Repairs
from frontrow.boxoffice.holds.model.claims import ClaimKind, ClaimsLost, SeatClaim, TakenSeat, sold_seat
from frontrow.boxoffice.holds.model.holds import SeatsTaken
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, Section, area
from frontrow.testing.clock import ManualClock
from tests.boxoffice.shop import EVENT, NOW, open_shop, sqlite_url
from tests.contracts.seat_claims import seats_of
from tests.support.servers import Sentinel, Valkey


async def test_a_lost_store_answers_503_and_comes_back_with_what_the_ledger_knows(
    tmp_path: Path, own_valkey: Valkey
) -> None:
    """F1: held and sold seats are back, nothing else; a hold goes on to be sold with its old fence."""
    async with open_shop(sqlite_url(tmp_path), own_valkey.url) as shop:
        held, bought = await shop.hold("ann", 3, 4), await shop.hold("bob", 50)
        await shop.buy(bought)
        own_valkey.command("FLUSHALL")
        with pytest.raises(ClaimsLost) as lost:
            await shop.hold("cid", 7)
        assert lost.value.http_status == 503
        assert lost.value.retry_after_s
        assert await shop.recovery.check(EVENT)
        assert await shop.taken() == {3, 4, 50}
        shop.sale.seats.mark_free([3, 50])
        for seat in (3, 50):
            with pytest.raises(SeatsTaken):
                await shop.hold("cid", seat)
        await shop.buy(held)
        assert await shop.recovery.reconcile(EVENT) == Repairs(0, 0)


async def test_drift_in_either_direction_is_mended(tmp_path: Path) -> None:
    """F5: a process died between its two writes: ledger without claim, claim without ledger, sale not marked."""
    clock = ManualClock(NOW)
    async with open_shop(sqlite_url(tmp_path), clock=clock) as shop:
        hold = await shop.hold("ann", 3)
        await shop.claims.release(EVENT, (3,), hold.booking_id)  # the store forgot a hold
        late = await shop.hold("bob", 5)
        await shop.ledger.begin_payment(late.booking_id, late.fence, clock())
        await shop.ledger.confirm(late.booking_id, late.fence, clock())  # and was not told of a sale
        await shop.claims.claim(SeatClaim(EVENT, (9,), "fan_x", "bkg_ghost", NOW + 10**9), clock())
        await shop.claims.put(EVENT, [sold_seat(60, "fan_y", "bkg_refunded", 0)], clock())  # a refund it never heard of
        assert await shop.recovery.reconcile(EVENT) == Repairs(put=2, released=1)
        assert await shop.taken() == {3, 5, 9}
        clock.advance(us=WRITE_GRACE_US)  # the young claim may have been on its way into the ledger; not any more
        assert await shop.recovery.reconcile(EVENT) == Repairs(put=0, released=1)
        states = await shop.claims.states(EVENT, clock())
        assert {seat: taken.kind for seat, taken in states.items()} == {3: ClaimKind.HELD, 5: ClaimKind.SOLD}


async def test_a_seat_the_ledger_refuses_is_put_right_in_the_store(tmp_path: Path) -> None:
    """N4: the claim store let bob through to ann's seat; the ledger refuses, and the doubt is seen to."""
    async with open_shop(sqlite_url(tmp_path)) as shop:
        hold = await shop.hold("ann", 3)
        await shop.claims.release(EVENT, (3,), hold.booking_id)
        shop.sale.seats.mark_free([3])
        with pytest.raises(SeatsTaken) as refusal:
            await shop.hold("bob", 3)
        assert refusal.value.problem()["seats"] == ["A-1-4"]
        assert await shop.taken() == set()  # bob's claim is gone
        assert shop.recovery._doubts == {EVENT}
        await shop.recovery.reconcile(EVENT)
        assert await shop.taken() == {3}


async def test_large_sections_and_areas_are_filled_in_steps(redis_url: str) -> None:
    """F1: more seats than one step or one best-available window takes."""
    big = Section("A", tuple(Row(f"{r}", tuple(Seat(f"{s}") for s in range(50))) for r in range(90)))
    plan = Plan("big", (big, area("S", 3_000)))
    claims = RedisClaims(redis_url)
    claims.learn("evt_big", plan)
    taken = [sold_seat(seat, "fan", f"bkg{seat}", 0) for seat in range(0, plan.size, 7)]
    assert await claims.rebuild("evt_big", lambda: seats_of(taken), NOW)
    assert set((await claims.states("evt_big", NOW)).values()) == set(taken)
    await claims.aclose()


async def test_a_large_area_is_sold_to_the_last_place_through_windows(redis_url: str) -> None:
    from frontrow.boxoffice.holds.model.claims import BestClaim, ClaimedSeats, ClaimRefused

    plan = Plan("area", (area("S", 2_500),))
    claims = RedisClaims(redis_url)
    claims.learn("evt_area", plan)
    kept = [TakenSeat(seat, ClaimKind.SOLD, "fan", f"bkg{seat}", 0, 0) for seat in range(2_490)]
    assert await claims.rebuild("evt_area", lambda: seats_of(kept), NOW)
    won: list[int] = []
    for number in range(3):
        wish = BestClaim("evt_area", 0, b"\1" * 2_500, 4, 1, "fan", f"bkg_n{number}", NOW + 1_000_000)
        answer = await claims.claim_best(wish, NOW)
        if isinstance(answer, ClaimedSeats):
            won += answer.seats
        else:
            assert isinstance(answer, ClaimRefused)
            assert len(answer.taken) == 2_498
    assert won == list(range(2_490, 2_498))
    await claims.aclose()


async def test_claims_work_behind_a_sentinel(own_valkey: Valkey, redis_sentinel: Sentinel, tmp_path: Path) -> None:
    """F1: the store is named by its Sentinels."""
    async with open_shop(sqlite_url(tmp_path), redis_sentinel.url) as shop:
        await shop.hold("ann", 3)
        assert await shop.taken() == {3}


async def test_many_events_are_checked_with_few_calls_and_a_lost_one_is_found(
    tmp_path: Path, own_valkey: Valkey
) -> None:
    """F1, N7: with hundreds of events each turn checks a part of them, in one call per Redis server."""
    async with open_shop(sqlite_url(tmp_path), own_valkey.url) as shop:
        others = [f"evt_quiet{number}" for number in range(60)]
        for event_id in others:
            event = replace(shop.event, id=event_id)
            await shop.ledger.catalogue.put_event(event, NOW)
            shop.claims.learn(event_id, shop.plan)
            shop.sales.open(event, shop.plan)
            assert await shop.recovery.check(event_id)
        everything = [EVENT, *others]
        assert await shop.claims.lost_among(everything) == set()
        own_valkey.command("CONFIG", "RESETSTAT")
        await shop.recovery._check_some(set())
        calls = own_valkey.command("INFO", "commandstats").split(b"cmdstat_mget:calls=")[1].split(b",")[0]
        assert int(calls) < 5
        own_valkey.command("FLUSHALL")
        assert await shop.claims.lost_among(everything) == set(everything)
        await shop.recovery._check_some({others[7]})
        assert others[7] not in await shop.claims.lost_among(everything), "an event in doubt is checked at once"
        for _ in range(ROUNDS):
            await shop.recovery._check_some(set())
        assert await shop.claims.lost_among(everything) == set()
