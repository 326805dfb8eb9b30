"""The choice at checkout: a ticket type per seat, add-ons, a code. One plain form that changes the price."""

from collections.abc import Mapping
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.attempt_limit import TooManyTries
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.holds.model.bookings import Booking, HoldEnded
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.people.model.email_addresses import is_email
from frontrow.boxoffice.pricing.model.booking_choices import BookingChoice, NoneLeft, choice_of, offered_types
from frontrow.boxoffice.pricing.model.discounts import DiscountRefused
from frontrow.boxoffice.pricing.model.prices import decode_lines
from frontrow.boxoffice.pricing.model.sale_options import fold_code
from frontrow.core.errors import FrontrowError, InvalidInput, Refused, Unauthorised
from frontrow.web.http.access import Access
from frontrow.web.platform.access_check import client_ip
from frontrow.web.platform.booking_choices import choose_for
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.cookie_contents import Ready
from frontrow.web.site.fans.checkout import VISIT_OVER, keep_contact_of, tell_choice_refused
from frontrow.web.site.fans.choice_form import CODE_ANSWERS, say_none_left
from frontrow.web.site.form_answers import tell
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
    """Change the choice and show the new price, or say why it stays as it was. A wrong code changes nothing about the
    rest, which is taken with the code that was there before."""
    booking = await platform.own_bookings.find(caller, booking_id)
    typed = Ready(form.one("name", 120), form.one("email", 254))  # by the page's script, from the form beside this one
    filled = typed if typed != Ready() else None
    if is_email(typed.email):
        await keep_contact_of(request, platform, booking, typed)
    try:
        event = platform.box_office.sales.get(booking.event_id).event
        visit, code = platform.own_bookings.need_visit(caller, booking), fold_code(form.one("code", 60))
        before = choice_of(event, decode_lines(booking.price_lines)).code
        choice, otherwise = _read(form, booking, event, code), _read(form, booking, event, before)
        wrong_code = await choose_with_code(request, platform, booking, visit, choice, otherwise)
    except Unauthorised:
        return tell(request, f"/checkout/{booking.id}", {"outcome": VISIT_OVER})
    except HoldEnded:
        return go_to(f"/checkout/{booking.id}")
    except (InvalidInput, Refused) as refused:
        return refuse_choice(request, booking, filled, refused, form.one("code", 60))
    if wrong_code is not None:
        return refuse_choice(request, booking, filled, wrong_code, form.one("code", 60))
    return go_to(f"/checkout/{booking.id}#choice")


async def choose_with_code(
    request: Asked,
    platform: Platform,
    booking: Booking,
    visit: ShopPass,
    choice: BookingChoice,
    otherwise: BookingChoice,
) -> FrontrowError | None:
    """Make the choice. If its code is refused, the choice with another code or none; then why the code was refused."""
    ip = client_ip(platform, request)
    try:
        await choose_for(platform, booking, visit, choice, ip)
    except (DiscountRefused, TooManyTries) as refused:
        if otherwise.code != choice.code:
            await choose_for(platform, booking, visit, otherwise, ip)
        return refused
    return None


def _read(form: Form, booking: Booking, event: Event, code: str) -> BookingChoice:
    types = {seat: key for seat in booking.seats if (key := form.one(f"type{seat}", 40))}
    if code != choice_of(event, decode_lines(booking.price_lines)).code:  # what the old code unlocked goes with it
        types = offered_only(event, types, code)
    add_ons = {}
    for name, typed in form.first().items():
        if name.startswith("add-") and typed.strip():
            text = typed.strip()
            if not (text.isascii() and text.isdigit() and len(text) < 4):
                raise InvalidInput("an add-on needs a number", param="add_ons")
            if int(text):
                add_ons[name.removeprefix("add-")[:40]] = int(text)
    return BookingChoice(types, add_ons, code)


def offered_only(event: Event, types: Mapping[int, str], code: str) -> dict[int, str]:
    """The ticket types that are offered with this code."""
    keys = {one.key for one in offered_types(event, code)}
    return {seat: key for seat, key in types.items() if key in keys}


def refuse_choice(
    request: Asked, booking: Booking, filled: Ready | None, refused: FrontrowError, code: str
) -> Response[bytes]:
    """Go to the form to pay, which says why this choice is not possible: at the code if it is about the code."""
    words = words_for(request)
    if isinstance(refused, DiscountRefused):
        answer = words(CODE_ANSWERS[refused.reason])
        return tell_choice_refused(request, booking, filled, code_error=answer, code=code)
    if isinstance(refused, TooManyTries):
        return tell_choice_refused(request, booking, filled, code_error=words(TOO_MANY), code=code)
    return tell_choice_refused(request, booking, filled, error=_say(words, refused), code=code)


def _say(words: Words, refused: FrontrowError) -> str:
    if isinstance(refused, NoneLeft):
        return say_none_left(words, refused)
    name = refused.about.get("name")
    for key, text in (("least", AT_LEAST), ("most", AT_MOST)):
        if name and key in refused.about:
            return words(text, name=name, n=refused.about[key])
    return words(NOT_POSSIBLE)


ROUTES: list[HTTPRouteHandler] = [choose]
