"""The contract of the WaitlistBook port (B11, B14, N4) as plain checks, for SQLite, PostgreSQL and canaries."""

import itertools
from collections.abc import Callable, Coroutine
from typing import Any

from frontrow.boxoffice.model.bookings import BookingState
from frontrow.boxoffice.model.events import EventStatus
from frontrow.boxoffice.model.facts import (
    HoldExpired,
    HoldExtended,
    HoldPlaced,
    HoldReleased,
    OfferClaimed,
    OfferDeclined,
    OfferLapsed,
    OfferMade,
    WaitlistJoined,
    WaitlistLeft,
)
from frontrow.boxoffice.model.holds import CapExceeded, NewHold, SeatsTaken
from frontrow.boxoffice.model.waitlist import (
    AlreadyWaiting,
    Entry,
    EntryNotFound,
    EntryState,
    NewEntry,
    NewOffer,
    NotWaiting,
    Offer,
    OfferNotFound,
    OfferOver,
    OfferState,
    WaitOrder,
    WaitRules,
    rules_for,
)
from tests.boxoffice.shop import shop_event
from tests.contracts.ledger_contract import CALLERS, TEN_MINUTES_US, Bench, outcomes, refusal

FIVE_MINUTES_US = 300_000_000
Check = Callable[[Bench], Coroutine[Any, Any, None]]
CHECKS: list[Check] = []
_numbers = itertools.count(1)
ANYWHERE = {"A": 1_000}


def check(function: Check) -> Check:
    CHECKS.append(function)
    return function


def wish(bench: Bench, fan: str, count: int = 1, **more: Any) -> NewEntry:
    return NewEntry(f"wle_{next(_numbers):026d}", bench.event, fan, count, **more)


async def join(bench: Bench, fan: str, count: int = 1, **more: Any) -> Entry:
    return await bench.one.join_waitlist(wish(bench, fan, count, **more), bench.now_us)


def an_offer(bench: Bench, entry: Entry, *seats: int, **more: Any) -> NewOffer:
    offer_id, booking_id = entry.next_offer_ids()
    more.setdefault("cap", 10)
    hold = NewHold(
        booking_id, bench.event, entry.fan, seats, bench.now_us, bench.now_us + FIVE_MINUTES_US, 5_000 * len(seats),
        "EUR", (5_000,) * len(seats), **more,
    )  # fmt: skip
    return NewOffer(offer_id, entry.id, hold)


async def offered(bench: Bench, fan: str, *seats: int) -> Offer:
    entry = await bench.one.entry_of_fan(bench.event, fan) or await join(bench, fan, len(seats))
    return await bench.one.make_offer(an_offer(bench, entry, *seats))


async def kinds(bench: Bench) -> list[type]:
    return [type(fact) for fact in await bench.facts()]


async def state_of(bench: Bench, fan: str) -> EntryState | None:
    entry = await bench.two.entry_of_fan(bench.event, fan)
    return entry.state if entry else None


async def in_line(bench: Bench, **free: int) -> list[str]:
    return [entry.fan for entry in await bench.two.waiting_page(bench.event, free or ANYWHERE, (-1, 0), 100)]


@check
async def the_line_is_in_order_of_joining_and_tells_positions(bench: Bench) -> None:
    entries = [await join(bench, f"f{n}") for n in range(5)]
    assert await in_line(bench) == ["f0", "f1", "f2", "f3", "f4"]
    assert [await bench.two.entries_ahead(entry) for entry in entries] == [0, 1, 2, 3, 4]
    await bench.two.leave_waitlist(entries[1].id, "f1", bench.now_us)
    assert [await bench.two.entries_ahead(entries[n]) for n in (0, 2, 4)] == [0, 1, 3]
    page = await bench.one.waiting_page(bench.event, ANYWHERE, (entries[2].rank, entries[2].number), 1)
    assert [entry.fan for entry in page] == ["f3"]
    assert await kinds(bench) == [WaitlistJoined] * 5 + [WaitlistLeft]


@check
async def a_lottery_orders_by_the_published_seed_and_its_rules_are_set_once(bench: Bench) -> None:
    assert await bench.one.waitlist_rules(bench.event) == WaitRules(bench.event)
    rules = rules_for(bench.event, WaitOrder.LOTTERY, "a secret of the organiser")
    assert await bench.one.put_waitlist_rules(rules, bench.now_us) == rules
    other = rules_for(bench.event, WaitOrder.LOTTERY, "a seed chosen after joining")
    assert await bench.two.put_waitlist_rules(other, bench.now_us) == rules, "the rules were changed under way"
    fans = [f"f{n}" for n in range(20)]
    for fan in fans:
        await join(bench, fan, rank=rules.rank(fan))
    assert await in_line(bench) == sorted(fans, key=rules.rank) != fans


@check
async def one_entry_a_fan_in_any_race(bench: Bench) -> None:
    calls = [bench.either(n).join_waitlist(wish(bench, "ada", 2), bench.now_us) for n in range(CALLERS)]
    joined, refused = await outcomes(calls)
    assert not refused
    assert len({entry.id for entry in joined}) == 1
    assert await in_line(bench) == ["ada"]
    assert await kinds(bench) == [WaitlistJoined]
    await refusal(join(bench, "ada", 3), AlreadyWaiting)


@check
async def the_line_is_asked_for_those_who_could_fit_only(bench: Bench) -> None:
    await join(bench, "anywhere", 2)
    await join(bench, "in_b", 2, sections=("B", "C"))
    await join(bench, "large", 5)
    await join(bench, "split", 5, split_ok=True)
    assert await in_line(bench, A=2) == ["anywhere", "split"]
    assert await in_line(bench, B=5) == ["anywhere", "in_b", "large", "split"]
    assert await in_line(bench, A=1, B=1) == ["split"]


@check
async def an_offer_is_a_hold_kept_for_one_fan(bench: Bench) -> None:
    offer = await offered(bench, "ada", 3, 4)
    booking = await bench.two.booking(offer.booking_id)
    assert booking is not None
    assert (booking.state, booking.fan, booking.seats) == (BookingState.HELD, "ada", (3, 4))
    assert (booking.fence, booking.hold_expires_at_us) == (offer.fence, offer.expires_at_us)
    assert await state_of(bench, "ada") is EntryState.OFFERED
    assert await in_line(bench) == []
    assert [o.id for o in await bench.two.offers_of(bench.event, "ada")] == [offer.id]
    error = await refusal(bench.hold(4, fan="eve"), SeatsTaken)
    assert error.seats == (4,)
    assert await kinds(bench) == [WaitlistJoined, HoldPlaced, OfferMade]


@check
async def of_many_making_the_same_offer_one_offer_stands(bench: Bench) -> None:
    """Workers of all servers choose the same entry, with the same or with other seats."""
    entry = await join(bench, "ada")
    made, refused = await outcomes([bench.either(n).make_offer(an_offer(bench, entry, n % 3)) for n in range(CALLERS)])
    assert not refused
    assert len({(offer.id, offer.seats, offer.fence) for offer in made}) == 1
    assert len(await bench.seats()) == 1
    assert (await kinds(bench)).count(OfferMade) == 1


@check
async def of_many_entries_for_one_seat_one_is_offered_it_and_the_others_wait_on(bench: Bench) -> None:
    entries = [await join(bench, f"f{n}") for n in range(CALLERS)]
    made, refused = await outcomes(
        [bench.either(n).make_offer(an_offer(bench, entry, 7)) for n, entry in enumerate(entries)]
    )
    assert len(made) == 1, f"{len(made)} offers of one seat"
    assert all(isinstance(error, SeatsTaken) and error.seats == (7,) for error in refused)
    assert len(await in_line(bench)) == CALLERS - 1
    again = await bench.one.entry(entries[(made[0].entry_id == entries[0].id) * 1].id)
    assert again is not None
    assert again.offers_made == 0, "a refused offer counts"


@check
async def the_cap_holds_between_offers_and_holds_in_any_race(bench: Bench) -> None:
    """Offers of 2 seats and 59 holds of 1 seat for one fan whose cap is 4."""
    entry = await join(bench, "ada", 2)
    offer = bench.two.make_offer(an_offer(bench, entry, 100, 101, cap=4))
    holds = [bench.either(n).place_hold(bench.wish(n, fan="ada", cap=4)) for n in range(CALLERS - 1)]
    _, refused = await outcomes([*holds[:30], offer, *holds[30:]])
    assert all(isinstance(error, CapExceeded) for error in refused)
    assert 3 <= len(await bench.seats()) <= 4


@check
async def a_claim_makes_it_an_ordinary_hold_once(bench: Bench) -> None:
    offer = await offered(bench, "ada", 3)
    until_us = bench.now_us + TEN_MINUTES_US
    calls = [bench.either(n).claim_offer(offer.id, "ada", bench.now_us, until_us) for n in range(CALLERS)]
    claimed, refused = await outcomes(calls)
    assert not refused
    assert {(o.state, o.hold_expires_at_us) for o in claimed} == {(OfferState.CLAIMED, until_us)}
    facts = await kinds(bench)
    assert (facts.count(OfferClaimed), facts.count(OfferMade)) == (1, 1)
    assert HoldExtended in facts
    bench.clock.advance(us=FIVE_MINUTES_US)
    later = await bench.one.claim_offer(offer.id, "ada", bench.now_us, bench.now_us + TEN_MINUTES_US)
    assert later.hold_expires_at_us == until_us, "claiming again makes the hold longer"
    await bench.one.begin_payment(offer.booking_id, offer.fence, bench.now_us)
    await bench.one.confirm(offer.booking_id, offer.fence, bench.now_us)
    assert await state_of(bench, "ada") is None
    entry = await bench.one.entry(offer.entry_id)
    assert entry is not None
    assert entry.state is EntryState.SERVED


@check
async def an_offer_ends_at_its_instant_swept_or_not(bench: Bench) -> None:
    offer = await offered(bench, "ada", 3)
    await offered(bench, "bob", 4)
    bench.clock.advance(us=FIVE_MINUTES_US - 1)
    assert await bench.one.settle_offers(bench.now_us, 100) == []
    await bench.one.claim_offer(offer.id, "ada", bench.now_us, bench.now_us + TEN_MINUTES_US)
    (bobs,) = await bench.one.offers_of(bench.event, "bob")
    bench.clock.advance(us=1)
    await refusal(bench.two.claim_offer(bobs.id, "bob", bench.now_us, bench.now_us + TEN_MINUTES_US), OfferOver)
    assert list(await bench.seats()) == [3]


@check
async def a_lapsed_offer_is_ended_once_and_its_entry_waits_on_until_the_last(bench: Bench) -> None:
    await bench.facts()
    for turn in (1, 2):
        offer = await offered(bench, "ada", 3)
        bench.clock.advance(us=FIVE_MINUTES_US)
        settled, _ = await outcomes([bench.either(n).settle_offers(bench.now_us, 100) for n in range(CALLERS)])
        assert [o.id for part in settled for o in part] == [offer.id]
        facts = await bench.facts()
        assert [type(fact) for fact in facts[-2:]] == [HoldExpired, OfferLapsed]
        assert facts[-1].last is (turn == 2)
        assert await bench.seats() == {}
        entry = await bench.one.entry(offer.entry_id)
        assert entry is not None
        assert (entry.state, entry.lapses) == ((EntryState.WAITING, 1) if turn == 1 else (EntryState.ENDED, 2))
    await refusal(bench.one.make_offer(an_offer(bench, entry, 3)), NotWaiting)


@check
async def an_offer_whose_hold_another_sweep_ended_lapses_too(bench: Bench) -> None:
    offer = await offered(bench, "ada", 3)
    bench.clock.advance(us=FIVE_MINUTES_US)
    assert len(await bench.one.expire_due(bench.now_us, 10)) == 1
    (lapsed,) = await bench.two.settle_offers(bench.now_us, 10)
    assert (lapsed.id, lapsed.state) == (offer.id, OfferState.LAPSED)
    assert (await kinds(bench))[-2:] == [HoldExpired, OfferLapsed]


@check
async def declining_frees_the_seats_and_keeps_the_place(bench: Bench) -> None:
    offer = await offered(bench, "ada", 3, 4)
    await join(bench, "bob")
    await refusal(bench.one.decline_offer(offer.id, "eve", bench.now_us), OfferNotFound)
    for _ in range(2):
        declined = await bench.two.decline_offer(offer.id, "ada", bench.now_us)
        assert declined.state is OfferState.DECLINED
    assert await bench.seats() == {}
    assert await in_line(bench) == ["ada", "bob"]
    assert (await kinds(bench))[-2:] == [HoldReleased, OfferDeclined]
    await refusal(bench.one.claim_offer(offer.id, "ada", bench.now_us, bench.now_us + 1), OfferOver)
    second = await offered(bench, "ada", 5, 6)
    assert second.id != offer.id
    assert await bench.one.last_fans(bench.event, [3, 4, 9]) == {3: "ada", 4: "ada"}


@check
async def claim_and_decline_at_once_have_one_outcome(bench: Bench) -> None:
    """60 answers of both kinds: either all claims hold and the seat is held, or all declines do and it is free."""
    offer = await offered(bench, "ada", 3)
    until_us = bench.now_us + TEN_MINUTES_US
    calls = [
        bench.either(n // 2).claim_offer(offer.id, "ada", bench.now_us, until_us)
        if n % 2
        else bench.either(n // 2).decline_offer(offer.id, "ada", bench.now_us)
        for n in range(CALLERS)
    ]
    answers, refused = await outcomes(calls)
    states = {answer.state for answer in answers}
    assert states in ({OfferState.CLAIMED}, {OfferState.DECLINED})
    assert (len(answers), len(refused)) == (CALLERS // 2, CALLERS // 2)
    assert all(isinstance(error, OfferOver) for error in refused)
    assert bool(await bench.seats()) is (states == {OfferState.CLAIMED})


@check
async def leaving_declines_the_open_offer(bench: Bench) -> None:
    offer = await offered(bench, "ada", 3)
    await refusal(bench.one.leave_waitlist(offer.entry_id, "eve", bench.now_us), EntryNotFound)
    for _ in range(2):
        left = await bench.one.leave_waitlist(offer.entry_id, "ada", bench.now_us)
        assert left.state is EntryState.LEFT
    assert await bench.seats() == {}
    assert (await kinds(bench))[-3:] == [HoldReleased, OfferDeclined, WaitlistLeft]
    rejoined = await join(bench, "ada")
    assert rejoined.id != offer.entry_id


@check
async def who_pays_without_claiming_has_claimed(bench: Bench) -> None:
    offer = await offered(bench, "ada", 3)
    await bench.one.begin_payment(offer.booking_id, offer.fence, bench.now_us)
    await refusal(bench.one.decline_offer(offer.id, "ada", bench.now_us), OfferOver)
    (settled,) = await bench.one.settle_offers(bench.now_us, 10)
    assert settled.state is OfferState.CLAIMED
    assert await state_of(bench, "ada") is None
    assert (await kinds(bench))[-1] is OfferClaimed


@check
async def who_released_the_hold_has_declined(bench: Bench) -> None:
    offer = await offered(bench, "ada", 3)
    await bench.one.release_hold(offer.booking_id, offer.fence, bench.now_us)
    (settled,) = await bench.one.settle_offers(bench.now_us, 10)
    assert settled.state is OfferState.DECLINED
    assert await state_of(bench, "ada") is EntryState.WAITING


@check
async def the_last_fan_of_a_seat_is_the_one_of_the_newest_booking(bench: Bench) -> None:
    first = await bench.hold(3, fan="first")
    await bench.one.release_hold(first.booking_id, first.fence, bench.now_us)
    await bench.hold(3, fan="second")
    bench.clock.advance(us=TEN_MINUTES_US)  # dead, unswept
    await bench.hold(4, fan="third")
    assert await bench.two.last_fans(bench.event, [3, 4, 5]) == {3: "second", 4: "third"}


@check
async def a_look_counts_live_seats_and_sees_whether_anybody_waits(bench: Bench) -> None:
    look = await bench.one.waitlist_look(bench.event, bench.now_us)
    assert (look.taken, look.waiting) == (0, False)
    await bench.paid(1, 2)
    await join(bench, "ada")
    look = await bench.one.waitlist_look(bench.event, bench.now_us)
    assert (look.taken, look.waiting) == (2, True)
    look = await bench.one.waitlist_look(bench.event, bench.now_us + TEN_MINUTES_US)
    assert look.taken == 0


@check
async def an_events_status_shifts_once_and_never_over_a_change(bench: Bench) -> None:
    await bench.one.put_event(shop_event(id=bench.event, withheld=frozenset({9, 4})), bench.now_us)
    on, out = EventStatus.ON_SALE, EventStatus.SOLD_OUT
    shifted, _ = await outcomes(
        [bench.either(n).shift_event(bench.event, on, out, bench.now_us) for n in range(CALLERS)]
    )
    assert len([event for event in shifted if event is not None]) == 1
    event = await bench.two.event(bench.event)
    assert (event.status, event.withheld) == (out, frozenset({4, 9}))
    assert [e.id for e in await bench.one.events(out) if e.id == bench.event] == [bench.event]
    assert await bench.one.shift_event("evt_none", on, out, bench.now_us) is None
