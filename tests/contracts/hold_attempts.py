"""The contract of attempts: plain functions, run over both implementations and, by the canaries, over broken ones.

An attempt turns a claim into a hold (`boxoffice/holds/plain_attempt.py` is the specification). Whatever happens on its
way, the claim store and the ledger agree in the end, at the latest when claim recovery has compared them.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from frontrow.boxoffice.holds.model.bookings import HoldEnded
from frontrow.boxoffice.holds.model.claims import ClaimsLost
from frontrow.boxoffice.holds.model.holds import CapExceeded, Hold, IdempotencyMismatch, SeatsTaken
from frontrow.boxoffice.holds.model.requested_seats import Wish
from frontrow.core.errors import Overloaded, Unavailable
from tests.boxoffice.shop import EVENT, NOW
from tests.contracts.attempt_servers import (
    AT_THE_LEDGER,
    AT_THE_RELEASE,
    BEFORE_THE_LEDGER,
    AttemptServer,
    AttemptServers,
    is_refused,
)

Contract = Callable[[AttemptServers], Awaitable[None]]
HOLD_US = 600_000_000
TURNS = 24  # of the event loop; in as many an attempt on an embedded store has ended


async def a_free_seat_becomes_a_hold_that_the_ledger_has(servers: AttemptServers) -> None:
    """B3: ids, price, end and fence are those of the ledger's booking; the map hears of the seats."""
    one = servers.one
    hold = await one.attempt("ann", 3, 4)
    assert isinstance(hold, Hold)
    booking = await one.ledger.booking(hold.booking_id)
    assert booking is not None
    assert (hold.seats, hold.indexes, hold.fan) == (("A-1-4", "A-1-5"), (3, 4), "ann")
    assert (hold.fence, hold.expires_at_us) == (booking.fence, NOW + HOLD_US)
    assert (hold.amount_minor, hold.currency) == (booking.amount_minor, "EUR")
    assert sum(line.amount_minor for line in hold.lines) == hold.amount_minor > 0
    assert not hold.repeated
    assert (one.holds.stats.won, one.holds.stats.seats_won) == (1, 2)
    assert one.changed == [3, 4]
    assert await one.stores_agree() == {3: hold.booking_id, 4: hold.booking_id}


async def of_60_fans_for_one_seat_on_two_servers_one_holds_it(servers: AttemptServers) -> None:
    """B3, N4: the others get the refusal as a value, which names the seat."""
    both = [(servers.one, servers.two)[n % 2] for n in range(60)]
    told = await asyncio.gather(*(server.attempt(f"fan{n}", 7) for n, server in enumerate(both)))
    assert sum(isinstance(answer, Hold) for answer in told) == 1
    refused = [answer for answer in told if isinstance(answer, SeatsTaken)]
    assert len(refused) == 59
    assert all(answer.about["seats"] == ["A-1-8"] for answer in refused)
    counts = [server.holds.stats for server in (servers.one, servers.two)]
    assert sum(count.won for count in counts) == 1
    assert sum(count.refused_by_claims + count.refused_locally + count.refused_by_ledger for count in counts) == 59
    assert len(await servers.one.stores_agree()) == 1


async def overlapping_groups_are_held_whole_or_not_at_all(servers: AttemptServers) -> None:
    """B4: 60 fans want chains of seats that overlap, also across sections."""
    asked = [((servers.one, servers.two)[n % 2], f"fan{n}", (n // 2, n // 2 + 1, 40 + n // 2)) for n in range(60)]
    told = await asyncio.gather(*(server.attempt(fan, *seats) for server, fan, seats in asked))
    held = [answer for answer in told if isinstance(answer, Hold)]
    assert held
    assert sum(is_refused(answer) for answer in told) == 60 - len(held)
    seats = [seat for hold in held for seat in hold.indexes]
    assert len(set(seats)) == len(seats) == 3 * len(held)
    assert set(await servers.one.stores_agree()) == set(seats)


async def a_seat_of_another_server_is_refused_and_from_then_on_without_asking(servers: AttemptServers) -> None:
    """N2: the refusal names exactly the seats in the way, and fills the seat cache."""
    await servers.two.hold("ann", 3, 4)
    refusal = await servers.one.attempt("bob", 2, 3, 4, 5)
    assert isinstance(refusal, SeatsTaken)
    assert refusal.about["seats"] == ["A-1-4", "A-1-5"]
    assert servers.one.holds.stats.refused_by_claims == 1
    assert isinstance(servers.one.holds.attempt(EVENT, servers.one.shop_pass("cid"), servers.one.ids([3])), SeatsTaken)
    assert servers.one.holds.stats.refused_locally == 1
    assert set(await servers.one.stores_agree()) == {3, 4}


async def an_expired_hold_is_free_exactly_at_its_end(servers: AttemptServers) -> None:
    """B3, B14: also its other seats, which the map hears of."""
    one, clock = servers.one, servers.clock
    first = await one.hold("ann", 3, 4)
    clock.advance(us=HOLD_US - 1)
    assert isinstance(await one.attempt("bob", 3), SeatsTaken)
    clock.advance(us=1)
    one.changed.clear()
    again = await one.attempt("bob", 3)
    assert isinstance(again, Hold)
    assert again.fence > first.fence
    assert set(one.changed) == {3, 4}
    assert await one.attempt("cid", 4)
    assert set(await one.stores_agree()) == {3, 4}


async def the_same_key_is_the_same_hold_however_often_it_is_sent(servers: AttemptServers) -> None:
    """50 at once on two servers, and later; also for another price of today."""
    both = [(servers.one, servers.two)[n % 2] for n in range(50)]
    told = await asyncio.gather(*(server.hold("ann", 3, 4, key="k1") for server in both))
    assert len({(hold.booking_id, hold.fence, hold.amount_minor, hold.lines) for hold in told}) == 1
    assert sum(not hold.repeated for hold in told) == 1
    assert (await servers.one.hold("ann", 3, 4, key="k1")).repeated
    assert (await servers.one.hold("zed", 50, key="k1")).fan == "zed"  # keys belong to the fan
    assert set(await servers.one.stores_agree()) == {3, 4, 50}


async def the_same_key_for_other_seats_is_refused_and_keeps_the_hold(servers: AttemptServers) -> None:
    """The claim of the new seats is released; that of a seat in both requests stays."""
    one = servers.one
    first = await one.hold("ann", 3, 4, key="k1")
    with pytest.raises(IdempotencyMismatch):
        await one.attempt("ann", 4, 5, key="k1")
    assert one.holds.stats.refused_by_ledger == 1
    assert await one.stores_agree() == {3: first.booking_id, 4: first.booking_id}


async def the_same_key_after_the_hold_has_ended_holds_nothing(servers: AttemptServers) -> None:
    one = servers.one
    await one.hold("ann", 3, key="k1")
    servers.clock.advance(us=HOLD_US)
    with pytest.raises(HoldEnded):
        await one.attempt("ann", 3, key="k1")
    assert await one.stores_agree() == {}
    assert isinstance(await one.attempt("bob", 3), Hold)


async def the_best_seats_of_the_same_key_are_those_of_the_first_answer(servers: AttemptServers) -> None:
    """The other server has another choice in mind: what it claims beside the first seats is released."""
    one, two = servers.one, servers.two
    ann = one.shop_pass("ann")
    first = await one.holds.place_best(EVENT, ann, Wish(2), idempotency_key="k1")
    two.sale.seats.mark_taken(range(40), "somebody", NOW + HOLD_US, NOW)
    again = await two.holds.place_best(EVENT, ann, Wish(2), idempotency_key="k1")
    assert (again.seats, again.fence, again.amount_minor) == (first.seats, first.fence, first.amount_minor)
    assert again.repeated
    assert set(await one.stores_agree()) == set(first.indexes)


async def the_cap_of_a_person_holds_under_races(servers: AttemptServers) -> None:
    """B4: 60 requests of one fan; what the ledger refuses is free for others at once."""
    one = servers.one
    told = await asyncio.gather(*(one.attempt("ann", seat) for seat in range(60)), return_exceptions=True)
    assert sum(isinstance(answer, Hold) for answer in told) == 10
    assert sum(isinstance(answer, CapExceeded) for answer in told) == 50
    held = await one.stores_agree()
    assert len(held) == 10
    assert isinstance(await one.attempt("bob", min(set(range(60)) - set(held))), Hold)


async def what_only_the_ledger_has_is_refused_released_and_doubted(servers: AttemptServers) -> None:
    """The claim store lost a claim: the ledger decides, and claim recovery is asked to compare."""
    one = servers.one
    first = await one.hold("ann", 3)
    await one.claims.release(EVENT, (3,), first.booking_id)
    one.sale.seats.mark_free([3])
    refusal = await one.attempt("bob", 3, 5)
    assert isinstance(refusal, SeatsTaken)
    assert refusal.about["seats"] == ["A-1-4"]
    assert (one.holds.stats.refused_by_ledger, one.doubts) == (1, [EVENT])
    await one.ended()
    assert await one.claimed() == {}
    await one.recovery.reconcile(EVENT)
    assert await one.stores_agree() == {3: first.booking_id}


async def a_seat_on_its_way_to_the_ledger_is_refused_here(servers: AttemptServers) -> None:
    """N2: whoever comes between the claim and the commit is refused without asking, until the ledger refuses."""
    one = servers.one
    one.steps.close("hold asked")
    first = one.attempt("ann", 3)
    await one.steps.reached("hold asked")
    assert isinstance(one.holds.attempt(EVENT, one.shop_pass("bob"), one.ids([3])), SeatsTaken)
    one.steps.errors["hold asked"] = CapExceeded(EVENT, "ann", 1, 1, 1)
    one.steps.open("hold asked")
    with pytest.raises(CapExceeded):
        await first
    one.steps.errors.clear()
    assert isinstance(await one.attempt("bob", 3), Hold)
    assert set(await one.stores_agree()) == {3}


async def a_claim_store_that_is_down_ends_the_attempt(servers: AttemptServers) -> None:
    """F1: whether or not it has claimed the seat. The ledger hears nothing; the same request succeeds later."""
    one = servers.one
    for count, step in enumerate(BEFORE_THE_LEDGER, start=1):
        one.steps.errors[step] = Unavailable("the claim store does not answer")
        with pytest.raises(Unavailable):
            await one.attempt("ann", 3, key=step)
        assert (one.holds.stats.unavailable, one.doubts) == (count, [EVENT] * count)
        assert await one.written() == {}
        del one.steps.errors[step]
    hold = await one.hold("ann", 3, key=step)
    assert await one.stores_agree() == {3: hold.booking_id}


async def a_claim_that_nobody_heard_of_is_released_by_recovery(servers: AttemptServers) -> None:
    one = servers.one
    one.steps.errors["claim answered"] = Unavailable("the claim store does not answer")
    with pytest.raises(Unavailable):
        await one.attempt("ann", 3)
    one.steps.errors.clear()
    await one.recover()
    assert await one.stores_agree() == {}
    assert isinstance(await one.attempt("bob", 3), Hold)


async def a_ledger_that_is_down_keeps_the_claim_until_its_answer_is_known(servers: AttemptServers) -> None:
    """F4: the hold may be written. So nobody else gets the seat, and the same request finds claim and hold."""
    one, two = servers.one, servers.two
    for step, seat in zip(AT_THE_LEDGER, (3, 13), strict=True):
        one.steps.errors[step] = Unavailable("the ledger does not answer")
        with pytest.raises(Unavailable):
            await one.attempt("ann", seat, key=step)
        assert seat in await one.claimed()
        assert isinstance(await two.attempt("bob", seat), SeatsTaken)
        del one.steps.errors[step]
        assert (await one.hold("ann", seat, key=step)).repeated == (step == "hold answered")
    assert (one.holds.stats.unavailable, one.holds.stats.won) == (2, 2)
    assert set(await one.stores_agree()) == {3, 13}


async def a_hold_that_never_reached_the_ledger_is_released_by_recovery(servers: AttemptServers) -> None:
    one = servers.one
    one.steps.errors["hold asked"] = Unavailable("the ledger does not answer")
    with pytest.raises(Unavailable):
        await one.attempt("ann", 3)
    one.steps.errors.clear()
    await one.recover()
    assert await one.stores_agree() == {}
    assert isinstance(await one.attempt("bob", 3), Hold)


async def a_ledger_with_a_full_line_refuses_and_frees_the_seat(servers: AttemptServers) -> None:
    """It certainly wrote nothing, so the claim is released before the fan hears of it."""
    one = servers.one
    one.steps.errors["hold asked"] = Overloaded("too many requests are waiting", retry_after_s=1.0)
    with pytest.raises(Overloaded):
        await one.attempt("ann", 3)
    assert await one.claimed() == {}
    assert one.holds.stats.refused_by_ledger == 1
    one.steps.errors.clear()
    assert isinstance(await one.attempt("bob", 3), Hold)


async def a_claim_that_cannot_be_released_keeps_no_refusal_back(servers: AttemptServers) -> None:
    """The fan hears what the ledger said; recovery releases the claim."""
    one = servers.one
    await one.hold("ann", *range(10))
    for step, seat in zip(AT_THE_RELEASE, (20, 30), strict=True):
        one.steps.errors[step] = Unavailable("the claim store does not answer")
        with pytest.raises(CapExceeded):
            await one.attempt("ann", seat)
        one.steps.errors.clear()
    await one.recover()
    assert set(await one.stores_agree()) == set(range(10))


async def an_error_of_a_store_reaches_the_caller_and_ends_the_attempt(servers: AttemptServers) -> None:
    """A bug is no refusal: nothing is released by guess, and nothing stays under way."""
    one = servers.one
    for seat, step in enumerate((*BEFORE_THE_LEDGER, *AT_THE_LEDGER)):
        one.steps.errors[step] = RuntimeError(step)
        with pytest.raises(RuntimeError, match=step):
            await one.attempt("ann", seat)
        one.steps.errors[step] = asyncio.CancelledError()
        with pytest.raises(asyncio.CancelledError):
            await one.attempt("bob", 20 + seat)
        one.steps.errors.clear()
    await one.ended()
    assert set(await one.written()) == {3, 23}, "the two whose answer was lost after the commit"
    await one.recover()
    assert set(await one.stores_agree()) == {3, 23}


async def a_caller_who_leaves_before_the_claim_is_answered_leaves_nothing(servers: AttemptServers) -> None:
    """F5: the claim is released, and the ledger hears nothing."""
    one = servers.one
    for step in BEFORE_THE_LEDGER:
        one.steps.close(step)
        waiting = one.attempt("ann", 3)
        await one.steps.reached(step)
        waiting.cancel()
        one.steps.open(step)
        assert await one.stores_agree() == {}
    assert one.holds.stats.won == 0
    assert isinstance(await one.attempt("bob", 3), Hold)


async def a_caller_who_leaves_at_the_ledger_has_the_hold(servers: AttemptServers) -> None:
    """F5: what the ledger was asked, it writes: the claim store, the cache and the map follow."""
    one = servers.one
    for step, seat in zip(AT_THE_LEDGER, (3, 13), strict=True):
        one.steps.close(step)
        waiting = one.attempt("ann", seat, key=step)
        await one.steps.reached(step)
        waiting.cancel()
        one.steps.open(step)
        await one.ended()
        assert (await one.hold("ann", seat, key=step)).repeated
    assert set(await one.stores_agree()) == {3, 13}
    assert {3, 13} <= set(one.changed)


async def a_caller_who_leaves_during_the_release_leaves_nothing(servers: AttemptServers) -> None:
    one = servers.one
    await one.hold("ann", *range(10))
    for step in AT_THE_RELEASE:
        one.steps.close(step)
        waiting = one.attempt("ann", 20)
        await one.steps.reached(step)
        waiting.cancel()
        one.steps.open(step)
        assert set(await one.stores_agree()) == set(range(10))
    assert isinstance(await one.attempt("bob", 20), Hold)


async def a_caller_may_leave_at_any_turn_of_the_event_loop(servers: AttemptServers) -> None:
    """F5: futures and tasks, one seat and groups across sections, cancelled after 0 to 24 turns."""
    for turn in range(TURNS):
        server = (servers.one, servers.two)[turn % 2]
        seats = (turn,) if turn % 3 else (turn, 40 + turn)
        waiting = server.attempt(f"fan{turn}", *seats)
        task = asyncio.create_task(server.hold(f"late{turn}", 80 + turn))
        for _ in range(turn):
            await asyncio.sleep(0)
        waiting.cancel()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    for server in (servers.one, servers.two):
        await server.ended()
    await servers.one.stores_agree()


async def a_lost_claim_store_holds_nothing_until_it_is_filled(servers: AttemptServers) -> None:
    """F1: an empty store is not an empty house."""
    one = servers.one
    first = await one.hold("ann", 3)
    servers.lose_claims()
    for fan in ("bob", "cid"):
        with pytest.raises(ClaimsLost):
            await one.attempt(fan, 5)
    assert one.doubts == [EVENT, EVENT]
    assert one.holds.stats.unavailable == 2
    assert await one.written() == {3: first.booking_id}
    await one.recover()
    one.sale.seats.mark_free([3])
    assert isinstance(await one.attempt("bob", 3), SeatsTaken)
    assert isinstance(await one.attempt("bob", 5), Hold)
    assert set(await one.stores_agree()) == {3, 5}


async def a_store_filled_again_between_claim_and_ledger_sells_no_seat_twice(servers: AttemptServers) -> None:
    """F1: a new epoch knows nothing of ann's claim, so bob gets the seat; ann's release leaves bob's claim alone."""
    one, two = servers.one, servers.two
    one.steps.close("hold asked")
    first = one.attempt("ann", 3, 4)
    await one.steps.reached("hold asked")
    servers.lose_claims()
    await one.recover()
    bob = await two.hold("bob", 3)
    one.steps.open("hold asked")
    refusal = await first
    assert isinstance(refusal, SeatsTaken)
    assert refusal.about["seats"] == ["A-1-4"]
    assert one.doubts == [EVENT]
    assert await one.stores_agree() == {3: bob.booking_id}


async def a_hold_written_under_an_old_epoch_is_claimed_again_by_recovery(servers: AttemptServers) -> None:
    """F1: the store is lost after the claim and filled before the commit."""
    one = servers.one
    one.steps.close("hold asked")
    first = one.attempt("ann", 3)
    await one.steps.reached("hold asked")
    servers.lose_claims()
    await one.recover()
    one.steps.open("hold asked")
    hold = await first
    assert isinstance(hold, Hold)
    await one.recovery.reconcile(EVENT)
    assert await one.stores_agree() == {3: hold.booking_id}


async def closing_waits_for_attempts_and_releases(servers: AttemptServers) -> None:
    one = servers.one
    one.steps.close("hold asked")
    waiting = one.attempt("ann", 3)
    await one.steps.reached("hold asked")
    closing = asyncio.create_task(one.holds.aclose())
    for _ in range(TURNS):
        await asyncio.sleep(0)
    assert not closing.done()
    one.steps.open("hold asked")
    async with asyncio.timeout(10):
        await closing
    assert waiting.done()
    assert isinstance(waiting.result(), Hold)


async def a_crowd_with_failures_repeats_and_leavers_ends_in_agreement(servers: AttemptServers) -> None:
    """200 attempts by 12 fans, drawn at random. Every hold that somebody was told is in the ledger with its fence."""
    draw = random.Random(25)
    steps = (*BEFORE_THE_LEDGER, *AT_THE_LEDGER, *AT_THE_RELEASE)
    told: list[Hold] = []
    for _ in range(10):
        broken = [(server, draw.choice(steps)) for server in (servers.one, servers.two) if draw.random() < 0.5]
        for server, step in broken:
            server.steps.errors[step] = Unavailable("a store does not answer")
        waiting = [_ask(draw, draw.choice((servers.one, servers.two))) for _ in range(20)]
        for task in waiting:
            if draw.random() < 0.2:
                task.cancel()
            await asyncio.sleep(0)
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        told += [answer for answer in answers if isinstance(answer, Hold)]
        allowed = (Hold, SeatsTaken, CapExceeded, Unavailable, IdempotencyMismatch, asyncio.CancelledError)
        assert all(isinstance(answer, allowed) for answer in answers), answers
        for server, step in broken:
            del server.steps.errors[step]
    for server in (servers.one, servers.two):
        await server.ended()
    await servers.one.recover()
    written = await servers.one.stores_agree()
    assert told
    for hold in told:
        booking = await servers.one.ledger.booking(hold.booking_id)
        assert booking is not None
        assert (booking.fence, booking.seats) == (hold.fence, hold.indexes)
        assert {written[seat] for seat in hold.indexes} == {hold.booking_id}


def _ask(draw: random.Random, server: AttemptServer) -> "asyncio.Task[Hold]":
    fan, first = f"fan{draw.randrange(12)}", draw.randrange(28)
    seats = tuple(range(first, first + draw.randint(1, 3)))
    key = draw.choice((None, f"key {seats}", "one key"))
    return asyncio.create_task(server.hold(fan, *seats, key=key))


CONTRACT: list[Contract] = [
    a_free_seat_becomes_a_hold_that_the_ledger_has,
    of_60_fans_for_one_seat_on_two_servers_one_holds_it,
    overlapping_groups_are_held_whole_or_not_at_all,
    a_seat_of_another_server_is_refused_and_from_then_on_without_asking,
    an_expired_hold_is_free_exactly_at_its_end,
    the_same_key_is_the_same_hold_however_often_it_is_sent,
    the_same_key_for_other_seats_is_refused_and_keeps_the_hold,
    the_same_key_after_the_hold_has_ended_holds_nothing,
    the_best_seats_of_the_same_key_are_those_of_the_first_answer,
    the_cap_of_a_person_holds_under_races,
    what_only_the_ledger_has_is_refused_released_and_doubted,
    a_seat_on_its_way_to_the_ledger_is_refused_here,
    a_claim_store_that_is_down_ends_the_attempt,
    a_claim_that_nobody_heard_of_is_released_by_recovery,
    a_ledger_that_is_down_keeps_the_claim_until_its_answer_is_known,
    a_hold_that_never_reached_the_ledger_is_released_by_recovery,
    a_ledger_with_a_full_line_refuses_and_frees_the_seat,
    a_claim_that_cannot_be_released_keeps_no_refusal_back,
    an_error_of_a_store_reaches_the_caller_and_ends_the_attempt,
    a_caller_who_leaves_before_the_claim_is_answered_leaves_nothing,
    a_caller_who_leaves_at_the_ledger_has_the_hold,
    a_caller_who_leaves_during_the_release_leaves_nothing,
    a_caller_may_leave_at_any_turn_of_the_event_loop,
    a_lost_claim_store_holds_nothing_until_it_is_filled,
    a_store_filled_again_between_claim_and_ledger_sells_no_seat_twice,
    a_hold_written_under_an_old_epoch_is_claimed_again_by_recovery,
    closing_waits_for_attempts_and_releases,
    a_crowd_with_failures_repeats_and_leavers_ends_in_agreement,
]
