"""The organiser's colours of price tiers on the seat map: readable in both schemes, apart from seats that are gone."""

import pytest

from frontrow.boxoffice.events.model.events import PriceTier
from frontrow.shared.colours import contrast
from frontrow.shared.money import Money
from frontrow.web.site.tier_colours import MAP, tier_colours


def tiers(*colours: str) -> list[PriceTier]:
    return [PriceTier(f"t{n}", Money(5_000, "EUR"), "", colour) for n, colour in enumerate(colours)]


@pytest.mark.parametrize("colour", ["#c02040", "#ffe000", "#00ff88", "#3366ff", "#7a2fd0"])
def test_a_tiers_colour_stands_out_from_the_map_in_both_schemes(colour: str) -> None:
    (shown,) = tier_colours(tiers(colour)).values()
    for one, paper in zip(shown, MAP, strict=True):
        assert min(contrast(one, paper.page), contrast(one, paper.card)) >= 4.5


def test_a_colour_like_a_taken_seat_or_another_tier_is_not_used() -> None:
    assert tier_colours(tiers("", "#868e99", "#d3d7dc", "#111111", "#ffffff")) == {}
    assert list(tier_colours(tiers("#c02040", "#c22242", "#7a2fd0"))) == ["t0", "t2"]
    assert tier_colours(tiers(*["#c02040"] * 7)) == {}, "the map repeats its colours from the seventh tier on"
