"""The choice at checkout: a ticket type per seat, add-ons, a code. One plain form that changes the price."""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.attempt_limit import TooManyTries
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.holds.model.bookings import Booking, HoldEnded
from frontrow.boxoffice.people.model.email_addresses import is_email
from frontrow.boxoffice.pricing.model.booking_choices import (
    BookingChoice,
    DiscountRefused,
    NoneLeft,
    choice_of,
    offered_types,
)
from frontrow.boxoffice.pricing.model.prices import decode_lines
from frontrow.boxoffice.pricing.model.sale_options import fold_code
from frontrow.core.errors import InvalidInput, Refused, Unauthorised
from frontrow.web.http.access import Access
from frontrow.web.platform.access_check import client_ip
from frontrow.web.platform.booking_choices import choose_for
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.site.cookie_contents import Ready
from frontrow.web.site.fans.checkout import keep_contact_of, outcome_page, page_again
from frontrow.web.site.fans.choice_form import CODE_ANSWERS, say_none_left
from frontrow.web.site.languages import N_, Words
from frontrow.web.site.render import words_for
from frontrow.web.site.routes import Form, FromForm, action, go_to

Asked = Request[Any, Any, Any]
TOO_MANY: Final = N_("Too many tries. Please wait a few minutes.")
AT_LEAST: Final = N_("{name}: at least {n} per booking.")
AT_MOST: Final = N_("{name}: at most {n} per booking.")
NOT_POSSIBLE: Final = N_("This choice is not possible.")


@action("/checkout/{booking_id:str}/choice", "choose_tickets", Access.OWNER)
async def choose(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Change the choice and show the new price, or say why it stays as it was."""
    booking = await platform.own_bookings.find(caller, booking_id)
    filled = Ready(form.one("name", 120), form.one("email", 254))
    if is_email(filled.email):  # typed before the form below was sent: nothing typed is lost
        await keep_contact_of(request, platform, booking, filled)
    words = words_for(request)
    error = code_error = ""
    try:
        choice = _read(form, booking, platform.box_office.sales.get(booking.event_id).event)
        visit = platform.own_bookings.need_visit(caller, booking)
        await choose_for(platform, booking, visit, choice, client_ip(platform, request))
        return go_to(f"/checkout/{booking.id}#choice")
    except Unauthorised:
        return await outcome_page(request, platform, booking, "visit_over", 401)
    except HoldEnded:
        return go_to(f"/checkout/{booking.id}")
    except DiscountRefused as refused:
        code_error = words(CODE_ANSWERS[refused.reason])
    except TooManyTries:
        code_error = words(TOO_MANY)
    except (NoneLeft, InvalidInput, Refused) as refused:
        error = _say(words, refused)
    told = (error, code_error, form.one("code", 60))
    return await page_again(
        request, platform, caller, await platform.own_bookings.find(caller, booking_id), filled, told
    )


def _read(form: Form, booking: Booking, event: Event) -> BookingChoice:
    code = fold_code(form.one("code", 60))
    types = {seat: key for seat in booking.seats if (key := form.one(f"type{seat}", 40))}
    if code != choice_of(event, decode_lines(booking.price_lines)).code:  # what the old code unlocked goes with it
        keys = {one.key for one in offered_types(event, code)}
        types = {seat: key for seat, key in types.items() if key in keys}
    add_ons = {}
    for name, typed in form.first().items():
        if name.startswith("add-") and typed.strip():
            text = typed.strip()
            if not (text.isascii() and text.isdigit() and len(text) < 4):
                raise InvalidInput("an add-on needs a number", param="add_ons")
            if int(text):
                add_ons[name.removeprefix("add-")[:40]] = int(text)
    return BookingChoice(types, add_ons, code)


def _say(words: Words, refused: Refused | InvalidInput) -> str:
    if isinstance(refused, NoneLeft):
        return say_none_left(words, refused)
    name = refused.about.get("name")
    for key, text in (("least", AT_LEAST), ("most", AT_MOST)):
        if name and key in refused.about:
            return words(text, name=name, n=refused.about[key])
    return words(NOT_POSSIBLE)


ROUTES: list[HTTPRouteHandler] = [choose]
