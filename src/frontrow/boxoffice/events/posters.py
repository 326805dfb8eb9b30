"""A poster for an event that has no picture: a stage as the front row sees it, with one seat that is lit.

Palette, scene and seat follow from the event's id, so events differ and stay as they are. A poster is a list of flat
shapes on a canvas of 1200 by 630, the size that social networks show, like a print in five inks. What matters is in the
middle, so a page may cut it to another shape. It is drawn as SVG in pages, and as PNG for mails, tickets and those who
share the page. Pure; the same id always gives the same bytes.
"""

import hashlib
import io
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from markupsafe import Markup

from frontrow.shared.colours import mix

WIDTH, HEIGHT = 1200, 630
FLOOR: Final = 440  # where the stage begins
MIDDLE: Final = WIDTH / 2
SEAT, SEAT_GAP = 132, 12
MAX_CACHED: Final = 2_048
SKY_BANDS: Final = 4
Point: TypeAlias = tuple[float, float]


class Inks(NamedTuple):
    """The colours of a poster, from dark to light, and that of the seat that is lit."""

    night: str
    deep: str
    middle: str
    light: str
    spark: str


PALETTES: Final = (
    Inks("#1d0716", "#5a0f3a", "#a51c56", "#f0719b", "#ffc35a"),
    Inks("#070b26", "#152a73", "#2f5bd0", "#8fb6ff", "#ffd166"),
    Inks("#08170f", "#12452f", "#1f8a58", "#8be0ab", "#ffe08a"),
    Inks("#1f0a04", "#6b1f0b", "#d0491b", "#ff9d5c", "#ffe3a3"),
    Inks("#041619", "#0b4650", "#12909a", "#7fe0df", "#ffb86b"),
    Inks("#140726", "#3d1672", "#7c3bd1", "#c9a2ff", "#ffd36e"),
    Inks("#1c0a12", "#4d1b3b", "#b8405e", "#ffb199", "#8fe3d0"),
    Inks("#1b1202", "#5b3a03", "#c9860c", "#ffd27a", "#ff7a59"),
    Inks("#081320", "#1b3a57", "#3f7fa6", "#b9dff0", "#ff8a5c"),
    Inks("#1a061f", "#5b1266", "#b42fb0", "#f79bea", "#9df0ff"),
)


class Ellipse(NamedTuple):
    x: float
    y: float
    rx: float
    ry: float
    colour: str


class Polygon(NamedTuple):
    points: tuple[Point, ...]
    colour: str


class Column(NamedTuple):
    """Something that stands on the ground and is round at its top: a seat, a bar."""

    x: float
    top: float
    width: float
    bottom: float
    colour: str


Shape: TypeAlias = Ellipse | Polygon | Column


class Poster(NamedTuple):
    """The shapes from back to front. `colour` is the one that the event's pages take over."""

    background: str
    shapes: tuple[Shape, ...]
    colour: str


@lru_cache(MAX_CACHED)
def poster_of(event_id: str) -> Poster:
    """The poster of an event."""
    seed = hashlib.blake2b(event_id.encode(), digest_size=16).digest()
    inks = PALETTES[seed[0] % len(PALETTES)]
    scene = SCENES[seed[1] % len(SCENES)]
    shapes = [*_sky(inks), *scene(seed[3:], inks), *_seats(seed[2], inks)]
    return Poster(inks.night, tuple(shapes), inks.middle)


def _sky(inks: Inks) -> Iterator[Shape]:
    """Darkness that becomes lighter towards the stage, as footlights make it."""
    for band in range(1, SKY_BANDS + 1):
        top = FLOOR * band * band / (SKY_BANDS + 1) ** 2
        yield _box(0, top, WIDTH, FLOOR, mix(inks.night, inks.deep, 22 * band))


def _floor(inks: Inks) -> Iterator[Shape]:
    yield _box(0, FLOOR, WIDTH, HEIGHT, mix(inks.deep, inks.night, 45))
    yield Ellipse(MIDDLE, FLOOR + 40, 470, 62, mix(inks.middle, inks.deep, 55))
    yield Ellipse(MIDDLE, FLOOR + 44, 300, 38, mix(inks.middle, inks.light, 25))


def _seats(chosen: int, inks: Inks) -> Iterator[Shape]:
    """The front row, seen from behind. One seat is lit."""
    step, dark = SEAT + SEAT_GAP, mix(inks.night, "#000000", 45)
    lit = 3 + chosen % 3  # in the middle, so that it stays when the sides are cut off
    yield _box(0, HEIGHT - 14, WIDTH, HEIGHT, dark)
    for number in range(-1, 9):
        x = MIDDLE - step / 2 + (number - 4) * step + SEAT_GAP / 2
        yield Column(x, HEIGHT - 122, SEAT, HEIGHT, inks.spark if number == lit else dark)
        if number == lit:
            yield Column(x + 16, HEIGHT - 104, SEAT - 32, HEIGHT, mix(inks.spark, "#000000", 14))


def _beams(seed: bytes, inks: Inks) -> Iterator[Shape]:
    count = 4 + seed[0] % 3
    pools: list[Shape] = []
    for n in range(count):
        x = 190 + n * (820 / (count - 1))
        to = MIDDLE + (x - MIDDLE) * (0.25 + seed[1] / 400) * (-1 if seed[n + 2] % 2 else 1)
        colour = mix(inks.middle, inks.light, 8 + seed[n + 2] % 44)
        half = 88 + seed[n + 3] % 50
        yield Polygon(((x - 9, -10), (x + 9, -10), (to + half, FLOOR + 30), (to - half, FLOOR + 30)), colour)
        pools.append(Ellipse(to, FLOOR + 30, half, 24, mix(colour, inks.light, 55)))
    yield _box(0, FLOOR + 30, WIDTH, HEIGHT, mix(inks.deep, inks.night, 45))
    yield from pools


def _disc(seed: bytes, inks: Inks) -> Iterator[Shape]:
    """A sun that rises behind the stage, cut into stripes."""
    radius, x, y = 215 + seed[0] % 50, MIDDLE - 170 + seed[1] * 1.33, 300 + seed[2] % 40
    for n, ink in enumerate((mix(inks.deep, inks.middle, 35), mix(inks.middle, inks.light, 10), inks.light)):
        yield Ellipse(x, y, radius + 130 - 65 * n, radius + 130 - 65 * n, ink)
    for n in range(6):
        yield _box(0, y - 50 + 36 * n, WIDTH, y - 46 + 39 * n + n, mix(inks.night, inks.deep, 88))
    yield from _floor(inks)


def _curtain(seed: bytes, inks: Inks) -> Iterator[Shape]:
    yield Ellipse(MIDDLE, FLOOR - 60, 330, 330, mix(inks.deep, inks.light, 42))
    yield Ellipse(MIDDLE, FLOOR - 40, 220, 220, mix(inks.middle, inks.light, 70))
    yield from _floor(inks)
    folds, opening = 6 + seed[0] % 3, 190 + seed[1] % 60
    width = (MIDDLE - opening) / folds
    for n in range(folds):
        colour = (inks.middle, mix(inks.middle, inks.deep, 45), mix(inks.middle, inks.light, 12))[n % 3]
        for side in (-1, 1):
            top, foot = MIDDLE + side * (MIDDLE - n * width), MIDDLE + side * (MIDDLE - n * width * 0.72)
            to, foot_to = MIDDLE + side * (MIDDLE - (n + 1) * width), MIDDLE + side * (MIDDLE - (n + 1) * width * 0.72)
            yield Polygon(((top, 0), (to, 0), (foot_to, FLOOR + 70), (foot, FLOOR + 70)), colour)
    for n in range(9):
        colour = mix(inks.middle, inks.night, 25 + 8 * (n % 2))
        yield Ellipse(66.7 + n * 133.3, 0, 80, 62 + seed[2] % 24, colour)


def _arches(seed: bytes, inks: Inks) -> Iterator[Shape]:
    count, step = 5, 74 + seed[0] % 16
    for n in range(count):
        colour = mix(inks.deep, inks.light, 8 + n * 21) if seed[1] % 2 else mix(inks.night, inks.middle, 15 + n * 20)
        yield Ellipse(MIDDLE, FLOOR + 10, 640 - n * step * 1.35, 460 - n * step, colour)
    yield Ellipse(MIDDLE, FLOOR + 10, 130 + seed[2] % 45, 105 + seed[3] % 30, inks.light)
    yield from _floor(inks)


def _waves(seed: bytes, inks: Inks) -> Iterator[Shape]:
    yield Ellipse(300 + seed[0] * 2.3, 130 + seed[1] % 60, 74, 74, inks.light)
    for n in range(4):
        base, high, turn = 200 + 74 * n, 34 + seed[n + 2] % 36, seed[n + 6] / 40
        bends = math.tau / (560 + seed[n + 3])
        line = [(x, round(base + high * math.sin(turn + x * bends), 1)) for x in range(0, WIDTH + 1, 60)]
        yield Polygon((*line, (WIDTH, HEIGHT), (0, HEIGHT)), mix(inks.light, inks.deep, 25 + 22 * n))


def _bars(seed: bytes, inks: Inks) -> Iterator[Shape]:
    """Loudness, as a wall of light behind the stage."""
    count, width = 15, WIDTH / 15
    for n in range(count):
        far = abs(n - count // 2) / (count // 2)
        top = FLOOR - 60 - (1 - far * far) * 190 - seed[n % 13] * 0.42
        colour = mix(inks.light, inks.deep, round(far * 60) + seed[(n + 5) % 13] % 30)
        yield Column(n * width + 7, max(24.0, round(top, 1)), width - 14, FLOOR + 20, colour)
    yield from _floor(inks)


SCENES: Final[tuple[Callable[[bytes, Inks], Iterator[Shape]], ...]] = (
    _beams,
    _disc,
    _curtain,
    _arches,
    _waves,
    _bars,
)


def _box(x: float, y: float, to_x: float, to_y: float, colour: str) -> Polygon:
    return Polygon(((x, y), (to_x, y), (to_x, to_y), (x, to_y)), colour)


@lru_cache(MAX_CACHED)
def poster_svg(event_id: str) -> Markup:
    """The poster for a page. It is decoration: screen readers pass over it."""
    poster = poster_of(event_id)
    shapes = "".join(map(_svg, poster.shapes))
    return Markup(  # noqa: S704 - numbers and colours of our own
        f'<svg class="art" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="xMidYMax slice" aria-hidden="true">'
        f'<path fill="{poster.background}" d="M0 0h{WIDTH}v{HEIGHT}H0z"/>{shapes}</svg>'
    )


def _svg(shape: Shape) -> str:
    match shape:
        case Ellipse(x, y, rx, ry, colour):
            return f'<ellipse cx="{x:.4g}" cy="{y:.4g}" rx="{rx:.4g}" ry="{ry:.4g}" fill="{colour}"/>'
        case Polygon(points, colour):
            path = "L".join(f"{x:.4g} {y:.4g}" for x, y in points)
            return f'<path fill="{colour}" d="M{path}z"/>'
        case Column(x, top, width, bottom, colour):
            half = width / 2
            arc = f"a{half:.4g} {half:.4g} 0 0 1 {width:.4g} 0"
            return f'<path fill="{colour}" d="M{x:.4g} {bottom:.4g}V{top + half:.4g}{arc}V{bottom:.4g}z"/>'


def poster_png(event_id: str, scale: int = 2) -> bytes:
    """The poster as a picture file. Takes some 100 ms: not on the event loop. It is drawn `scale` times as large and
    made smaller, so that its edges are smooth; with 1 it comes in half its size."""
    from PIL import Image, ImageDraw  # not at the start of a server

    poster = poster_of(event_id)
    image = Image.new("RGB", (WIDTH * scale, HEIGHT * scale), poster.background)
    draw = ImageDraw.Draw(image)
    for shape in poster.shapes:
        match shape:
            case Ellipse(x, y, rx, ry, colour):
                draw.ellipse([scale * one for one in (x - rx, y - ry, x + rx, y + ry)], fill=colour)
            case Polygon(points, colour):
                draw.polygon([(x * scale, y * scale) for x, y in points], fill=colour)
            case Column(x, top, width, bottom, colour):
                edge = [scale * one for one in (x, top, x + width, bottom + width)]
                draw.rounded_rectangle(edge, width * scale / 2, fill=colour)
    body = io.BytesIO()
    image.reduce(2).quantize(64, dither=Image.Dither.NONE).save(body, "PNG", optimize=True)
    return body.getvalue()
