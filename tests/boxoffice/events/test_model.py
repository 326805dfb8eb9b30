"""Plans, events, prices and seat checks: values that refuse to be wrong (B1, B4, B13, B20)."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.boxoffice.events.model.events import (
    STATUS_MOVES,
    EventMove,
    EventMoveRefused,
    EventStatus,
    Fee,
    NotOnSale,
    PriceTier,
    check_event,
    check_on_sale,
    next_status,
)
from frontrow.boxoffice.holds.model.requested_seats import (
    CapReached,
    DuplicateSeats,
    SeatsWithheld,
    WrongSeatCount,
    check_seats,
)
from frontrow.boxoffice.seats.model.seat_labels import check_label, label_from
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, Section, SectionKind, UnknownSeats, area
from frontrow.core.errors import FrontrowError, InvalidInput, NotFound
from frontrow.shared.money import Money
from tests.boxoffice.plan_samples import an_event, small_plan


def test_every_seat_has_an_id_and_an_index_in_plan_order() -> None:
    plan = small_plan()
    assert plan.size == 30 + 6 + 20
    assert [plan.seat_id(i) for i in (0, 9, 10, 30, 36)] == ["S-A-1", "S-A-10", "S-B-1", "B-A-1", "F-GA-1"]
    assert plan.indexes(plan.seat_ids) == list(range(plan.size))
    assert plan.section_range(1) == range(30, 36)


@pytest.mark.parametrize("index", [-1, 56, 10**9])
def test_an_index_outside_the_plan_is_named(index: int) -> None:
    with pytest.raises(UnknownSeats, match=str(index)) as caught:
        small_plan().seat_id(index)
    assert caught.value.http_status == 422


def test_an_unknown_section_is_named() -> None:
    with pytest.raises(NotFound, match="'Z'"):
        small_plan().section_number("Z")


def row(*numbers: str, row_id: str = "A") -> Row:
    return Row(row_id, tuple(Seat(number) for number in numbers))


@pytest.mark.parametrize(
    ("sections", "complaint"),
    [
        ((), "1 to 1,000,000 seats"),
        ((Section("S", (row("1"),)), Section("S", (row("1"),))), "section S occurs twice"),
        ((Section("S", (row("1"), row("2"))),), "row S-A occurs twice"),
        ((Section("S", (row("1", "2", "1"),)),), "seat S-A-1 occurs twice"),
        ((Section("S-1", (row("1"),)),), "use 'S.1'"),
        ((Section("S", (row("1_2"),)),), "use '1.2'"),
        ((Section("S", (row("1", row_id="{x}"),)),), "use 'x'"),
        ((Section("S", (row(""),)),), "1 to 32 letters"),
        ((Section("S", (row("1"),), kind=SectionKind.AREA),), "AreaShape"),
        ((Section("S", (row("1"),)), Section("T", ())), "every section has rows"),
        ((Section("S", (Row("A", tuple(Seat(str(i), tier=f"t{i}") for i in range(33))),)),), "at most 32 price tiers"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(sections: tuple[Section, ...], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        Plan("Hall", sections)


@given(st.text(max_size=60))
def test_any_text_becomes_a_label_or_nothing(text: str) -> None:
    label = label_from(text).strip(".")
    if label:
        assert check_label(label, "row") == label
    assert not set(label) & set("-_{}:| ")


def test_an_area_needs_room() -> None:
    with pytest.raises(InvalidInput, match="capacity"):
        area("F", 0)


@pytest.mark.parametrize(("status", "move"), list(product(EventStatus, EventMove)))
def test_every_cell_of_the_event_status_table_is_decided(status: EventStatus, move: EventMove) -> None:
    """B20: draft, on_sale, sold_out, completed, cancelled, and no other way between them."""
    wanted = STATUS_MOVES.get((status, move))
    if wanted is None:
        with pytest.raises(EventMoveRefused, match=move.value):
            next_status(status, move)
    else:
        assert an_event(status=status).moved(move).status is wanted


def test_the_final_statuses_have_no_way_out() -> None:
    left = {status for status, _ in STATUS_MOVES}
    assert set(EventStatus) - left == {EventStatus.COMPLETED, EventStatus.CANCELLED}
    with pytest.raises(EventMoveRefused, match="final"):
        next_status(EventStatus.CANCELLED, EventMove.PUBLISH)


@pytest.mark.parametrize(
    ("changes", "now_us", "reason"),
    [
        ({}, 999_999, "not_begun"),
        ({}, 9_000_000, "over"),
        ({"paused": True}, 5_000_000, "paused"),
        ({"status": EventStatus.DRAFT}, 5_000_000, "draft"),
        ({"status": EventStatus.SOLD_OUT}, 5_000_000, "sold_out"),
    ],
)
def test_seats_are_not_sold_outside_the_sale(changes: dict[str, Any], now_us: int, reason: str) -> None:
    """B13: sale start and end, pause."""
    with pytest.raises(NotOnSale) as caught:
        check_on_sale(an_event(**changes), now_us)
    assert caught.value.about["reason"] == reason
    assert caught.value.http_status == 409


@pytest.mark.parametrize("now_us", [1_000_000, 8_999_999])
def test_the_sale_window_is_half_open(now_us: int) -> None:
    check_on_sale(an_event(), now_us)


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"sale_ends_at_us": 1_000_000}, "sale_ends_at"),
        ({"ends_at_us": 10_000_000}, "ends_at"),
        ({"max_per_person": 0}, "max_per_person"),
        ({"card_tries": 0}, "card_tries"),
        ({"card_tries": 6}, "card_tries"),
        ({"hold_ttl_s": 0}, "hold_ttl_s"),
        ({"lonely_rule_until_percent": 101}, "lonely_rule_until_percent"),
        ({"withheld": frozenset({56})}, "withheld"),
        ({"tiers": ()}, "tiers"),
        ({"tiers": an_event().tiers + an_event().tiers[:1]}, "tiers"),
        ({"tiers": (*an_event().tiers, PriceTier("x", Money(1, "USD")))}, "tiers"),
        ({"tiers": (*an_event().tiers, PriceTier("x", Money(-1, "EUR")))}, "tiers"),
        ({"fees": (Fee("f", per_seat_minor=-1),)}, "fees"),
    ],
)
def test_an_event_that_cannot_be_sold_is_refused_by_field(changes: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_event(an_event(**changes), small_plan())
    assert caught.value.param == param


def test_a_sound_event_passes() -> None:
    event = an_event(withheld=frozenset({0, 55}), fees=(Fee("service", 100, 50, 250),))
    assert check_event(event, small_plan()) is event
    assert event.tier("back").price == Money(2000, "EUR")
    with pytest.raises(InvalidInput, match="'gold'"):
        event.tier("gold")


@pytest.mark.parametrize(
    ("seats", "error", "status", "named"),
    [
        ([], WrongSeatCount, 422, "1 seat or more"),
        (["S-A-1"] * 10_000, WrongSeatCount, 422, "10000"),
        (["S-A-1", "X-1-1", "S-A-99"], UnknownSeats, 422, "X-1-1, S-A-99"),
        (["S-A-1", "S-A-2", "S-A-1"], DuplicateSeats, 422, "S-A-1"),
        (["S-A-1", "S-A-3"], SeatsWithheld, 409, "S-A-3"),
        ([f"S-A-{i}" for i in range(1, 10)], CapReached, 409, "8 seats per person"),
    ],
)
def test_wrong_seat_lists_are_refused_and_named(
    seats: list[str], error: type[FrontrowError], status: int, named: str
) -> None:
    """B4: unknown, duplicate, withheld, zero and 10,000 seats are clear errors."""
    with pytest.raises(error, match=named) as caught:
        check_seats(small_plan(), an_event(withheld=frozenset({2})), seats)
    assert caught.value.http_status == status


def test_right_seat_lists_become_rising_indexes_within_the_cap() -> None:
    assert check_seats(small_plan(), an_event(max_per_person=2), ["S-B-1", "S-A-1"]) == [0, 10]
    with pytest.raises(CapReached, match="1 more"):
        check_seats(small_plan(), an_event(max_per_person=1), ["S-B-1", "S-A-1"])
