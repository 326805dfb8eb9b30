"""A plan as an SVG picture. Each colour is one path of round dots, so 50,000 seats make a small file that draws fast.

Seats are coloured by price tier, or by state (free, held, sold, blocked) when states are given.
"""

from collections.abc import Sequence
from xml.sax.saxutils import escape

from frontrow.boxoffice.seats.model.venues import Plan, Section, SectionKind

PALETTE = ("#3565d6", "#d9822b", "#2f9e6e", "#9d4edd", "#c2255c", "#0b7285", "#846a2b", "#5c677d")
STATE_COLOURS = {"free": "#2f9e6e", "held": "#e0a100", "sold": "#b9bec9", "blocked": "#4a4f5c"}
DOT = 7.0


def palette_colours(plan: Plan) -> dict[str, str]:
    """A colour per price tier of the plan."""
    return {tier: PALETTE[number % len(PALETTE)] for number, tier in enumerate(plan.tiers)}


def to_svg(plan: Plan, states: Sequence[int] | None = None) -> str:
    """The plan as an SVG document."""
    if states is None:
        colours = palette_colours(plan)
        kinds = [seat.tier for seat in plan.seats]
    else:
        colours = STATE_COLOURS
        names = list(STATE_COLOURS)
        kinds = [names[state] for state in states]
    width, height = plan.width, plan.height + 40
    dots = _dots(plan, kinds)
    areas = [_area(plan, number, section, kinds, colours) for number, section in enumerate(plan.sections)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="sans-serif">',
        f"<title>{escape(plan.name)}, {plan.size:,} seats</title>",
        f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>',
        *_decor(plan),
        *(part for part in areas if part),
        *(
            f'<path d="{path}" fill="none" stroke="{colours[kind]}" stroke-width="{DOT:g}" stroke-linecap="round"/>'
            for kind, path in dots.items()
        ),
        *_labels(plan),
        *_legend(plan, colours, kinds),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _dots(plan: Plan, kinds: Sequence[str]) -> dict[str, str]:
    """For each kind of seat, the path that draws all of them."""
    marks: dict[str, list[str]] = {}
    for number, section in enumerate(plan.sections):
        if section.kind is SectionKind.SEATED:
            for index in plan.section_range(number):
                seat = plan.seats[index]
                marks.setdefault(kinds[index], []).append(f"M{seat.x:.6g} {seat.y:.6g}h0")
    return {kind: "".join(each) for kind, each in marks.items()}


def _area(plan: Plan, number: int, section: Section, kinds: Sequence[str], colours: dict[str, str]) -> str:
    """A general-admission area as a box with its capacity, coloured as free if any place is free."""
    if section.kind is SectionKind.SEATED or section.shape is None:
        return ""
    box = section.shape
    x, y, w, h = (getattr(box, name) for name in ("x", "y", "width", "height"))
    area_kinds = [kinds[index] for index in plan.section_range(number)]
    kind = "free" if "free" in area_kinds else area_kinds[0]
    fill = f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="6" fill="{colours[kind]}" opacity="0.35"/>'
    text = f"{section.name or section.id}: {section.size:,}"
    return fill + _text(x + w / 2, y + h / 2, text, 14)


def _decor(plan: Plan) -> list[str]:
    parts = []
    for item in plan.decor:
        x, y, w, h = item.x, item.y, item.width, item.height
        if item.shape == "ellipse":
            middle = f'cx="{x + w / 2:g}" cy="{y + h / 2:g}"'
            parts.append(f'<ellipse {middle} rx="{w / 2:g}" ry="{h / 2:g}" fill="#eceef2"/>')
        elif item.shape == "rect":
            parts.append(f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="8" fill="#dfe2e8"/>')
        if item.label:
            size = max(6, round(h / 1.25)) if item.shape == "text" and h else 18
            parts.append(_text(x + w / 2, y + h / 2, item.label, size))
    return parts


def _labels(plan: Plan) -> list[str]:
    """The id of each seated section, in its middle."""
    parts = []
    for section in plan.sections:
        if section.kind is SectionKind.SEATED:
            row = section.rows[len(section.rows) // 2].seats
            if row:
                middle = row[len(row) // 2]
                parts.append(_text(middle.x, middle.y, section.id, 20, halo=True))
    return parts


def _legend(plan: Plan, colours: dict[str, str], kinds: Sequence[str]) -> list[str]:
    parts, x = [], 20.0
    size = max(12.0, min(24.0, plan.width / 60))
    for kind, colour in colours.items():
        text = f"{kind}: {kinds.count(kind):,}"
        parts.append(f'<circle cx="{x:g}" cy="{plan.height + 15:g}" r="{size / 2:g}" fill="{colour}"/>')
        parts.append(
            f'<text x="{x + size:g}" y="{plan.height + 15 + size / 3:g}" font-size="{size:g}">{escape(text)}</text>'
        )
        x += size * (2.5 + 0.62 * len(text))
    return parts


def _text(x: float, y: float, text: str, size: int, halo: bool = False) -> str:
    edge = ' stroke="#ffffff" stroke-width="5" paint-order="stroke"' if halo else ""
    place = f'x="{x:.6g}" y="{y:.6g}" font-size="{size}"'
    return f'<text {place} text-anchor="middle" dominant-baseline="middle"{edge}>{escape(text)}</text>'
