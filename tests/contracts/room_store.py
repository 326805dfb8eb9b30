"""What every `RoomStore` must do, whatever it stores in. Run unchanged over all of them; a canary must fail here.

A test gets `make()`: a fresh store under a manual clock with the room `concert`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from frontrow.core.errors import InvalidInput
from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.model.admission import plan_slide
from frontrow.waitingroom.model.config import LaneRule, Phase, RoomConfig
from frontrow.waitingroom.model.errors import CodeUsed, RoomClosed, RoomOverflow, RoomRecovering
from frontrow.waitingroom.model.inflow import MAX_REPORTERS, REPORT_TTL_US, ShopReport
from frontrow.waitingroom.model.room_state import LaneState, RoomState, SlidePlan, VisitResult
from frontrow.waitingroom.ports import (
    ClaimRow,
    EndedVisit,
    JoinCommand,
    JoinReply,
    KeptVisit,
    PlaceKey,
    Recovered,
    RoomStore,
    SlideResult,
    VisitCommand,
    VisitOp,
)

EVENT = "concert"
S = 1_000_000
TTL_US = 5 * S
STEP_S = 5
Make = Callable[..., Awaitable[tuple[RoomStore, ManualClock]]]


def new_room(phase: Phase = Phase.OPEN, **settings: Any) -> RoomState:
    config = RoomConfig(**({"capacity": 100, "window_size": 10, "pass_ttl_s": 900} | settings))
    return RoomState(1, phase, config, (LaneState(),) * len(config.lanes), bucket_milli=config.burst * 1000)


async def state_of(store: RoomStore) -> RoomState:
    state = await store.snapshot(EVENT)
    assert state is not None
    return state


async def joined(store: RoomStore, people: int, lane: int = 0) -> list[JoinReply]:
    answers = await store.join(EVENT, [JoinCommand(lane)] * people)
    assert all(isinstance(answer, JoinReply) for answer in answers)
    return list(answers)  # type: ignore[arg-type]


async def slide(store: RoomStore, owner: str = "me") -> SlideResult:
    """One turn of a leader."""
    if not await store.take_lead(EVENT, owner, TTL_US):
        return SlideResult.NOT_LEADER
    step = plan_slide(await state_of(store))
    return await store.slide(EVENT, owner, step) if step else SlideResult.NOT_DUE


def claim(position: int, tag: int = 0, slide_no: int = 0, ttl_s: int = 900) -> VisitCommand:
    return VisitCommand(VisitOp.CLAIM, PlaceKey(0, 1, position), ttl_s, 0, tag, slide_no)


def ask(op: VisitOp, position: int, *, until_s: int = 0, hold: str = "", epoch: int = 1) -> VisitCommand:
    ttl_s = epoch if op is VisitOp.HAND_OVER else 0
    return VisitCommand(op, PlaceKey(0, 1, position), ttl_s, until_s=until_s, hold=hold)


async def ended_of(store: RoomStore, after: int, most: int) -> tuple[int, list[EndedVisit]]:
    last, some = await store.ended(EVENT, after, most)
    return last, list(some)


async def let_in(make: "Make", people: int, **settings: Any) -> tuple[RoomStore, ManualClock]:
    """A room with this many active places, at the beginning of a second."""
    store, clock = await make(start=LaneState(people, people), **settings)
    clock.advance(us=S - clock() % S)
    return store, clock


async def pass_by(store: RoomStore, clock: ManualClock, seconds: int) -> None:
    """So many seconds pass, and a server looks at the room every now and then, as servers do."""
    for start in range(0, seconds, STEP_S):
        clock.advance(min(STEP_S, seconds - start))
        await state_of(store)


async def visit(store: RoomStore, ask: VisitCommand) -> VisitResult:
    return (await store.visit(EVENT, [ask]))[0].result


async def expiry_of(store: RoomStore, position: int) -> int:
    """When the pass of this place expires; 0 without a live visit. A hold that keeps nothing changes nothing."""
    (reply,) = await store.visit(EVENT, [ask(VisitOp.KEEP, position, hold="bkg_unknown")])
    return reply.expires_s


class StoreContract:
    # -- joining -----------------------------------------------------------------------------------------------------

    async def test_w1_positions_are_sequential_unique_and_gap_free_among_many_callers(self, make: Make) -> None:
        store, _ = await make()
        batches = await asyncio.gather(*(joined(store, 1 + n % 3) for n in range(80)))
        positions = [answer.position for batch in batches for answer in batch]
        assert sorted(positions) == list(range(1, len(positions) + 1))
        assert all([a.position for a in batch] == sorted(a.position for a in batch) for batch in batches)
        assert (await state_of(store)).lanes[0].issued == len(positions)

    async def test_w13_a_store_that_is_behind_what_was_seen_issues_nothing(self, make: Make) -> None:
        store, _ = await make()
        await joined(store, 5)
        for ask in (JoinCommand(0), JoinCommand(0, "key")):
            with pytest.raises(RoomRecovering):
                await store.join(EVENT, [ask], (6,))
            assert (await state_of(store)).lanes[0].issued == 5
        (answer,) = await store.join(EVENT, [JoinCommand(0)], (5,))
        assert isinstance(answer, JoinReply)
        assert answer.position == 6

    async def test_n7_a_store_says_whether_a_room_is_still_as_it_was(self, make: Make) -> None:
        """A resting room costs one question, and is worked on only if somebody came."""
        store, clock = await make()
        seen = await state_of(store)
        clock.advance(us=S)
        assert await store.unchanged_at_us(EVENT, seen) == clock()
        await joined(store, 1)
        assert await store.unchanged_at_us(EVENT, seen) == 0
        seen = await state_of(store)
        assert await store.unchanged_at_us(EVENT, seen) == clock()
        await store.forget(EVENT, seen.epoch)
        assert await store.unchanged_at_us(EVENT, seen) == 0

    async def test_each_lane_counts_for_itself(self, make: Make) -> None:
        store, _ = await make(lanes=(LaneRule("general"), LaneRule("fans", 3)))
        asks = [JoinCommand(0), JoinCommand(1), JoinCommand(0), JoinCommand(1), JoinCommand(1)]
        answers = await store.join(EVENT, asks)
        assert [(a.lane, a.position) for a in answers if isinstance(a, JoinReply)] == [
            (0, 1),
            (1, 1),
            (0, 2),
            (1, 2),
            (1, 3),
        ]

    async def test_the_same_key_gets_the_same_position_for_a_while(self, make: Make) -> None:
        store, clock = await make()
        first, other, again = await store.join(
            EVENT, [JoinCommand(0, "k1"), JoinCommand(0, "k2"), JoinCommand(0, "k1")]
        )
        assert isinstance(first, JoinReply)
        assert isinstance(again, JoinReply)
        assert isinstance(other, JoinReply)
        assert (again.position, again.at_us, again.fresh) == (first.position, first.at_us, False)
        assert other.position == 2
        clock.advance(30)
        (later,) = await store.join(EVENT, [JoinCommand(0, "k1")])
        assert isinstance(later, JoinReply)
        assert (later.position, later.at_us) == (first.position, first.at_us)

    async def test_fifty_callers_with_one_key_are_one_person(self, make: Make) -> None:
        store, _ = await make()
        answers = await asyncio.gather(*(store.join(EVENT, [JoinCommand(0, "mine")]) for _ in range(50)))
        assert sum(a.fresh for (a,) in answers if isinstance(a, JoinReply)) == 1
        assert {a.position for (a,) in answers if isinstance(a, JoinReply)} == {1}

    async def test_w12_fifty_callers_with_one_code_are_one_winner(self, make: Make) -> None:
        store, _ = await make()
        answers = await asyncio.gather(*(store.join(EVENT, [JoinCommand(0, code_id=77)]) for _ in range(50)))
        assert sum(isinstance(answer, JoinReply) for (answer,) in answers) == 1
        assert sum(isinstance(answer, CodeUsed) for (answer,) in answers) == 49
        assert (await state_of(store)).lanes[0].issued == 1, "a used code takes no position"

    async def test_w10_beyond_the_depth_cap_people_are_sent_to_the_overflow_page(self, make: Make) -> None:
        store, _ = await make(depth_cap=5)
        answers = await store.join(EVENT, [JoinCommand(0)] * 8)
        assert [isinstance(a, RoomOverflow) for a in answers] == [False] * 5 + [True] * 3
        (keyed,) = await store.join(EVENT, [JoinCommand(0, "key")])
        assert isinstance(keyed, RoomOverflow)
        assert (await state_of(store)).lanes[0].issued == 5

    async def test_a_closed_room_takes_nobody(self, make: Make) -> None:
        store, _ = await make()
        await store.configure(EVENT, phase=Phase.CLOSED)
        for ask in (JoinCommand(0), JoinCommand(0, "key")):
            (answer,) = await store.join(EVENT, [ask])
            assert isinstance(answer, RoomClosed)

    # -- sliding -----------------------------------------------------------------------------------------------------

    async def test_w3_a_slide_moves_the_window_once_an_interval(self, make: Make) -> None:
        store, clock = await make()
        await joined(store, 25)
        assert await slide(store) is SlideResult.SLID
        assert await slide(store) is SlideResult.NOT_DUE
        assert (await state_of(store)).lanes[0].hi == 10
        clock.advance(us=S - 1)
        assert await slide(store) is SlideResult.NOT_DUE
        clock.advance(us=1)
        assert await slide(store) is SlideResult.SLID
        assert (await state_of(store)).lanes[0].hi == 20
        clock.advance(10)
        assert await slide(store) is SlideResult.SLID
        state = await state_of(store)
        assert (state.lanes[0].hi, state.slide_no, len(state.ring)) == (25, 3, len(state.ring))

    async def test_w4_only_the_leader_slides_and_a_leadership_ends(self, make: Make) -> None:
        store, clock = await make()
        await joined(store, 25)
        assert await store.take_lead(EVENT, "a", TTL_US)
        assert await store.take_lead(EVENT, "a", TTL_US), "extended if mine"
        assert not await store.take_lead(EVENT, "b", TTL_US)
        step = plan_slide(await state_of(store))
        assert step is not None
        assert await store.slide(EVENT, "b", step) is SlideResult.NOT_LEADER
        clock.advance(us=TTL_US - 1)
        assert not await store.take_lead(EVENT, "b", TTL_US)
        clock.advance(us=1)
        assert await store.slide(EVENT, "a", step) is SlideResult.NOT_LEADER, "over at the very microsecond"
        assert await store.take_lead(EVENT, "b", TTL_US)
        assert not await store.take_lead(EVENT, "a", TTL_US)
        await store.resign(EVENT, "a")
        assert not await store.take_lead(EVENT, "a", TTL_US), "nobody resigns for another"
        await store.resign(EVENT, "b")
        assert await store.take_lead(EVENT, "a", TTL_US)

    async def test_w4_of_fifty_leaders_with_one_plan_one_slides(self, make: Make) -> None:
        store, _ = await make()
        await joined(store, 100)
        await store.take_lead(EVENT, "me", TTL_US)
        step = plan_slide(await state_of(store))
        assert step is not None
        results = await asyncio.gather(*(store.slide(EVENT, "me", step) for _ in range(50)))
        assert results.count(SlideResult.SLID) == 1
        assert (await state_of(store)).lanes[0].hi == 10

    async def test_w4_a_stale_early_or_impossible_plan_moves_nothing(self, make: Make) -> None:
        store, clock = await make()
        await joined(store, 20)
        await slide(store)
        clock.advance(1)
        before = await state_of(store)
        good = plan_slide(before)
        assert good is not None
        wrong: list[tuple[SlidePlan, SlideResult]] = [
            (replace(good, expected_slide_no=0), SlideResult.CHANGED),
            (replace(good, due=2), SlideResult.NOT_DUE),
            (replace(good, due=0), SlideResult.NOT_DUE),
            (replace(good, his=(21,)), SlideResult.TOO_FAR),
            (replace(good, his=(9,)), SlideResult.TOO_FAR),
            (replace(good, los=(21,)), SlideResult.TOO_FAR),
            (replace(good, los=(-1,)), SlideResult.TOO_FAR),
        ]
        for step, expected in wrong:
            assert await store.slide(EVENT, "me", step) is expected
        assert (await state_of(store)).lanes == before.lanes
        await store.configure(EVENT, phase=Phase.PAUSED)
        assert await store.slide(EVENT, "me", good) is SlideResult.CHANGED

    async def test_w4_one_of_the_windows_due_while_nobody_led_is_made_up_for(self, make: Make) -> None:
        store, clock = await make()
        await joined(store, 90)
        await slide(store, "a")
        clock.advance(5)
        assert await slide(store, "b") is SlideResult.SLID
        assert (await state_of(store)).lanes[0].hi == 20
        assert await slide(store, "b") is SlideResult.NOT_DUE, "all intervals that have passed are used up"

    async def test_w4_the_windows_due_while_nobody_led_are_made_up_for_if_set(self, make: Make) -> None:
        store, clock = await make(catch_up_us=3_600_000_000)
        await joined(store, 90)
        await slide(store, "a")
        clock.advance(5)
        assert await slide(store, "b") is SlideResult.SLID
        assert (await state_of(store)).lanes[0].hi == 60

    # -- reports of the shop's health --------------------------------------------------------------------------------

    async def test_of_each_reporter_the_newest_report_is_kept_with_the_stores_time(self, make: Make) -> None:
        store, clock = await make()
        assert await store.reports(EVENT) in ([], ())
        assert await store.put_report(EVENT, ShopReport("shop-1", 7, 300, 1000, 2))
        clock.advance(5)
        assert await store.put_report(EVENT, ShopReport("shop-2", 3, 500, 10))
        for repeated_or_late in (7, 6):
            assert not await store.put_report(EVENT, ShopReport("shop-1", repeated_or_late, 1, 1))
        now_us = clock()
        assert {one.reporter: one for one in await store.reports(EVENT)} == {
            "shop-1": ShopReport("shop-1", 7, 300, 1000, 2, now_us - 5 * S),
            "shop-2": ShopReport("shop-2", 3, 500, 10, 0, now_us),
        }

    async def test_of_fifty_parallel_copies_of_a_report_one_is_taken(self, make: Make) -> None:
        store, _ = await make()
        taken = await asyncio.gather(*(store.put_report(EVENT, ShopReport("shop-1", 9, 300, 5)) for _ in range(50)))
        assert taken.count(True) == 1

    async def test_reporters_are_bounded_and_those_long_silent_make_room(self, make: Make) -> None:
        store, clock = await make()
        for number in range(MAX_REPORTERS):
            assert await store.put_report(EVENT, ShopReport(f"shop-{number}", 1, 300, 5))
        assert not await store.put_report(EVENT, ShopReport("one-more", 1, 300, 5))
        assert await store.put_report(EVENT, ShopReport("shop-3", 2, 300, 5)), "a known reporter goes on"
        clock.advance(REPORT_TTL_US // S)
        assert await store.put_report(EVENT, ShopReport("one-more", 2, 300, 5))
        assert [one.reporter for one in await store.reports(EVENT)] == ["one-more"]

    async def test_a_report_for_a_room_that_is_not_here_is_refused(self, make: Make) -> None:
        store, _ = await make()
        with pytest.raises(RoomRecovering):
            await store.put_report("elsewhere", ShopReport("shop-1", 1, 300, 5))

    # -- visits ------------------------------------------------------------------------------------------------------

    async def test_w7_a_hundred_parallel_claims_are_one_pass(self, make: Make) -> None:
        store, _ = await make()
        await joined(store, 10)
        await slide(store)
        results = await asyncio.gather(*(visit(store, claim(3)) for _ in range(100)))
        assert results.count(VisitResult.OK) == 1
        assert results.count(VisitResult.ALREADY) == 99
        assert (await state_of(store)).active == 1

    async def test_a_claim_whose_answer_was_lost_can_be_repeated_by_the_same_caller(self, make: Make) -> None:
        store, clock = await make()
        await joined(store, 10)
        await slide(store)
        (first,) = await store.visit(EVENT, [claim(3, tag=4_000_000_000)])
        clock.advance(5)
        (again,) = await store.visit(EVENT, [claim(3, tag=4_000_000_000)])
        assert (first.result, again.result) == (VisitResult.OK, VisitResult.REPEATED)
        assert first.expires_s == again.expires_s == clock() // S - 5 + 900
        assert await visit(store, claim(3, tag=5)) is VisitResult.ALREADY
        assert await visit(store, claim(3)) is VisitResult.ALREADY
        assert (await state_of(store)).active == 1

    async def test_w2_only_active_places_can_be_claimed(self, make: Make) -> None:
        store, clock = await make(active_windows=2)
        await joined(store, 50)
        for _ in range(3):
            await slide(store)
            clock.advance(1)
        state = await state_of(store)
        assert (state.lanes[0].lo, state.lanes[0].hi) == (10, 30)
        assert [await visit(store, claim(p)) for p in (10, 11, 30, 31)] == [
            VisitResult.EXPIRED,
            VisitResult.OK,
            VisitResult.OK,
            VisitResult.WAITING,
        ]

    async def test_w6_active_never_exceeds_capacity_and_a_returned_pass_frees_it_at_once(self, make: Make) -> None:
        store, _ = await make(capacity=5, window_size=100, burst=100)
        await joined(store, 60)
        await store.take_lead(EVENT, "me", TTL_US)
        state = await state_of(store)
        step = SlidePlan(0, 1, (60,), (0,), (), 0, state.now_us, "", 60)
        assert await store.slide(EVENT, "me", step) is SlideResult.SLID
        results = await asyncio.gather(*(visit(store, claim(p)) for p in range(1, 61)))
        assert results.count(VisitResult.OK) == 5
        assert results.count(VisitResult.FULL) == 55
        winner = 1 + results.index(VisitResult.OK)
        back = VisitCommand(VisitOp.GIVE_BACK, PlaceKey(0, 1, winner))
        returned = await asyncio.gather(*(visit(store, back) for _ in range(50)))
        assert returned.count(VisitResult.OK) == 1
        assert returned.count(VisitResult.ALREADY) == 49
        state = await state_of(store)
        assert (state.active, state.released) == (4, 1)
        loser = 1 + results.index(VisitResult.FULL)
        assert await visit(store, claim(loser)) is VisitResult.OK
        assert await visit(store, claim(winner)) is VisitResult.ALREADY, "a place is exchanged once for ever"

    async def test_w6_who_knocks_at_a_full_shop_is_counted_once_and_keeps_the_place(self, make: Make) -> None:
        store, clock = await make(active_windows=1)
        await joined(store, 30)
        await slide(store)
        config = (await state_of(store)).config
        await store.configure(EVENT, config=config.changed(capacity=1))
        number = (await state_of(store)).ring[-1].number
        assert await visit(store, claim(1, slide_no=number)) is VisitResult.OK
        for position in (2, 3, 2, 3, 2):
            assert await visit(store, claim(position, slide_no=number)) is VisitResult.FULL
        state = await state_of(store)
        assert (state.knocking, dict(state.took)) == (2, {number: 3}), "who came is counted as having come, once"
        await store.configure(EVENT, config=config)
        clock.advance(1)
        assert await slide(store) is SlideResult.SLID
        assert (await state_of(store)).lanes[0].lo == 10
        assert await visit(store, claim(4)) is VisitResult.EXPIRED
        assert await visit(store, claim(2)) is VisitResult.OK, "in time"
        state = await state_of(store)
        assert (state.knocking, state.active) == (1, 2)
        clock.advance(31)
        assert (await state_of(store)).knocking == 0, "who does not come back is forgotten"
        assert await visit(store, claim(3)) is VisitResult.EXPIRED

    async def test_passes_run_out_at_their_second_and_free_the_capacity(self, make: Make) -> None:
        store, clock = await make(capacity=1)
        await joined(store, 10)
        await slide(store)
        clock.now_us += S - clock.now_us % S
        (first,) = await store.visit(EVENT, [claim(1, ttl_s=10)])
        assert first.result is VisitResult.OK
        clock.advance(us=10 * S - 1)
        assert (await state_of(store)).active == 1
        assert await expiry_of(store, 1) == first.expires_s
        await store.take_lead(EVENT, "me", TTL_US)
        clock.advance(us=1)
        state = await state_of(store)
        assert (state.active, state.released) == (0, 1)
        assert await expiry_of(store, 1) == 0
        assert await visit(store, VisitCommand(VisitOp.GIVE_BACK, PlaceKey(0, 1, 1))) is VisitResult.ENDED
        assert await visit(store, VisitCommand(VisitOp.RENEW, PlaceKey(0, 1, 1), 10, 2**31)) is VisitResult.ENDED
        assert (await state_of(store)).active == 0

    async def test_a_renewal_moves_the_end_once_and_never_past_the_limit(self, make: Make) -> None:
        store, clock = await make()
        await joined(store, 10)
        await slide(store)
        (first,) = await store.visit(EVENT, [claim(1, ttl_s=100)])
        clock.advance(50)
        renew = VisitCommand(VisitOp.RENEW, PlaceKey(0, 1, 1), 100, first.expires_s + 20)
        one, two = await store.visit(EVENT, [renew, renew])
        assert (one.result, one.expires_s) == (VisitResult.OK, first.expires_s + 20)
        assert (two.result, two.expires_s) == (VisitResult.REPEATED, first.expires_s + 20)
        clock.advance(55)
        assert (await state_of(store)).active == 1, "it outlives its first end"
        clock.advance(20)
        assert (await state_of(store)).active == 0
        assert await visit(store, VisitCommand(VisitOp.RENEW, PlaceKey(0, 1, 2), 100, 2**31)) is VisitResult.ENDED

    async def test_claims_are_counted_for_the_slide_that_admitted_them(self, make: Make) -> None:
        store, _ = await make()
        await joined(store, 10)
        await slide(store)
        number = (await state_of(store)).ring[-1].number
        await store.visit(EVENT, [claim(p, slide_no=number) for p in (1, 2, 3)])
        assert dict((await state_of(store)).took) == {number: 3}

    async def test_positions_far_apart_do_not_touch_each_other(self, make: Make) -> None:
        far = 14_000_000
        store, _ = await make(capacity=10, start=LaneState(issued=far, hi=far))
        assert await visit(store, claim(far)) is VisitResult.OK
        assert await visit(store, claim(far)) is VisitResult.ALREADY
        for position in (1, 1023, 1024, 1025, far - 1):
            assert await visit(store, claim(position)) is VisitResult.OK
        assert await visit(store, VisitCommand(VisitOp.CLAIM, PlaceKey(0, 2, far), 900)) is VisitResult.OK, (
            "another epoch"
        )

    # -- how visits go on and end ------------------------------------------------------------------------------------

    async def test_a_visit_nobody_hears_of_ends_after_the_idle_time_if_others_wait(self, make: Make) -> None:
        store, clock = await let_in(make, 1, idle_s=120)
        (begun,) = await store.visit(EVENT, [claim(1, tag=5)])
        assert begun.ends_s == clock() // S + 120
        await joined(store, 1)
        await pass_by(store, clock, 100)
        (heard,) = await store.visit(EVENT, [ask(VisitOp.HEAR, 1)])
        assert (heard.result, heard.expires_s) == (VisitResult.OK, begun.expires_s), "hearing prolongs no pass"
        assert heard.ends_s == clock() // S + 120
        await pass_by(store, clock, 119)
        clock.advance(us=S - clock() % S - 1)
        assert (await state_of(store)).active == 1
        clock.advance(us=1)
        state = await state_of(store)
        assert (state.active, state.released, state.ended_no) == (0, 1, 1)
        assert await expiry_of(store, 1) == 0
        for op in (VisitOp.HEAR, VisitOp.LOOK, VisitOp.LEAVE, VisitOp.RENEW, VisitOp.KEEP):
            assert await visit(store, ask(op, 1, until_s=2**31)) is VisitResult.ENDED
        assert await visit(store, claim(1, tag=5)) is VisitResult.ALREADY, "a place is exchanged once for ever"
        ended = EndedVisit(PlaceKey(0, 1, 1), begun.expires_s, timed_out=True, idle=True)
        assert await ended_of(store, 0, 10) == (1, [ended])

    async def test_an_idle_visit_goes_on_until_its_pass_ends_while_nobody_waits(self, make: Make) -> None:
        """Before: two quiet minutes ended the visit, although the place was of use to nobody."""
        store, clock = await let_in(make, 1, idle_s=120)
        (begun,) = await store.visit(EVENT, [claim(1, ttl_s=900)])
        await pass_by(store, clock, 890)
        state = await state_of(store)
        assert (state.active, state.ended_no, state.is_wanted) == (1, 0, False)
        (seen,) = await store.visit(EVENT, [ask(VisitOp.LOOK, 1)])
        assert seen.ends_s <= begun.expires_s
        await pass_by(store, clock, 10)
        assert (await state_of(store)).active == 0, "the pass itself has run out"

    async def test_an_idle_visit_has_a_minute_from_when_somebody_begins_to_wait(self, make: Make) -> None:
        """The queue was empty and fills: the page can still warn."""
        store, clock = await let_in(make, 1, idle_s=120)
        await store.visit(EVENT, [claim(1, ttl_s=900)])
        await pass_by(store, clock, 300)
        await joined(store, 1)
        await pass_by(store, clock, 1)
        assert (await state_of(store)).is_wanted
        await pass_by(store, clock, 59)
        assert (await state_of(store)).active == 1
        (seen,) = await store.visit(EVENT, [ask(VisitOp.LOOK, 1)])
        assert seen.ends_s == clock() // S + 1
        await pass_by(store, clock, 1)
        assert (await state_of(store)).active == 0

    async def test_a_queue_that_empties_again_ends_no_idle_visit(self, make: Make) -> None:
        store, clock = await let_in(make, 1, idle_s=120, window_size=1)
        await store.visit(EVENT, [claim(1, ttl_s=3_000)])
        for _ in range(5):
            await joined(store, 1)
            await pass_by(store, clock, 40)
            assert await slide(store) is SlideResult.SLID
            assert not (await state_of(store)).is_wanted
            await pass_by(store, clock, 5)
        assert (await state_of(store)).active == 1

    async def test_nobody_is_let_in_by_a_paused_room_so_no_idle_visit_ends_for_it(self, make: Make) -> None:
        store, clock = await let_in(make, 1, idle_s=120)
        await store.visit(EVENT, [claim(1, ttl_s=900)])
        await joined(store, 3)
        await store.configure(EVENT, phase=Phase.PAUSED)
        await pass_by(store, clock, 600)
        assert (await state_of(store)).active == 1

    async def test_who_knocks_at_a_full_shop_waits_too(self, make: Make) -> None:
        store, clock = await let_in(make, 2, idle_s=120, capacity=1)
        await store.visit(EVENT, [claim(1, ttl_s=900)])
        for _ in range(20):
            if (await visit(store, claim(2))) is VisitResult.OK:
                break
            await pass_by(store, clock, 10)
        assert (await state_of(store)).active == 1
        assert await expiry_of(store, 1) == 0

    async def test_after_a_time_without_anybody_reaching_the_store_visits_can_be_heard_first(self, make: Make) -> None:
        """The store was down: no visitor could be heard, and none could come back from a page that was closed."""
        store, clock = await let_in(make, 2, idle_s=120, leave_s=10)
        await store.visit(EVENT, [claim(1, ttl_s=900), claim(2, ttl_s=900)])
        await joined(store, 1)
        await store.visit(EVENT, [ask(VisitOp.LEAVE, 2)])
        clock.advance(300)
        assert (await state_of(store)).active == 2
        await pass_by(store, clock, 50)
        await store.visit(EVENT, [ask(VisitOp.HEAR, 1)])
        await pass_by(store, clock, 15)
        assert [await expiry_of(store, p) > 0 for p in (1, 2)] == [True, False]

    async def test_looking_when_a_visit_ends_changes_nothing(self, make: Make) -> None:
        store, clock = await let_in(make, 1, idle_s=120, leave_s=10)
        (begun,) = await store.visit(EVENT, [claim(1)])
        clock.advance(20)
        (seen,) = await store.visit(EVENT, [ask(VisitOp.LOOK, 1)])
        assert (seen.result, seen.ends_s, seen.expires_s) == (VisitResult.OK, begun.ends_s, begun.expires_s)
        (left,) = await store.visit(EVENT, [ask(VisitOp.LEAVE, 1)])
        (seen,) = await store.visit(EVENT, [ask(VisitOp.LOOK, 1)])
        assert seen.ends_s == left.ends_s, "it takes no departure back"

    async def test_a_busy_visit_ends_with_its_pass(self, make: Make) -> None:
        store, clock = await let_in(make, 1, idle_s=120)
        await store.visit(EVENT, [claim(1, ttl_s=150)])
        clock.advance(100)
        (heard,) = await store.visit(EVENT, [ask(VisitOp.HEAR, 1)])
        assert heard.ends_s == heard.expires_s
        clock.advance(50)
        state = await state_of(store)
        assert (state.active, state.ended_no) == (0, 0), "the pass itself has run out: nothing to remember"

    async def test_a_closed_page_ends_the_visit_soon_unless_somebody_is_heard(self, make: Make) -> None:
        store, clock = await let_in(make, 2, idle_s=120, leave_s=10)
        await store.visit(EVENT, [claim(1), claim(2)])
        first, second = await store.visit(EVENT, [ask(VisitOp.LEAVE, 1), ask(VisitOp.LEAVE, 2)])
        assert first.ends_s == second.ends_s == clock() // S + 10
        clock.advance(9)
        (again,) = await store.visit(EVENT, [ask(VisitOp.LEAVE, 1)])
        assert again.ends_s == first.ends_s, "leaving twice is no delay"
        await store.visit(EVENT, [ask(VisitOp.HEAR, 2)])
        clock.advance(1)
        assert (await state_of(store)).active == 1
        assert [await expiry_of(store, p) > 0 for p in (1, 2)] == [False, True]
        await joined(store, 1)
        await pass_by(store, clock, 119)
        assert (await state_of(store)).active == 0

    async def test_a_call_before_the_page_was_closed_is_no_sign_of_life(self, make: Make) -> None:
        """Calls are reported a second later: the last click must not take the departure back."""
        store, clock = await let_in(make, 1, idle_s=120, leave_s=10)
        await store.visit(EVENT, [claim(1)])
        clicked_s = clock() // S
        clock.advance(1)
        (left,) = await store.visit(EVENT, [ask(VisitOp.LEAVE, 1)])
        (late,) = await store.visit(EVENT, [ask(VisitOp.HEAR, 1, until_s=clicked_s)])
        assert (late.result, late.ends_s) == (VisitResult.REPEATED, left.ends_s)
        clock.advance(2)
        (heard,) = await store.visit(EVENT, [ask(VisitOp.HEAR, 1, until_s=clock() // S)])
        assert heard.ends_s == clock() // S + 120

    async def test_who_left_during_a_hold_leaves_with_it(self, make: Make) -> None:
        store, clock = await let_in(make, 1, idle_s=120, leave_s=10)
        await store.visit(EVENT, [claim(1)])
        now_s = clock() // S
        await store.visit(EVENT, [ask(VisitOp.KEEP, 1, until_s=now_s + 600, hold="bkg_1"), ask(VisitOp.LEAVE, 1)])
        clock.advance(300)
        (free,) = await store.visit(EVENT, [ask(VisitOp.KEEP, 1, hold="bkg_1")])
        assert free.ends_s == now_s + 310

    async def test_without_an_idle_time_only_the_pass_ends_a_visit(self, make: Make) -> None:
        store, clock = await let_in(make, 1)
        (begun,) = await store.visit(EVENT, [claim(1, ttl_s=900)])
        clock.advance(899)
        assert (await store.visit(EVENT, [ask(VisitOp.HEAR, 1)]))[0].ends_s == begun.expires_s
        assert (await state_of(store)).active == 1

    async def test_a_live_hold_keeps_its_visit_and_pass(self, make: Make) -> None:
        store, clock = await let_in(make, 1, idle_s=120, leave_s=10)
        (begun,) = await store.visit(EVENT, [claim(1, ttl_s=900)])
        until_s = clock() // S + 1_200
        (kept,) = await store.visit(EVENT, [ask(VisitOp.KEEP, 1, until_s=until_s, hold="bkg_1")])
        assert (kept.result, kept.expires_s, kept.ends_s, kept.kept_until_s) == (
            VisitResult.OK,
            until_s,
            until_s,
            until_s,
        )
        assert list(await store.kept(EVENT)) == [KeptVisit(PlaceKey(0, 1, 1), until_s, "bkg_1")]
        assert (await state_of(store)).kept == 1
        await store.visit(EVENT, [ask(VisitOp.LEAVE, 1)])
        clock.advance(1_199)
        assert (await state_of(store)).active == 1, "neither the idle time nor a closed page ends it"
        assert await expiry_of(store, 1) == until_s > begun.expires_s
        clock.advance(1)
        state = await state_of(store)
        assert (state.active, state.kept) == (0, 0)

    async def test_a_hold_that_is_over_keeps_nothing_and_another_keeps_on(self, make: Make) -> None:
        store, clock = await let_in(make, 1, idle_s=120)
        await store.visit(EVENT, [claim(1)])
        now_s = clock() // S
        keep = [
            ask(VisitOp.KEEP, 1, until_s=now_s + 600, hold="bkg_1"),
            ask(VisitOp.KEEP, 1, until_s=now_s + 500, hold="bkg_2"),
        ]
        one, two = await store.visit(EVENT, keep)
        assert (one.result, two.result, two.kept_until_s) == (VisitResult.OK, VisitResult.REPEATED, now_s + 600)
        clock.advance(10)
        (other,) = await store.visit(EVENT, [ask(VisitOp.KEEP, 1, hold="bkg_2")])
        assert (other.result, other.kept_until_s) == (VisitResult.REPEATED, now_s + 600)
        (free,) = await store.visit(EVENT, [ask(VisitOp.KEEP, 1, hold="bkg_1")])
        assert (free.result, free.kept_until_s, free.ends_s) == (VisitResult.OK, 0, now_s + 130)
        assert (await state_of(store)).kept == 0
        await joined(store, 1)
        await pass_by(store, clock, 120)
        assert (await state_of(store)).active == 0

    async def test_a_kept_visit_can_be_given_back(self, make: Make) -> None:
        store, clock = await let_in(make, 1)
        await store.visit(EVENT, [claim(1)])
        until_s = clock() // S + 2_000
        await store.visit(EVENT, [ask(VisitOp.KEEP, 1, until_s=until_s, hold="bkg_1")])
        (ended,) = await store.visit(EVENT, [ask(VisitOp.GIVE_BACK, 1)])
        assert (ended.result, ended.expires_s) == (VisitResult.OK, until_s)
        state = await state_of(store)
        assert (state.active, state.kept, state.ended_no) == (0, 0, 1)
        assert await ended_of(store, 0, 10) == (1, [EndedVisit(PlaceKey(0, 1, 1), until_s)])

    async def test_ended_visits_are_listed_in_order_until_their_passes_run_out(self, make: Make) -> None:
        store, clock = await let_in(make, 9)
        begun = await store.visit(EVENT, [claim(p, ttl_s=10 * p) for p in range(1, 10)])
        await store.visit(EVENT, [ask(VisitOp.GIVE_BACK, p) for p in range(1, 7)])
        last, some = await ended_of(store, 0, 4)
        assert (last, [one.place.position for one in some]) == (4, [1, 2, 3, 4])
        assert [one.expires_s for one in some] == [one.expires_s for one in begun[:4]]
        last, some = await ended_of(store, last, 4)
        assert (last, [one.place.position for one in some]) == (6, [5, 6])
        assert await ended_of(store, last, 4) == (6, [])
        clock.advance(25)
        last, some = await ended_of(store, 0, 10)
        assert (last, [one.place.position for one in some]) == (6, [3, 4, 5, 6]), "two have run out by themselves"
        await store.visit(EVENT, [ask(VisitOp.GIVE_BACK, 9)])
        assert (await ended_of(store, 6, 10))[0] == 7
        clock.advance(100)
        assert await ended_of(store, 3, 10) == (7, []), "and nothing is kept for ever"

    async def test_a_pass_beside_the_line_takes_no_capacity_and_is_refused_once_given_back(self, make: Make) -> None:
        store, clock = await make()
        until_s = clock() // S + 900
        back = VisitCommand(VisitOp.GIVE_BACK, PlaceKey(0, 0, 123_456_789), until_s=until_s)
        assert await visit(store, back) is VisitResult.OK
        assert await ended_of(store, 0, 10) == (1, [EndedVisit(back.place, until_s)])
        assert (await state_of(store)).active == 0

    # -- organisers ----------------------------------------------------------------------------------------------------

    async def test_opening_the_pre_queue_fixes_who_is_in_the_draw(self, make: Make) -> None:
        store, _ = await make(phase=Phase.PREQUEUE)
        await joined(store, 30)
        assert await slide(store) is SlideResult.NOT_DUE
        state = await store.configure(EVENT, phase=Phase.OPEN, beacon="drand 7")
        assert (state.phase, state.beacon, state.lanes[0].drawn) == (Phase.OPEN, "drand 7", 30)
        await joined(store, 5)
        await store.configure(EVENT, phase=Phase.PAUSED)
        state = await store.configure(EVENT, phase=Phase.OPEN)
        assert (state.lanes[0].drawn, state.lanes[0].issued, state.beacon) == (30, 35, "drand 7")

    async def test_queue_all_holds_even_active_places_and_costs_nobody_grace(self, make: Make) -> None:
        store, clock = await make(grace_us=60 * S)
        await joined(store, 20)
        await slide(store)
        await store.configure(EVENT, phase=Phase.QUEUE_ALL)
        assert await visit(store, claim(1)) is VisitResult.HELD
        clock.advance(3600)
        assert await slide(store) is SlideResult.NOT_DUE
        await store.configure(EVENT, phase=Phase.OPEN)
        assert await slide(store) is SlideResult.SLID
        assert (await state_of(store)).lanes[0].lo == 0
        assert (await state_of(store)).lanes[0].hi == 20, "one window is due after a hold, not thousands"
        assert await visit(store, claim(1)) is VisitResult.OK

    async def test_pausing_and_resuming_often_never_makes_a_second_slide_due(self, make: Make) -> None:
        store, _ = await make()
        await joined(store, 50)
        assert await slide(store) is SlideResult.SLID
        for _ in range(5):
            await store.configure(EVENT, phase=Phase.PAUSED)
            await store.configure(EVENT, phase=Phase.OPEN)
            assert await slide(store) is SlideResult.NOT_DUE

    async def test_settings_change_while_people_wait(self, make: Make) -> None:
        store, _ = await make()
        await joined(store, 3)
        config = (await state_of(store)).config
        state = await store.configure(EVENT, config=config.changed(capacity=1, message="hello", depth_cap=4))
        assert (state.config.capacity, state.message_no, state.lanes[0].issued) == (1, 1, 3)
        await slide(store)
        assert await visit(store, claim(1)) is VisitResult.OK
        assert await visit(store, claim(2)) is not VisitResult.OK, "capacity is one"
        more = await store.join(EVENT, [JoinCommand(0)] * 6)
        assert sum(isinstance(a, RoomOverflow) for a in more) > 0
        lanes = (*config.lanes, LaneRule("fans"))
        state = await store.configure(EVENT, config=config.changed(lanes=lanes))
        assert len(state.lanes) == 2
        assert (await joined(store, 1, lane=1))[0].position == 1
        with pytest.raises(InvalidInput):
            await store.configure(EVENT, config=config)

    async def test_ten_organisers_at_once_all_get_their_change(self, make: Make) -> None:
        store, _ = await make()
        config = (await state_of(store)).config
        asked = range(1, 11)
        states = await asyncio.gather(*(store.configure(EVENT, config=config.changed(capacity=n)) for n in asked))
        assert len(states) == 10
        assert (await state_of(store)).config.capacity in asked

    async def test_ten_organisers_who_change_different_settings_lose_none(self, make: Make) -> None:
        store, _ = await make()
        asked = {"capacity": 7, "message": "hello", "depth_cap": 9, "rate_per_s": 3, "burst": 4, "codes_until_us": 5}
        await asyncio.gather(*(store.configure(EVENT, changes={name: value}) for name, value in asked.items()))
        config = (await state_of(store)).config
        assert {name: getattr(config, name) for name in asked} == asked

    # -- hand-overs --------------------------------------------------------------------------------------------------

    async def test_a_hand_over_is_exchanged_once_by_fifty_who_try_at_once(self, make: Make) -> None:
        store, clock = await let_in(make, 2)
        await store.visit(EVENT, [claim(1), claim(2)])
        until_s = clock() // S + 60
        once = ask(VisitOp.HAND_OVER, 1, until_s=until_s, hold="one")
        replies = await asyncio.gather(*(store.visit(EVENT, [once]) for _ in range(50)))
        results = [reply.result for (reply,) in replies]
        assert sorted(results) == [VisitResult.ALREADY] * 49 + [VisitResult.OK]
        assert await visit(store, ask(VisitOp.HAND_OVER, 1, until_s=until_s, hold="two")) is VisitResult.OK
        assert await visit(store, ask(VisitOp.HAND_OVER, 2, until_s=until_s, hold="three")) is VisitResult.OK
        (reply,) = await store.visit(EVENT, [ask(VisitOp.LOOK, 1)])
        assert reply.expires_s == clock() // S + 900, "the visit is as long as before"

    async def test_a_hand_over_ends_with_its_minute_and_with_its_visit(self, make: Make) -> None:
        store, clock = await let_in(make, 2)
        await store.visit(EVENT, [claim(1)])
        until_s = clock() // S + 60
        assert await visit(store, ask(VisitOp.HAND_OVER, 2, until_s=until_s, hold="none")) is VisitResult.ENDED
        before = ask(VisitOp.HAND_OVER, 1, until_s=until_s, hold="one", epoch=0)
        assert await visit(store, before) is VisitResult.EXPIRED, "of the room before it was rebuilt"
        assert await visit(store, ask(VisitOp.HAND_OVER, 1, until_s=until_s, hold="one")) is VisitResult.OK
        clock.advance(59)
        assert await visit(store, ask(VisitOp.HAND_OVER, 1, until_s=until_s, hold="one")) is VisitResult.ALREADY
        clock.advance(1)  # forgotten now, and expired by the same clock
        assert await visit(store, ask(VisitOp.HAND_OVER, 1, until_s=until_s, hold="one")) is VisitResult.EXPIRED
        await store.visit(EVENT, [ask(VisitOp.GIVE_BACK, 1)])
        later = ask(VisitOp.HAND_OVER, 1, until_s=until_s + 60, hold="two")
        assert await visit(store, later) is VisitResult.ENDED

    async def test_a_hand_over_counts_as_a_request_of_the_visitor(self, make: Make) -> None:
        store, clock = await let_in(make, 1, idle_s=120, leave_s=10)
        await store.visit(EVENT, [claim(1)])
        await store.visit(EVENT, [ask(VisitOp.LEAVE, 1)])
        now_s = clock() // S
        (reply,) = await store.visit(EVENT, [ask(VisitOp.HAND_OVER, 1, until_s=now_s + 60, hold="one")])
        assert reply.ends_s == now_s + 120

    async def test_w8_fifty_joins_of_one_person_who_has_one_place_get_it(self, make: Make) -> None:
        store, _ = await make()
        mine = JoinCommand(0, person="ada", one_place=True)
        answers = [(await store.join(EVENT, [mine]))[0] for _ in range(5)]
        batch = await store.join(EVENT, [mine] * 45 + [JoinCommand(0, person="bob", one_place=True)])
        positions = {one.position for one in (*answers, *batch[:-1]) if isinstance(one, JoinReply)}
        assert positions == {1}
        assert isinstance(batch[-1], JoinReply)
        assert batch[-1].position == 2

    async def test_w8_who_has_a_place_in_one_lane_gets_none_in_another(self, make: Make) -> None:
        store, _ = await make(lanes=(LaneRule("general"), LaneRule("fans", 3)))
        (first,) = await store.join(EVENT, [JoinCommand(1, person="ada", one_place=True)])
        (other,) = await store.join(EVENT, [JoinCommand(0, person="ada", one_place=True)])
        assert isinstance(first, JoinReply)
        assert isinstance(other, JoinReply)
        assert (other.lane, other.position, other.fresh) == (first.lane, first.position, False)
        assert [lane.issued for lane in (await state_of(store)).lanes] == [0, 1]

    # -- loss and return -----------------------------------------------------------------------------------------------

    async def test_w13_a_room_nobody_knows_says_so(self, make: Make) -> None:
        store, _ = await make()
        assert await store.snapshot("other") is None
        for call in (
            store.join("other", [JoinCommand(0)]),
            store.join("other", [JoinCommand(0, "key")]),
            store.visit("other", [claim(1)]),
            store.take_lead("other", "me", TTL_US),
            store.configure("other", phase=Phase.OPEN),
            store.lift("other", [LaneState()]),
            store.ended("other", 0, 10),
            store.kept("other"),
        ):
            with pytest.raises(RoomRecovering):
                await call

    async def test_w13_a_room_is_restored_whole_and_only_if_it_is_gone(self, make: Make) -> None:
        store, clock = await make()
        now_s = clock() // S
        state = replace(new_room(), epoch=4, lanes=(LaneState(900, 300, 100, 50),), slide_no=7, released=3)
        claims = (
            ClaimRow(PlaceKey(0, 3, 200), now_s + 60, 0, "fan", 9),
            ClaimRow(PlaceKey(0, 3, 201), 0, 0),
            ClaimRow(PlaceKey(0, 3, 202), now_s - 5, 0),
        )
        ended = (EndedVisit(PlaceKey(0, 3, 201), now_s + 60, timed_out=True), EndedVisit(PlaceKey(0, 2, 7), now_s + 9))
        assert not await store.create(EVENT, Recovered(state, claims, (5,)))
        await store.forget(EVENT, 99)
        assert await store.snapshot(EVENT) is not None, "another epoch's room is not dropped"
        await store.forget(EVENT, 1)
        assert await store.snapshot(EVENT) is None
        made = await asyncio.gather(
            *(store.create(EVENT, Recovered(state, claims, (5,), (), ended)) for _ in range(50))
        )
        assert made.count(True) == 1
        back = await state_of(store)
        assert (back.epoch, back.lanes, back.slide_no, back.active, back.released) == (4, state.lanes, 7, 1, 3)
        assert back.ended_no == 2
        assert (await ended_of(store, 0, 10))[1] == list(ended)
        assert (await joined(store, 1))[0] == JoinReply(0, 901, 4, clock())
        asks = [VisitCommand(VisitOp.CLAIM, PlaceKey(0, 3, p), 900, tag=9) for p in (200, 201, 202, 203)]
        results = [answer.result for answer in await store.visit(EVENT, asks)]
        assert results == [VisitResult.REPEATED, VisitResult.ALREADY, VisitResult.ALREADY, VisitResult.OK]
        (used,) = await store.join(EVENT, [JoinCommand(0, code_id=5)])
        assert isinstance(used, CodeUsed)

    async def test_w13_lifting_raises_counters_and_never_lowers_them(self, make: Make) -> None:
        store, _ = await make(start=LaneState(50, 20, 10))
        await store.lift(EVENT, [LaneState(40, 30, 5)])
        lane = (await state_of(store)).lanes[0]
        assert (lane.issued, lane.hi, lane.lo) == (50, 30, 10)

    async def test_rooms_do_not_touch_each_other(self, make: Make) -> None:
        store, _ = await make()
        await store.create("other", Recovered(new_room()))
        await joined(store, 5)
        other = await store.snapshot("other")
        assert other is not None
        assert other.lanes[0].issued == 0
