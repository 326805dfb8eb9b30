"""The colours that an organiser gave to price tiers, as the seat map can draw them in light and in dark.

A colour is made darker or lighter until it stands out from the map as far as WCAG asks of text. One that looks like a
seat that is taken, held or picked, or like another tier, is not used: that tier keeps a colour of ours. The legend and
every seat say the tier's name and price in words.
"""

from collections.abc import Sequence
from math import dist
from typing import Final

from frontrow.boxoffice.events.model.events import PriceTier
from frontrow.boxoffice.organiser.model.brands import Paper, shades_of
from frontrow.shared.colours import parts_of

MAX_TIERS: Final = 6  # the map has so many colours, and uses them again from the seventh tier on
LEAST_APART: Final = 80.0  # in red, green and blue
MAP: Final = (Paper("#ffffff", "#eff0ee"), Paper("#12161c", "#1f2630"))  # --map-bg and --map-floor
SEATS: Final = (("#868e99", "#d3d7dc", "#12161c"), ("#7c8796", "#343d49", "#ffffff"))  # held, sold, mine


def tier_colours(tiers: Sequence[PriceTier]) -> dict[str, tuple[str, str]]:
    """The colours in light and in dark, by the key of the tier. Tiers without one of their own are left out."""
    found: dict[str, tuple[str, str]] = {}
    if len(tiers) > MAX_TIERS:
        return found
    for tier in tiers:
        if not tier.colour:
            continue
        light, dark = (shades_of(tier.colour, paper).brand for paper in MAP)
        taken = zip(*found.values(), strict=True) if found else ((), ())
        if all(
            _is_apart(colour, [*seats, *others])
            for colour, seats, others in zip((light, dark), SEATS, taken, strict=True)
        ):
            found[tier.key] = light, dark
    return found


def _is_apart(colour: str, others: Sequence[str]) -> bool:
    return all(dist(parts_of(colour), parts_of(one)) >= LEAST_APART for one in others)
