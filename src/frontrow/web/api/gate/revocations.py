"""What a gate polls after it has its bundle: the revocation list and the admissions of other gates. And undoing a scan.

Each response is small when nothing happened: the revocation list has an ETag, and admissions are read from the last
number on.
"""

from typing import Annotated, Any, Final

import msgspec
from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody, QueryParameter

from frontrow.boxoffice.gate.gate_bundle import Revocations
from frontrow.boxoffice.gate.model.scans import Way
from frontrow.shared.local_time import time_text
from frontrow.web.api.gate.scans import PATH, SCANS, ScanId
from frontrow.web.http.access import editor_of
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.injected import FromCaller, FromPlatform

MAX_ADMISSIONS: Final = 5_000


class Admission(msgspec.Struct):
    """One scan that admitted somebody, or (`way` is `out`) let somebody out."""

    scan: str
    ticket: str
    gate: str
    at: Time
    way: Way = Way.IN


class AdmissionPage(msgspec.Struct):
    """`next` is the `after` of the next page. Servers write concurrently, so start at 0 again from time to time."""

    admissions: list[Admission]
    next: int


class UndoAsked(msgspec.Struct, forbid_unknown_fields=True):
    """The mistaken admission and its ticket."""

    scan: ScanId
    ticket: Annotated[str, msgspec.Meta(min_length=1, max_length=60)]


class UndoView(msgspec.Struct):
    """`undone` is false when there is no such scan, or it was undone before."""

    undone: bool


@get(
    f"{PATH}/revocations",
    operation_id="get_revocations",
    summary="The signed revocation list, for a gate that has its bundle",
    opt={**SCANS, "answers": {200: Revocations, 304: None}},
)
async def get_revocations(
    request: Request[Any, Any, Any], platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[Revocations | None]:
    event = await own_event(platform, caller, event_id)
    tag = f'"{await platform.box_office.gates.revocations_tag(event.id)}"'
    headers = {"etag": tag, "cache-control": "private, no-cache"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(None, status_code=304, headers=headers)
    return Response(await platform.box_office.gates.revocations(event.id, platform.clock()), headers=headers)


@get(
    f"{PATH}/admissions", operation_id="list_admissions", summary="Admissions of all gates, from a number on", opt=SCANS
)
async def list_admissions(
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    after: Annotated[int, QueryParameter(ge=0, le=2**53)] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=MAX_ADMISSIONS)] = 1_000,
) -> AdmissionPage:
    event = await own_event(platform, caller, event_id)
    found = await platform.ledger.organiser.admissions(event.id, after, limit)
    listed = [Admission(scan.id, scan.ticket_id, scan.gate, time_text(scan.at_us), scan.way) for _, scan in found]
    return AdmissionPage(listed, found[-1][0] if found else after)


@post(f"{PATH}/undo", operation_id="undo_scan", summary="Undo a mistaken admission", status_code=200, opt=SCANS)
async def undo_scan(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[UndoAsked]
) -> UndoView:
    event = await own_event(platform, caller, event_id)
    gates, now_us = platform.box_office.gates, platform.clock()
    return UndoView(await gates.undo_admission(editor_of(caller), event, data.scan, data.ticket, now_us))


ROUTES: list[HTTPRouteHandler] = [get_revocations, list_admissions, undo_scan]
