"""Exports: bookings, tickets, attendees, revenue and disputes as CSV, streamed row by row, or as XLSX, from a file.

Each export is recorded in the audit, because it contains personal data.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.response import Stream

from frontrow.boxoffice.organiser.exports import checked_kind
from frontrow.core.errors import InvalidInput
from frontrow.web.http.access import Access, editor_of
from frontrow.web.platform.event_access import own_event, zone_of
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.reports.sales_reports import XLSX, download_headers
from frontrow.web.site.render import render
from frontrow.web.site.routes import go_to, page

Asked = Request[Any, Any, Any]
PATH: Final = "/organiser/events/{event_id:str}/exports"
PIECE_BYTES: Final = 256 * 1024
TABLES: Final = {
    "bookings": (N_("Bookings"), N_("Every booking with its state, email, seats and price.")),
    "tickets": (N_("Tickets"), N_("Every ticket with its seat, and when it was admitted.")),
    "attendees": (N_("Attendees"), N_("Who can be admitted: email and seat of every valid ticket.")),
    "revenue": (N_("Revenue"), N_("What was paid, refunded and kept, per booking.")),
    "disputes": (N_("Disputes"), N_("Payments that buyers’ banks took back, with their state and amount.")),
}


@page(PATH, "exports", Access.staff("bookings:read"))
async def exports(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """What can be downloaded."""
    event = await own_event(platform, caller, event_id)
    figures = "figures:read" in caller.permissions
    too_long = request.query_params.get("done") == "too_long"
    return render(request, "organiser/exports.html", of_event=event, tables=TABLES, figures=figures, too_long=too_long)


@page(f"{PATH}/{{file:str}}", "export_table", Access.staff("bookings:read"))
async def table(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], file: FromPath[str]
) -> Stream | Response[bytes]:
    """One table."""
    event = await own_event(platform, caller, event_id)
    name, _, ending = file.partition(".")
    kind = checked_kind(name if ending in ("csv", "xlsx") else file)
    plan = await platform.organiser.organise.venues.plan(event.plan_hash)
    await platform.organiser.log.note(editor_of(caller), "export", event.id, {"table": kind})
    headers = download_headers(f"{kind}-{event.id}.{ending}")
    if ending == "csv":
        parts = platform.organiser.exports.table(kind, event, plan.seat_ids)
        first = await anext(parts)  # before the headers, which say how old it is
        return Stream(_csv_lines(first, parts), headers=headers, media_type="text/csv; charset=utf-8")
    folder = await asyncio.to_thread(tempfile.TemporaryDirectory, prefix="frontrow-")
    path = Path(folder.name) / "table.xlsx"
    try:
        zone = await zone_of(platform, event)
        await platform.organiser.exports.workbook(kind, event, plan.seat_ids, zone, path)
    except InvalidInput:
        await asyncio.to_thread(folder.cleanup)
        return go_to(f"/organiser/events/{event.id}/exports?done=too_long")
    except BaseException:
        folder.cleanup()
        raise
    return Stream(_pieces(path, folder), headers=headers, media_type=XLSX)


async def _csv_lines(first: str, parts: AsyncIterator[str]) -> AsyncIterator[bytes]:
    yield ("\ufeff" + first).encode()  # spreadsheets recognise UTF-8 by this mark
    async for part in parts:
        yield part.encode()


async def _pieces(path: Path, folder: "tempfile.TemporaryDirectory[str]") -> AsyncIterator[bytes]:
    """The file piece by piece; its folder goes with the last one."""
    try:
        with path.open("rb") as file:
            while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
                yield piece
    finally:
        folder.cleanup()


ROUTES: list[HTTPRouteHandler] = [exports, table]
