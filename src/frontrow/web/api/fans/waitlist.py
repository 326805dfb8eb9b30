"""The waitlist (B11): join, position, leave; list, claim and decline offers."""

from typing import Annotated

import msgspec
from litestar import delete, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.boxoffice.waitlist.model.offers import Offer, OfferNotFound
from frontrow.boxoffice.waitlist.model.waitlist import MAX_SECTIONS
from frontrow.core.errors import Unauthorised
from frontrow.shared.local_time import time_text
from frontrow.web.api.fans.bookings import give_pass
from frontrow.web.endpoints.room.openapi_shapes import PassView
from frontrow.web.http.access import Access, Caller, booking_token
from frontrow.web.http.bodies.bookings import BookingView
from frontrow.web.http.bodies.holds import SectionName
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform


class WaitBody(msgspec.Struct, forbid_unknown_fields=True):
    """What to wait for: `count` seats, side by side unless `split_ok`, in these sections or anywhere."""

    count: Annotated[int, msgspec.Meta(ge=1, le=100, examples=[2])]
    sections: Annotated[list[SectionName], msgspec.Meta(max_length=MAX_SECTIONS)] = []
    split_ok: bool = False


class WaitlistEntryView(msgspec.Struct):
    """An entry of the waitlist. Position 1 is next; it is 0 while an offer is open."""

    entry: str
    event: str
    state: str
    count: int
    sections: list[str]
    position: int


class OfferView(msgspec.Struct):
    """Seats that are held for a fan until `expires_at`."""

    offer: str
    event: str
    seats: list[str]
    expires_at: Time


class OfferList(msgspec.Struct):
    offers: list[OfferView]


class ClaimedOffer(msgspec.Struct):
    """The booking of a claimed offer, with everything that is needed to pay for it."""

    booking: BookingView
    booking_token: str
    pass_: PassView = msgspec.field(name="pass")


def fan_of(caller: Caller, event_id: str) -> str:
    """The person who waits: the session's fan, or the person of a pass for this event."""
    if caller.kind == "fan":
        return caller.id
    if caller.shop_pass is not None and caller.shop_pass.event_id == event_id:
        return caller.shop_pass.fan
    raise Unauthorised("sign in, or show a pass for this event", event=event_id[:60])


@post(
    "/v1/events/{event_id:str}/waitlist",
    operation_id="join_waitlist",
    summary="Wait for seats of a sold-out event",
    opt={"access": Access.OWNER, "problems": (409,), "by_person": True},
)
async def join_waitlist(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[WaitBody]
) -> WaitlistEntryView:
    fan = fan_of(caller, event_id)
    await platform.box_office.waitlist.join(event_id, fan, data.count, sections=data.sections, split_ok=data.split_ok)
    return await _entry(platform, event_id, fan)


@get(
    "/v1/events/{event_id:str}/waitlist",
    operation_id="waitlist_position",
    summary="The caller's position in the waitlist",
    opt={"access": Access.OWNER, "problems": (409,), "by_person": True},
)
async def waitlist_position(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> WaitlistEntryView:
    return await _entry(platform, event_id, fan_of(caller, event_id))


@delete(
    "/v1/events/{event_id:str}/waitlist",
    operation_id="leave_waitlist",
    summary="Leave the waitlist; an open offer goes to the next person",
    opt={"access": Access.OWNER, "problems": (409,), "by_person": True},
)
async def leave_waitlist(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> None:
    fan = fan_of(caller, event_id)
    position = await platform.box_office.waitlist.position(event_id, fan)
    await platform.box_office.waitlist.leave(position.entry.id, fan)


@get(
    "/v1/events/{event_id:str}/offers",
    operation_id="list_offers",
    summary="The offers that the caller can claim now",
    opt={"access": Access.OWNER, "by_person": True},
)
async def list_offers(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> OfferList:
    offers = await platform.box_office.waitlist.offers(event_id, fan_of(caller, event_id))
    return OfferList([await _offer(platform, one) for one in offers])


@post(
    "/v1/offers/{offer_id:str}/claim",
    operation_id="claim_offer",
    summary="Claim an offer: its seats are held and paid for like any others",
    opt={"access": Access.OWNER, "problems": (409, 410), "idempotency": "own"},  # claimed again it is the same
)
async def claim_offer(platform: FromPlatform, caller: FromCaller, offer_id: FromPath[str]) -> ClaimedOffer:
    waiting_offer = await _own_offer(platform, caller, offer_id)
    offer = await platform.box_office.waitlist.claim(waiting_offer.id, waiting_offer.fan)
    booking = await platform.ledger.booking(offer.booking_id)
    assert booking is not None, offer.booking_id
    view = await platform.booking_views.view(booking)
    token = booking_token(platform.secrets, booking.id)
    return ClaimedOffer(view, token, give_pass(platform, offer.event_id, offer.fan, offer.id))


@post(
    "/v1/offers/{offer_id:str}/decline",
    operation_id="decline_offer",
    summary="Decline an offer: the seats go to the next person",
    status_code=200,
    opt={"access": Access.OWNER, "problems": (409, 410)},
)
async def decline_offer(platform: FromPlatform, caller: FromCaller, offer_id: FromPath[str]) -> OfferView:
    waiting_offer = await _own_offer(platform, caller, offer_id)
    return await _offer(platform, await platform.box_office.waitlist.decline(waiting_offer.id, waiting_offer.fan))


async def _own_offer(platform: Platform, caller: Caller, offer_id: str) -> Offer:
    """The offer, if it is the caller's. Another person's offer answers 404."""
    offer = await platform.ledger.waitlist.offer(offer_id)
    if caller.kind == "nobody" and caller.shop_pass is None and not caller.bookings:
        raise Unauthorised("sign in, or show the offer's booking token")
    if offer is None:
        raise OfferNotFound(f"there is no offer {offer_id[:60]}", offer=offer_id[:60])
    visit = caller.shop_pass
    by_pass = visit is not None and visit.event_id == offer.event_id and visit.fan == offer.fan
    if offer.booking_id in caller.bookings or (caller.kind == "fan" and caller.id == offer.fan) or by_pass:
        return offer
    raise OfferNotFound(f"there is no offer {offer_id[:60]}", offer=offer_id[:60])


async def _offer(platform: Platform, offer: Offer) -> OfferView:
    seats = await platform.booking_views.seat_ids(offer.event_id, offer.seats)
    return OfferView(offer.id, offer.event_id, seats, time_text(offer.expires_at_us))


async def _entry(platform: Platform, event_id: str, fan: str) -> WaitlistEntryView:
    found = await platform.box_office.waitlist.position(event_id, fan)
    entry = found.entry
    return WaitlistEntryView(
        entry.id, event_id, entry.state.value, entry.seat_count, list(entry.sections), found.position
    )


ROUTES: list[HTTPRouteHandler] = [
    join_waitlist,
    waitlist_position,
    leave_waitlist,
    list_offers,
    claim_offer,
    decline_offer,
]
