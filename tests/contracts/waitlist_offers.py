"""The WaitlistBook's contract: offers from being made to their end (B11, B14, N4)."""

from frontrow.boxoffice.events.model.events import EventCancelled, EventStatus
from frontrow.boxoffice.facts.model import (
    HoldExpired,
    HoldExtended,
    HoldPlaced,
    HoldReleased,
    OfferClaimed,
    OfferDeclined,
    OfferLapsed,
    OfferMade,
    WaitlistEnded,
    WaitlistJoined,
    WaitlistLeft,
)
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.holds import CapExceeded, SeatsTaken
from frontrow.boxoffice.waitlist.model.offers import OfferNotFound, OfferOver, OfferState
from frontrow.boxoffice.waitlist.model.waitlist import EntryNotFound, EntryState, NotWaiting
from tests.boxoffice.shop import shop_event
from tests.contracts.ledger_contract import CALLERS, TEN_MINUTES_US, Bench, outcomes, refusal
from tests.contracts.waitlist_contract import (
    FIVE_MINUTES_US,
    an_offer,
    check,
    in_line,
    join,
    kinds,
    make_offer,
    offered,
    state_of,
)


@check
async def an_offer_is_a_hold_kept_for_one_fan(bench: Bench) -> None:
    offer = await offered(bench, "ada", 3, 4)
    booking = await bench.two.booking(offer.booking_id)
    assert booking is not None
    assert (booking.state, booking.fan, booking.seats) == (BookingState.HELD, "ada", (3, 4))
    assert (booking.fence, booking.hold_expires_at_us) == (offer.fence, offer.expires_at_us)
    assert await state_of(bench, "ada") is EntryState.OFFERED
    assert await in_line(bench) == []
    assert [o.id for o in await bench.two.waitlist.offers_of(bench.event, "ada")] == [offer.id]
    error = await refusal(bench.hold(4, fan="eve"), SeatsTaken)
    assert error.seats == (4,)
    assert await kinds(bench) == [WaitlistJoined, HoldPlaced, OfferMade]


@check
async def of_many_making_the_same_offer_one_offer_stands(bench: Bench) -> None:
    """Workers of all servers choose the same entry, with the same or with other seats."""
    entry = await join(bench, "ada")
    made, refused = await outcomes([make_offer(bench.either(n), an_offer(bench, entry, n % 3)) for n in range(CALLERS)])
    assert not refused
    assert len({(offer.id, offer.seats, offer.fence) for offer in made}) == 1
    assert len(await bench.seats()) == 1
    assert (await kinds(bench)).count(OfferMade) == 1


@check
async def of_many_entries_for_one_seat_one_is_offered_it_and_the_others_wait_on(bench: Bench) -> None:
    entries = [await join(bench, f"f{n}") for n in range(CALLERS)]
    made, refused = await outcomes(
        [make_offer(bench.either(n), an_offer(bench, entry, 7)) for n, entry in enumerate(entries)]
    )
    assert len(made) == 1, f"{len(made)} offers of one seat"
    assert all(isinstance(error, SeatsTaken) and error.seats == (7,) for error in refused)
    assert len(await in_line(bench)) == CALLERS - 1
    again = await bench.one.waitlist.entry(entries[(made[0].entry_id == entries[0].id) * 1].id)
    assert again is not None
    assert again.offers_made == 0, "a refused offer counts"


@check
async def the_cap_holds_between_offers_and_holds_in_any_race(bench: Bench) -> None:
    """Offers of 2 seats and 59 holds of 1 seat for one fan whose cap is 4."""
    entry = await join(bench, "ada", 2)
    offer = make_offer(bench.two, an_offer(bench, entry, 100, 101, cap=4))
    holds = [bench.either(n).place_hold(bench.wish(n, fan="ada", cap=4)) for n in range(CALLERS - 1)]
    _, refused = await outcomes([*holds[:30], offer, *holds[30:]])
    assert all(isinstance(error, CapExceeded) for error in refused)
    assert 3 <= len(await bench.seats()) <= 4


@check
async def a_claim_makes_it_an_ordinary_hold_once(bench: Bench) -> None:
    offer = await offered(bench, "ada", 3)
    until_us = bench.now_us + TEN_MINUTES_US
    calls = [bench.either(n).waitlist.claim_offer(offer.id, "ada", bench.now_us, until_us) for n in range(CALLERS)]
    claimed, refused = await outcomes(calls)
    assert not refused
    assert {(o.state, o.hold_expires_at_us) for o in claimed} == {(OfferState.CLAIMED, until_us)}
    facts = await kinds(bench)
    assert (facts.count(OfferClaimed), facts.count(OfferMade)) == (1, 1)
    assert HoldExtended in facts
    bench.clock.advance(us=FIVE_MINUTES_US)
    later = await bench.one.waitlist.claim_offer(offer.id, "ada", bench.now_us, bench.now_us + TEN_MINUTES_US)
    assert later.hold_expires_at_us == until_us, "claiming again makes the hold longer"
    await bench.one.begin_payment(offer.booking_id, offer.fence, bench.now_us)
    await bench.one.confirm(offer.booking_id, offer.fence, bench.now_us)
    assert await state_of(bench, "ada") is None
    entry = await bench.one.waitlist.entry(offer.entry_id)
    assert entry is not None
    assert entry.state is EntryState.SERVED


@check
async def an_offer_ends_at_its_instant_swept_or_not(bench: Bench) -> None:
    offer = await offered(bench, "ada", 3)
    await offered(bench, "bob", 4)
    bench.clock.advance(us=FIVE_MINUTES_US - 1)
    assert await bench.one.waitlist.end_finished_offers(bench.now_us, 100) == []
    await bench.one.waitlist.claim_offer(offer.id, "ada", bench.now_us, bench.now_us + TEN_MINUTES_US)
    (bobs,) = await bench.one.waitlist.offers_of(bench.event, "bob")
    bench.clock.advance(us=1)
    await refusal(
        bench.two.waitlist.claim_offer(bobs.id, "bob", bench.now_us, bench.now_us + TEN_MINUTES_US), OfferOver
    )
    assert list(await bench.seats()) == [3]


@check
async def a_lapsed_offer_is_ended_once_and_its_entry_waits_on_until_the_last(bench: Bench) -> None:
    await bench.facts()
    for turn in (1, 2):
        offer = await offered(bench, "ada", 3)
        bench.clock.advance(us=FIVE_MINUTES_US)
        settled, _ = await outcomes(
            [bench.either(n).waitlist.end_finished_offers(bench.now_us, 100) for n in range(CALLERS)]
        )
        assert [o.id for part in settled for o in part] == [offer.id]
        facts = await bench.facts()
        assert [type(fact) for fact in facts[-2:]] == [HoldExpired, OfferLapsed]
        assert facts[-1].last is (turn == 2)
        assert await bench.seats() == {}
        entry = await bench.one.waitlist.entry(offer.entry_id)
        assert entry is not None
        assert (entry.state, entry.lapses) == ((EntryState.WAITING, 1) if turn == 1 else (EntryState.ENDED, 2))
    await refusal(make_offer(bench.one, an_offer(bench, entry, 3)), NotWaiting)


@check
async def an_offer_whose_hold_another_sweep_ended_lapses_too(bench: Bench) -> None:
    offer = await offered(bench, "ada", 3)
    bench.clock.advance(us=FIVE_MINUTES_US)
    assert len(await bench.one.expire_due(bench.now_us, 10)) == 1
    (lapsed,) = await bench.two.waitlist.end_finished_offers(bench.now_us, 10)
    assert (lapsed.id, lapsed.state) == (offer.id, OfferState.LAPSED)
    assert (await kinds(bench))[-2:] == [HoldExpired, OfferLapsed]


@check
async def declining_frees_the_seats_and_keeps_the_place(bench: Bench) -> None:
    offer = await offered(bench, "ada", 3, 4)
    await join(bench, "bob")
    await refusal(bench.one.waitlist.decline_offer(offer.id, "eve", bench.now_us), OfferNotFound)
    for _ in range(2):
        declined = await bench.two.waitlist.decline_offer(offer.id, "ada", bench.now_us)
        assert declined.state is OfferState.DECLINED
    assert await bench.seats() == {}
    assert await in_line(bench) == ["ada", "bob"]
    assert (await kinds(bench))[-2:] == [HoldReleased, OfferDeclined]
    await refusal(bench.one.waitlist.claim_offer(offer.id, "ada", bench.now_us, bench.now_us + 1), OfferOver)
    second = await offered(bench, "ada", 5, 6)
    assert second.id != offer.id
    assert await bench.one.waitlist.last_fans(bench.event, [3, 4, 9]) == {3: "ada", 4: "ada"}


@check
async def claim_and_decline_at_once_have_one_outcome(bench: Bench) -> None:
    """60 answers of both kinds: either all claims hold and the seat is held, or all declines do and it is free."""
    offer = await offered(bench, "ada", 3)
    until_us = bench.now_us + TEN_MINUTES_US
    calls = [
        bench.either(n // 2).waitlist.claim_offer(offer.id, "ada", bench.now_us, until_us)
        if n % 2
        else bench.either(n // 2).waitlist.decline_offer(offer.id, "ada", bench.now_us)
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
    await refusal(bench.one.waitlist.leave_waitlist(offer.entry_id, "eve", bench.now_us), EntryNotFound)
    for _ in range(2):
        left = await bench.one.waitlist.leave_waitlist(offer.entry_id, "ada", bench.now_us)
        assert left.state is EntryState.LEFT
    assert await bench.seats() == {}
    assert (await kinds(bench))[-3:] == [HoldReleased, OfferDeclined, WaitlistLeft]
    rejoined = await join(bench, "ada")
    assert rejoined.id != offer.entry_id


@check
async def who_pays_without_claiming_has_claimed(bench: Bench) -> None:
    offer = await offered(bench, "ada", 3)
    await bench.one.begin_payment(offer.booking_id, offer.fence, bench.now_us)
    await refusal(bench.one.waitlist.decline_offer(offer.id, "ada", bench.now_us), OfferOver)
    (settled,) = await bench.one.waitlist.end_finished_offers(bench.now_us, 10)
    assert settled.state is OfferState.CLAIMED
    assert await state_of(bench, "ada") is None
    assert (await kinds(bench))[-1] is OfferClaimed


@check
async def who_released_the_hold_has_declined(bench: Bench) -> None:
    offer = await offered(bench, "ada", 3)
    await bench.one.release_hold(offer.booking_id, offer.fence, bench.now_us)
    (settled,) = await bench.one.waitlist.end_finished_offers(bench.now_us, 10)
    assert settled.state is OfferState.DECLINED
    assert await state_of(bench, "ada") is EntryState.WAITING


@check
async def a_cancelled_event_ends_its_line_and_tells_everybody_once(bench: Bench) -> None:
    """Issue 11: any number of workers may end it; an open offer is withdrawn, who pays already is served."""
    waiting = [await join(bench, f"f{n}") for n in range(5)]
    offer, paying = await offered(bench, "ada", 3), await offered(bench, "bob", 4)
    await bench.one.begin_payment(paying.booking_id, paying.fence, bench.now_us)
    event = shop_event(id=bench.event, status=EventStatus.CANCELLED)
    await bench.one.catalogue.put_event(event, bench.now_us)
    for _ in range(3):
        _, refused = await outcomes([bench.either(n).waitlist.end_line(bench.event, 2, bench.now_us) for n in range(4)])
        assert not refused
    assert (await bench.one.waitlist.end_line(bench.event, 100, bench.now_us)).left == 0
    ended = [fact for fact in await bench.facts() if isinstance(fact, WaitlistEnded)]
    assert sorted(fact.fan for fact in ended) == ["ada", "f0", "f1", "f2", "f3", "f4"]
    assert {fact.entry_id for fact in ended} == {offer.entry_id, *(entry.id for entry in waiting)}
    assert [entry and entry.state for entry in [await bench.two.waitlist.entry(paying.entry_id)]] == [EntryState.SERVED]
    assert set(await bench.seats()) == {4}, "the seats of the offer are free"
    withdrawn = await bench.two.waitlist.offer(offer.id)
    assert withdrawn is not None
    assert (withdrawn.state, withdrawn.booking_state) == (OfferState.WITHDRAWN, BookingState.CANCELLED)
    assert await bench.two.waitlist.end_finished_offers(bench.now_us, 10) == []
    await refusal(
        bench.two.waitlist.claim_offer(offer.id, "ada", bench.now_us, bench.now_us + TEN_MINUTES_US), OfferOver
    )
    await refusal(join(bench, "late"), EventCancelled)
    assert await in_line(bench) == []
