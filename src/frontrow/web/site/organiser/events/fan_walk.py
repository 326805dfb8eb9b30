"""An event walked through as a fan before it is published: its page, the seats, the checkout, the tickets.

The pages are the fans' own templates with the event as it is now, and prices come from what prices a real purchase. All
of it is in the address: nothing is held, sold or stored, and the tickets have a code that no gate knows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.model.events import EventMove
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.pricing.model.booking_choices import BookingChoice, ChosenPrice, price_choice, type_names
from frontrow.boxoffice.pricing.model.discounts import DiscountRefused
from frontrow.boxoffice.pricing.model.prices import encode_lines
from frontrow.boxoffice.pricing.model.sale_options import fold_code
from frontrow.boxoffice.tickets.model.tickets import Sheet
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError
from frontrow.shared.local_time import time_text
from frontrow.shared.money import Money
from frontrow.web.http.access import Access, Caller
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.cookie_contents import Ready
from frontrow.web.site.event_display import shown
from frontrow.web.site.fans.checkout import NO_ERRORS, shown_methods
from frontrow.web.site.fans.choice_form import CODE_ANSWERS, choice_form
from frontrow.web.site.fans.demo_cards import SHOWN, TypedCard
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.events.event_steps import ONE, OrganiserEvent, load_event
from frontrow.web.site.organiser.events.preview import FRAMED, WITH_FRAME
from frontrow.web.site.render import PRIVATE, render, words_for
from frontrow.web.site.routes import go_to, page

Asked = Request[Any, Any, Any]
READS: Final = Access.staff("events:read")
WALK: Final = f"{ONE}/walk"
# step -> its name; the first has the address of the walk itself
STEPS: Final = {"page": N_("Event page"), "seats": N_("Seats"), "checkout": N_("Checkout"), "tickets": N_("Tickets")}
NOT_THESE: Final = N_("Pick 1 to {n} seats that are for sale.")
NO_PRICES: Final = N_("Prices are missing.")
NOT_POSSIBLE: Final = N_("Fans are told why this choice is not possible, and it stays as it was.")
SPECIMEN: Final = "SPECIMEN"  # what the code of a ticket says; a gate reads it as no ticket
BUYER: Final = "Ada Lovelace"


@dataclass(frozen=True, slots=True)
class Walk:
    """What the address says was chosen, and what it costs."""

    booking: Booking
    priced: ChosenPrice
    error: str = ""
    code_error: str = ""


@page(WALK, "walk_event", READS)
async def walk(request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[bytes]:
    """The first step: the event's page."""
    one = await _published(platform, caller, event_id)
    return _step(request, one, "page", frame=f"/organiser/events/{event_id}/preview/page")


@page(f"{WALK}/seats", "walk_seats", READS)
async def seats(request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[bytes]:
    """The map to pick seats on."""
    one = await _published(platform, caller, event_id)
    refusal = words_for(request)(NO_PRICES) if not _is_priced(one) else ""
    if request.query_params.get("refused"):
        refusal = refusal or words_for(request)(NOT_THESE, n=one.event.max_per_person)
    return _step(request, one, "seats", refusal=refusal)


@page(f"{WALK}/seats/price.json", "walk_price", READS)
async def price(platform: FromPlatform, request: Asked, caller: FromCaller, event_id: FromPath[str]) -> Response[bytes]:
    """What the picked seats cost with every fee."""
    one, words = await _published(platform, caller, event_id), words_for(request)
    chosen = _chosen(platform, one, request.query_params)
    total = words.money(chosen.priced.quote.total_minor, one.event.currency) if chosen else ""
    problem = "" if chosen else words(NOT_THESE, n=one.event.max_per_person)
    body = msgspec.json.encode({"total": total, "problem": problem})
    return Response(body, headers={"cache-control": PRIVATE}, media_type="application/json")


@page(f"{WALK}/checkout", "walk_checkout", READS)
async def checkout(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """The checkout in its frame."""
    one = await _published(platform, caller, event_id)
    if _chosen(platform, one, request.query_params) is None:
        return go_to(f"/organiser/events/{event_id}/walk/seats?refused=1")
    frame = f"/organiser/events/{event_id}/walk/checkout/page?{_query(request)}"
    return _step(request, one, "checkout", frame=frame)


@page(f"{WALK}/checkout/page", "walk_checkout_page", READS)
async def checkout_page(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """The fans' own page, for the chosen seats, ticket types, add-ons and code."""
    one = await _published(platform, caller, event_id)
    chosen = _chosen(platform, one, request.query_params)
    if chosen is None:
        return go_to(f"/organiser/events/{event_id}/walk/seats?refused=1")
    event, booking = one.event, chosen.booking
    await platform.box_office.renderer.art.colour(event)
    summary = await platform.box_office.receipts.summary(booking, event)
    parts, amounts = _places(one, booking), summary.prices()
    words, form = words_for(request), choice_form(event, one.plan, booking)
    methods = await platform.box_office.checkout.offered(booking, event)
    if form is not None and (chosen.error or chosen.code_error):
        code_error = words(chosen.code_error) if chosen.code_error else ""
        code = request.query_params.get("code", "")[:60]
        form = replace(form, error=words(chosen.error) if chosen.error else "", code_error=code_error, code=code)
    hold_us = event.hold_ttl_s * US_PER_S
    request.state.caller = Caller()  # as somebody who is not signed in sees it
    return render(
        request,
        "checkout.html",
        policy=FRAMED,
        booking=booking,
        one=shown(platform, event, one.venue),
        seats=parts,
        priced=[(*each, amounts.get(one.plan.seat_id(at))) for each, at in zip(parts, booking.seats, strict=True)],
        summary=summary,
        until=time_text(platform.clock() + hold_us),
        left_s=event.hold_ttl_s,
        total_s=event.hold_ttl_s,
        can_extend=False,
        errors=NO_ERRORS,
        ready=Ready(),
        contact=None,
        proven="",
        card=TypedCard("", "", ""),
        cards=SHOWN,
        stripe=False,
        hosted=platform.box_office.provider.name == "stripe",
        drop_in=None,
        **shown_methods(methods),
        chosen=methods[0].id if methods else "",
        method_error="",
        offered="",
        free=booking.amount_minor == 0,
        publishable="",
        account="",
        client_secret="",
        declined=False,
        problem="",
        choice=form,
    )


@page(f"{WALK}/tickets", "walk_tickets", READS)
async def tickets(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """The last step: what was bought, and the tickets to look at."""
    one = await _published(platform, caller, event_id)
    chosen = _chosen(platform, one, request.query_params)
    if chosen is None:
        return go_to(f"/organiser/events/{event_id}/walk/seats?refused=1")
    places = _places(one, chosen.booking)
    return _step(request, one, "tickets", places=places, total_minor=chosen.booking.amount_minor)


@page(f"{WALK}/tickets.pdf", "walk_tickets_pdf", READS)
async def tickets_pdf(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """The tickets as fans print them, with a code that no gate accepts."""
    one = await _published(platform, caller, event_id)
    chosen = _chosen(platform, one, request.query_params)
    if chosen is None:
        return go_to(f"/organiser/events/{event_id}/walk/seats?refused=1")
    event, booking, venue = one.event, chosen.booking, one.venue
    types = type_names(event, booking.price_lines, booking.seats)
    sheets = [
        Sheet(
            ticket_id=SPECIMEN,
            code=SPECIMEN,
            seat=one.plan.seat_id(seat),
            event_id=event.id,
            event_name=event.name,
            venue_name=venue.name if venue else "",
            city=venue.city if venue else "",
            time_zone=one.zone,
            starts_at_us=event.starts_at_us,
            ends_at_us=event.ends_at_us,
            booking_id=booking.id,
            issued_at_us=platform.clock(),
            name=BUYER,
            type_name=types.get(seat, ""),
            price=Money(minor, event.currency),
            named=named,
        )
        for seat, minor, named in zip(
            booking.seats, chosen.priced.quote.seat_totals_minor, _places(one, booking), strict=True
        )
    ]
    body = await platform.box_office.renderer.pdf_for_mail(sheets, words_for(request).language)
    headers = {"cache-control": PRIVATE, "content-disposition": f'inline; filename="{SPECIMEN.lower()}.pdf"'}
    return Response(body, headers=headers, media_type="application/pdf")


def _step(request: Asked, one: OrganiserEvent, step: str, **more: Any) -> Response[bytes]:
    at = f"/organiser/events/{one.event.id}/walk"
    query = _query(request)
    later = list(STEPS)[list(STEPS).index(step) + 1 :]
    following = f"{at}/{later[0]}{f'?{query}' if query else ''}" if later and step != "seats" else ""
    return render(
        request,
        "organiser/fan_walk.html",
        policy=WITH_FRAME,
        script="js/organiser/sell.js" if step == "seats" else "js/organiser/fan-walk.js" if later else "",
        one=one,
        of_event=one.event,
        steps=STEPS,
        step=step,
        at=at,
        query=query,
        following=following,
        picked=request.query_params.get("seats", "")[:4_000],
        **more,
    )


async def _published(platform: Platform, caller: Caller, event_id: str) -> OrganiserEvent:
    """The event as it will be once published."""
    one = await load_event(platform, caller, event_id)
    return replace(one, event=one.event.moved(EventMove.PUBLISH)) if one.is_draft else one


def _is_priced(one: OrganiserEvent) -> bool:
    return {tier.key for tier in one.event.tiers} >= set(one.plan.tiers)


def _query(request: Asked) -> str:
    """What was chosen, for the next step's address."""
    kept = {name: text[:4_000] for name, text in request.query_params.items() if name != "refused"}
    return urlencode(kept)


def _chosen(platform: Platform, one: OrganiserEvent, typed: Mapping[str, str]) -> Walk | None:
    """The purchase that the address describes; None if no fan could make it with these seats. A choice that is refused
    changes nothing, as at the real checkout."""
    plan, event = one.plan, one.event
    found = [plan.index_of.get(name) for name in typed.get("seats", "")[:4_000].split()]
    seats = tuple(sorted({seat for seat in found if seat is not None and seat not in event.withheld}))
    if not _is_priced(one) or not 1 <= len(found) == len(seats) <= event.max_per_person:
        return None
    now_us, error, code_error = platform.clock(), "", ""
    choice = _choice(typed, seats)
    try:
        try:
            priced = price_choice(event, plan, seats, choice, now_us)
        except DiscountRefused as refused:  # the rest of the choice stays
            code_error = CODE_ANSWERS[refused.reason]
            priced = price_choice(event, plan, seats, msgspec.structs.replace(choice, code=""), now_us)
    except FrontrowError:
        error = NOT_POSSIBLE
        priced = price_choice(event, plan, seats, BookingChoice(), now_us)
    quote = priced.quote
    booking = Booking(
        "bkg_walk",
        event.id,
        "fan_walk",
        BookingState.HELD,
        1,
        seats,
        quote.total_minor,
        event.currency,
        "",
        now_us,
        now_us,
        now_us + event.hold_ttl_s * US_PER_S,
        price_lines=encode_lines(quote.lines),
    )
    return Walk(booking, priced, error, code_error)


def _choice(typed: Mapping[str, str], seats: tuple[int, ...]) -> BookingChoice:
    """The fields of the fans' form, as it names them."""
    types = {seat: key for seat in seats if (key := typed.get(f"type{seat}", "")[:40])}
    counts = {name.removeprefix("add-"): text.strip() for name, text in typed.items() if name.startswith("add-")}
    add_ons = {key: int(text) for key, text in counts.items() if text.isascii() and text.isdigit() and len(text) < 4}
    return BookingChoice(types, {key: n for key, n in add_ons.items() if n}, fold_code(typed.get("code", "")[:60]))


def _places(one: OrganiserEvent, booking: Booking) -> list[tuple[str, str, str]]:
    """The seats as people call them."""
    return [one.plan.labels.parts(one.plan.seat_id(seat)) for seat in booking.seats]


ROUTES: list[HTTPRouteHandler] = [walk, seats, price, checkout, checkout_page, tickets, tickets_pdf]
