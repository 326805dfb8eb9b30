"""lua/best.lua chooses exactly what model/best_seats.py says: any plan, any taken seats, any masks, any crowd (B4)."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontrow.boxoffice.adapters.claims.memory import MemoryClaims
from frontrow.boxoffice.adapters.claims.redis import RedisClaims
from frontrow.boxoffice.holds.model.claims import BestClaim, ClaimedSeats, sold_seat
from frontrow.boxoffice.seats.model.best_seats import Grade
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, SeatFlag, Section, area
from tests.contracts.seat_claims import HOLD_US, NOW, seats_of

rows = st.lists(
    st.tuples(
        st.lists(st.sampled_from([0, 0, 0, int(SeatFlag.GAP_AFTER)]), min_size=1, max_size=12), st.integers(0, 3)
    ),
    min_size=1,
    max_size=5,
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Plan, set[int], list[tuple[bytes, int, int]]]:
    """A section (or an area), the seats already sold in it, and who asks for what, in order."""
    if draw(st.integers(0, 5)) == 0:
        section = area("S", draw(st.integers(1, 20)))
    else:
        section = Section(
            "A",
            tuple(
                Row(f"{n}", tuple(Seat(f"{m}", flags=flag) for m, flag in enumerate(flags)), rank)
                for n, (flags, rank) in enumerate(draw(rows))
            ),
        )
    plan = Plan("twin", (section,))
    gone = draw(st.sets(st.integers(0, plan.size - 1)))
    mask = st.one_of(
        st.just(b"\1" * plan.size), st.lists(st.integers(0, 1), min_size=plan.size, max_size=plan.size).map(bytes)
    )
    asks = draw(st.lists(st.tuples(mask, st.integers(1, 9), st.sampled_from(list(Grade))), min_size=1, max_size=8))
    return plan, gone, [(each, count, int(worst)) for each, count, worst in asks]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=150)
@given(case=cases())
async def test_the_script_and_the_specification_choose_the_same_seats(
    redis_url: str, case: tuple[Plan, set[int], list[tuple[bytes, int, int]]]
) -> None:
    plan, gone, asks = case
    gone_seats = [sold_seat(seat, "fan_x", f"bkg_x{seat}", NOW) for seat in sorted(gone)]
    answers = []
    for claims in (MemoryClaims(), RedisClaims(redis_url, timeout_s=20)):
        claims.learn("evt_twin", plan)
        assert await claims.rebuild("evt_twin", lambda: seats_of(gone_seats), NOW)
        told = []
        for number, (mask, count, worst) in enumerate(asks):
            wish = BestClaim("evt_twin", 0, mask, count, worst, f"fan_{number}", f"bkg_{number}", NOW + HOLD_US)
            told.append(await claims.claim_best(wish, NOW))
        answers.append(told)
        await claims.aclose()
    memory, redis = answers
    assert [a.seats if isinstance(a, ClaimedSeats) else set(a.taken) for a in memory] == [
        a.seats if isinstance(a, ClaimedSeats) else set(a.taken) for a in redis
    ]
