"""Reports (B13): sales by day, price and channel, refunds, check-ins; as charts, tables and files, and by mail.

Charts are drawn by the server as SVG. Each has its table beside it, so nobody needs the picture.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.organiser.exports import HEADERS
from frontrow.boxoffice.organiser.model.csv_cells import to_csv
from frontrow.boxoffice.organiser.model.report_mails import ReportFrequency
from frontrow.boxoffice.organiser.model.reports import EventReport, Table, report_tables
from frontrow.boxoffice.organiser.workbooks import WorkbookFile
from frontrow.boxoffice.payments.model.disputes import DisputeState, sum_by_state
from frontrow.core.errors import NotFound
from frontrow.web.http.access import Access, editor_of
from frontrow.web.platform.event_access import own_event, zone_of
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
PATH: Final = "/organiser/events/{event_id:str}/reports"
CHART_WIDTH, CHART_HEIGHT = 1000, 160
MAX_BAR: Final = 60
SHOWN_DAYS: Final = 92  # in the chart and the table; files have all of them
CHANNEL_NAMES: Final = {
    "online": N_("General sale"),
    "presale": N_("Presale"),
    "waitlist": N_("Waitlist"),
    "box_office": N_("Box office"),
    "guests": N_("Free (guest list)"),
}
FREQUENCIES: Final = {"": N_("Never"), "daily": N_("Every morning"), "weekly": N_("Every Monday morning")}
DONE: Final = {"mail": N_("Saved.")}
MAX_DISPUTES: Final = 10_000
XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


@page(PATH, "reports", Access.staff("figures:read"))
async def reports(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """One event's report."""
    event = await own_event(platform, caller, event_id)
    report = await platform.organiser.reports.of(event, await zone_of(platform, event))
    chosen = await platform.organiser.report_mails.chosen(caller.id, event)
    disputes = await platform.ledger.payments.disputes(caller.organiser_id, event.id, MAX_DISPUTES)
    return render(
        request,
        "organiser/reports.html",
        of_event=event,
        report=report,
        disputed=sum_by_state(disputes, DisputeState.OPEN),
        lost=sum_by_state(disputes, DisputeState.LOST),
        days=report.days[-SHOWN_DAYS:],
        day_bars=_bars([one.sold_minor for one in report.days[-SHOWN_DAYS:]]),
        check_in_line=_line(report),
        tier_names={tier.key: tier.shown_name for tier in event.tiers},
        channel_names=CHANNEL_NAMES,
        frequencies=FREQUENCIES,
        chosen=chosen.frequency.value if chosen else "",
        is_member=caller.session is not None,
        exports="bookings:read" in caller.permissions,
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


def _bars(values: list[int]) -> list[tuple[float, float, float, float]]:
    """(x, y, width, height) of one bar per value, in the chart's units."""
    most, step = max([1, *values]), CHART_WIDTH / max(1, len(values))
    width = min(step * 0.8, MAX_BAR)
    return [
        (
            round((at + 0.5) * step - width / 2, 2),
            round(CHART_HEIGHT * (1 - value / most), 2),
            round(width, 2),
            round(CHART_HEIGHT * value / most, 2),
        )
        for at, value in enumerate(values)
    ]


def _line(report: EventReport) -> str:
    """The points of the admissions over time, up to all tickets; empty before the second step."""
    steps, tickets = report.check_ins.steps, max(1, report.check_ins.tickets)
    if len(steps) < 2:
        return ""
    first, span = steps[0][0], steps[-1][0] - steps[0][0]
    return " ".join(
        f"{CHART_WIDTH * (at_us - first) / span:.1f},{CHART_HEIGHT * (1 - admitted / tickets):.1f}"
        for at_us, admitted in steps
    )


@page(f"{PATH}/{{file:str}}", "report_file", Access.staff("figures:read"))
async def report_file(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], file: FromPath[str]
) -> Response[bytes]:
    """One table as CSV, or all of them as a workbook."""
    event = await own_event(platform, caller, event_id)
    zone = await zone_of(platform, event)
    tables = {
        table.name: table
        for table in report_tables(
            await platform.organiser.reports.of(event, zone), {tier.key: tier.shown_name for tier in event.tiers}
        )
    }
    rows = await platform.organiser.exports.disputes(event)
    tables["disputes"] = Table("disputes", HEADERS["disputes"], rows)
    name, _, kind = file.partition(".")
    if kind == "xlsx" and name == "report":
        body, media_type = await asyncio.to_thread(_workbook, list(tables.values()), zone), XLSX
    elif kind == "csv" and name in tables:
        table = tables[name]
        body, media_type = ("\ufeff" + to_csv(table.header, table.rows)).encode(), "text/csv"
    else:
        files = ", ".join(["report.xlsx", *(f"{each}.csv" for each in tables)])
        raise NotFound(f"there is no report {file[:30]}; there are {files}")
    return Response(body, headers=download_headers(f"{name}-{event.id}.{kind}"), media_type=media_type)


def _workbook(tables: list[Table], zone: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="frontrow-") as folder:
        path = Path(folder) / "report.xlsx"
        file = WorkbookFile(path, zone)
        for table in tables:
            file.begin_sheet(table.name, table.header)
            file.add_rows(table.rows)
        file.close()
        return path.read_bytes()


def download_headers(name: str) -> dict[str, str]:
    """The headers of a file that a browser saves."""
    return {
        "content-disposition": f'attachment; filename="{name}"',
        "cache-control": "private, no-store",
        "x-content-type-options": "nosniff",
    }


@action(f"{PATH}/mail", "report_mail", Access.staff("figures:read"))
async def mail(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Get this report by mail, or no longer."""
    event: Event = await own_event(platform, caller, event_id)
    wanted = form.one("frequency", 10)
    frequency = ReportFrequency(wanted) if wanted in ("daily", "weekly") else None
    await platform.organiser.report_mails.choose(caller.id, event, frequency, words_for(request).language)
    detail = {"frequency": wanted or "never"}
    await platform.organiser.log.note(editor_of(caller), "choose_report_mail", event.id, detail)
    return go_to(f"/organiser/events/{event.id}/reports?done=mail")


ROUTES: list[HTTPRouteHandler] = [reports, report_file, mail]
