"""The figures of a room over time: tiles, a picture of the line, and the same as CSV."""

from datetime import timedelta
from typing import Any, Final

from litestar import Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.waitingroom.console.model.figures import Figure, as_csv, summary, waits_s
from frontrow.web.site.console.console import Asked
from frontrow.web.site.console.form_pages import PageCall, form_page
from frontrow.web.site.console.rooms import show_room
from frontrow.web.site.console.routes import FromConsole, FromOwner, page
from frontrow.web.site.languages import N_

SPANS: Final = {
    "hour": (N_("Last hour"), timedelta(hours=1)),
    "day": (N_("Last 24 hours"), timedelta(days=1)),
    "month": (N_("Last 30 days"), timedelta(days=30)),
}
MOST_FIGURES: Final = 300_000
MOST_SHOWN: Final = 24
WIDTH, HEIGHT = 600, 160


@form_page("/console/rooms/{name:str}/figures")
async def figures_page(call: PageCall) -> Response[bytes]:
    """How many people waited, came in and did not come, and how long they waited."""
    span = call.request.query_params.get("span", "day")
    span = span if span in SPANS else "day"
    call.console.rooms.plan(call.room)
    figures = await _figures(call.console, call.room, span)
    rows = list(zip(figures, waits_s(figures), strict=True))
    step = max(1, -(-len(rows) // MOST_SHOWN))
    return show_room(
        call,
        "console/figures.html",
        span=span,
        spans=SPANS,
        summary=summary(figures),
        rows=rows[::-step][:MOST_SHOWN],
        waiting=line_of(figures, "waiting"),
        active=line_of(figures, "active"),
        most=max((max(one.waiting, one.active) for one in figures), default=0),
        size=(WIDTH, HEIGHT),
    )


async def _figures(console: Any, name: str, span: str) -> list[Figure]:
    after_us = console.room.clock() - int(SPANS[span][1].total_seconds() * 1_000_000)
    found: list[Figure] = await console.book.figures(name, after_us, MOST_FIGURES)
    return found


def line_of(figures: list[Figure], name: str) -> str:
    """The points of an SVG polyline: one figure over time, both lines on the same scale."""
    if len(figures) < 2:
        return ""
    most = max(1, max(max(one.waiting, one.active) for one in figures))
    start_us, span_us = figures[0].at_us, max(1, figures[-1].at_us - figures[0].at_us)
    step = max(1, len(figures) // WIDTH)
    shown = [*figures[:-1:step], figures[-1]]
    return " ".join(
        f"{(one.at_us - start_us) * WIDTH // span_us},{HEIGHT - getattr(one, name) * HEIGHT // most}" for one in shown
    )


@page("/console/rooms/{name:str}/figures.csv")
async def figures_file(request: Asked, console: FromConsole, owner: FromOwner, name: FromPath[str]) -> Response[bytes]:
    """The figures as CSV."""
    span = request.query_params.get("span", "month")
    console.rooms.plan(name)
    figures = await _figures(console, name, span if span in SPANS else "month")
    headers = {
        "content-disposition": f'attachment; filename="{name}-figures.csv"',
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
    }
    return Response(as_csv(figures).encode(), headers=headers, media_type="text/csv; charset=utf-8")


CONSOLE_ROUTES: list[HTTPRouteHandler] = [figures_page.route, figures_file]
