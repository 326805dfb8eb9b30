"""What an event offers besides its tiers: every bound at its edge, and how the audit shows it."""

from collections.abc import Sequence
from typing import Any

import pytest

from frontrow.boxoffice.pricing.model.sale_options import (
    MAX_ADD_ONS,
    MAX_COUNT,
    MAX_DISCOUNTS,
    MAX_LIMITS,
    MAX_MINOR,
    MAX_OF_ONE_ADD_ON,
    MAX_TYPES,
    AddOn,
    Discount,
    SharedLimit,
    TicketType,
    check_options,
    fold_code,
)
from frontrow.boxoffice.pricing.model.taxes import (
    MAX_TAX_BASIS_POINTS,
    SELLERS_TAX,
    TaxRates,
    check_tax,
    tax_inside,
)
from frontrow.core.errors import InvalidInput
from frontrow.shared.money import Money

ADULT, CREW = TicketType("adult", "Adult"), TicketType("crew", "Crew", hidden=True)
TIERS = ("front", "back")


def check(
    types: Sequence[TicketType] = (),
    add_ons: Sequence[AddOn] = (),
    discounts: Sequence[Discount] = (),
    limits: Sequence[SharedLimit] = (),
) -> None:
    check_options(types, add_ons, discounts, limits, TIERS)


def types(**more: Any) -> dict[str, Any]:
    return {"types": (ADULT, TicketType("x", **{"name": "X"} | more))}


def add_on(**more: Any) -> dict[str, Any]:
    return {"add_ons": (AddOn("x", **{"name": "X", "price_minor": 1} | more),)}


def discount(code: str = "TEN", **more: Any) -> dict[str, Any]:
    return {"types": (ADULT, CREW), "discounts": (Discount(code, **more),)}


def limit(**more: Any) -> dict[str, Any]:
    return {
        "types": (ADULT,),
        "add_ons": (AddOn("car", "Car", 1),),
        "limits": (SharedLimit("x", **{"name": "X", "most": 1, "counts": ("type:adult",)} | more),),
    }


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"types": [ADULT, *(TicketType(f"t{n}", "T") for n in range(MAX_TYPES - 1))]},
        {"add_ons": [AddOn(f"a{n}", "A", 0) for n in range(MAX_ADD_ONS)]},
        {"discounts": [Discount(f"CODE-{n}", 1) for n in range(MAX_DISCOUNTS)]},
        {"types": (ADULT,), "limits": [SharedLimit(f"l{n}", "L", 1, ("type:adult",)) for n in range(MAX_LIMITS)]},
        {"types": (TicketType("a" * 40, "A"),)},
        {"types": (TicketType("0-a", "A", max_per_booking=1),)},
        types(basis_points=0),
        types(basis_points=100_000),
        types(prices=(("front", 0), ("back", MAX_MINOR))),
        types(min_per_booking=2, max_per_booking=2),
        types(min_per_booking=2),
        add_on(price_minor=0, stock=0, max_per_booking=1),
        add_on(price_minor=MAX_MINOR, stock=MAX_COUNT, max_per_booking=MAX_OF_ONE_ADD_ON),
        discount("A0", basis_points=10_000, most_uses=1, most_per_person=1, starts_at_us=5, ends_at_us=6),
        discount("A" * 40, amount_minor=MAX_MINOR, per_booking=True),
        discount(unlocks=("crew",), tiers=("front",), starts_at_us=5),
        limit(most=0),
        limit(most=MAX_COUNT, counts=("type:adult", "add_on:car", "tier:front", "tier:back")),
    ],
)
def test_options_that_can_be_sold(options: dict[str, Any]) -> None:
    check(**options)


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"types": [ADULT, *(TicketType(f"t{n}", "T") for n in range(MAX_TYPES))]}, "ticket_types"),
        ({"add_ons": [AddOn(f"a{n}", "A", 0) for n in range(MAX_ADD_ONS + 1)]}, "add_ons"),
        ({"add_ons": [AddOn("a", "A", 0), AddOn("a", "B", 0)]}, "add_ons"),
        ({"add_ons": [AddOn("A", "A", 0)]}, "add_ons"),
        ({"discounts": [Discount(f"CODE-{n}", 1) for n in range(MAX_DISCOUNTS + 1)]}, "discounts"),
        (
            {
                "types": (ADULT,),
                "limits": [SharedLimit(f"l{n}", "L", 1, ("type:adult",)) for n in range(MAX_LIMITS + 1)],
            },
            "limits",
        ),
        ({"types": (ADULT,), "limits": [SharedLimit("L", "L", 1, ("type:adult",))]}, "limits"),
        ({"types": (TicketType("a" * 41, "A"),)}, "ticket_types"),
        ({"types": (TicketType("adult", "A", basis_points=9_999),)}, "ticket_types"),
        ({"types": (TicketType("adult", "A", prices=(("front", 1),)),)}, "ticket_types"),
        ({"types": (TicketType("adult", "A", min_per_booking=1),)}, "ticket_types"),
        ({"types": (TicketType("adult", "A", hidden=True),)}, "ticket_types"),
        (types(name=""), "ticket_types"),
        (types(basis_points=-1), "ticket_types"),
        (types(basis_points=100_001), "ticket_types"),
        (types(prices=(("front", -1),)), "ticket_types"),
        (types(prices=(("front", MAX_MINOR + 1),)), "ticket_types"),
        (types(prices=(("roof", 1),)), "ticket_types"),
        (types(min_per_booking=-1), "ticket_types"),
        (types(max_per_booking=-1), "ticket_types"),
        (types(min_per_booking=3, max_per_booking=2), "ticket_types"),
        (add_on(name=""), "add_ons"),
        (add_on(price_minor=-1), "add_ons"),
        (add_on(price_minor=MAX_MINOR + 1), "add_ons"),
        (add_on(max_per_booking=0), "add_ons"),
        (add_on(max_per_booking=MAX_OF_ONE_ADD_ON + 1), "add_ons"),
        (add_on(stock=-1), "add_ons"),
        (add_on(stock=MAX_COUNT + 1), "add_ons"),
        (discount(), "discounts"),
        (discount("A", basis_points=1), "discounts"),
        (discount("A" * 41, basis_points=1), "discounts"),
        (discount("-AB", basis_points=1), "discounts"),
        (discount(basis_points=1, amount_minor=1), "discounts"),
        (discount(basis_points=10_001), "discounts"),
        (discount(basis_points=-1), "discounts"),
        (discount(amount_minor=-1), "discounts"),
        (discount(amount_minor=MAX_MINOR + 1), "discounts"),
        *(
            (discount(basis_points=1, **{name: -1}), "discounts")
            for name in ("most_uses", "most_per_person", "starts_at_us", "ends_at_us")
        ),
        (discount(basis_points=1, starts_at_us=-2, ends_at_us=-1), "discounts"),
        (discount(basis_points=1, starts_at_us=5, ends_at_us=5), "discounts"),
        (discount(basis_points=1, tiers=("roof",)), "discounts"),
        (discount(unlocks=("adult",)), "discounts"),
        ({"discounts": (Discount("TEN", 1), Discount("TEN", 2))}, "discounts"),
        (limit(name=""), "limits"),
        (limit(most=-1), "limits"),
        (limit(most=MAX_COUNT + 1), "limits"),
        (limit(counts=()), "limits"),
        (limit(counts=("type:adult", "type:dog")), "limits"),
        (limit(counts=("add_on:boat",)), "limits"),
        (limit(counts=("tier:roof",)), "limits"),
    ],
)
def test_options_that_cannot_be_sold_name_the_field(options: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check(**options)
    assert refused.value.param == param


def test_the_bounds_are_what_the_documentation_says() -> None:
    assert (MAX_TYPES, MAX_ADD_ONS, MAX_DISCOUNTS, MAX_LIMITS) == (12, 20, 200, 20)


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (ADULT, "Adult 100 %"),
        (TicketType("c", "Child", 5_050), "Child 50.5 %"),
        (TicketType("c", "Child", prices=(("front", 1),)), "Child own prices"),
        (TicketType("f", "Family", min_per_booking=2, max_per_booking=4), "Family 100 % 2-4"),
        (TicketType("f", "Family", min_per_booking=2), "Family 100 % 2-"),
        (TicketType("f", "Family", max_per_booking=4), "Family 100 % ≤4"),
        (CREW, "Crew 100 % (hidden)"),
        (Discount("TEN", 1_000), "TEN −10 %"),
        (Discount("TEN", amount_minor=500, most_uses=3), "TEN −500 ×3"),
        (Discount("CREW", unlocks=("crew", "press")), "CREW unlocks crew + press"),
    ],
    ids=str,
)
def test_the_audit_shows_an_option_in_a_few_words(option: TicketType | Discount, text: str) -> None:
    assert str(option) == text


def test_a_code_is_compared_in_capitals_and_without_blanks() -> None:
    assert fold_code(" early 10\t") == "EARLY10"


# taxes


def test_the_rate_of_a_sale_is_that_of_its_time_and_the_events_own_comes_first() -> None:
    rates = TaxRates(own=((10, 700), (20, SELLERS_TAX)), sellers=((5, 1_900), (25, 2_000)))
    assert [rates.at(at_us) for at_us in (4, 5, 9, 10, 19, 20, 24, 25)] == [0, 1900, 1900, 700, 700, 1900, 1900, 2000]
    assert TaxRates(own=(), sellers=()).at(0) == 0


def test_a_tax_is_nothing_to_half_of_the_price() -> None:
    assert MAX_TAX_BASIS_POINTS == 5_000
    for rate in (0, MAX_TAX_BASIS_POINTS):
        check_tax(rate)
    for rate in (-1, MAX_TAX_BASIS_POINTS + 1):
        with pytest.raises(InvalidInput) as refused:
            check_tax(rate)
        assert refused.value.param == "tax_basis_points"


@pytest.mark.parametrize(
    ("gross", "rate", "tax"),
    [
        (1_190, 1_900, 190),
        (1_000, 1_900, 160),
        (1_000, 0, 0),
        (1, 5_000, 0),
        (3, 5_000, 1),
        (11, 1_000, 1),
        (6, 1_000, 1),
    ],
)
def test_the_tax_inside_a_price_is_rounded_half_up(gross: int, rate: int, tax: int) -> None:
    assert tax_inside(Money(gross, "EUR"), rate) == Money(tax, "EUR")
