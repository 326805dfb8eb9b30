"""An organiser's venues: list, read, create, change. Plans come from the generator, CSV, pretix JSON or a document."""

from typing import Annotated, Any

import msgspec
from litestar import Response, get, patch, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.boxoffice.seats.model.venues import OwnVenue
from frontrow.boxoffice.seats.venues import PlanSource, VenueEdit
from frontrow.web.api.organiser.parameters import Cursor, IfMatch, Limit, tagged
from frontrow.web.http.access import Access, editor_of
from frontrow.web.http.cursors import next_of, read_cursor
from frontrow.web.http.request_bodies import MAX_PLAN_BYTES
from frontrow.web.platform.injected import FromCaller, FromPlatform

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, examples=["Small Hall"])]
City = Annotated[str, msgspec.Meta(max_length=200, examples=["Vienna"])]
Country = Annotated[str, msgspec.Meta(max_length=2, examples=["AT"])]
Zone = Annotated[str, msgspec.Meta(max_length=64, examples=["Europe/Vienna"])]


class PlanGiven(msgspec.Struct, forbid_unknown_fields=True):
    """Exactly one of `generate` (with `seats`), `csv`, `pretix` and `document`."""

    generate: Annotated[str, msgspec.Meta(max_length=20, examples=["arena"])] = ""
    seats: Annotated[int, msgspec.Meta(ge=0, le=200_000, examples=[5000])] = 0
    csv: Annotated[str, msgspec.Meta(max_length=8_000_000)] = ""
    pretix: dict[str, Any] | None = None
    document: dict[str, Any] | None = None


class NewVenue(msgspec.Struct, forbid_unknown_fields=True):
    """Without `time_zone` it is that of the city; where that is unknown, the venue is refused."""

    name: Name
    plan: PlanGiven
    city: City = ""
    country: Country = ""
    time_zone: Zone = ""


class VenueChange(msgspec.Struct, forbid_unknown_fields=True):
    """Fields that are left out stay as they are. A new plan is used by events that are created from now on."""

    name: Name | None = None
    plan: PlanGiven | None = None
    city: City | None = None
    country: Country | None = None
    time_zone: Zone | None = None


class OwnVenueView(msgspec.Struct):
    """A venue of the organiser; `version` is also its ETag."""

    venue: str
    name: str
    city: str
    country: str
    time_zone: str
    plan_hash: str
    seats: int
    version: str


class OwnVenuePage(msgspec.Struct):
    venues: list[OwnVenueView]
    next: str | None = None


class PlanSection(msgspec.Struct):
    id: str
    name: str
    kind: str
    seats: int


class PlanView(msgspec.Struct):
    """The contents of a plan. Each of `tiers` needs a price before an event can be published."""

    plan_hash: str
    name: str
    seats: int
    tiers: list[str]
    sections: list[PlanSection]


@get(
    "/v1/organiser/venues",
    operation_id="list_venues",
    summary="The organiser's venues",
    opt={"access": Access.staff("events:read")},
)
async def list_venues(
    platform: FromPlatform, caller: FromCaller, cursor: Cursor = "", limit: Limit = 20
) -> OwnVenuePage:
    page = await platform.organiser.organise.venues.page(editor_of(caller), read_cursor(cursor), limit)
    return OwnVenuePage([_view(one) for one in page], next_of(page, limit, page[-1].venue.id if page else None))


@post(
    "/v1/organiser/venues",
    operation_id="create_venue",
    summary="Make a venue",
    status_code=201,
    request_max_body_size=MAX_PLAN_BYTES,
    opt={"access": Access.staff("events:write")},
)
async def create_venue(platform: FromPlatform, caller: FromCaller, data: JSONBody[NewVenue]) -> Response[OwnVenueView]:
    created = await platform.organiser.organise.venues.create(editor_of(caller), _edit(data))
    return tagged(_view(created), created.tag, 201)


@get(
    "/v1/organiser/venues/{venue_id:str}",
    operation_id="get_venue",
    summary="One venue",
    opt={"access": Access.staff("events:read")},
)
async def get_venue(platform: FromPlatform, caller: FromCaller, venue_id: FromPath[str]) -> Response[OwnVenueView]:
    found = await platform.organiser.organise.venues.get(editor_of(caller), venue_id)
    return tagged(_view(found), found.tag)


@patch(
    "/v1/organiser/venues/{venue_id:str}",
    operation_id="change_venue",
    summary="Change a venue",
    request_max_body_size=MAX_PLAN_BYTES,
    opt={"access": Access.staff("events:write"), "problems": (412,)},
)
async def change_venue(
    platform: FromPlatform,
    caller: FromCaller,
    venue_id: FromPath[str],
    data: JSONBody[VenueChange],
    if_match: IfMatch = None,
) -> Response[OwnVenueView]:
    changed = await platform.organiser.organise.venues.change(editor_of(caller), venue_id, _edit(data), if_match)
    return tagged(_view(changed), changed.tag)


@get(
    "/v1/organiser/venues/{venue_id:str}/plan",
    operation_id="get_plan",
    summary="The venue's plan: its sections and the tiers that need prices",
    opt={"access": Access.staff("events:read")},
)
async def get_plan(platform: FromPlatform, caller: FromCaller, venue_id: FromPath[str]) -> PlanView:
    venues = platform.organiser.organise.venues
    found = await venues.get(editor_of(caller), venue_id)
    plan = await venues.plan(found.venue.plan_hash)
    sections = [PlanSection(one.id, one.name, one.kind.value, one.size) for one in plan.sections]
    return PlanView(found.venue.plan_hash, plan.name, plan.size, list(plan.tiers), sections)


def _edit(given: NewVenue | VenueChange) -> VenueEdit:
    plan = given.plan
    source = None
    if plan is not None:
        source = PlanSource(plan.generate, plan.seats, plan.csv, plan.pretix, plan.document)
    return VenueEdit(name=given.name, city=given.city, country=given.country, time_zone=given.time_zone, plan=source)


def _view(own: OwnVenue) -> OwnVenueView:
    venue = own.venue
    return OwnVenueView(
        venue.id, venue.name, venue.city, venue.country, venue.time_zone, venue.plan_hash, own.seat_count, own.tag
    )


ROUTES: list[HTTPRouteHandler] = [list_venues, create_venue, get_venue, change_venue, get_plan]
