"""The answer with the registrations of a presale as a CSV file, for the API and the pages."""

from litestar import Response

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.presale.registration_export import registrations_csv
from frontrow.web.http.access import Caller, editor_of
from frontrow.web.platform.platform import Platform


async def registrations_file(platform: Platform, caller: Caller, event: Event) -> Response[bytes]:
    """The table. The export is recorded in the audit, because it contains people's addresses."""
    rows = await platform.presale.presales.export(event)
    await platform.organiser.log.note(editor_of(caller), "export", event.id, {"table": "registrations"})
    headers = {
        "content-disposition": f'attachment; filename="registrations-{event.id}.csv"',
        "cache-control": "private, no-store",
        "x-content-type-options": "nosniff",
    }
    return Response(registrations_csv(rows), headers=headers, media_type="text/csv")
