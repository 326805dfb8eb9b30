"""What a fan chooses for held seats, and what it costs to the cent."""

from dataclasses import replace

import msgspec
import pytest

from frontrow.boxoffice.events.model.events import Event, Fee, FeesShown, PriceTier, check_event
from frontrow.boxoffice.pricing.model.booking_choices import (
    BookingChoice,
    ChosenPrice,
    DiscountRefused,
    choice_of,
    price_choice,
)
from frontrow.boxoffice.pricing.model.prices import LineKind
from frontrow.boxoffice.pricing.model.sale_options import AddOn, Discount, SharedLimit, TicketType
from frontrow.core.errors import InvalidInput
from frontrow.shared.money import Money
from tests.boxoffice.plan_samples import small_plan

PLAN = small_plan()
FRONT = [at for at, seat in enumerate(PLAN.seats) if seat.tier == "front"][:3]
BACK = [at for at, seat in enumerate(PLAN.seats) if seat.tier == "back"][:2]
ADULT, CHILD = TicketType("adult", "Adult"), TicketType("child", "Child", 5_000, (("back", 700),), max_per_booking=2)
FAMILY = TicketType("family", "Family", 8_000, min_per_booking=3)
EVENT = Event(
    id="evt_1",
    name="Aurora",
    venue_id="ven_1",
    plan_hash="p",
    currency="EUR",
    starts_at_us=100,
    sale_starts_at_us=1,
    sale_ends_at_us=90,
    tiers=(
        PriceTier("front", Money(5001, "EUR"), "Front"),
        PriceTier("back", Money(2000, "EUR")),
        PriceTier("standing", Money(3000, "EUR")),
    ),
    fees=(Fee("Service", per_seat_minor=150, per_booking_minor=100),),
    ticket_types=(ADULT, CHILD, FAMILY),
    add_ons=(AddOn("parking", "Parking", 800, 10, 2), AddOn("programme", "Programme", 350)),
    discounts=(
        Discount("TEN", basis_points=1_000),
        Discount("FIVE", amount_minor=500, tiers=("back",)),
        Discount("ONCE", amount_minor=100_000, per_booking=True, most_uses=3, most_per_person=1),
        Discount("LATE", basis_points=1_000, starts_at_us=50, ends_at_us=60),
    ),
    limits=(
        SharedLimit("kids", "Children", 200, ("type:child",)),
        SharedLimit("cars", "Parking", 100, ("add_on:parking",), across_dates=True),
    ),
)


def lines_of(chosen: ChosenPrice) -> list[tuple[str, str, int, int, int]]:
    return [(x.kind, x.name, x.quantity, x.unit_minor, x.amount_minor) for x in chosen.quote.lines if not x.included]


def check_exact(chosen: ChosenPrice) -> None:
    shown = sum(line.amount_minor for line in chosen.quote.lines if not line.included)
    add_ons = sum(line.amount_minor for line in chosen.quote.lines if line.kind is LineKind.ADD_ON)
    assert shown == chosen.quote.total_minor == sum(chosen.quote.seat_totals_minor) + add_ons + 100  # per booking
    assert min(chosen.quote.seat_totals_minor) >= 0


def test_the_sample_event_can_be_sold() -> None:
    assert check_event(EVENT, PLAN) is EVENT


def test_types_add_ons_and_a_discount_are_lines_that_add_up() -> None:
    seats = [*FRONT[:2], BACK[0]]
    choice = BookingChoice({FRONT[1]: "child", BACK[0]: "child"}, {"parking": 1, "programme": 2}, " ten ")
    chosen = price_choice(EVENT, PLAN, seats, choice, 10)
    assert lines_of(chosen) == [
        (LineKind.SEAT, "Front · Adult", 1, 5151, 5151),
        (LineKind.SEAT, "Front · Child", 1, 2651, 2651),  # half of 50.01, rounded half up, and the fee
        (LineKind.SEAT, "Back · Child", 1, 850, 850),
        (LineKind.FEE, "Service", 1, 100, 100),
        (LineKind.DISCOUNT, "TEN", 3, -1, -865),
        (LineKind.ADD_ON, "Parking", 1, 800, 800),
        (LineKind.ADD_ON, "Programme", 2, 350, 700),
    ]
    check_exact(chosen)
    assert [(use.counter, use.quantity, use.most) for use in chosen.uses] == [
        ("code:evt_1:TEN", 1, -1),
        ("add_on:evt_1:parking", 1, 10),
        ("add_on:evt_1:programme", 2, -1),
        ("limit:evt_1:kids", 2, 200),
        ("limit:evt_1:cars", 1, 100),
    ]
    assert choice_of(EVENT, chosen.quote.lines) == BookingChoice(
        {FRONT[0]: "adult", FRONT[1]: "child", BACK[0]: "child"}, {"parking": 1, "programme": 2}, "TEN"
    )
    dated = price_choice(replace(EVENT, show_id="shw_1"), PLAN, seats, choice, 10)
    assert dated.uses[-1].counter == "limit:shw_1:cars"
    assert dated.uses[-2].counter == "limit:evt_1:kids"


@pytest.mark.parametrize("shown", list(FeesShown))
@pytest.mark.parametrize("code", ["TEN", "FIVE", "ONCE"])
def test_whatever_is_taken_off_the_seats_add_up_and_none_is_below_zero(code: str, shown: FeesShown) -> None:
    event = replace(EVENT, fees_shown=shown)
    chosen = price_choice(event, PLAN, [*FRONT, *BACK], BookingChoice(code=code), 10)
    check_exact(chosen)
    off = sum(line.amount_minor for line in chosen.quote.lines if line.kind is LineKind.DISCOUNT)
    prices = 3 * 5001 + 2 * 2000 + (750 if shown is FeesShown.INCLUDED else 0)
    assert (
        -off == {"TEN": 3 * 515 + 2 * 215 if prices > 19003 else 3 * 500 + 2 * 200, "FIVE": 1000, "ONCE": prices}[code]
    )


@pytest.mark.parametrize(
    ("code", "now_us", "seats", "reason"),
    [
        ("NO", 10, FRONT, "unknown"),
        ("LATE", 49, FRONT, "not_yet"),
        ("late", 60, FRONT, "expired"),
        ("FIVE", 10, FRONT, "not_for_these_seats"),
    ],
)
def test_a_code_that_changes_nothing_says_why(code: str, now_us: int, seats: list[int], reason: str) -> None:
    with pytest.raises(DiscountRefused) as refused:
        price_choice(EVENT, PLAN, seats, BookingChoice(code=code), now_us)
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    "choice",
    [
        BookingChoice({FRONT[0]: "pensioner"}),
        BookingChoice({BACK[0]: "child"}),  # not among the seats
        BookingChoice(dict.fromkeys(FRONT, "child")),  # at most two
        BookingChoice({FRONT[0]: "family"}),  # at least three
        BookingChoice(add_ons={"parking": 3}),
        BookingChoice(add_ons={"parking": -1}),
        BookingChoice(add_ons={"boat": 1}),
    ],
)
def test_a_choice_that_cannot_be_is_refused(choice: BookingChoice) -> None:
    with pytest.raises(InvalidInput):
        price_choice(EVENT, PLAN, FRONT, choice, 10)


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"ticket_types": (CHILD,)}, "ticket_types"),
        ({"ticket_types": (ADULT, ADULT)}, "ticket_types"),
        ({"ticket_types": (ADULT, TicketType("Kind", "Kind"))}, "ticket_types"),
        ({"ticket_types": (ADULT, TicketType("x", "X", prices=(("roof", 1),)))}, "ticket_types"),
        ({"ticket_types": (ADULT, TicketType("x", "X", min_per_booking=3, max_per_booking=2))}, "ticket_types"),
        ({"add_ons": (AddOn("x", "", 1),)}, "add_ons"),
        ({"add_ons": (AddOn("x", "X", -1),)}, "add_ons"),
        ({"add_ons": (AddOn("x", "X", 1, -1),)}, "add_ons"),
        ({"discounts": (Discount("TEN"),)}, "discounts"),
        ({"discounts": (Discount("TEN", 1_000, 5),)}, "discounts"),
        ({"discounts": (Discount("ten", 1_000),)}, "discounts"),
        ({"discounts": (Discount("TEN", 1_000), Discount("TEN", 2_000))}, "discounts"),
        ({"discounts": (Discount("TEN", 1_000, tiers=("roof",)),)}, "discounts"),
        ({"discounts": (Discount("TEN", 1_000, starts_at_us=5, ends_at_us=5),)}, "discounts"),
        ({"limits": (SharedLimit("x", "X", 5, ("type:dog",)),)}, "limits"),
        ({"limits": (SharedLimit("x", "X", 5),)}, "limits"),
    ],
)
def test_options_that_cannot_be_sold_name_the_field(changes: dict[str, object], param: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_event(replace(EVENT, **{"limits": ()} | changes), PLAN)  # type: ignore[arg-type]
    assert refused.value.param == param


def test_a_hidden_ticket_type_is_sold_with_its_code_only() -> None:
    crew = TicketType("crew", "Crew", 1_000, hidden=True)
    club = Discount("CLUB", unlocks=("crew",))
    event = replace(EVENT, ticket_types=(ADULT, crew), discounts=(club, Discount("TEN", basis_points=1_000)))
    seat = FRONT[0]
    for code in ("", "TEN"):
        with pytest.raises(InvalidInput, match="no ticket type"):
            price_choice(event, PLAN, [seat], BookingChoice({seat: "crew"}, {}, code), 10)
    chosen = price_choice(event, PLAN, [seat], BookingChoice({seat: "crew"}, {}, "CLUB"), 10)
    assert chosen.quote.total_minor == 500 + 150 + 100
    assert price_choice(event, PLAN, [seat], BookingChoice({seat: "crew"}), 10, by_staff=True).quote == replace_code(
        chosen
    )


def replace_code(chosen: ChosenPrice) -> object:
    """The same price, for staff who gave no code."""
    lines = tuple(msgspec.structs.replace(line, code="") for line in chosen.quote.lines)
    return msgspec.structs.replace(chosen.quote, lines=lines)
