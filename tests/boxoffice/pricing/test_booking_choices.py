"""What a fan chooses for held seats, and what it costs to the cent."""

from dataclasses import replace

import msgspec
import pytest

from frontrow.boxoffice.events.model.events import Event, Fee, FeesShown, PriceTier, check_event
from frontrow.boxoffice.pricing.model.booking_choices import (
    NO_LIMIT,
    BookingChoice,
    ChosenPrice,
    NoneLeft,
    Use,
    choice_of,
    drop_unused_code,
    free_of_charge,
    offered_types,
    offers_choices,
    price_choice,
    priced_types,
    type_names,
    uses_left,
    uses_of,
)
from frontrow.boxoffice.pricing.model.discounts import DiscountRefused
from frontrow.boxoffice.pricing.model.prices import DIFFERENT, LineKind, LineTerms, encode_lines, has_add_ons
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


def test_equal_seats_without_fees_have_one_line() -> None:
    plain = replace(EVENT, fees=(), ticket_types=())
    chosen = price_choice(plain, PLAN, FRONT, BookingChoice(), 10)
    (line,) = chosen.quote.lines
    assert (line.kind, line.name, line.quantity, line.unit_minor, line.amount_minor) == (
        LineKind.SEAT,
        "Front",
        3,
        5_001,
        15_003,
    )
    assert (line.seats, line.included, line.key) == (tuple(FRONT), False, "front")
    assert (chosen.quote.seat_totals_minor, chosen.quote.total_minor, chosen.quote.currency) == (
        (5_001,) * 3,
        15_003,
        "EUR",
    )
    mixed = price_choice(plain, PLAN, [FRONT[0], BACK[0]], BookingChoice(), 10).quote
    assert (mixed.seat_totals_minor, mixed.total_minor, len(mixed.lines)) == ((5_001, 2_000), 7_001, 2)


def test_only_a_booking_with_an_add_on_has_one() -> None:
    with_one = price_choice(EVENT, PLAN, FRONT, BookingChoice(add_ons={"parking": 1}), 10).quote.lines
    assert has_add_ons(encode_lines(with_one))
    assert not has_add_ons(encode_lines(price_choice(EVENT, PLAN, FRONT, BookingChoice(), 10).quote.lines))


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


def test_a_choice_uses_what_it_takes_of_codes_stocks_and_shared_limits() -> None:
    child, _, third = FRONT
    choice = BookingChoice({child: "child", third: "gone"}, {"parking": 2, "programme": 1}, "ONCE")
    uses = uses_of(EVENT, PLAN, FRONT, choice)
    assert uses == (
        Use("code:evt_1:ONCE", 1, 3, "discount", "ONCE", 1),
        Use("add_on:evt_1:parking", 2, 10, "add_on", "Parking"),
        Use("add_on:evt_1:programme", 1, NO_LIMIT, "add_on", "Programme"),
        Use("limit:evt_1:kids", 1, 200, "limit", "Children"),
        Use("limit:evt_1:cars", 2, 100, "limit", "Parking"),
    )
    priced = BookingChoice({child: "child"}, choice.add_ons, "ONCE")
    assert price_choice(EVENT, PLAN, FRONT, priced, 10).uses == uses
    assert uses_of(EVENT, PLAN, FRONT, BookingChoice(code="NO")) == ()
    unlimited = uses_of(EVENT, PLAN, FRONT, BookingChoice(code="TEN"))
    assert unlimited == (Use("code:evt_1:TEN", 1, NO_LIMIT, "discount", "TEN", 0),)


def test_all_dates_of_a_show_share_a_limit_that_says_so_and_tiers_count_too() -> None:
    limits = (SharedLimit("cars", "Cars", 9, ("add_on:parking", "add_on:parking"), across_dates=True),)
    limits += (SharedLimit("seats", "Seats", 9, ("tier:front", "tier:back"), across_dates=False),)
    show = replace(EVENT, show_id="shw_1", limits=limits)
    uses = uses_of(show, PLAN, [*FRONT, *BACK], BookingChoice(add_ons={"parking": 1}))
    assert [(one.counter, one.quantity) for one in uses] == [
        ("add_on:evt_1:parking", 1),
        ("limit:shw_1:cars", 1),
        ("limit:evt_1:seats", 5),
    ]
    assert uses_of(replace(show, show_id=""), PLAN, FRONT[:1], BookingChoice(add_ons={"parking": 1}))[1].counter == (
        "limit:evt_1:cars"
    )


def test_what_is_refunded_is_used_no_more() -> None:
    child, other, _ = FRONT
    lines = price_choice(
        EVENT, PLAN, [child, other], BookingChoice({child: "child"}, {"parking": 2, "programme": 1}), 10
    ).quote.lines
    everything = {"parking": 2, "programme": 1}
    assert uses_left(EVENT, lines, [child, other], everything) == ()
    assert uses_left(EVENT, lines, [other], everything) == (("limit:evt_1:kids", 0),)
    assert uses_left(EVENT, lines, [child], {"parking": 1}) == (
        ("add_on:evt_1:parking", 1),
        ("add_on:evt_1:programme", 0),
        ("limit:evt_1:cars", 1),
    )
    plain = price_choice(replace(EVENT, ticket_types=()), PLAN, [child], BookingChoice(), 10).quote.lines
    by_tier = replace(EVENT, ticket_types=(), limits=(SharedLimit("front", "Front", 9, ("tier:front",)),))
    assert uses_left(by_tier, plain, [], {}) == (("limit:evt_1:front", 0),)
    typed = replace(EVENT, limits=(SharedLimit("adults", "Adults", 9, ("type:adult",)),))
    assert uses_left(typed, plain, [], {}) == (("limit:evt_1:adults", 0),), "sold before the event had types: the first"
    gone = replace(EVENT, ticket_types=(ADULT,), limits=(SharedLimit("adults", "Adults", 9, ("type:adult",)),))
    assert uses_left(gone, lines, [child], everything) == (("limit:evt_1:adults", 0),), (
        "a type that is no more counts not"
    )


def test_a_gift_has_the_seats_and_add_ons_and_costs_nothing() -> None:
    chosen = price_choice(EVENT, PLAN, FRONT[:2], BookingChoice({}, {"parking": 1}, "TEN"), 10)
    gift = free_of_charge(chosen.quote)
    assert [(x.kind, x.quantity, x.unit_minor, x.amount_minor, x.terms) for x in gift.lines] == [
        (LineKind.SEAT, 2, 0, 0, None),
        (LineKind.ADD_ON, 1, 0, 0, None),
    ]
    assert (gift.seat_totals_minor, gift.total_minor, gift.currency) == ((0, 0), 0, "EUR")


def test_the_choice_comes_back_from_the_lines() -> None:
    choice = BookingChoice({FRONT[0]: "child", FRONT[1]: "adult"}, {"parking": 2}, "TEN")
    lines = price_choice(EVENT, PLAN, FRONT[:2], choice, 10).quote.lines
    assert choice_of(EVENT, lines) == choice
    assert choice_of(replace(EVENT, ticket_types=()), lines).types == {}
    assert choice_of(EVENT, lines[:2]).code == ""


def test_a_code_that_unlocked_nothing_that_was_chosen_is_dropped() -> None:
    crew = TicketType("crew", "Crew", 1_000, hidden=True)
    club = Discount("CLUB", unlocks=("crew",))
    event = replace(EVENT, ticket_types=(ADULT, crew), discounts=(club, Discount("TEN", basis_points=1_000)))
    seat = FRONT[0]
    assert offered_types(event) == offered_types(event, "TEN") == (ADULT,)
    assert offered_types(event, "CLUB") == (ADULT, crew)
    used = price_choice(event, PLAN, [seat], BookingChoice({seat: "crew"}, {}, "CLUB"), 10).quote.lines
    assert drop_unused_code(event, used) == tuple(used)
    unused = price_choice(event, PLAN, [seat], BookingChoice(code="CLUB"), 10).quote.lines
    assert {line.code for line in unused if line.kind is LineKind.SEAT} == {"CLUB"}
    assert {line.code for line in drop_unused_code(event, unused)} == {""}
    cheaper = price_choice(event, PLAN, [seat], BookingChoice(code="TEN"), 10).quote.lines
    assert drop_unused_code(event, cheaper) == tuple(cheaper)


def test_seats_have_the_names_of_their_ticket_types() -> None:
    lines = price_choice(EVENT, PLAN, FRONT[:2], BookingChoice({FRONT[0]: "child"}), 10).quote.lines
    assert type_names(EVENT, encode_lines(lines), FRONT[:2]) == {FRONT[0]: "Child", FRONT[1]: "Adult"}
    assert type_names(replace(EVENT, ticket_types=()), encode_lines(lines), FRONT[:2]) == {}
    before = price_choice(replace(EVENT, ticket_types=()), PLAN, FRONT[:1], BookingChoice(), 10).quote.lines
    assert type_names(EVENT, encode_lines(before), FRONT[:1]) == {FRONT[0]: "Adult"}


def test_each_type_has_a_price_per_tier_as_it_is_shown() -> None:
    (child,) = priced_types(EVENT, [CHILD])
    assert (child.type, child.currency) == (CHILD, "EUR")
    included = {key: child.shown_minor[key] for key in ("front", "back", "standing")}
    assert included == {"front": 2501 + 150, "back": 700 + 150, "standing": 1500 + 150}
    beside = priced_types(replace(EVENT, fees_shown=FeesShown.BESIDE), [CHILD])[0]
    assert beside.shown_minor == {"front": 2501, "back": 700, "standing": 1500}


def test_there_is_something_to_choose_if_there_are_types_add_ons_or_codes() -> None:
    nothing = replace(EVENT, ticket_types=(), add_ons=(), discounts=())
    assert not offers_choices(nothing)
    for name in ("ticket_types", "add_ons", "discounts"):
        assert offers_choices(replace(nothing, **{name: getattr(EVENT, name)}))


def test_a_stock_that_ends_says_how_many_are_left() -> None:
    some, none = NoneLeft("Parking", 2, "add_ons"), NoneLeft("Parking", 0, "add_ons")
    assert (some.message, some.name, some.left, some.param) == ("Parking: only 2 left", "Parking", 2, "add_ons")
    assert (none.message, some.about, none.about) == ("Parking: none left", {"left": 2}, {"left": 0})


def test_bounds_per_booking_hold_for_fans_and_not_for_staff() -> None:
    three = dict.fromkeys(FRONT, "child")
    with pytest.raises(InvalidInput) as refused:
        price_choice(EVENT, PLAN, FRONT, BookingChoice(three), 10)
    assert refused.value.about == {"name": "Child", "most": 2}
    assert (refused.value.message, refused.value.param) == ("Child: at most 2 per booking", "types")
    with pytest.raises(InvalidInput) as refused:
        price_choice(EVENT, PLAN, FRONT, BookingChoice({FRONT[0]: "family"}), 10)
    assert refused.value.about == {"name": "Family", "least": 3}
    assert price_choice(EVENT, PLAN, FRONT, BookingChoice(dict.fromkeys(FRONT, "family")), 10).quote.total_minor > 0
    many = BookingChoice(three, {"parking": 100})
    assert price_choice(EVENT, PLAN, FRONT, many, 10, by_staff=True).uses[0].quantity == 100
    with pytest.raises(InvalidInput):
        price_choice(EVENT, PLAN, FRONT, BookingChoice(three, {"parking": 101}), 10, by_staff=True)


@pytest.mark.parametrize(
    ("code", "front", "back"),
    [
        ("", 1_000, 400),  # of 50.01 and 20.00 at 80 %
        ("TEN", 900, 360),
        ("SIX", 1_000, 400),
        ("ALL", 1_000, 400),
        ("BACK", 1_000, 200),
        ("MUCH", 0, 0),  # both would cost nothing
        ("LOT", 1_000, 400),
    ],
)
def test_a_seat_of_a_group_says_how_much_more_it_costs_alone(code: str, front: int, back: int) -> None:
    codes = (
        Discount("TEN", basis_points=1_000),
        Discount("SIX", amount_minor=600),
        Discount("ALL", amount_minor=600, per_booking=True),
        Discount("BACK", basis_points=5_000, tiers=("back",)),
        Discount("MUCH", amount_minor=10_000),
        Discount("LOT", amount_minor=10_000, per_booking=True),
    )
    seats = [FRONT[0], *BACK]
    family = BookingChoice(dict.fromkeys(seats, "family"), {}, code)
    chosen = price_choice(replace(EVENT, discounts=codes), PLAN, seats, family, 10)
    lines = [line for line in chosen.quote.lines if line.kind is LineKind.SEAT]
    assert [line.terms for line in lines] == [LineTerms(150, 3, front), LineTerms(150, 3, back)]


def test_only_seats_of_a_group_say_how_many_it_takes() -> None:
    pair = TicketType("pair", "Pair", 8_000, min_per_booking=2)
    event = replace(EVENT, ticket_types=(ADULT, pair))
    (line, *_) = price_choice(event, PLAN, BACK, BookingChoice(dict.fromkeys(BACK, "pair")), 10).quote.lines
    assert line.terms == LineTerms(150, 2, 400)
    mixed = BookingChoice({BACK[0]: "pair", BACK[1]: "pair"}, {"parking": 1})
    other = price_choice(event, PLAN, [*BACK, FRONT[0]], mixed, 10).quote.lines
    assert [x.terms.group_min for x in other if x.kind is LineKind.SEAT and x.terms is not None] == [2, 0]


def test_a_refused_code_says_its_name_and_why() -> None:
    refused = DiscountRefused("used_up", "TEN")
    assert (refused.message, refused.param) == ("TEN has been used as often as it can be", "code")
    assert (refused.reason, refused.about) == ("used_up", {"reason": "used_up"})


def test_a_seat_without_a_choice_counts_as_the_first_type() -> None:
    adults = replace(EVENT, limits=(SharedLimit("adults", "Adults", 9, ("type:adult",)),))
    (use,) = uses_of(adults, PLAN, FRONT, BookingChoice({FRONT[0]: "child"}))
    assert use == Use("limit:evt_1:adults", 2, 9, "limit", "Adults")
    assert uses_of(replace(adults, ticket_types=()), PLAN, FRONT, BookingChoice()) == ()


@pytest.mark.parametrize(
    ("code", "seats", "quantity", "unit"),
    [
        ("FIVE", BACK, 2, -500),
        ("FIVE", [*BACK, FRONT[0]], 2, -500),
        ("TEN", BACK, 2, -215),
        ("TEN", [*BACK, FRONT[0]], 3, DIFFERENT),
        ("ONCE", BACK, 1, -4_300),
        ("FEW", [*BACK, FRONT[0]], 1, -300),
    ],
)
def test_the_line_of_a_code_says_how_often_and_how_much(code: str, seats: list[int], quantity: int, unit: int) -> None:
    event = replace(EVENT, discounts=(*EVENT.discounts, Discount("FEW", amount_minor=300, per_booking=True)))
    lines = price_choice(event, PLAN, seats, BookingChoice(code=code), 10).quote.lines
    (line,) = [one for one in lines if one.kind is LineKind.DISCOUNT]
    assert (line.name, line.key, line.quantity, line.unit_minor) == (code, code, quantity, unit)
    assert {one.code for one in lines} == {""}, "it unlocks nothing"


def test_a_code_begins_at_its_moment_and_takes_nothing_off_other_tiers() -> None:
    assert price_choice(EVENT, PLAN, FRONT, BookingChoice(code="LATE"), 50).quote.total_minor > 0
    back = Discount("BACK", amount_minor=300, per_booking=True, tiers=("back",))
    with pytest.raises(DiscountRefused) as refused:
        price_choice(replace(EVENT, discounts=(back,)), PLAN, FRONT, BookingChoice(code="BACK"), 10)
    assert refused.value.reason == "not_for_these_seats"


def test_a_code_that_unlocks_is_in_the_lines_of_its_seats_alone() -> None:
    crew = TicketType("crew", "Crew", hidden=True)
    event = replace(EVENT, ticket_types=(ADULT, crew), discounts=(Discount("CLUB", unlocks=("crew",)),))
    lines = price_choice(event, PLAN, FRONT[:1], BookingChoice({FRONT[0]: "crew"}, {}, "CLUB"), 10).quote.lines
    assert {(one.kind is LineKind.SEAT, one.code) for one in lines} == {(True, "CLUB"), (False, "")}


def test_a_group_of_one_is_none_and_seats_without_fees_say_so() -> None:
    solo = TicketType("solo", "Solo", min_per_booking=1)
    event = replace(EVENT, ticket_types=(ADULT, solo))
    (line, *_) = price_choice(event, PLAN, FRONT[:1], BookingChoice({FRONT[0]: "solo"}), 10).quote.lines
    assert line.terms == LineTerms(150, 0, 0)
    free = replace(EVENT, fees=())
    (family,) = price_choice(free, PLAN, FRONT, BookingChoice(dict.fromkeys(FRONT, "family")), 10).quote.lines
    assert family.terms == LineTerms(0, 3, 1_000)
    fee = price_choice(EVENT, PLAN, FRONT, BookingChoice(), 10).quote.lines[-1]
    assert (fee.kind, fee.amount_minor, fee.terms) == (LineKind.FEE, 100, LineTerms())
