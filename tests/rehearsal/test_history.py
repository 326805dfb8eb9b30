"""The history checker (N4): sound histories pass, a million operations long, and every kind of wrong one is caught."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.rehearsal.history import (
    FOREVER_US,
    History,
    HistoryVerdict,
    Operation,
    OperationOutcome,
    read_lines,
    write_line,
)

TTL_US = 600


def verdict_of(*operations: Operation) -> HistoryVerdict:
    history = History()
    history.add_all(operations)
    return history.check()


def granted(fence: int, at_us: int, *seats: int, booking: int = 0, expires_at_us: int = 0) -> Operation:
    expires = expires_at_us or at_us + TTL_US
    return Operation(at_us - 2, at_us + 2, OperationOutcome.GRANTED, seats or (1,), fence, booking or fence, expires)


def completed(outcome: OperationOutcome, fence: int, at_us: int, expires_at_us: int = 0) -> Operation:
    return Operation(at_us - 2, at_us + 2, outcome, (), fence, fence, expires_at_us)


def sale(operations: int, seats: int, seed: int, ttl_us: int = TTL_US) -> Iterator[Operation]:
    """A correct sale: one truth, answers seen late, reported in the order of the callers' clocks."""
    rnd = random.Random(seed)
    alive: dict[int, tuple[int, int]] = {}  # seat -> (fence, end)
    fence = now_us = 0
    for _ in range(operations):
        bits = rnd.getrandbits(60)
        now_us += bits % 3
        seat = (bits >> 8) % seats
        began_us, ended_us = now_us - (bits >> 30) % 40, now_us + (bits >> 40) % 40
        held, end_us = alive.get(seat, (0, -1))
        if end_us <= now_us:
            fence += 1
            alive[seat] = (fence, now_us + ttl_us)
            yield Operation(began_us, ended_us, OperationOutcome.GRANTED, (seat,), fence, fence, now_us + ttl_us)
        elif end_us != FOREVER_US and (bits >> 50) % 64 == 0:
            confirms = (bits >> 56) % 3 == 0
            alive[seat] = (held, FOREVER_US if confirms else now_us)
            yield Operation(
                began_us, ended_us, OperationOutcome.CONFIRMED if confirms else OperationOutcome.RELEASED, (), held
            )
        else:
            yield Operation(began_us, ended_us, OperationOutcome.REFUSED, (seat,))


@given(st.integers(0, 10**6), st.integers(1, 12))
def test_a_correct_sale_is_never_blamed(seed: int, seats: int) -> None:
    verdict = verdict_of(*(op for op in sale(300, seats, seed)))
    assert verdict.holds, verdict.violations
    assert verdict.operations == 300


def test_a_million_operations_are_checked_and_one_double_sale_among_them_is_found() -> None:
    """N4: 0 double bookings, proven over 1,000,000 operations; the canary history differs by one grant."""
    history = History()
    canary: Operation | None = None
    for operation in sale(1_000_000, 20_000, seed=4, ttl_us=200_000):
        history.add(operation)
        if operation.outcome is OperationOutcome.GRANTED:
            canary = operation
    assert canary is not None
    verdict = history.check()
    assert verdict.holds, verdict.violations
    assert (verdict.operations, verdict.grants > 50_000, verdict.confirmed > 1000) == (1_000_000, True, True)
    later_us = canary.ended_us + 10
    history.add(
        Operation(
            later_us, later_us + 5, OperationOutcome.GRANTED, canary.seats, canary.fence + 1, 10**9, later_us + 99
        )
    )
    assert history.check().violations_found == 1


def test_two_holds_of_one_seat_at_once_are_caught() -> None:
    verdict = verdict_of(granted(1, 100), granted(2, 500))
    assert verdict.violations == ["seat 1: fence 2 granted by 502 us while fence 1 was alive until 700"]


def test_a_hold_ends_exactly_at_its_expiry() -> None:
    assert not verdict_of(granted(1, 100), granted(2, 697)).holds  # answered at 699
    assert verdict_of(granted(1, 100), granted(2, 698)).holds  # answered at 700, perhaps granted then


def test_an_extension_counts() -> None:
    assert not verdict_of(granted(1, 100), completed(OperationOutcome.EXTENDED, 1, 600, 1200), granted(2, 900)).holds
    assert verdict_of(granted(1, 100), completed(OperationOutcome.EXTENDED, 1, 600, 1200), granted(2, 1300)).holds


@pytest.mark.parametrize("outcome", [OperationOutcome.RELEASED, OperationOutcome.UNKNOWN])
def test_a_release_answered_or_not_ends_a_hold(outcome: OperationOutcome) -> None:
    assert verdict_of(granted(1, 100), completed(outcome, 1, 200), granted(2, 201)).holds
    assert not verdict_of(granted(1, 100), completed(outcome, 1, 300), granted(2, 201)).holds


def test_a_confirmed_seat_is_never_granted_again_until_it_is_refunded() -> None:
    sold = [granted(1, 100), completed(OperationOutcome.CONFIRMED, 1, 200)]
    assert not verdict_of(*sold, granted(2, 10**6)).holds
    assert not verdict_of(*sold, completed(OperationOutcome.UNKNOWN, 1, 300), granted(2, 10**6)).holds
    assert verdict_of(*sold, completed(OperationOutcome.REFUNDED, 1, 300), granted(2, 400)).holds
    assert not verdict_of(*sold, completed(OperationOutcome.REFUNDED, 1, 500), granted(2, 400)).holds


def test_released_and_confirmed_is_a_contradiction() -> None:
    assert not verdict_of(
        granted(1, 100), completed(OperationOutcome.CONFIRMED, 1, 200), completed(OperationOutcome.RELEASED, 1, 210)
    ).holds


def test_one_fence_for_two_bookings_is_caught() -> None:
    assert not verdict_of(granted(1, 100, 5, booking=1), granted(1, 100, 6, booking=2)).holds


def test_a_grant_without_a_fence_is_caught() -> None:
    assert not verdict_of(granted(0, 100, booking=3)).holds


def test_fences_against_the_order_of_time_are_caught() -> None:
    verdict = verdict_of(granted(2, 100, 5), granted(1, 200, 6))  # another seat: only the order is wrong
    assert verdict.violations == ["fence 2 was answered at 102 us, before fence 1 was requested at 198 us"]
    assert verdict_of(granted(2, 100, 5), granted(1, 103, 6)).holds  # the calls overlap: nobody can tell


def test_a_group_of_seats_is_one_grant() -> None:
    verdict = verdict_of(granted(1, 100, 1, 2, 3), granted(2, 150, 3, 4))
    assert (verdict.grants, verdict.violations_found) == (2, 1)


def test_at_most_twenty_violations_are_listed_and_all_are_counted() -> None:
    verdict = verdict_of(*(granted(fence, 100 + fence) for fence in range(1, 52)))
    assert (len(verdict.violations), verdict.violations_found) == (20, 50)


def test_a_history_comes_back_from_its_lines() -> None:
    operations = [
        granted(1, 100, 1, 2),
        completed(OperationOutcome.RELEASED, 1, 200),
        Operation(1, 2, OperationOutcome.REFUSED, (7,)),
    ]
    assert list(read_lines([*(write_line(op) for op in operations), "\n"])) == operations
