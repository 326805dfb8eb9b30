"""The waitlist and the return pool under lost facts, lost requests and replies, and deaths (B11, B12, B14, F5, N4)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.ledger.audit_verification import verify
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.facts import model as facts
from frontrow.boxoffice.refunds.model.ticket_returns import Return, ReturnState
from frontrow.boxoffice.refunds.ticket_returns import TicketReturns
from frontrow.boxoffice.waitlist.model.waitlist_matching import SeatPool, assign_seats
from frontrow.boxoffice.waitlist.offers import OfferWorker
from tests.boxoffice.shop import EVENT, sqlite_url
from tests.boxoffice.waiting import small_plan
from tests.simulation.waitlist_world import CAP, World

STEPS = 200
PLAN = small_plan()


async def check_now(world: World) -> None:
    """What must hold after every step."""
    seats = Counter[str]()
    async for seat in world.real.active_seats(EVENT, world.clock()):
        seats[seat.fan] += 1
    over = {fan: count for fan, count in seats.items() if count > CAP}
    assert not over, f"more seats than the cap: {over}"
    for one in await world.real.returns.returns_in(ReturnState.LISTED, 1_000):
        assert (one.booking_id, one.seat_index) in world.hooks.dead, "a seat is free while its old ticket lives"


def check_offers(history: list[facts.Fact], wishes: dict[str, tuple[int, tuple[str, ...], bool]]) -> int:
    """Parties whole and together, chosen sections, nobody twice in a row, every offer ended at most once."""
    last_fan: dict[int, str] = {}
    ends = Counter[str]()
    made = 0
    for fact, following in zip(history, [*history[1:], None], strict=True):
        if isinstance(fact, facts.HoldPlaced):
            is_offer = isinstance(following, facts.OfferMade) and following.booking_id == fact.booking_id
            if is_offer:
                again = [seat for seat in fact.seats if last_fan.get(seat) == fact.fan]
                assert not again, f"{fact.fan} was offered {again} twice in a row"
            last_fan.update(dict.fromkeys(fact.seats, fact.fan))
        elif isinstance(fact, facts.OfferMade):
            made += 1
            count, sections, split_ok = wishes[fact.entry_id]
            assert len(fact.seats) == count
            where = {PLAN.sections[PLAN.section_at(seat)].id for seat in fact.seats}
            assert not sections or where <= set(sections)
            if not split_ok and where != {"S"}:
                rows = {PLAN.seat_ids[seat].rpartition("-")[0] for seat in fact.seats}
                assert len(rows) == 1
                assert fact.seats[-1] - fact.seats[0] == count - 1, "a party was split"
        elif isinstance(fact, facts.OfferClaimed | facts.OfferDeclined | facts.OfferLapsed):
            ends[fact.offer_id] += 1
    assert set(ends.values()) <= {1}
    return made


async def check_returns(world: World, history: list[facts.Fact]) -> None:
    """Paid exactly where the seat was sold again, once, and never while the old ticket lived."""
    confirmed = defaultdict(list)
    returned: list[Return] = []
    for fact in history:
        if isinstance(fact, facts.BookingConfirmed):
            for seat in fact.seats:
                confirmed[seat].append(fact.fence)
    for booking_id in {fact.booking_id for fact in history if isinstance(fact, facts.TicketReturned)}:
        returned += await world.real.returns.returns_of(booking_id)
    for one in returned:
        resold = any(fence > one.fence for fence in confirmed[one.seat_index])
        if one.state is not ReturnState.VOID:
            assert one.state is (ReturnState.REFUNDED if resold else ReturnState.LISTED), one
            assert (one.booking_id, one.seat_index) in world.hooks.dead
    owed = {one.id: one.price_minor for one in returned if one.state is ReturnState.REFUNDED}
    assert world.hooks.paid == owed
    facts_of = Counter(fact.return_id for fact in history if isinstance(fact, facts.TicketResold))
    assert set(facts_of.values()) <= {1}


async def check_rest(world: World) -> None:
    """Nobody waits for seats that are free and fit."""
    now_us = world.clock()
    sale = world.waiting.shop.sale
    pool = await world.waiting.worker._pool(sale, now_us)
    seats = Counter[str]()
    async for seat in world.real.active_seats(EVENT, now_us):
        seats[seat.fan] += 1
    free = pool.free_by_section()
    line = await world.real.waitlist.waiting_page(EVENT, free, (-1, 0), 100) if free else []
    fitting = [entry for entry in line if seats[entry.fan] + entry.seat_count <= CAP]
    assert assign_seats(fitting, pool) == []
    assert (await verify(world.real.store))[0] == []


async def live(seed: int, folder: Path, rate: float) -> tuple[int, int]:
    """A whole world, checked after every step and at rest; how many offers were made and how often it died."""
    url = sqlite_url(folder)
    ledger = await open_ledger(url)
    try:
        world = World(ledger, url.removeprefix("sqlite:///"), seed, rate)
        await world.begin()
        for _ in range(STEPS):
            await world.step()
            await check_now(world)
        for wait_s in (0, 901):  # at once, and when every offer and hold has run out
            world.clock.advance(wait_s)
            await world.come_to_rest()
            await check_rest(world)
        history = world.history()
        joined = [
            await ledger.waitlist.entry(fact.entry_id) for fact in history if isinstance(fact, facts.WaitlistJoined)
        ]
        wishes = {entry.id: (entry.seat_count, entry.sections, entry.split_ok) for entry in joined if entry}
        await check_returns(world, history)
        return check_offers(history, wishes), world.deaths
    finally:
        await ledger.aclose()


@pytest.mark.parametrize("seed", range(8))
async def test_a_sold_out_show_in_virtual_time(seed: int, tmp_path: Path) -> None:
    """Every step keeps caps and dead tickets; at rest every free seat was offered to whom it fits, by sweeps alone."""
    made, deaths = await live(seed, tmp_path, rate=0.0 if seed == 0 else 0.06)
    assert made > 3, "nothing happened in this world"
    assert (deaths > 0) is (seed > 0)


def offers_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SeatPool, "_without", lambda self, masks, seats: list(masks))


def facts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lazy(self: OfferWorker) -> int:
        return await self.end_due_offers()

    monkeypatch.setattr(OfferWorker, "sweep", lazy)


def frees_before_revoking(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hasty(self: TicketReturns, given: Sequence[Return], now_us: int) -> None:
        for one in given:
            await self._ledger.returns.list_return(one.booking_id, [one.seat_index], now_us)
            assert self._tickets is not None
            await self._tickets.revoke(one.booking_id, [one.seat_index], now_us)

    monkeypatch.setattr(TicketReturns, "_revoke_and_list", hasty)


@pytest.mark.parametrize("canary", [offers_in_a_row, facts_only, frees_before_revoking], ids=lambda c: c.__name__)
async def test_the_simulation_catches_a_waitlist_that(
    canary: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken service is found within a few seeds."""
    canary(monkeypatch)
    caught = 0
    for seed in range(1, 9):
        try:
            await live(seed, tmp_path, rate=0.06)
        except AssertionError:
            caught = seed
            break
    assert caught, f"{canary.__name__} went unnoticed"
