"""Verified-Fan codes of an event: how many there are, and the import of the organiser's own."""

from typing import Annotated

import msgspec
from litestar import get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.boxoffice.events.model.events import Event
from frontrow.web.http.access import Access, editor_of
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform

CODES = "/v1/organiser/events/{event_id:str}/codes"


class CodesAsked(msgspec.Struct, forbid_unknown_fields=True):
    """CSV with a header line and the columns code and lane. Only digests are stored."""

    csv: Annotated[str, msgspec.Meta(min_length=1, max_length=1_000_000, examples=["code,lane\nSPRING-24,general\n"])]


class CodeCount(msgspec.Struct):
    lane: str
    codes: int


class CodesView(msgspec.Struct):
    """Imported codes per lane, the number imported by this request, and the number of used codes of the event."""

    imported: int
    lanes: list[CodeCount]
    used: int


@get(
    CODES,
    operation_id="count_codes",
    summary="Codes per lane, and used codes",
    opt={"access": Access.staff("codes:write")},
)
async def count_codes(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> CodesView:
    return await _counted(platform, await own_event(platform, caller, event_id), 0)


@post(
    CODES,
    operation_id="import_codes",
    summary="Import Verified-Fan codes",
    status_code=201,
    opt={"access": Access.staff("codes:write")},
)
async def import_codes(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[CodesAsked]
) -> CodesView:
    event = await own_event(platform, caller, event_id)
    taken = await platform.organiser.codes.import_codes(editor_of(caller), event, data.csv)
    return await _counted(platform, event, taken)


async def _counted(platform: Platform, event: Event, taken: int) -> CodesView:
    counts = await platform.organiser.codes.counts(event)
    lanes = [CodeCount(lane, count) for lane, count in sorted(counts.items())]
    return CodesView(taken, lanes, await platform.organiser.codes.used(event.id))


ROUTES: list[HTTPRouteHandler] = [count_codes, import_codes]
