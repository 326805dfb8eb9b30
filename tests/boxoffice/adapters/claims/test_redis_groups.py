"""The two steps of a group that spans sections: first tentative and shown to nobody, then final if nothing was lost."""

from collections.abc import AsyncIterator

import pytest

from frontrow.boxoffice.adapters.claims.redis import RedisClaims
from frontrow.boxoffice.adapters.claims.redis_encoding import Op
from frontrow.boxoffice.holds.model.claims import ClaimedSeats, ClaimKind, ClaimRefused
from tests.contracts.seat_claims import EVENT, NOW, seats_of, small_plan, wish


@pytest.fixture
async def claims(redis_url: str) -> AsyncIterator[RedisClaims]:
    one = RedisClaims(redis_url)
    one.learn(EVENT, small_plan())
    assert await one.rebuild(EVENT, seats_of, NOW)
    yield one
    await one.aclose()


async def test_a_tentative_part_keeps_others_out_and_is_shown_to_nobody(claims: RedisClaims) -> None:
    event, _ = claims._parts(EVENT, (1,))
    part = await claims._submit(event, Op.CLAIM, wish("ann", 1, 50), (1,), NOW, kind=ClaimKind.TENTATIVE)
    assert part == ClaimedSeats((1,))
    assert await claims.states(EVENT, NOW) == {}
    assert await claims.map_states(EVENT, NOW) == {}
    assert isinstance(await claims.claim(wish("bob", 1), NOW), ClaimRefused)


async def test_a_part_that_was_lost_in_between_is_not_made_final(claims: RedisClaims) -> None:
    """The store forgot the tentative part. Somebody else may have had the seat meanwhile."""
    event, _ = claims._parts(EVENT, (1,))
    assert isinstance(await claims._submit(event, Op.EXTEND, wish("ann", 1, 50), (1,), NOW), ClaimRefused)
    assert await claims.claim(wish("bob", 1), NOW) == ClaimedSeats((1,))
    assert isinstance(await claims._submit(event, Op.EXTEND, wish("ann", 1, 50), (1,), NOW), ClaimRefused)
    over_us = wish("bob", 1).expires_at_us
    late = wish("ann", 1, 50, until_us=over_us + 10)
    assert isinstance(await claims._submit(event, Op.EXTEND, late, (1,), over_us), ClaimRefused)
