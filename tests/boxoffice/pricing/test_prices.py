"""The price of seats: lines that people see and add up, equal seats at equal prices, refunds to the last cent."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.boxoffice.events.model.events import Event, Fee, FeesShown
from frontrow.boxoffice.holds.model.requested_seats import Wish, masks_for
from frontrow.boxoffice.pricing.model.prices import (
    DIFFERENT,
    LineKind,
    PriceLine,
    PriceList,
    cheapest_minor,
    decode_lines,
    encode_lines,
    move_lines,
    quote,
    tax_line,
    ticket_prices,
)
from frontrow.boxoffice.seats.event_map import map_bytes
from frontrow.boxoffice.seats.model.best_seats import layouts
from tests.boxoffice.plan_samples import an_event, small_plan

FEES = (Fee("service", per_seat_minor=150, per_booking_minor=99), Fee("levy", basis_points=725))


def shown(asked: Any) -> list[tuple[str, str, int, int, int, bool]]:
    return [(ln.kind.value, ln.name, ln.quantity, ln.unit_minor, ln.amount_minor, ln.included) for ln in asked.lines]


def test_a_price_includes_the_fees_of_its_seat_and_says_how_much_they_are() -> None:
    """Issue 15: the map said 140.00 and the checkout 142.50."""
    asked = quote(small_plan(), an_event(fees=FEES), [0, 1, 30])
    assert shown(asked) == [
        ("seat", "Front", 2, 5513, 11026, False),  # 50.00 + 1.50 + 3.63 (7.25 %, rounded per seat)
        ("seat", "Back", 1, 2295, 2295, False),
        ("fee", "service", 3, 150, 450, True),
        ("fee", "levy", 3, DIFFERENT, 871, True),
        ("fee", "service", 1, 99, 99, False),
    ]
    assert asked.total_minor == 13420
    assert quote(small_plan(), an_event(fees=FEES), []).total_minor == 0


def test_fees_beside_the_price_are_lines_that_add() -> None:
    event = an_event(fees=FEES, fees_shown=FeesShown.BESIDE)
    asked = quote(small_plan(), event, [0, 1, 30])
    assert [(line.unit_minor, line.included) for line in asked.lines] == [
        (5000, False),
        (2000, False),
        (150, False),
        (DIFFERENT, False),
        (99, False),
    ]
    assert asked.total_minor == 13420  # the same money, shown another way
    front = PriceList(event).tiers["front"]
    assert (front.shown_minor, front.beside_minor) == (5000, 513)


def test_a_ticket_shows_its_price_with_the_fees_of_its_seat_however_they_are_shown() -> None:
    for how in FeesShown:
        event = an_event(fees=FEES, fees_shown=how)
        assert ticket_prices(quote(small_plan(), event, [0, 1]).lines) == {0: 5513, 1: 5513}
    mixed = [quote(small_plan(), an_event(fees=FEES, fees_shown=how), [0, 30]).lines for how in FeesShown]
    assert list(map(ticket_prices, mixed)) == [{0: 5513, 30: 2295}, {}], "nobody is shown a guess"
    assert ticket_prices(()) == {}


@given(
    st.lists(st.integers(0, 55), min_size=1, max_size=20, unique=True),
    st.integers(0, 3000),
    st.integers(0, 997),
    st.sampled_from(FeesShown),
)
def test_lines_add_up_and_so_do_seats_but_for_fees_per_booking(
    seats: list[int], points: int, booking: int, how: FeesShown
) -> None:
    event = an_event(fees=(Fee("a", 33, booking), Fee("b", basis_points=points)), fees_shown=how)
    asked = quote(small_plan(), event, seats)
    assert sum(line.amount_minor for line in asked.lines if not line.included) == asked.total_minor
    assert sum(asked.seat_totals_minor) == asked.total_minor - booking  # a seat has no share of a fee per booking
    assert len(asked.seat_totals_minor) == len(seats)
    alone = {seat: quote(small_plan(), event, [seat]).lines[0].unit_minor for seat in seats}
    for line in asked.lines:
        assert line.unit_minor == DIFFERENT or line.unit_minor * line.quantity == line.amount_minor
        assert all(alone[seat] == line.unit_minor for seat in line.seats)  # no smeared cents, in any company


def test_every_first_page_shows_the_price_that_is_paid() -> None:
    plan, event = small_plan(), an_event(fees=FEES)
    assert cheapest_minor(event) == 2295
    assert b'"price":5513' in map_bytes(plan, event)
    assert b'"fee"' not in map_bytes(plan, event)
    beside = map_bytes(plan, an_event(fees=FEES, fees_shown=FeesShown.BESIDE))
    assert b'"fee":513' in beside
    assert b'"price":5000' in beside
    assert cheapest_minor(an_event(tiers=())) is None


@pytest.mark.parametrize(("limit", "fits"), [(5512, False), (5513, True)])
def test_best_seats_up_to_a_price_means_the_price_that_is_shown(limit: int, fits: bool) -> None:
    plan, event = small_plan(), an_event(fees=FEES)
    found = masks_for(plan, layouts(plan), event, Wish(1, min_price_minor=5000, max_price_minor=limit))
    assert bool(found) is fits


def test_stored_lines_come_back_and_follow_a_moved_seat() -> None:
    lines = quote(small_plan(), an_event(fees=FEES), [0, 1]).lines
    text = encode_lines(lines)
    assert decode_lines(text) == lines
    moved = decode_lines(move_lines(text, [(1, 7)]))
    assert moved[0].seats == (0, 7)
    assert [line.amount_minor for line in moved] == [line.amount_minor for line in lines]
    assert decode_lines("") == ()
    assert move_lines("", [(1, 7)]) == ""


def test_the_tax_is_a_line_inside_the_total() -> None:
    assert tax_line(11900, "EUR", 1900) == PriceLine(LineKind.TAX, "", 1, 1900, 1900, (), True, "", 1900)


def test_an_event_from_before_the_setting_includes_its_fees() -> None:
    event: Event = an_event()
    assert event.fees_shown is FeesShown.INCLUDED
