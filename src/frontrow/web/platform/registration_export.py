"""The registrations of a presale as a CSV file."""

from litestar import Response

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.organiser.model.csv_cells import to_csv
from frontrow.web.http.access import Caller, editor_of
from frontrow.web.http.bodies.json_values import time_text
from frontrow.web.platform.platform import Platform


async def registrations_file(platform: Platform, caller: Caller, event: Event) -> Response[bytes]:
    """The table. The export is recorded in the audit, because it contains people's addresses."""
    rows = await platform.presale.presales.export(event)
    await platform.organiser.log.note(editor_of(caller), "export", event.id, {"table": "registrations"})
    header = ("registration", "email", "language", "state", "confirmed_at", "code")
    table = [(*(row[name] for name in header[:4]), time_text(row["confirmed_at_us"]), row["code"]) for row in rows]
    headers = {
        "content-disposition": f'attachment; filename="registrations-{event.id}.csv"',
        "cache-control": "private, no-store",
        "x-content-type-options": "nosniff",
    }
    return Response(to_csv(header, table).encode("utf-8-sig"), headers=headers, media_type="text/csv")
