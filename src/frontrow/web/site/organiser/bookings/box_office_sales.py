"""The box office: sell seats picked on the map for cash or on a card reader, give free tickets, see today's totals."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.organiser.model.box_office_sales import MAX_SEATS_PER_SALE, BoxOfficeWish, PaidBy
from frontrow.boxoffice.people.model.email_addresses import MAX_EMAIL_CHARS
from frontrow.boxoffice.people.model.person_names import MAX_NAME_CHARS
from frontrow.boxoffice.pricing.model.booking_choices import NoneLeft, PricedType, priced_types
from frontrow.boxoffice.pricing.model.discounts import DiscountRefused
from frontrow.core.errors import FrontrowError, InvalidInput, NotFound, Unavailable
from frontrow.web.http.access import Access, Caller, editor_of
from frontrow.web.platform.event_access import own_event, own_event_booking
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.fans.choice_form import CODE_ANSWERS, say_none_left
from frontrow.web.site.languages import N_, Words
from frontrow.web.site.organiser.organisation.change_log import names_of_team
from frontrow.web.site.render import PRIVATE, render, words_for
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
SELLS: Final = Access.staff("refunds:write")
WAYS: Final = {
    PaidBy.CASH: N_("Cash"),
    PaidBy.CARD_READER: N_("Card reader"),
    PaidBy.FREE: N_("Free (guest list)"),
}
REFUSED: Final = N_("That was not possible. Nothing was sold.")
REFUSALS: Final = {
    "seats_taken": N_("Someone was faster: these seats are taken."),
    "not_on_sale": N_("This event is not on sale."),
    "unknown_seats": N_("This venue has no such seat."),
    "idempotency_mismatch": N_("This sale was made already, with other seats. Nothing was sold now."),
}
PARAMS: Final = {
    "seats": N_("Choose at least one seat."),
    "name": N_("Free tickets need the guest's name and email address."),
    "email": N_("Enter the email address, for example ada@example.org."),
    "code": N_("Free tickets need no code."),
}
TYPE, ADD_ON = "type-", "add-"  # how the names of these fields begin: a seat's ticket type, an add-on's number


@page("/organiser/events/{event_id:str}/sell", "desk", SELLS)
async def sales(request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[bytes]:
    """The form and today's totals."""
    return await _sales_page(request, platform, caller, event_id)


async def _sales_page(
    request: Asked,
    platform: Platform,
    caller: Caller,
    event_id: str,
    refusal: str = "",
    form: dict[str, str] | None = None,
) -> Response[bytes]:
    event = await own_event(platform, caller, event_id)
    day, totals = await platform.organiser.box_office_sales.totals(event, None)
    names = await names_of_team(platform, caller) if totals and "team:read" in caller.permissions else {}
    shown = {"seats": "", "paid_by": PaidBy.CASH.value, "name": "", "email": "", "code": "", "booking": ""} | (
        form or {}
    )
    return render(
        request,
        "organiser/box-office.html",
        script="js/organiser/sell.js",
        status=409 if refusal else 200,
        of_event=event,
        v=shown | {"booking": platform.organiser.box_office_sales.new_booking_id()},
        types=_types(event),
        chosen={name.removeprefix(TYPE): key for name, key in shown.items() if name.startswith(TYPE)},
        ways=WAYS,
        most=MAX_SEATS_PER_SALE,
        refusal=refusal,
        day=day.isoformat(),
        totals=[(names.get(one.staff, one.staff), WAYS[one.paid_by], one) for one in totals],
    )


@page("/organiser/events/{event_id:str}/sell/price.json", "desk_price", SELLS)
async def price(request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[bytes]:
    """What these seats cost with every fee and all that is chosen, in words; or why they cannot be sold like this."""
    event = await own_event(platform, caller, event_id)
    words, typed = words_for(request), dict(request.query_params)
    seats, total, problem = typed.get("seats", "")[:4_000].split()[:MAX_SEATS_PER_SALE], 0, ""
    try:
        if seats:
            paid_by = _paid_by(typed.get("paid_by", ""))
            _, chosen = await platform.organiser.box_office_sales.price(event, seats, _wish(typed), paid_by)
            total = chosen.quote.total_minor
    except Unavailable:
        raise
    except FrontrowError as error:
        problem = _say(words, error)
    body = msgspec.json.encode({"total": "" if problem else words.money(total, event.currency), "problem": problem})
    return Response(body, headers={"cache-control": PRIVATE}, media_type="application/json")


@action("/organiser/events/{event_id:str}/sell", "desk_sell", SELLS)
async def sell(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Sell the seats, then show the booking."""
    event = await own_event(platform, caller, event_id)
    seats = form.one("seats", 4_000).replace(",", " ").split()[: MAX_SEATS_PER_SALE + 1]
    try:
        sold = await platform.organiser.box_office_sales.sell(
            editor_of(caller),
            event,
            seats,
            _paid_by(form.one("paid_by", 20)),
            name=form.one("name", MAX_NAME_CHARS),
            email=form.one("email", MAX_EMAIL_CHARS),
            booking_id=form.one("booking", 60),
            wish=_wish(form.first()),
        )
    except Unavailable:
        raise
    except FrontrowError as error:
        if isinstance(error, NotFound) and error.code not in REFUSALS:
            raise
        refusal = _say(words_for(request), error)
        return await _sales_page(request, platform, caller, event_id, refusal, form.first())
    return go_to(f"/organiser/events/{event.id}/bookings/{sold.id}?done=sold")


def _types(event: Event) -> list[PricedType]:
    """All ticket types, hidden ones too: staff need no code."""
    return priced_types(event, event.ticket_types) if event.tiers else []


def _paid_by(typed: str) -> PaidBy:
    return PaidBy(typed) if typed in list(PaidBy) else PaidBy.CASH


def _wish(typed: Mapping[str, str]) -> BoxOfficeWish:
    """What was chosen in the form."""
    types = {name.removeprefix(TYPE): key[:40] for name, key in typed.items() if name.startswith(TYPE) and key}
    add_ons = {}
    for name, text in typed.items():
        count = text.strip()
        if name.startswith(ADD_ON) and count:
            if not (count.isascii() and count.isdigit() and len(count) < 4):
                raise InvalidInput("an add-on needs a number", param="add_ons")
            if int(count):
                add_ons[name.removeprefix(ADD_ON)[:40]] = int(count)
    return BoxOfficeWish(types, add_ons, typed.get("code", "")[:60])


def _say(words: Words, error: FrontrowError) -> str:
    """Why nothing can be sold like this."""
    if isinstance(error, NoneLeft):
        return say_none_left(words, error)
    if isinstance(error, DiscountRefused):
        return words(CODE_ANSWERS[error.reason])
    return words(REFUSALS.get(error.code) or PARAMS.get(error.param or "", REFUSED))


@page("/organiser/events/{event_id:str}/bookings/{booking_id:str}/tickets.pdf", "own_tickets_pdf", SELLS)
async def own_tickets_pdf(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], booking_id: FromPath[str]
) -> Response[bytes]:
    """The tickets, to be printed at the box office."""
    _, booking = await own_event_booking(platform, caller, event_id, booking_id)
    body = await platform.box_office.renderer.pdf(booking.id, locale=words_for(request).language)
    headers = {"cache-control": PRIVATE, "content-disposition": 'inline; filename="tickets.pdf"'}
    return Response(body, headers=headers, media_type="application/pdf")


ROUTES: list[HTTPRouteHandler] = [sales, price, sell, own_tickets_pdf]
