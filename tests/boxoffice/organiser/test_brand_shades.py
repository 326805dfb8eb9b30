"""A brand's colour: whatever it is, text in it and on it can be read, on light and on dark pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.boxoffice.organiser.model.brands import PRINT, Paper, checked_colour, shades_of
from frontrow.core.errors import InvalidInput
from frontrow.settings.colours import COLOURS
from frontrow.shared.colours import contrast

LIGHT, DARK = (Paper(COLOURS["bg"][scheme], COLOURS["surface"][scheme]) for scheme in (0, 1))
INK = {LIGHT: COLOURS["ink"][0], DARK: COLOURS["ink"][1], PRINT: "#1b1b23"}


@given(st.integers(0, 0xFFFFFF), st.sampled_from([LIGHT, DARK, PRINT]))
def test_every_colour_can_be_read_on_every_paper(number: int, paper: Paper) -> None:
    shades = shades_of(f"#{number:06x}", paper)
    for text, behind in (
        (shades.brand, paper.page),
        (shades.brand, paper.card),
        (shades.brand, shades.brand_soft),
        (shades.on_brand, shades.brand_fill),
        (shades.on_brand, shades.brand_hover),
        (INK[paper], shades.brand_soft),
    ):
        assert contrast(text, behind) >= 4.5, (shades, text, behind)


def test_a_colour_that_can_be_read_stays_as_it_is() -> None:
    assert shades_of("#a3123f", LIGHT).brand == "#a3123f"
    assert shades_of("#ffd400", DARK).brand == "#ffd400"
    yellow = shades_of("#ffd400", LIGHT)
    assert yellow.brand != "#ffd400", "nobody reads yellow on white"
    assert (yellow.brand_fill, yellow.on_brand) == ("#ffd400", "#000000"), "but black on yellow"


def test_a_button_is_never_the_colour_of_the_paper() -> None:
    for colour, paper in (("#ffffff", LIGHT), ("#161b22", DARK), ("#fffbe0", LIGHT)):
        shades = shades_of(colour, paper)
        assert shades.brand_fill == shades.brand != colour


@pytest.mark.parametrize(("text", "colour"), [("#A3123F", "#a3123f"), (" #fc0 ", "#ffcc00"), ("", "")])
def test_a_colour_is_written_in_six_digits(text: str, colour: str) -> None:
    assert checked_colour(text) == colour


@pytest.mark.parametrize("text", ["red", "#12345", "a3123f", "#a3123f;}", "#a3123g", "#١٢٣٤٥٦"])
def test_what_is_no_colour_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput, match="like #a3123f") as refused:
        checked_colour(text)
    assert refused.value.param == "colour"
