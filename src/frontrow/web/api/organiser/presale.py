"""Registration for a presale, for organisers (W12): open it, count, draw, export the list."""

from typing import Annotated

import msgspec
from litestar import Response, get, post, put
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.presale.model import MAX_BEACON_CHARS, MAX_CODES, DrawOrder, Presale
from frontrow.shared.local_time import time_text
from frontrow.web.api.organiser.parameters import Moment, moment_us
from frontrow.web.http.access import Access, editor_of
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.platform.registration_file import registrations_file

PATH = "/v1/organiser/events/{event_id:str}/presale"
ACCESS = Access.staff("codes:write")


class PresaleAsked(msgspec.Struct, forbid_unknown_fields=True):
    """Times and the number of codes can change until the draw. Order and lane are fixed once people have registered."""

    opens_at: Moment
    closes_at: Moment
    codes: Annotated[int, msgspec.Meta(ge=1, le=MAX_CODES, examples=[500])]
    order: DrawOrder = DrawOrder.LOTTERY
    lane: Annotated[str, msgspec.Meta(max_length=35, description="empty: the event's lane for codes")] = ""


class DrawAsked(msgspec.Struct, forbid_unknown_fields=True):
    """`beacon` is public randomness that nobody could know when registration opened, such as a drand round."""

    beacon: Annotated[str, msgspec.Meta(max_length=MAX_BEACON_CHARS)] = ""


class OwnPresaleView(msgspec.Struct):
    """The registration as its organiser sees it, with the number of registrations per state."""

    event: str
    opens_at: Time
    closes_at: Time
    codes: int
    order: str
    lane: str
    state: Annotated[str, msgspec.Meta(examples=["open"])]
    commitment: str
    asked: int
    confirmed: int
    chosen: int
    passed_over: int
    notices: int


@put(
    PATH,
    operation_id="open_presale",
    summary="Open registration, or change its times and number of codes",
    opt={"access": ACCESS, "problems": (409,)},
)
async def open_presale(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[PresaleAsked]
) -> OwnPresaleView:
    event = await own_event(platform, caller, event_id)
    presale = await platform.presale.presales.open(
        editor_of(caller),
        event,
        opens_at_us=moment_us(data.opens_at, "opens_at") or 0,
        closes_at_us=moment_us(data.closes_at, "closes_at") or 0,
        codes=data.codes,
        order=data.order,
        lane=data.lane,
    )
    return await own_view(platform, event, presale)


@get(PATH, operation_id="get_own_presale", summary="Registration and its numbers", opt={"access": ACCESS})
async def get_own_presale(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> OwnPresaleView:
    event = await own_event(platform, caller, event_id)
    return await own_view(platform, event, await platform.presale.presales.get(event.id))


@post(
    f"{PATH}/draw",
    operation_id="draw_presale",
    summary="Draw: everybody gets an e-mail, with a code or without; repeated, the progress",
    status_code=202,
    opt={"access": ACCESS, "problems": (409,)},
)
async def draw_presale(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[DrawAsked]
) -> OwnPresaleView:
    event = await own_event(platform, caller, event_id)
    presale = await platform.presale.presales.draw(editor_of(caller), event, data.beacon)
    return await own_view(platform, event, presale)


@get(
    f"{PATH}/registrations.csv",
    operation_id="export_registrations",
    summary="Every registration with its code, as CSV",
    media_type="text/csv",
    opt={"access": ACCESS},
)
async def export_registrations(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[bytes]:
    return await registrations_file(platform, caller, await own_event(platform, caller, event_id))


async def own_view(platform: Platform, event: Event, presale: Presale) -> OwnPresaleView:
    counts = await platform.presale.presales.counts(event.id)
    return OwnPresaleView(
        event=event.id,
        opens_at=time_text(presale.opens_at_us),
        closes_at=time_text(presale.closes_at_us),
        codes=presale.codes,
        order=presale.order.value,
        lane=presale.lane,
        state=presale.state.value,
        commitment=presale.commitment,
        asked=counts.get("asked", 0),
        confirmed=counts.get("confirmed", 0),
        chosen=counts.get("chosen", 0),
        passed_over=counts.get("passed_over", 0),
        notices=await platform.presale.presales.notices(event.id),
    )


ROUTES: list[HTTPRouteHandler] = [open_presale, get_own_presale, draw_presale, export_registrations]
