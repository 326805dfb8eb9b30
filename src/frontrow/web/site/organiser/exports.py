"""Exports: bookings, tickets, attendees and revenue as CSV, streamed row by row.

Each export is recorded in the audit, because it contains personal data.
"""

from collections.abc import AsyncIterator
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.response import Stream

from frontrow.boxoffice.model.event_changes import Change
from frontrow.boxoffice.organising.exports import checked_kind
from frontrow.web.api import FromCaller, FromPlatform
from frontrow.web.api.access import Access, own_event
from frontrow.web.api.organiser.common import editor_of
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render
from frontrow.web.site.routes import page

Asked = Request[Any, Any, Any]
PATH: Final = "/organiser/events/{event_id:str}/exports"
TABLES: Final = {
    "bookings": (N_("Bookings"), N_("Every booking with its state, email, seats and price.")),
    "tickets": (N_("Tickets"), N_("Every ticket with its seat, and when it was admitted.")),
    "attendees": (N_("Attendees"), N_("Who can be admitted: email and seat of every valid ticket.")),
    "revenue": (N_("Revenue"), N_("What was paid, refunded and kept, per booking.")),
}


@page(PATH, "exports", Access.staff("bookings:read"))
async def exports(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """What can be downloaded."""
    event = await own_event(platform, caller, event_id)
    figures = "figures:read" in caller.permissions
    return render(request, "organiser/exports.html", of_event=event, tables=TABLES, figures=figures)


@page(f"{PATH}/{{file:str}}", "export_table", Access.staff("bookings:read"))
async def table(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], file: FromPath[str]) -> Stream:
    """One table."""
    event = await own_event(platform, caller, event_id)
    kind = checked_kind(file.removesuffix(".csv"))
    plan = await platform.organiser.organise.venues.plan(event.plan_hash)
    await platform.ledger.organiser.note(
        Change(editor_of(caller), "export", event.id, platform.clock(), {"table": kind})
    )

    async def lines() -> AsyncIterator[bytes]:
        yield "\ufeff".encode()  # spreadsheets recognise UTF-8 by this mark
        async for part in platform.organiser.exports.table(kind, event, plan.seat_ids):
            yield part.encode()

    headers = {
        "content-disposition": f'attachment; filename="{kind}-{event.id}.csv"',
        "cache-control": "private, no-store",
        "x-content-type-options": "nosniff",
    }
    return Stream(lines(), headers=headers, media_type="text/csv; charset=utf-8")


ROUTES: list[HTTPRouteHandler] = [exports, table]
