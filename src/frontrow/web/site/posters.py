"""A poster for an event that has no picture: shapes and colours that follow from its id, so events differ and stay.

A poster is a list of filled shapes on a canvas of 1200 by 630, the size that social networks show. It is drawn as SVG
in pages, and as PNG for those who share the page. Pure; the same id always gives the same bytes.
"""

import colorsys
import hashlib
import io
import math
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from markupsafe import Markup

WIDTH, HEIGHT = 1200, 630
MAX_CACHED: Final = 2_048
Point: TypeAlias = tuple[float, float]


class Circle(NamedTuple):
    x: float
    y: float
    radius: float
    colour: str


class Polygon(NamedTuple):
    points: tuple[Point, ...]
    colour: str


class Poster(NamedTuple):
    background: str
    shapes: tuple[Circle | Polygon, ...]


def poster_of(event_id: str) -> Poster:
    """The poster of an event."""
    seed = hashlib.blake2b(event_id.encode(), digest_size=16).digest()
    hue, second = seed[0] / 256, (seed[0] + 14 + seed[1] % 45) / 256
    colours = [_colour(hue, 0.30), *(_colour(second if n % 2 else hue, 0.38 + 0.05 * n) for n in range(6))]
    draw = (_rings, _bars, _dots, _rays, _hills, _steps)[seed[2] % 6]
    return Poster(colours[0], tuple(draw(seed[3:], colours[1:])))


def _colour(hue: float, lightness: float) -> str:
    red, green, blue = colorsys.hls_to_rgb(hue % 1, lightness, 0.55)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def _rings(seed: bytes, colours: list[str]) -> list[Circle | Polygon]:
    x, y, step = 150 + seed[0] * 3.5, 120 + seed[1] * 1.6, 70 + seed[2] % 50
    return [Circle(x, y, step * (8 - n), colours[n % 6]) for n in range(8)]


def _bars(seed: bytes, colours: list[str]) -> list[Circle | Polygon]:
    width, lean = 60 + seed[0] % 80, seed[1] * 3 - 380
    starts = range(-800, WIDTH + 800, 2 * width)
    return [
        Polygon(((x, 0), (x + width, 0), (x + width + lean, HEIGHT), (x + lean, HEIGHT)), colours[n % 6])
        for n, x in enumerate(starts)
    ]


def _dots(seed: bytes, colours: list[str]) -> list[Circle | Polygon]:
    step = 130 + seed[0] % 60
    return [
        Circle(x + step / 2 * (row % 2), y, 12 + (seed[(row + column) % 12] % (step // 3)), colours[(row + column) % 6])
        for row, y in enumerate(range(40, HEIGHT + step, step))
        for column, x in enumerate(range(20, WIDTH + step, step))
    ]


def _rays(seed: bytes, colours: list[str]) -> list[Circle | Polygon]:
    x, y, count = 200 + seed[0] * 3.1, HEIGHT - seed[1] * 1.2, 14 + seed[2] % 12
    turn, far = math.tau / count, 1_600
    shapes: list[Circle | Polygon] = []
    for n in range(count):
        first, last = n * turn, (n + 0.5) * turn
        ends = [(round(x + far * math.cos(a), 1), round(y + far * math.sin(a), 1)) for a in (first, last)]
        shapes.append(Polygon(((x, y), *ends), colours[n % 6]))
    return [*shapes, Circle(x, y, 90 + seed[3] % 60, colours[5])]


def _hills(seed: bytes, colours: list[str]) -> list[Circle | Polygon]:
    sun = Circle(150 + seed[0] * 3.5, 90 + seed[1] % 120, 50 + seed[2] % 50, colours[5])
    hills = [
        Circle(seed[3 + n] * 5 - 60, HEIGHT + 160 + 30 * (n % 3), 300 + seed[6 + n % 6] * 1.1, colours[n % 5])
        for n in range(6)
    ]
    return [sun, *hills]


def _steps(seed: bytes, colours: list[str]) -> list[Circle | Polygon]:
    width = 80 + seed[0] % 60
    return [
        Polygon(((x, HEIGHT), (x, top), (x + width - 12, top), (x + width - 12, HEIGHT)), colours[n % 6])
        for n, x in enumerate(range(0, WIDTH, width))
        for top in (80 + seed[(n + 1) % 13] * 1.8,)
    ]


@lru_cache(MAX_CACHED)
def poster_svg(event_id: str) -> Markup:
    """The poster for a page. It is decoration: screen readers pass over it."""
    poster = poster_of(event_id)
    shapes = "".join(map(_svg, poster.shapes))
    return Markup(  # noqa: S704 - numbers and colours of our own
        f'<svg class="art" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="xMidYMid slice" aria-hidden="true">'
        f'<path fill="{poster.background}" d="M0 0h{WIDTH}v{HEIGHT}H0z"/>{shapes}</svg>'
    )


def _svg(shape: Circle | Polygon) -> str:
    if isinstance(shape, Circle):
        return f'<circle cx="{shape.x:g}" cy="{shape.y:g}" r="{shape.radius:g}" fill="{shape.colour}"/>'
    points = " ".join(f"{x:g},{y:g}" for x, y in shape.points)
    return f'<polygon points="{points}" fill="{shape.colour}"/>'


def poster_png(event_id: str) -> bytes:
    """The poster as a picture file. Takes some 20 ms: not on the event loop."""
    from PIL import Image, ImageDraw  # not at the start of a server

    poster = poster_of(event_id)
    image = Image.new("RGB", (WIDTH, HEIGHT), poster.background)
    draw = ImageDraw.Draw(image)
    for shape in poster.shapes:
        if isinstance(shape, Circle):
            edge = (shape.x - shape.radius, shape.y - shape.radius, shape.x + shape.radius, shape.y + shape.radius)
            draw.ellipse(edge, fill=shape.colour)
        else:
            draw.polygon(shape.points, fill=shape.colour)
    body = io.BytesIO()
    image.quantize(64).save(body, "PNG", optimize=True)
    return body.getvalue()
