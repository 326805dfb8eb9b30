"""What an event says of itself, and every bound of its fields at the edge."""

from dataclasses import replace
from typing import Any

import pytest

from frontrow.boxoffice.events.model.event_status import FEW_PERCENT, is_nearly_sold_out
from frontrow.boxoffice.events.model.events import (
    MAX_CARD_TRIES,
    MAX_HOLD_TTL_S,
    MAX_LINE_CHARS,
    MAX_LINE_UP,
    MAX_LINKS,
    MAX_PER_PERSON,
    SHOW_US,
    EventCancelled,
    EventLink,
    EventMove,
    EventStatus,
    Fee,
    NotOnSale,
    PriceTier,
    check_event,
    check_on_sale,
    over_at_us,
)
from frontrow.boxoffice.events.model.room_rules import (
    HUMAN_CHECKS,
    MAX_DEPTH,
    MAX_WEIGHT,
    NO_RULES,
    Lane,
    RoomRules,
    check_rules,
)
from frontrow.core.errors import InvalidInput
from frontrow.shared.money import Money
from tests.boxoffice.plan_samples import an_event, small_plan

PLAN = small_plan()
TIERS = tuple(PriceTier(key, Money(100, "EUR")) for key in ("front", "back", "standing"))


def links(*urls: str) -> tuple[EventLink, ...]:
    return tuple(EventLink(url) for url in urls)


@pytest.mark.parametrize(
    "changes",
    [
        {"max_per_person": 1},
        {"max_per_person": MAX_PER_PERSON},
        {"hold_ttl_s": 1},
        {"hold_ttl_s": MAX_HOLD_TTL_S},
        {"card_tries": 1},
        {"card_tries": MAX_CARD_TRIES},
        {"lonely_rule_until_percent": 0},
        {"lonely_rule_until_percent": 100},
        {"withheld": frozenset({0, PLAN.size - 1})},
        {"tax_basis_points": 0},
        {"line_up": ("a" * MAX_LINE_CHARS,) * MAX_LINE_UP},
        {"links": links(*(["http://a.org"] * MAX_LINKS))},
        {"links": links("https://a.org/" + "x" * (500 - len("https://a.org/")))},
        {"links": (EventLink("https://a.org", "n" * MAX_LINE_CHARS),)},
        {"tiers": tuple(PriceTier(one.key, Money(0, "EUR")) for one in TIERS)},
        {"fees": (Fee("Service", 0, 0, 0),)},
        {"presale_starts_at_us": 1, "sale_starts_at_us": 2, "sale_ends_at_us": 3},
        {"starts_at_us": 5, "ends_at_us": 6},
    ],
)
def test_an_event_that_can_be_sold(changes: dict[str, Any]) -> None:
    event = an_event(**changes)
    assert check_event(event, PLAN) == event


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"sale_starts_at_us": 3, "sale_ends_at_us": 3}, "sale_ends_at"),
        ({"presale_starts_at_us": 2, "sale_starts_at_us": 2, "sale_ends_at_us": 3}, "presale_starts_at"),
        ({"starts_at_us": 5, "ends_at_us": 5}, "ends_at"),
        ({"max_per_person": 0}, "max_per_person"),
        ({"max_per_person": MAX_PER_PERSON + 1}, "max_per_person"),
        ({"hold_ttl_s": 0}, "hold_ttl_s"),
        ({"hold_ttl_s": MAX_HOLD_TTL_S + 1}, "hold_ttl_s"),
        ({"tax_basis_points": -1}, "tax_basis_points"),
        ({"card_tries": 0}, "card_tries"),
        ({"card_tries": MAX_CARD_TRIES + 1}, "card_tries"),
        ({"lonely_rule_until_percent": -1}, "lonely_rule_until_percent"),
        ({"lonely_rule_until_percent": 101}, "lonely_rule_until_percent"),
        ({"withheld": frozenset({-1})}, "withheld"),
        ({"withheld": frozenset({PLAN.size})}, "withheld"),
        ({"line_up": ("a",) * (MAX_LINE_UP + 1)}, "line_up"),
        ({"line_up": (" ",)}, "line_up"),
        ({"line_up": ("a" * (MAX_LINE_CHARS + 1),)}, "line_up"),
        ({"links": links(*(["https://a.org"] * (MAX_LINKS + 1)))}, "links"),
        ({"links": links("ftp://a.org")}, "links"),
        ({"links": links("https://")}, "links"),
        ({"links": links("https://a.org/b c")}, "links"),
        ({"links": links("https://ä.org")}, "links"),
        ({"links": links("https://a.org/\x07")}, "links"),
        ({"links": links("https://a.org/" + "x" * 500)}, "links"),
        ({"links": (EventLink("https://a.org", "n" * (MAX_LINE_CHARS + 1)),)}, "links"),
        ({"tiers": (*TIERS, TIERS[0])}, "tiers"),
        ({"tiers": TIERS[:1]}, "tiers"),
        ({"tiers": (*TIERS[:2], PriceTier("standing", Money(1, "USD")))}, "tiers"),
        ({"tiers": (*TIERS[:2], PriceTier("standing", Money(-1, "EUR")))}, "tiers"),
        ({"fees": (Fee("Service", -1),)}, "fees"),
        ({"fees": (Fee("Service", 0, -1),)}, "fees"),
        ({"fees": (Fee("Service", 0, 0, -1),)}, "fees"),
        ({"room": RoomRules(depth_cap=-1)}, "depth_cap"),
    ],
)
def test_an_event_that_cannot_be_sold_names_the_field(changes: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_event(an_event(**changes), PLAN)
    assert refused.value.param == param


def test_an_event_says_what_pages_need() -> None:
    event = an_event(id="evt_1", sale_starts_at_us=9, starts_at_us=100, sale_ends_at_us=50)
    assert (event.opens_at_us, replace(event, presale_starts_at_us=4).opens_at_us) == (9, 4)
    assert (event.poster_seed, replace(event, show_id="shw_1").poster_seed) == ("evt_1", "shw_1")
    assert over_at_us(event) == 100 + SHOW_US
    assert over_at_us(replace(event, ends_at_us=120)) == 120
    assert over_at_us(replace(event, ends_at_us=120, sale_ends_at_us=130)) == 130
    assert replace(event, status=EventStatus.ON_SALE).moved(EventMove.CANCEL).status is EventStatus.CANCELLED
    assert event.tier("front").key == "front"
    with pytest.raises(InvalidInput) as refused:
        event.tier("roof")
    assert refused.value.param == "tier"
    assert (PriceTier("front", Money(1, "EUR")).shown_name, TIERS[0].shown_name) == ("Front", "Front")
    assert PriceTier("front", Money(1, "EUR"), "Stalls").shown_name == "Stalls"
    assert EventCancelled("evt_1").about == {"event": "evt_1", "reason": "cancelled"}


def test_a_sale_says_why_it_is_not_open_and_when_it_will_be() -> None:
    event = an_event(status=EventStatus.ON_SALE, sale_starts_at_us=5_000_000, sale_ends_at_us=9_000_000)
    for changes, now_us, reason, wait_s in (
        ({"status": EventStatus.SOLD_OUT}, 6_000_000, "sold_out", None),
        ({"paused": True}, 6_000_000, "paused", 5.0),
        ({}, 3_500_000, "not_begun", 1.5),
        ({}, 9_000_000, "over", None),
    ):
        with pytest.raises(NotOnSale) as refused:
            check_on_sale(replace(event, **changes), now_us)
        assert (refused.value.about["reason"], refused.value.retry_after_s) == (reason, wait_s)
    check_on_sale(event, 5_000_000)
    check_on_sale(event, 8_999_999)


def test_few_seats_are_left_at_five_percent() -> None:
    assert FEW_PERCENT == 5
    assert is_nearly_sold_out(5, 100)
    assert not is_nearly_sold_out(6, 100)


# how its waiting room is run


def test_rules_that_were_left_open_are_the_servers_and_a_presale_has_a_lane() -> None:
    assert NO_RULES.filled(NO_RULES) == RoomRules((Lane("general"),), 0, "none", False)
    server = RoomRules((Lane("all"),), 90, "altcha", True)
    assert NO_RULES.filled(server) == server
    own = RoomRules((Lane("mine", 2), Lane("fans")), 0, "turnstile", False)
    assert own.filled(server) == own
    assert NO_RULES.filled(server, presale=True).lanes == (Lane("all"), Lane("presale"))
    assert own.filled(server, presale=True).lanes == own.lanes


def test_an_edit_of_rules_changes_what_it_names() -> None:
    rules = RoomRules((Lane("all"),), 90, "altcha", True)
    assert rules.edited(NO_RULES) == rules
    assert rules.edited(RoomRules(depth_cap=0, one_place_per_person=False)) == RoomRules(
        (Lane("all"),), 0, "altcha", False
    )


@pytest.mark.parametrize(
    "rules",
    [
        NO_RULES,
        RoomRules((Lane("a" * 35, 1),), 0, "none"),
        RoomRules((Lane("general"), Lane("fan-club_1.x", MAX_WEIGHT)), MAX_DEPTH),
        *(RoomRules(human=check) for check in HUMAN_CHECKS),
    ],
)
def test_rules_that_a_room_can_have(rules: RoomRules) -> None:
    check_rules(rules)


@pytest.mark.parametrize(
    ("rules", "param"),
    [
        (RoomRules(()), "lanes"),
        (RoomRules((Lane("a"), Lane("b"), Lane("c"))), "lanes"),
        (RoomRules((Lane("a"), Lane("a"))), "lanes"),
        (RoomRules((Lane("a" * 36),)), "lanes"),
        (RoomRules((Lane(".a"),)), "lanes"),
        (RoomRules((Lane("a", 0),)), "lanes"),
        (RoomRules((Lane("a", MAX_WEIGHT + 1),)), "lanes"),
        (RoomRules(depth_cap=-1), "depth_cap"),
        (RoomRules(depth_cap=MAX_DEPTH + 1), "depth_cap"),
        (RoomRules(human="riddle"), "human"),
    ],
)
def test_rules_that_no_room_can_have_name_the_field(rules: RoomRules, param: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_rules(rules)
    assert refused.value.param == param
