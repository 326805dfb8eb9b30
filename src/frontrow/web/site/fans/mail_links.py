"""Links in messages: the page they open, and the one offer that such a link shows (ADR 0115).

The capability stands behind `#`; a script posts it here, and from then on it lives in a cookie that scripts cannot
read. It opens exactly what it names until it ends: a booking's link shows tickets but gives none back.
"""

from typing import Any, Final

import msgspec
from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.messages.mail_links import FOLDERS, MAX_CHARS, LinkPurpose, OpenedLink
from frontrow.boxoffice.waitlist.model.offers import OFFER_TTL_S, Offer, OfferNotFound, OfferState
from frontrow.shared.local_time import time_text
from frontrow.shared.money import Money
from frontrow.web.http.access import Caller
from frontrow.web.platform.event_access import shown_event
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.cookie_contents import remember_link
from frontrow.web.site.event_display import seat_places, shown
from frontrow.web.site.form_answers import tell, told
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render
from frontrow.web.site.routes import FromForm, action, go_to, page
from frontrow.web.site.wallet_buttons import WALLET_PAGES

Asked = Request[Any, Any, Any]
ENDED: Final = N_("This link has expired. Sign in with your email address to see your tickets.")
NOT_OURS: Final = N_("This link is incomplete. Open it from the message again, or copy all of it.")
OFFER_STATES: Final = {
    OfferState.OPEN: N_("This offer has expired; the seats went to the next person on the waitlist."),
    OfferState.LAPSED: N_("This offer has expired; the seats went to the next person on the waitlist."),
    OfferState.DECLINED: N_("You declined this offer."),
    OfferState.WITHDRAWN: N_("The event was cancelled; this offer is no longer valid."),
    OfferState.CLAIMED: N_("You accepted these seats. The tickets are sent by email."),
}


@page("/open", "open_link")
async def open_link(request: Asked) -> Response[bytes]:
    """The page a link in a message opens. Its secret is behind `#`, which browsers do not send."""
    said = told(request)
    return render(request, "open-link.html", status=said.status, script="js/open-link.js", problem=said.text("problem"))


@action("/open", "redeem_mail_link")
async def redeem_mail_link(request: Asked, platform: FromPlatform, form: FromForm) -> Response[bytes]:
    """Keep the link's capability in this browser, and go to what it names."""
    text, _, ending = form.one("link", 2 * MAX_CHARS).rpartition("#")[2].partition("/")
    link = platform.messaging.links.read(text)
    if link is None or link.ended(platform.clock()):
        problem = NOT_OURS if link is None else ENDED
        return tell(request, "/open", {"problem": problem}, status=410 if link else 422)
    below = f"/{ending}" if ending in WALLET_PAGES.values() else ""
    return go_to(_path(link) + below, remember_link(platform, request, text))


def _path(link: OpenedLink) -> str:
    return f"/{FOLDERS[link.purpose]}/{link.subject}"


def with_priority(caller: Caller, booking_id: str) -> Caller:
    """The caller, who owns this booking for the use of its priority if a link says so."""
    if (LinkPurpose.PRIORITY.value, booking_id) not in caller.links:
        return caller
    return msgspec.structs.replace(caller, bookings=caller.bookings | {booking_id})


@page("/offers/{offer_id:str}", "offer")
async def offer_page(
    request: Asked, platform: FromPlatform, caller: FromCaller, offer_id: FromPath[str]
) -> Response[bytes]:
    """One offer of the waitlist, for the person it was made to."""
    offer = await platform.ledger.waitlist.offer(offer_id)
    if offer is None or not may_answer(platform, caller, offer):
        if caller.kind != "fan" and offer is not None:
            return go_to(f"/sign-in?back=/offers/{offer.id}")
        raise OfferNotFound("there is no such offer", offer=offer_id[:60])
    event = await shown_event(platform, offer.event_id)
    open_now = offer.open(platform.clock())
    names = await platform.booking_views.seat_ids(offer.event_id, offer.seats)
    return render(
        request,
        "offer.html",
        script="js/waitlist.js" if open_now else "",
        one=shown(platform, event, await platform.ledger.catalogue.venue(event.venue_id)),
        offer=offer,
        open_now=open_now,
        over=OFFER_STATES[offer.state],
        seats=await seat_places(platform, offer.event_id, names),
        until=time_text(offer.expires_at_us),
        left_s=max(0, (offer.expires_at_us - platform.clock()) // 1_000_000),
        offer_s=OFFER_TTL_S,
        price=await offered_price(platform, offer),
    )


async def offered_price(platform: Platform, offer: Offer) -> Money | None:
    """What the offered seats cost with the fees; None once the offer has no booking any more."""
    booking = await platform.ledger.booking(offer.booking_id)
    return Money(booking.amount_minor, booking.currency) if booking is not None else None


def may_answer(platform: Platform, caller: Caller, offer: Offer) -> bool:
    """Whether the offer is the caller's: by its link, the session, or a pass for its event."""
    if (LinkPurpose.OFFER.value, offer.id) in caller.links:
        return True
    if caller.kind == "fan":
        return caller.id == offer.fan
    visit = caller.shop_pass
    return visit is not None and visit.event_id == offer.event_id and visit.fan == offer.fan


ROUTES: list[HTTPRouteHandler] = [open_link, redeem_mail_link, offer_page]
