"""The table of moves (B5): every state x move is decided, and the page drawn from it is current."""

import itertools
from pathlib import Path

import pytest
from msgspec.structs import replace

from docsite.bookings_diagram import MEANING, page
from frontrow.boxoffice.holds.model.bookings import (
    ACTIVE_STATES,
    HOLD_STATES,
    LONGEST_HOLD_US,
    MOVES,
    Booking,
    BookingState,
    Move,
    sources,
)

S, M = BookingState, Move

# The whole table once more, by hand: changing a cell takes two places and a reason.
LEADS_TO = {
    (S.QUEUED, M.ADMIT): S.SELECTING,
    (S.QUEUED, M.RELEASE): S.CANCELLED,
    (S.QUEUED, M.EXPIRE): S.EXPIRED,
    (S.SELECTING, M.HOLD): S.HELD,
    (S.SELECTING, M.RELEASE): S.CANCELLED,
    (S.SELECTING, M.EXPIRE): S.EXPIRED,
    (S.HELD, M.EXTEND): S.HELD,
    (S.HELD, M.BEGIN_PAYMENT): S.PAYING,
    (S.HELD, M.RELEASE): S.CANCELLED,
    (S.HELD, M.EXPIRE): S.EXPIRED,
    (S.PAYING, M.EXTEND): S.PAYING,
    (S.PAYING, M.STEP_BACK): S.HELD,
    (S.PAYING, M.WITHDRAW): S.CANCELLED,
    (S.PAYING, M.CONFIRM): S.CONFIRMED,
    (S.PAYING, M.DECLINE): S.CANCELLED,
    (S.PAYING, M.EXPIRE): S.EXPIRED,
    (S.CONFIRMED, M.CANCEL): S.CANCELLED,
    (S.CONFIRMED, M.REFUND): S.REFUNDED,
    (S.CONFIRMED, M.REFUND_SOME): S.CONFIRMED,
}
ALREADY_SO = {
    (S.SELECTING, M.ADMIT),
    (S.HELD, M.HOLD),
    (S.PAYING, M.HOLD),
    (S.CONFIRMED, M.HOLD),
    (S.HELD, M.STEP_BACK),
    (S.PAYING, M.BEGIN_PAYMENT),
    (S.CONFIRMED, M.CONFIRM),
    (S.EXPIRED, M.RELEASE),
    (S.EXPIRED, M.EXPIRE),
    (S.CANCELLED, M.DECLINE),
    (S.CANCELLED, M.RELEASE),
    (S.CANCELLED, M.CANCEL),
    (S.REFUNDED, M.REFUND),
    (S.CANCELLED, M.WITHDRAW),
    (S.EXPIRED, M.WITHDRAW),
}


@pytest.mark.parametrize(("state", "move"), list(itertools.product(BookingState, Move)), ids=str)
def test_every_cell_is_decided(state: BookingState, move: Move) -> None:
    """B5."""
    cell = MOVES[state, move]
    if (state, move) in LEADS_TO:
        assert (cell.to, cell.repeat) == (LEADS_TO[state, move], False)
    elif (state, move) in ALREADY_SO:
        assert (cell.to, cell.repeat) == (state, True)
    else:
        assert (cell.to, cell.repeat) == (None, False)


def test_there_is_no_way_to_confirmed_but_through_queue_seats_and_payment() -> None:
    """B5: the client can skip no step. Every path from queued to confirmed passes selecting, held and paying."""
    for forbidden in (S.SELECTING, S.HELD, S.PAYING):
        reached, front = {S.QUEUED}, [S.QUEUED]
        while front:
            state = front.pop()
            targets = {MOVES[state, move].to for move in Move} - {None, forbidden} - reached
            reached |= targets  # type: ignore[arg-type]
            front += targets  # type: ignore[arg-type]
        assert S.CONFIRMED not in reached


def test_nothing_leads_out_of_an_ended_booking() -> None:
    for state in (S.EXPIRED, S.CANCELLED, S.REFUNDED):
        assert {MOVES[state, move].to for move in Move} <= {None, state}


def test_sources_are_the_states_a_move_starts_from() -> None:
    assert sources(M.CONFIRM) == (S.PAYING,)
    assert sources(M.EXTEND) == (S.HELD, S.PAYING)


def test_a_hold_is_live_until_its_end_and_a_sale_for_ever() -> None:
    for state in BookingState:
        booking = Booking("b", "e", "f", state, 1, (1,), 0, "EUR", "", 0, 0, 100)
        assert booking.live(99) == (state in ACTIVE_STATES)
        assert booking.live(100) == (state in ACTIVE_STATES - HOLD_STATES)


def test_seats_are_ordered_while_slow_money_holds_them_for_longer_than_any_hold() -> None:
    booking = Booking("b", "e", "f", S.PAYING, 1, (1,), 0, "EUR", "", 5, 0, 5 + LONGEST_HOLD_US)
    assert LONGEST_HOLD_US == 2 * 3_600 * 1_000_000
    longer = replace(booking, hold_expires_at_us=6 + LONGEST_HOLD_US)
    assert not booking.is_ordered
    assert longer.is_ordered
    begun_later = replace(longer, payment_begun_at_us=6)
    assert not begun_later.is_ordered, "counted from the payment's beginning"
    assert [state for state in S if replace(longer, state=state).is_ordered] == [S.PAYING]


def test_the_docs_page_is_drawn_from_the_table() -> None:
    root = Path(__file__).parents[3]
    assert (root / "docs" / "bookings.md").read_text() == page(), (
        "run: python -m docsite.bookings_diagram > docs/bookings.md"
    )
    assert set(MEANING) == set(Move)
