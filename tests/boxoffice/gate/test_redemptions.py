"""Add-ons at the gate as values: what a booking has left of each, and what a repeated request is told."""

import pytest
from msgspec.structs import replace

from frontrow.boxoffice.gate.model.redemptions import (
    AddOnUse,
    RedeemAnswer,
    Redemption,
    count_used,
    decide_redemption,
    find_add_ons,
)
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.pricing.model.prices import LineKind, PriceLine, encode_lines

TWO_CARS = Redemption("rdm_1", "evt_1", "bkg_1", "parking", 2, "north", "stf_1", 5)
REFUSED = replace(TWO_CARS, id="rdm_2", refused="used_up")
UNDONE = replace(TWO_CARS, id="rdm_3", undone_at_us=9)


def test_what_was_refused_or_undone_counts_for_nothing() -> None:
    programme = replace(TWO_CARS, id="rdm_4", add_on="programme", quantity=1)
    assert count_used([TWO_CARS, REFUSED, UNDONE, programme, replace(programme, id="rdm_5")]) == {
        "parking": 2,
        "programme": 2,
    }
    assert count_used([]) == {}


@pytest.mark.parametrize(
    ("redemption", "answer"),
    [
        (TWO_CARS, RedeemAnswer.OK),
        (REFUSED, RedeemAnswer.USED_UP),
        (replace(REFUSED, refused="not_bought"), RedeemAnswer.NOT_BOUGHT),
        (UNDONE, RedeemAnswer.UNDONE),
        (replace(UNDONE, refused="used_up"), RedeemAnswer.UNDONE),
        (replace(UNDONE, undone_at_us=0), RedeemAnswer.UNDONE),
    ],
)
def test_a_repeated_request_is_told_what_came_of_the_first(redemption: Redemption, answer: RedeemAnswer) -> None:
    assert redemption.answer is answer
    assert redemption.counts is (answer is RedeemAnswer.OK)


def booking(state: BookingState = BookingState.CONFIRMED) -> Booking:
    lines = (
        PriceLine(LineKind.SEAT, "Front", 1, 5_000, 5_000, key="front", seats=(1,)),
        PriceLine(LineKind.ADD_ON, "Parking", 3, 800, 2_400, key="parking"),
        PriceLine(LineKind.ADD_ON, "Programme", 1, 350, 350, key="programme"),
    )
    return Booking("b", "e", "f", state, 1, (1,), 7_750, "EUR", "", 0, 0, 100, price_lines=encode_lines(lines))


def test_a_paid_booking_has_its_add_ons_without_those_that_were_refunded() -> None:
    assert find_add_ons(booking(), {}, {"parking": 1}) == (
        AddOnUse("parking", "Parking", 3, 1),
        AddOnUse("programme", "Programme", 1, 0),
    )
    assert find_add_ons(booking(), {"programme": 1, "parking": 1}, {}) == (AddOnUse("parking", "Parking", 2, 0),)
    for state in set(BookingState) - {BookingState.CONFIRMED}:
        assert find_add_ons(booking(state), {}, {}) == ()


@pytest.mark.parametrize(
    ("key", "quantity", "answer"),
    [
        ("parking", 1, RedeemAnswer.OK),
        ("parking", 2, RedeemAnswer.OK),
        ("parking", 3, RedeemAnswer.USED_UP),
        ("parking", 4, RedeemAnswer.NOT_BOUGHT),
        ("programme", 1, RedeemAnswer.USED_UP),
        ("boat", 1, RedeemAnswer.NOT_BOUGHT),
    ],
)
def test_so_many_are_handed_out_as_are_left(key: str, quantity: int, answer: RedeemAnswer) -> None:
    add_ons = (AddOnUse("programme", "Programme", 1, 1), AddOnUse("parking", "Parking", 3, 1))
    assert decide_redemption(add_ons, key, quantity) is answer


def test_nothing_is_left_when_more_was_handed_out_than_bought() -> None:
    """A gate that was offline cannot be refused."""
    assert AddOnUse("parking", "Parking", 1, 3).left == 0
    assert AddOnUse("parking", "Parking", 3, 1).left == 2
