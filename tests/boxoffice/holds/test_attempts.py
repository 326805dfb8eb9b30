"""Attempts without a task (N2): refusals as shared values, futures of holds, and the local refusal."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontrow.boxoffice.holds.attempt import MAX_FOLLOWERS
from frontrow.boxoffice.holds.local_refusal import AUDIT_EVERY, AUDITS_PER_S
from frontrow.boxoffice.holds.model.claims import ClaimKind, ClaimRefused, ClaimsLost, SeatClaim, TakenSeat
from frontrow.boxoffice.holds.model.holds import CapExceeded, Hold, SeatsTaken, ShopPass
from frontrow.boxoffice.seats.model.venues import UnknownSeats
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import NotFound
from frontrow.shared.coalescer import ResultSlot
from frontrow.testing.clock import ManualClock
from tests.boxoffice.shop import EVENT, NOW, Shop, open_shop, shop_event, sqlite_url
from tests.support.eventually import eventually


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    async with open_shop(sqlite_url(tmp_path), clock=ManualClock(NOW)) as opened:
        yield opened


async def test_of_60_attempts_for_one_seat_one_holds_it_and_59_hear_the_same_value(shop: Shop) -> None:
    """N2, N4."""
    ids = shop.ids([7])
    futures = [shop.holds.attempt(EVENT, shop.shop_pass(f"fan{n}"), ids) for n in range(60)]
    told = await asyncio.gather(*(answer for answer in futures if isinstance(answer, asyncio.Future)))
    assert len(told) == 60
    assert sum(isinstance(answer, Hold) for answer in told) == 1
    refused = [answer for answer in told if isinstance(answer, SeatsTaken)]
    assert len(refused) == 59
    assert len({id(answer) for answer in refused}) == 1
    late = shop.holds.attempt(EVENT, shop.shop_pass("late"), ids)
    assert late is refused[0]
    assert late.about["seats"] == ["A-1-8"]


async def test_an_attempt_that_cannot_be_right_raises_at_once_and_the_ledgers_no_in_the_future(shop: Shop) -> None:
    with pytest.raises(UnknownSeats):
        shop.holds.attempt(EVENT, shop.shop_pass("ann"), ["Z-9-9"])
    await shop.hold("ann", *range(10))
    over = shop.holds.attempt(EVENT, shop.shop_pass("ann"), shop.ids([20]))
    assert isinstance(over, asyncio.Future)
    with pytest.raises(CapExceeded):
        await over
    assert await shop.taken() == set(range(10))


async def test_who_stops_waiting_leaves_no_claim_behind(shop: Shop) -> None:
    """F5: 60 futures are cancelled before the claim store has answered."""
    for seat in range(60):
        answer = shop.holds.attempt(EVENT, shop.shop_pass(f"fan{seat}"), shop.ids([seat]))
        assert isinstance(answer, asyncio.Future)
        answer.cancel()
    await shop.holds.aclose()
    assert await shop.taken() == set()


async def test_only_an_attempt_that_cannot_succeed_is_refused_locally(shop: Shop) -> None:
    """N2: taken, own, free, unknown, none, several, another event's and an ended pass; then not on sale."""
    clock = shop.clock
    assert isinstance(clock, ManualClock)
    await shop.hold("ann", 3, 4)
    bob, ann = shop.shop_pass("bob"), shop.shop_pass("ann")
    asks: list[tuple[ShopPass, list[str]]] = [
        (bob, shop.ids([3])),
        (ann, shop.ids([3])),
        (bob, shop.ids([5])),
        (bob, ["Z-1-1"]),
        (bob, []),
        (bob, shop.ids([3, 5])),
        (ShopPass("evt_other", "bob", NOW + US_PER_S), shop.ids([3])),
        (ShopPass(EVENT, "bob", NOW), shop.ids([3])),
    ]
    first = [shop.holds.refusal(EVENT, *ask) for ask in asks]
    assert [answer is not None for answer in first] == [True, False, False, False, False, True, False, False]
    again = [shop.holds.refusal(EVENT, *ask) for ask in asks]
    assert [answer and answer.problem() for answer in again] == [answer and answer.problem() for answer in first]
    assert again[0] is first[0]
    assert shop.holds.stats.refused_locally == 4
    clock.advance(2)  # told more than one update ago, and there is no map
    assert [shop.holds.refusal(EVENT, *ask) for ask in asks] == [None] * len(asks)
    shown = bytearray(shop.plan.size)
    shown[3] = 1
    shop.sale.seats.trust_map(shown, clock())
    assert [bool(shop.holds.refusal(EVENT, *ask)) for ask in asks[:3]] == [True, False, False]
    shop.sale.update_event(shop_event(paused=True))
    assert [shop.holds.refusal(EVENT, *ask) for ask in asks] == [None] * len(asks)
    with pytest.raises(NotFound):
        shop.holds.refusal("evt_other", *asks[0])


async def test_audits_of_refusals_are_bounded_in_number_and_in_time(shop: Shop) -> None:
    """N2: a flood of refusals asks the claim store at most so often a second."""
    clock = shop.clock
    assert isinstance(clock, ManualClock)
    await shop.hold("ann", 3)
    asks = [(shop.shop_pass("bob"), shop.ids([3]))] * AUDIT_EVERY
    for _ in range(50):
        assert all(shop.holds.refusal(EVENT, *ask) for ask in asks)
    await shop.holds.aclose()
    assert shop.holds.stats.audited == 1
    clock.advance(us=US_PER_S // AUDITS_PER_S)
    for ask in asks:
        shop.holds.refusal(EVENT, *ask)
    await shop.holds.aclose()
    assert (shop.holds.stats.audited, shop.holds.stats.audited_free) == (2, 0)


async def test_a_seat_on_its_way_to_the_ledger_is_refused_here_and_free_again_if_the_ledger_says_no(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N2: whoever comes between the claim and the commit is refused without asking the claim store."""
    at_the_ledger: list[ResultSlot] = []
    monkeypatch.setattr(shop.ledger, "place_hold_into", lambda hold, slot: at_the_ledger.append(slot))
    first = shop.holds.attempt(EVENT, shop.shop_pass("ann"), shop.ids([3]))
    assert isinstance(first, asyncio.Future)
    await eventually(lambda: at_the_ledger)
    assert isinstance(shop.holds.attempt(EVENT, shop.shop_pass("bob"), shop.ids([3])), SeatsTaken)
    assert shop.holds.stats.refused_by_claims == 0
    at_the_ledger[0].set_exception(CapExceeded(EVENT, "ann", 1, 1, 1))
    with pytest.raises(CapExceeded):
        await first
    monkeypatch.undo()
    assert (await shop.hold("bob", 3)).indexes == (3,)


class HeldUpClaims:
    """Keeps the claims that reach the claim store until the test answers them."""

    def __init__(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[SeatClaim, ResultSlot]] = []
        monkeypatch.setattr(shop.claims, "claim_into", self._keep)

    def _keep(self, claim: SeatClaim, now_us: int, slot: ResultSlot) -> None:
        self.asked.append((claim, slot))


async def test_a_claim_under_way_answers_for_everybody_who_wants_the_same_seat(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N2: 60 fans want one seat in the same moment. The claim store hears of the first, of a repeated request of the
    same fan, and of the fan who turns out to be the owner."""
    claims = HeldUpClaims(shop, monkeypatch)
    fans = [f"fan{n}" for n in range(60)]
    asked = [shop.holds.attempt(EVENT, shop.shop_pass(fan), shop.ids([5])) for fan in [*fans, "fan0"]]
    results = [answer for answer in asked if isinstance(answer, asyncio.Future)]
    assert [claim.fan for claim, _ in claims.asked] == ["fan0", "fan0"]
    owner = TakenSeat(5, ClaimKind.HELD, "fan7", "bkg_7", NOW, NOW + US_PER_S)
    claims.asked[0][1].set_result(ClaimRefused((owner,)))
    assert [claim.fan for claim, _ in claims.asked[2:]] == ["fan7"]
    assert sum(one.done() and isinstance(one.result(), SeatsTaken) for one in results) == 59
    for _, slot in claims.asked[1:]:
        slot.set_result(ClaimRefused((owner,)))
    await shop.holds.aclose()
    assert (shop.holds.stats.refused_by_claims, shop.holds.stats.refused_locally) == (3, 58)


async def test_who_follows_a_claim_that_fails_hears_why_and_the_next_attempt_asks_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = HeldUpClaims(shop, monkeypatch)
    futures = [shop.holds.attempt(EVENT, shop.shop_pass(f"fan{n}"), shop.ids([5])) for n in range(MAX_FOLLOWERS + 3)]
    assert len(claims.asked) == 3, "the first claim, and two that are too many to follow it"
    for _, slot in claims.asked:
        slot.set_exception(ClaimsLost(EVENT))
    told = await asyncio.gather(*(one for one in futures if isinstance(one, asyncio.Future)), return_exceptions=True)
    assert all(isinstance(answer, ClaimsLost) for answer in told)
    monkeypatch.undo()
    assert (await shop.hold("bob", 5)).indexes == (5,)
