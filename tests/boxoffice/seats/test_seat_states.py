"""The map over a real claim store: taken, sold, withheld, expired seats as viewers see them (B2, B14, N5)."""

from collections.abc import AsyncIterator, Mapping

import pytest

from frontrow.boxoffice.adapters.claims.memory import MemoryClaims
from frontrow.boxoffice.adapters.claims.redis import RedisClaims
from frontrow.boxoffice.holds.model.claims import ClaimedSeats, SeatClaim, TakenSeat, sold_seat
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.holds.seat_cache import SeatCache
from frontrow.boxoffice.seats.map.frame_log import MemoryFrameLog
from frontrow.boxoffice.seats.map.map_feed import FeedSettings, MapFeed
from frontrow.boxoffice.seats.map.seat_states import ClaimStates
from frontrow.testing.clock import ManualClock
from tests.boxoffice.map_viewer import Viewer
from tests.boxoffice.plan_samples import an_event, small_plan

EVENT = an_event(withheld=frozenset({7}))


async def nothing() -> AsyncIterator[TakenSeat]:
    for seat in ():
        yield seat


@pytest.fixture(params=["memory", "redis"])
async def claims(request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[SeatClaims]:
    store: SeatClaims
    store = MemoryClaims() if request.param == "memory" else RedisClaims([request.getfixturevalue("redis_url")])
    store.learn(EVENT.id, small_plan())
    assert await store.rebuild(EVENT.id, nothing, clock())
    yield store
    await store.aclose()


async def test_viewers_see_what_the_claim_store_says(claims: SeatClaims, clock: ManualClock) -> None:
    """B2: seats turn unavailable for everybody; B14, N5: an expired one is free on the next tick, told or not."""
    plan = small_plan()
    seen: dict[int, int] = {}

    def learn(changes: Mapping[int, int]) -> None:
        seen.update(changes)

    read_states = ClaimStates(claims, EVENT, plan.size, clock)
    feed = MapFeed(plan.size, MemoryFrameLog(epoch=1), read_states, FeedSettings(audit_ticks=1), learn)
    await feed.resync()
    assert seen == {7: 3}
    viewer = Viewer(feed.snapshot(), plan.size)

    async def shown() -> dict[int, int]:
        await feed.tick()
        viewer.take(feed.ring.since(viewer.epoch, viewer.seq), feed.ring)
        assert viewer.states == feed.ring.states
        return {index: state for index, state in enumerate(viewer.states) if state}

    hold = SeatClaim(EVENT.id, (1, 2, 31), "fan", "bkg_1", clock() + 600_000_000)
    assert isinstance(await claims.claim(hold, clock()), ClaimedSeats)
    feed.notify(hold.seats)
    assert await shown() == {1: 1, 2: 1, 7: 3, 31: 1}
    await claims.put(EVENT.id, [sold_seat(2, "fan", "bkg_1", clock())], clock())
    assert await shown() == {1: 1, 2: 2, 7: 3, 31: 1}
    clock.advance(us=599_999_999)
    assert await shown() == {1: 1, 2: 2, 7: 3, 31: 1}
    clock.advance(us=1)
    assert await shown() == {2: 2, 7: 3}
    assert viewer.fetched == 1
    assert seen[1] == 0


async def test_a_server_learns_from_the_map_who_took_seats_elsewhere(claims: SeatClaims, clock: ManualClock) -> None:
    """N2: two servers, one log. The second refuses what the first sold without asking the claim store about it."""
    plan, frames = small_plan(), MemoryFrameLog(epoch=1)
    caches = [SeatCache(plan.size) for _ in range(2)]
    feeds: list[MapFeed] = []
    for cache in caches:
        read_states = ClaimStates(claims, EVENT, plan.size, clock, cache)
        number = len(feeds)
        feed = MapFeed(
            plan.size,
            frames,
            read_states,
            FeedSettings(audit_ticks=plan.size, poll_ticks=1),
            lambda states, cache=cache, number=number: feeds[number].request_owners(cache.apply_map_changes(states)),  # type: ignore[misc]
        )
        feeds.append(feed)
        await feed.resync()
    hold = SeatClaim(EVENT.id, (30, 31), "ann", "bkg_1", clock() + 600_000_000)
    assert isinstance(await claims.claim(hold, clock()), ClaimedSeats)
    caches[0].mark_taken(hold.seats, "ann", hold.expires_at_us, clock())
    feeds[0].notify(hold.seats)
    await feeds[0].tick()
    assert not caches[1].is_taken_by_other(30, "bob", clock())
    await feeds[1].tick()  # hears of it
    await feeds[1].tick()  # looks who it was
    assert caches[1].is_taken_by_other(30, "bob", clock())
    assert not caches[1].is_taken_by_other(30, "ann", clock()), "the owner asks the claim store, as everywhere"
    caches[1].apply_map_changes({31: 1})
    caches[1].mark_free([30, 31])
    caches[1].add_owners((await claims.states(EVENT.id, clock())).values(), clock())
    assert not caches[1].is_taken_by_other(31, "bob", clock()), (
        "freed after the map spoke: an older look does not count"
    )
