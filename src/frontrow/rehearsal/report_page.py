"""Parts of the reports: one self-contained HTML page with tiles, plots as SVG and tables, light and dark."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 560, 220, 64, 28, 12
TICKS = 4

STYLE = """
:root { color-scheme: light dark; --ink: #1b1d23; --soft: #5d6270; --line: #d8dbe2; --page: #fff; --card: #f6f7f9;
  --a: #1f5fd0; --b: #c2410c; --c: #15803d; }
@media (prefers-color-scheme: dark) { :root { --ink: #eceef3; --soft: #a4aab8; --line: #3a3f4b; --page: #14161b;
  --card: #1d2027; --a: #7fb0ff; --b: #ff9b6a; --c: #6ddc94; } }
body { margin: 0 auto; max-width: 76rem; padding: 2rem 1rem 4rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.05rem; margin: 0 0 .5rem; } p { margin: .3rem 0; }
.soft { color: var(--soft); } .figures { display: grid; gap: .8rem; margin: 1.4rem 0;
  grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); }
.figure, .plot, .advice { background: var(--card); border-radius: .6rem; padding: .9rem 1rem; }
.figure b { display: block; font-size: 1.35rem; } .plots { display: grid; gap: .8rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
.advice { margin: 1.4rem 0; } .advice li { margin: .3rem 0; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--soft); font-size: 12px; }
.wide { overflow-x: auto; } table { border-collapse: collapse; }
th, td { padding: .2rem .9rem .2rem 0; text-align: right; }
th:first-child, td:first-child { text-align: left; } th { color: var(--soft); font-weight: 500; }
td { border-top: 1px solid var(--line); font-variant-numeric: tabular-nums; }
.grid { stroke: var(--line); } polyline { fill: none; stroke-width: 2; }
.key { display: inline-block; width: .8rem; height: .8rem; border-radius: .2rem; margin: 0 .3rem 0 .8rem; }
"""
COLOURS = ("var(--a)", "var(--b)", "var(--c)")


@dataclass(frozen=True, slots=True)
class PlotCurve:
    name: str
    xs: Sequence[float]
    ys: Sequence[float]


def write_page(title: str, below: str, tiles: Sequence[tuple[str, str]], *parts: str) -> str:
    """The page as text: a heading, tiles of (what, figure), then the parts."""
    heading = html.escape(title)
    shown = "".join(
        f'<div class="figure"><b>{html.escape(value)}</b><span class="soft">{html.escape(name)}</span></div>'
        for name, value in tiles
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{heading}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head><body>'
        f"<h1>{heading}</h1><p class=soft>{html.escape(below)}</p>"
        f'<div class="figures">{shown}</div>{"".join(parts)}</body></html>\n'
    )


def draw_plots(*plots: str) -> str:
    """Plots side by side."""
    return f'<div class="plots">{"".join(plots)}</div>'


def write_list(title: str, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f'<div class="advice"><h2>{html.escape(title)}</h2><ul>{items}</ul></div>'


def write_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; every column but the first is of numbers."""
    top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="advice"><h2>{html.escape(title)}</h2><div class="wide"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></div>"
    )


def draw_plot(title: str, below: str, *curves: PlotCurve) -> str:
    """A plot of curves over one axis; `below` says what the axis is."""
    xs = [x for curve in curves for x in curve.xs] or [0.0]
    across = _ticks(min(xs), max(xs))
    upwards = _ticks(0.0, max([y for curve in curves for y in curve.ys] or [0.0]))
    low_x, high_x, high_y = min(xs), max(max(xs), min(xs) + 1e-9), upwards[-1]

    def right(x: float) -> float:
        return LEFT + (x - low_x) / (high_x - low_x) * (WIDTH - LEFT - 16)

    def down(y: float) -> float:
        return HEIGHT - BOTTOM - y / high_y * (HEIGHT - BOTTOM - TOP)

    lines = []
    for y in upwards:
        lines.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - 8}" y1="{down(y):.1f}" y2="{down(y):.1f}"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{down(y) + 4:.1f}" text-anchor="end">{_short(y)}</text>')
    for x in across:
        if low_x <= x <= high_x:
            lines.append(f'<text x="{right(x):.1f}" y="{HEIGHT - 8}" text-anchor="middle">{_short(x)}</text>')
    for curve, colour in zip(curves, COLOURS, strict=False):
        points = " ".join(f"{right(x):.1f},{down(y):.1f}" for x, y in zip(curve.xs, curve.ys, strict=True))
        lines.append(f'<polyline points="{points}" style="stroke:{colour}"/>')
    keys = "".join(
        f'<span class="key" style="background:{colour}"></span>{html.escape(curve.name)}'
        for curve, colour in zip(curves, COLOURS, strict=False)
    )
    keys = f"<p class=soft>{html.escape(below)}{keys if len(curves) > 1 else ''}</p>"
    return _card(title, "".join(lines), keys)


def draw_bars(title: str, rows: Sequence[tuple[str, float]]) -> str:
    """Two or three shares in percent."""
    lines = []
    for index, (name, value) in enumerate(rows):
        y = TOP + 20 + index * 70
        width = value / 100 * (WIDTH - 24)
        lines.append(f'<text x="8" y="{y}">{html.escape(name)}: {value:.1f} %</text>')
        lines.append(f'<rect class="grid" x="8" y="{y + 8}" width="{WIDTH - 24}" height="22" fill="none"/>')
        lines.append(f'<rect x="8" y="{y + 8}" width="{width:.1f}" height="22" style="fill:{COLOURS[index]}"/>')
    return _card(title, "".join(lines), "")


def _card(title: str, drawing: str, below: str) -> str:
    heading = html.escape(title)
    return (
        f'<div class="plot"><h2>{heading}</h2><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{heading}">'
        f"{drawing}</svg>{below}</div>"
    )


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from below `low` to above `high`."""
    rough = max(high - low, 1e-9) / TICKS
    size = 10.0 ** floor(log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough)
    first, last = floor(low / step), ceil(high / step - 1e-9)
    return [step * number for number in range(first, max(last, first + 1) + 1)]


def _short(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
