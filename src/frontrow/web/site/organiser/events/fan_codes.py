"""Verified-Fan codes of an event: generated here and downloaded as a file, or imported by the organiser."""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.core.errors import InvalidInput, NotFound
from frontrow.web.http.access import Access, Caller, editor_of
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.fan_codes import MAX_BATCH
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.form_fields import NEEDED, Errors, Reading, Typed
from frontrow.web.site.organiser.refusal_sentences import sentence_of
from frontrow.web.site.render import PRIVATE, render
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
CODES: Final = "/organiser/events/{event_id:str}/codes"
ACCESS: Final = Access.staff("codes:write")
MAX_TEXT_CHARS: Final = 4_000_000
DONE: Final = {
    "made": N_("The codes are generated. Download them as a file."),
    "imported": N_("The codes are valid from now on."),
}


@page(CODES, "codes", ACCESS)
async def codes(request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[bytes]:
    """Which codes there are, by lane, and how many were used."""
    return await _codes(request, platform, caller, event_id)


async def _codes(
    request: Asked, platform: Platform, caller: Caller, event_id: str, reading: Reading | None = None, wrong: str = ""
) -> Response[bytes]:
    event, service = await own_event(platform, caller, event_id), platform.organiser.codes
    errors = reading.errors if reading else Errors()
    typed = Typed({"count": "100", "lane": list(service.lanes(event))[-1]} | (reading.form.first() if reading else {}))
    venue = await platform.ledger.catalogue.venue(event.venue_id)
    return render(
        request,
        "organiser/codes.html",
        status=422 if errors else 200,
        script="js/organiser/codes.js",
        of_event=event,
        lanes=list(service.lanes(event)),
        imported=await service.counts(event),
        used=await service.used(event_id),
        batches=await service.batches(editor_of(caller), event_id),
        errors=errors,
        v=typed,
        wrong=wrong,
        most=MAX_BATCH,
        zone=venue.time_zone if venue else "UTC",
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


@action(CODES, "make_codes", ACCESS)
async def make(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """New single-use codes for one lane."""
    event = await own_event(platform, caller, event_id)
    reading = Reading(form)
    count, lane = reading.whole("count", 1, MAX_BATCH), form.one("lane", 40)
    if lane not in platform.organiser.codes.lanes(event):
        reading.errors["lane"] = NEEDED
    if reading.errors:
        return await _codes(request, platform, caller, event_id, reading)
    await platform.organiser.codes.make(editor_of(caller), event, lane, count)
    return go_to(f"/organiser/events/{event_id}/codes?done=made")


@action(f"{CODES}/import", "take_codes", ACCESS, most_bytes=MAX_TEXT_CHARS)
async def import_codes(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """The organiser's own codes, all or none."""
    event = await own_event(platform, caller, event_id)
    reading = Reading(form)
    text = reading.text("text", MAX_TEXT_CHARS)
    if reading.errors:
        return await _codes(request, platform, caller, event_id, reading)
    try:
        await platform.organiser.codes.import_codes(editor_of(caller), event, text)
    except InvalidInput as error:
        reading.errors["text"] = N_("These codes cannot be read; none was imported:")
        return await _codes(request, platform, caller, event_id, reading, sentence_of(error))
    return go_to(f"/organiser/events/{event_id}/codes?done=imported")


@page(f"{CODES}/{{first:int}}", "codes_file", ACCESS)
async def file(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], first: FromPath[int]
) -> Response[bytes]:
    """A batch as a file; the same each time."""
    event = await own_event(platform, caller, event_id)
    service = platform.organiser.codes
    batch = next((one for one in await service.batches(editor_of(caller), event_id) if one.first == first), None)
    if batch is None or batch.lane not in service.lanes(event):
        raise NotFound("there are no such codes")
    lines = ["code,lane", *(f"{code},{batch.lane}" for code in service.texts(event, batch))]
    headers = {"cache-control": PRIVATE, "content-disposition": f'attachment; filename="codes-{first}.csv"'}
    return Response(("\r\n".join(lines) + "\r\n").encode(), headers=headers, media_type="text/csv")


ROUTES: list[HTTPRouteHandler] = [codes, make, import_codes, file]
