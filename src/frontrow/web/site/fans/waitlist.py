"""The waitlist of a sold-out event: join, see the position, accept or decline an offer."""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.waitlist.model.offers import OFFER_TTL_S, Offer, OfferNotFound
from frontrow.boxoffice.waitlist.model.waitlist import NotWaiting
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError, NotFound, Unavailable
from frontrow.shared.local_time import time_text
from frontrow.web.http.access import Caller
from frontrow.web.http.bodies.sign_in import agent_of
from frontrow.web.http.cookies import cookie_header, session_cookie
from frontrow.web.platform.access_check import client_ip
from frontrow.web.platform.event_access import shown_event
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.cookie_contents import pass_cookie
from frontrow.web.site.event_display import seat_places, shown
from frontrow.web.site.fans.email_fields import BAD_EMAIL, email_problem
from frontrow.web.site.fans.mail_links import may_answer, offered_price
from frontrow.web.site.fans.push import PUSHES, push_key
from frontrow.web.site.fans.seats import pass_for
from frontrow.web.site.form_answers import tell, told
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import FromForm, action, go_to, page
from frontrow.web.site.security_headers import PLAIN

Asked = Request[Any, Any, Any]
MOST: Final = 8
REFUSALS: Final = {
    "seats_still_free": N_("Seats like these are still free: choose them directly."),
    "too_many_tries": N_("Too many tries. Please wait a few minutes."),
    "already_waiting": N_("You are already on this waitlist."),
    "offer_over": N_("This offer has expired; the seats went to the next person on the waitlist."),
}
REFUSED: Final = N_("That did not work. Please try again.")


def fan_here(platform: Platform, caller: Caller, event_id: str) -> str:
    """The fan of the session, or the person of a pass for this event; empty for neither."""
    if caller.kind == "fan":
        return caller.id
    visit = pass_for(platform, caller, event_id)
    return visit.fan if visit is not None else ""


@page("/events/{event_id:str}/waitlist", "waitlist")
async def waitlist(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """The position on the waitlist, or the form to join it."""
    return await _waitlist(request, platform, caller, event_id, told(request).text("refusal"))


async def _waitlist(request: Asked, platform: Platform, caller: Caller, event_id: str, refusal: str) -> Response[bytes]:
    event = await shown_event(platform, event_id)
    fan = fan_here(platform, caller, event_id)
    position, offers = None, []
    if fan:
        try:
            position = await platform.box_office.waitlist.position(event_id, fan)
        except (NotFound, NotWaiting):
            position = None
        offers = [await _offer(platform, one) for one in await platform.box_office.waitlist.offers(event_id, fan)]
    one = shown(platform, event, await platform.ledger.catalogue.venue(event.venue_id))
    sections = [row.name for row in one.free.sections] if one.free else []
    key = push_key(platform) if caller.kind == "fan" else ""
    contact = await platform.ledger.messages.contact(fan) if fan else None
    return render(
        request,
        "waitlist.html",
        script="js/waitlist.js" if offers or position else "",
        one=one,
        fan=fan,
        policy=PUSHES if key else PLAIN,
        push_key=key,
        position=position,
        offers=offers,
        offer_s=OFFER_TTL_S,
        refusal=refusal,
        status=409 if refusal else 200,
        sections=sections,
        most=min(MOST, event.max_per_person),
        needs_email=contact is None or not contact.email,
    )


async def _offer(platform: Platform, offer: Offer) -> dict[str, Any]:
    names = await platform.booking_views.seat_ids(offer.event_id, offer.seats)
    left_s = max(0, (offer.expires_at_us - platform.clock()) // 1_000_000)
    return {
        "id": offer.id,
        "seats": await seat_places(platform, offer.event_id, names),
        "until": time_text(offer.expires_at_us),
        "left_s": left_s,
        "price": await offered_price(platform, offer),
    }


@action("/events/{event_id:str}/waitlist", "join_waitlist")
async def join(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Join the waitlist, or leave it."""
    fan, cookies = fan_here(platform, caller, event_id), dict[str, str]()
    try:
        problem = BAD_EMAIL if caller.kind == "staff" else email_problem(form.one("email", 254))
        if not fan and problem:
            return tell(request, f"/events/{event_id}/waitlist", {"refusal": problem})
        if not fan:
            fan, cookies = await _start_as_guest(request, platform, caller, form.one("email", 254))
        if form.one("leave"):
            found = await platform.box_office.waitlist.position(event_id, fan)
            await platform.box_office.waitlist.leave(found.entry.id, fan)
        else:
            email, language = form.one("email", 254), words_for(request).language
            if not await platform.people.fans.keep_address(fan, event_id, email=email, locale=language):
                return tell(request, f"/events/{event_id}/waitlist", {"refusal": email_problem(email) or BAD_EMAIL})
            wanted = [one for one in form.all("section") if one][:20]
            count = form.number("count", 1, MOST, 2)
            await platform.box_office.waitlist.join(
                event_id, fan, count, sections=wanted, split_ok=bool(form.one("apart_ok"))
            )
    except Unavailable:
        raise
    except FrontrowError as error:
        return tell(request, f"/events/{event_id}/waitlist", {"refusal": REFUSALS.get(error.code, REFUSED)})
    return go_to(f"/events/{event_id}/waitlist", cookies)


async def _start_as_guest(request: Asked, platform: Platform, caller: Caller, email: str) -> tuple[str, dict[str, str]]:
    """Somebody without an account who gives an address: a guest of this browser, and the cookie that says so."""
    await platform.people.sign_in_limits.link_ip.count_attempt(client_ip(platform, request))
    made = await platform.people.fans.start_guest_session(
        email, words_for(request).language, agent=agent_of(request), replaces=caller.session
    )
    life_s = max(0, made.session.ends_at_us - made.session.created_at_us) // US_PER_S
    return made.session.subject, {"set-cookie": cookie_header(session_cookie(made.secret, life_s))}


@action("/offers/{offer_id:str}", "answer_offer")
async def answer(
    request: Asked, platform: FromPlatform, caller: FromCaller, offer_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Accept an offer (and go to checkout, with a pass) or decline it."""
    offer = await platform.ledger.waitlist.offer(offer_id)
    if offer is None or not may_answer(platform, caller, offer):
        raise OfferNotFound("there is no such offer", offer=offer_id[:60])
    try:
        if form.one("how") == "decline":
            await platform.box_office.waitlist.decline(offer.id, offer.fan)
            return go_to(f"/offers/{offer.id}")
        taken = await platform.box_office.waitlist.claim(offer.id, offer.fan)
    except Unavailable:
        raise
    except FrontrowError as error:
        if fan_here(platform, caller, offer.event_id) != offer.fan:  # who came by the link sees that offer alone
            return go_to(f"/offers/{offer.id}")
        return tell(request, f"/events/{offer.event_id}/waitlist", {"refusal": REFUSALS.get(error.code, REFUSED)})
    text, _ = platform.room.passes.beside_the_line(offer.event_id, offer.fan, offer.id)
    return go_to(f"/checkout/{taken.booking_id}", {"set-cookie": pass_cookie(platform, text)})


ROUTES: list[HTTPRouteHandler] = [waitlist, join, answer]
