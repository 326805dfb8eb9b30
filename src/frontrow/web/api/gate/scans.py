"""The gate over HTTP: the bundle for a gate, online scans, the upload of offline scans, and counts.

Offline, a gate checks tickets with its bundle and uploads its admissions later. Online, it sends each scan. If several
gates scan one ticket at the same moment, exactly one gets `ok`.
"""

import contextlib
from collections.abc import Iterable
from typing import Annotated, Any, Final

import msgspec
from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody, QueryParameter

from frontrow.boxoffice.events.model.events import Event, EventNotFound
from frontrow.boxoffice.gate.gate_bundle import Bundle
from frontrow.boxoffice.gate.gate_check import VERDICT_TEXTS, GateVerdict
from frontrow.boxoffice.gate.model.redemptions import AddOnUse
from frontrow.boxoffice.gate.model.scans import DuplicateScan, ReentryNotAllowed, Scan, Way, correct_clock
from frontrow.boxoffice.seats.model.seat_names import seat_name
from frontrow.boxoffice.tickets.model.tickets import Ticket, TicketRevoked, TicketState
from frontrow.boxoffice.tickets.ticket_codes import read_code
from frontrow.shared.local_time import time_text
from frontrow.web.api.organiser.parameters import Moment, moment_us
from frontrow.web.http.access import Access, Caller
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform

PATH = "/v1/door/events/{event_id:str}"
SCANS: dict[str, Any] = {"access": Access.staff("door:scan")}
MAX_SCANS: Final = 1_000
Gate = Annotated[str, msgspec.Meta(min_length=1, max_length=60, pattern=r"^[\w .-]+$", examples=["north"])]
ScanId = Annotated[str, msgspec.Meta(min_length=1, max_length=120, pattern="^[!-~]+$", examples=["north:tkt_1:42"])]
# What a gate shows. Several verdicts of the offline check are one here.
ANSWERS: Final = {
    GateVerdict.WELCOME: "ok",
    GateVerdict.ALREADY_IN: "duplicate",
    GateVerdict.REVOKED: "revoked",
    GateVerdict.FORGED: "forged",
    GateVerdict.UNKNOWN_KEY: "forged",
    GateVerdict.OTHER_EVENT: "wrong_event",
    GateVerdict.MISREAD: "unreadable",
    GateVerdict.OLD_CODE: "old_code",
    GateVerdict.DISPUTED: "disputed",
}
LOOK_UP: Final = "look_up"


class ScanAsked(msgspec.Struct, forbid_unknown_fields=True):
    """A code as it was read. The gate chooses `scan`; repeating it changes nothing. The `tkt_…` printed beside the code
    is only looked up: a number admits nobody."""

    code: Annotated[str, msgspec.Meta(min_length=1, max_length=400)]
    gate: Gate
    scan: ScanId | None = None


class FirstScan(msgspec.Struct):
    gate: str
    at: Time


class OtherEventView(msgspec.Struct):
    """The event of the same organiser that a ticket is for."""

    event: str
    name: str
    starts_at: Time
    time_zone: str


class ScanView(msgspec.Struct):
    """`verdict`: ok, disputed, duplicate (with `first`), revoked (`reason`: refunded, transferred, or empty),
    wrong_event (with `other`, if it is an event of yours), forged, unreadable, old_code or look_up; at the exit also
    left and not_inside.
    `scan` identifies the admission, for undoing it. `again`: the ticket came back after leaving. look_up: a number was
    given instead of a code. Nobody was admitted. Look at the person, then check in this ticket of `booking`. `name` is
    who has the ticket, `at` when it came in or left. `add_ons` of its booking are redeemed on their own; a
    transferred ticket shows none. `disputed`: the buyer's bank is taking the money back, and the event lets it in."""

    verdict: Annotated[str, msgspec.Meta(examples=["ok"])]
    says: str
    ticket: str = ""
    seat: str = ""
    first: FirstScan | None = None
    reason: str = ""
    scan: str = ""
    other: OtherEventView | None = None
    again: bool = False
    type: Annotated[str, msgspec.Meta(description="the ticket type, if the event has types", examples=["Child"])] = ""
    booking: Annotated[str, msgspec.Meta(description="its booking, for check-in and for add-ons")] = ""
    name: str = ""
    add_ons: list["AddOnUseView"] = []
    at: Time | None = None
    disputed: bool = False


class AddOnUseView(msgspec.Struct):
    """One add-on of a booking: how many it has, and how many of them were redeemed."""

    key: Annotated[str, msgspec.Meta(examples=["parking"])]
    name: Annotated[str, msgspec.Meta(examples=["Parking"])]
    bought: int
    used: int


class OfflineScan(msgspec.Struct, forbid_unknown_fields=True):
    """One admission, or one exit, that a gate made offline."""

    scan: ScanId
    ticket: Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
    gate: Gate
    at: Moment
    way: Way = Way.IN


class SyncAsked(msgspec.Struct, forbid_unknown_fields=True):
    """In any order. Repeating them changes nothing."""

    scans: Annotated[list[OfflineScan], msgspec.Meta(max_length=MAX_SCANS)]


class DuplicateView(msgspec.Struct):
    """A ticket that was admitted more than once, with its scans, earliest first."""

    ticket: str
    scans: list[FirstScan]


class SyncView(msgspec.Struct):
    """The result of an upload. `unknown`: tickets that this event never had; `revoked`: tickets that are not valid."""

    taken: int
    duplicates: list[DuplicateView]
    unknown: list[str]
    revoked: list[str]


class DuplicatePage(msgspec.Struct):
    """`conflicts`: tickets that were returned and then admitted by a gate that was offline."""

    duplicates: list[DuplicateView]
    conflicts: list[DuplicateView] = []


class GateCount(msgspec.Struct):
    gate: str
    scans: int
    tickets: int
    first_at: Time
    last_at: Time
    exits: int = 0


class CountsView(msgspec.Struct):
    """How many tickets there are, how many are in, and through which gates. `outside`: left, and may come back.

    `reentry`: whether people may come back. A gate whose bundle says otherwise fetches a newer one. `disputes` changes
    when a dispute does: the bundle has other disputed tickets then.
    """

    tickets: int
    inside: int
    gates: list[GateCount]
    outside: int = 0
    reentry: bool = False
    disputes: str = ""


@get(
    f"{PATH}/bundle",
    operation_id="get_bundle",
    summary="The bundle of an offline gate: keys, seats, ticket types, the signed revocation list",
    opt={**SCANS, "answers": {200: Bundle, 304: None}},
)
async def get_bundle(
    request: Request[Any, Any, Any], platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[Bundle | None]:
    event = await own_event(platform, caller, event_id)
    tag = await platform.box_office.gates.bundle_tag(event)
    headers = {"etag": f'"{tag}"', "cache-control": "private, no-cache"}
    if f'"{tag}"' in request.headers.get("if-none-match", ""):
        return Response(None, status_code=304, headers=headers)
    return Response(await platform.box_office.gates.bundle(event.id, platform.clock()), headers=headers)


@post(f"{PATH}/scan", operation_id="scan_ticket", summary="May this ticket in?", status_code=200, opt=SCANS)
async def scan_ticket(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[ScanAsked]
) -> ScanView:
    event = await own_event(platform, caller, event_id)
    found = await _find(platform, caller, event, data.code.strip())
    if isinstance(found, ScanView):
        return found
    return await admit_ticket(platform, event, found, data.gate, data.scan or platform.ids.new("scn"))


@post(
    f"{PATH}/exit",
    operation_id="scan_exit",
    summary="Somebody leaves and may come back, if the event allows it",
    status_code=200,
    opt=SCANS,
)
async def scan_exit(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[ScanAsked]
) -> ScanView:
    event = await own_event(platform, caller, event_id)
    if not event.reentry:
        raise ReentryNotAllowed("this event does not let people come back; change that in its settings", event=event.id)
    found = await _find(platform, caller, event, data.code.strip())
    if isinstance(found, ScanView):
        return found
    return await let_ticket_out(platform, event, found, data.gate, data.scan or platform.ids.new("scn"))


async def let_ticket_out(platform: Platform, event: Event, kept: Ticket, gate: str, scan_id: str) -> ScanView:
    """Note that the holder of a valid ticket left and may come back."""
    seat = seat_name(await platform.box_office.renderer.seat_names(event), kept.seat_index)
    scan = Scan(scan_id, event.id, kept.id, gate, platform.clock(), way=Way.OUT)
    if await platform.box_office.gates.let_out(scan):
        return ScanView("left", "left; may come back", kept.id, seat, scan=scan.id, at=time_text(scan.at_us))
    return ScanView("not_inside", "not inside", kept.id, seat)


async def admit_ticket(platform: Platform, event: Event, kept: Ticket, gate: str, scan_id: str) -> ScanView:
    """Admit a valid ticket of the event, or say why not."""
    seat = seat_name(await platform.box_office.renderer.seat_names(event), kept.seat_index)
    scan = Scan(scan_id, event.id, kept.id, gate, platform.clock())
    disputed = await platform.box_office.gates.is_disputed(kept)
    if disputed and event.block_disputed:
        return await with_holder(platform, kept, _scanned(GateVerdict.DISPUTED, kept.id, seat))
    try:
        before = await platform.box_office.gates.admit(event, scan)
    except TicketRevoked:  # returned between the lookup and the scan
        return _scanned(GateVerdict.REVOKED, kept.id, seat, reason=await platform.box_office.gates.find_reason(kept))
    if before is not None:
        return await with_holder(platform, kept, _scanned(GateVerdict.ALREADY_IN, kept.id, seat, before))
    view = _scanned(GateVerdict.WELCOME, kept.id, seat, scan=scan.id)
    view.disputed = disputed
    view.at, view.again = time_text(scan.at_us), kept.left_at_us is not None
    view.type = await platform.box_office.gates.find_type(event, kept)
    return await with_holder(platform, kept, view)


async def with_holder(platform: Platform, kept: Ticket, view: ScanView) -> ScanView:
    """The verdict with who has the ticket, and the add-ons of the booking if it is the buyer."""
    holder = await platform.box_office.gates.find_holder(kept)
    view.booking, view.name = kept.booking_id, holder.name
    view.add_ons = add_on_views(holder.add_ons)
    return view


def add_on_views(add_ons: Iterable[AddOnUse]) -> list[AddOnUseView]:
    return [AddOnUseView(one.key, one.name, one.bought, one.used) for one in add_ons]


async def _find(platform: Platform, caller: Caller, event: Event, code: str) -> Ticket | ScanView:
    """The valid ticket of a code, or why it opens no gate. A number is looked up and opens none."""
    is_number = code.startswith("tkt_")
    verdict, ticket_id = (GateVerdict.WELCOME, code[:60]) if is_number else _read(platform, event, code)
    if verdict is GateVerdict.OTHER_EVENT:
        return await _elsewhere(platform, caller, read_code(code).id)
    if verdict is not GateVerdict.WELCOME:
        return _scanned(verdict)
    kept = await platform.box_office.gates.find_ticket(event, ticket_id)
    if kept is None:
        return _scanned(GateVerdict.FORGED)
    if kept.event_id != event.id:
        return await _elsewhere(platform, caller, kept.id)
    if kept.state is not TicketState.VALID:
        seat = seat_name(await platform.box_office.renderer.seat_names(event), kept.seat_index)
        return _scanned(GateVerdict.REVOKED, kept.id, seat, reason=await platform.box_office.gates.find_reason(kept))
    if is_number:
        seat = seat_name(await platform.box_office.renderer.seat_names(event), kept.seat_index)
        says = "a number alone admits nobody; look at the person, then check in the ticket"
        return ScanView(LOOK_UP, says, kept.id, seat, booking=kept.booking_id)
    return kept


async def _elsewhere(platform: Platform, caller: Caller, ticket_id: str) -> ScanView:
    """A ticket of another event. Which one is told if it is the same organiser's."""
    view = _scanned(GateVerdict.OTHER_EVENT)
    kept = await platform.ledger.tickets.ticket(ticket_id)
    if kept is not None:
        with contextlib.suppress(EventNotFound):
            other = await own_event(platform, caller, kept.event_id)
            venue = await platform.ledger.catalogue.venue(other.venue_id)
            zone = venue.time_zone if venue else "UTC"
            view.other = OtherEventView(other.id, other.name, time_text(other.starts_at_us), zone)
    return view


def _read(platform: Platform, event: Event, code: str) -> tuple[GateVerdict, str]:
    """The ticket of a signed code."""
    verdict, ticket = platform.box_office.gates.verify(event.id, code, platform.clock())
    return verdict, ticket.id if ticket is not None else ""


@post(f"{PATH}/sync", operation_id="sync_scans", summary="Upload offline admissions", status_code=200, opt=SCANS)
async def sync_scans(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[SyncAsked]
) -> SyncView:
    event = await own_event(platform, caller, event_id)
    tickets = await platform.ledger.organiser.known_tickets(event.id, [one.ticket for one in data.scans])
    now_us = platform.clock()
    mine = {one.scan: one for one in data.scans if one.ticket in tickets}
    scans = [
        Scan(one.scan, event.id, one.ticket, one.gate, correct_clock(moment_us(one.at, "at") or 0, now_us), way=one.way)
        for one in mine.values()
    ]
    duplicates = await platform.box_office.gates.record_scans(scans)
    named = {one.ticket for one in mine.values()}
    return SyncView(
        len(scans),
        [_duplicate(one) for one in duplicates],
        sorted({one.ticket for one in data.scans} - named),
        sorted(ticket for ticket in named if tickets[ticket] != "valid"),
    )


@get(f"{PATH}/duplicates", operation_id="list_duplicates", summary="Tickets that were admitted twice", opt=SCANS)
async def list_duplicates(
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    limit: Annotated[int, QueryParameter(ge=1, le=1_000)] = 100,
) -> DuplicatePage:
    event = await own_event(platform, caller, event_id)
    found = await platform.ledger.tickets.duplicate_scans(event.id, 0, limit)
    conflicts = await platform.ledger.tickets.conflicting_scans(event.id, limit)
    return DuplicatePage(
        [_duplicate(one) for one in found], [_duplicate(DuplicateScan(one.ticket_id, (one,))) for one in conflicts]
    )


@get(f"{PATH}/counts", operation_id="count_scans", summary="Admissions per gate", opt=SCANS)
async def count_scans(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> CountsView:
    event = await own_event(platform, caller, event_id)
    tickets, inside, outside = await platform.ledger.organiser.gate_totals(event.id)
    gates = [
        GateCount(row[0], int(row[1]), row[2], time_text(row[3]), time_text(row[4]), int(row[5]))
        for row in await platform.ledger.organiser.gate_counts(event.id)
    ]
    mark = f"{event.block_disputed} {await platform.box_office.gates.disputes_mark(event.id)}"
    return CountsView(tickets, inside, gates, outside, event.reentry, mark)


def _scanned(
    verdict: GateVerdict,
    ticket: str = "",
    seat: str = "",
    first: Scan | None = None,
    *,
    reason: str = "",
    scan: str = "",
) -> ScanView:
    first_scan = FirstScan(first.gate, time_text(first.at_us)) if first is not None else None
    return ScanView(ANSWERS[verdict], VERDICT_TEXTS[verdict], ticket, seat, first_scan, reason, scan)


def _duplicate(found: DuplicateScan) -> DuplicateView:
    return DuplicateView(found.ticket_id, [FirstScan(one.gate, time_text(one.at_us)) for one in found.scans])


ROUTES: list[HTTPRouteHandler] = [get_bundle, scan_ticket, scan_exit, sync_scans, list_duplicates, count_scans]
