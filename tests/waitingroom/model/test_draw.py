"""The verifiable draw of the pre-queue: bijective, unbiased, recomputed from the published record alone."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.model import draw

SECRET = bytes(range(32))


@given(st.integers(1, 3000), st.binary(min_size=32, max_size=32))
@settings(max_examples=40)
def test_the_order_is_a_bijection(n: int, key: bytes) -> None:
    order = draw.Draw(key, n)
    positions = [order.position_of(arrival) for arrival in range(1, n + 1)]
    assert sorted(positions) == list(range(1, n + 1))


@given(st.sets(st.integers(1, 14_000_000), min_size=2, max_size=50))
def test_it_holds_at_fourteen_million_without_any_table(arrivals: set[int]) -> None:
    order = draw.Draw(SECRET, 14_000_000)
    positions = {order.position_of(arrival) for arrival in arrivals}
    assert all(1 <= position <= 14_000_000 for position in positions)
    assert len(positions) == len(arrivals)


def test_coming_early_or_late_gives_no_advantage() -> None:
    """Over many secrets each arrival lands in each tenth about equally often (chi-squared, 81 degrees, p > 1e-6)."""
    cells: Counter[tuple[int, int]] = Counter()
    rounds, n = 2000, 10
    for seed in range(rounds):
        order = draw.Draw(seed.to_bytes(32), n)
        for arrival in range(1, n + 1):
            cells[arrival, order.position_of(arrival)] += 1
    expected = rounds / n
    chi2 = sum((cells[a, p] - expected) ** 2 / expected for a in range(1, n + 1) for p in range(1, n + 1))
    assert chi2 < 160


def test_verify_recomputes_any_position_from_the_record_alone() -> None:
    before = draw.record(SECRET, "concert", [("general", 0)], "", opened=False)
    assert "secret" not in before
    after = draw.record(SECRET, "concert", [("general", 500), ("fans", 40)], "drand 123", opened=True)
    assert after["commitment"] == before["commitment"]
    published = json.loads(json.dumps(after))
    order = draw.draw_of(SECRET, "concert", "fans", 40, "drand 123")
    for arrival in range(1, 41):
        assert draw.verify(published, "fans", arrival, before["commitment"]) == order.position_of(arrival)


def test_lanes_events_sizes_and_beacons_give_different_orders() -> None:
    def order(event: str = "a", lane: str = "x", n: int = 1000, beacon: str = "") -> list[int]:
        return [draw.draw_of(SECRET, event, lane, n, beacon).position_of(i) for i in range(1, 50)]

    orders = [order(), order(event="b"), order(lane="y"), order(n=1001), order(beacon="z")]
    assert all(a != b for i, a in enumerate(orders) for b in orders[i + 1 :])


@pytest.mark.parametrize(
    "change",
    [
        {"secret": bytes(32).hex()},
        {"commitment": "00" * 32},
        {"algorithm": "other"},
        {"secret": None},
        {"lanes": None},
        {"secret": "zz"},
    ],
)
def test_a_record_that_was_tampered_with_is_refused(change: dict[str, object]) -> None:
    record = draw.record(SECRET, "concert", [("general", 50)], "", opened=True)
    with pytest.raises(InvalidInput):
        draw.verify(record | change, "general", 1, record["commitment"])


def test_before_the_opening_and_outside_the_draw_there_is_no_position() -> None:
    with pytest.raises(InvalidInput, match="not happened"):
        draw.verify(draw.record(SECRET, "c", [], "", opened=False), "general", 1)
    record = draw.record(SECRET, "c", [("general", 50)], "", opened=True)
    for lane, arrival in (("general", 0), ("general", 51), ("nobody", 1)):
        with pytest.raises(InvalidInput):
            draw.verify(record, lane, arrival)


def test_a_swapped_secret_with_its_own_commitment_is_caught_by_the_one_seen_before() -> None:
    promised = draw.record(SECRET, "c", [], "", opened=False)["commitment"]
    other = draw.record(bytes(32), "c", [("general", 50)], "", opened=True)
    with pytest.raises(InvalidInput, match="not the one promised"):
        draw.verify(other, "general", 1, promised)
