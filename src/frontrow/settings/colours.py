"""The pages' own colours (`room.colours`): each as `name:light/dark`, checked so that everything stays readable.

`theme_css(["brand:#a3123f/#ff8fa9"])` is a style that goes after ours. The names are those of `static/css/tokens.css`.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from frontrow.core.errors import ConfigError
from frontrow.shared.colours import HEX, LEAST_CONTRAST, contrast

# Ours, light and dark: what a theme does not name stays as it is. A test compares them with tokens.css.
COLOURS: Final = {
    "brand": ("#9a1750", "#ff8fb8"),
    "brand-hover": ("#7a1040", "#ffb3cf"),
    "on-brand": ("#fff", "#2a0417"),
    "brand-soft": ("#f9e4ec", "#43182e"),
    "bg": ("#faf6f0", "#120d15"),
    "surface": ("#fff", "#1c1521"),
    "surface-2": ("#f2ece4", "#281f2e"),
    "ink": ("#1b1320", "#f6f0f4"),
    "ink-2": ("#5a5061", "#b9aebb"),
    "line": ("#e4dcd3", "#3a2f41"),
}
# text on what is behind it: WCAG 2.2 asks for 4.5:1
PAIRS: Final = (
    ("on-brand", "brand"),
    ("on-brand", "brand-hover"),
    ("brand", "surface"),
    ("brand", "bg"),
    ("brand", "brand-soft"),
    ("ink", "bg"),
    ("ink", "surface"),
    ("ink", "surface-2"),
    ("ink-2", "bg"),
    ("ink-2", "surface"),
)


@lru_cache
def theme_css(colours: Sequence[str]) -> str:
    """The style of these colours; empty for none. Raises `ConfigError` when one cannot be used."""
    given = _given(colours)
    _check_contrast(COLOURS | given)
    rules = [f"--{name}:light-dark({light},{dark})" for name, (light, dark) in given.items()]
    if "surface-2" in given:  # the waiting room's page calls it so
        rules.append("--soft:light-dark({},{})".format(*given["surface-2"]))
    return f":root{{{';'.join(rules)}}}" if rules else ""


def site_colours(colours: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Every colour of the site, light and dark: ours, and those that replace them."""
    return COLOURS | _given(colours)


def _given(colours: Sequence[str]) -> dict[str, tuple[str, str]]:
    given = dict(map(_read, colours))
    if len(given) < len(colours):
        raise _mistake("a colour is named twice")
    return given


def _read(text: str) -> tuple[str, tuple[str, str]]:
    name, _, both = text.partition(":")
    light, _, dark = both.partition("/")
    if name not in COLOURS:
        raise _mistake(f"{name!r} is not a colour; there are {', '.join(COLOURS)}")
    if not HEX.fullmatch(light) or not HEX.fullmatch(dark):
        raise _mistake(f"{text!r} must be name:light/dark, like brand:#a3123f/#ff8fa9")
    return name, (light, dark)


def _check_contrast(colours: dict[str, tuple[str, str]]) -> None:
    for text, behind in PAIRS:
        for scheme, one, other in zip(("light", "dark"), colours[text], colours[behind], strict=True):
            found = contrast(one, other)
            if found < LEAST_CONTRAST:
                told = f"in {scheme}, {text} {one} on {behind} {other} has a contrast of {found:.1f}"
                raise _mistake(f"{told}; people need {LEAST_CONTRAST} to read it")


def _mistake(what: str) -> ConfigError:
    return ConfigError(f"room.colours: {what}", param="room.colours")
