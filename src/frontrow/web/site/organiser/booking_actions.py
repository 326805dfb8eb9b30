"""What a box office does with a booking: refund, change seats, cancel, resend tickets, correct the address.

Each is one form and calls the same service as the API, so checks, effects and audit are the same.
"""

from collections.abc import Awaitable
from typing import Any

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.model.bookings import Booking
from frontrow.boxoffice.model.email_addresses import MAX_EMAIL_CHARS
from frontrow.boxoffice.organising.bookings import MAX_SEATS
from frontrow.core.errors import FrontrowError, NotFound, Unavailable
from frontrow.web.api import FromCaller, FromPlatform
from frontrow.web.api.access import Access, Caller, own_event_booking
from frontrow.web.api.organiser.common import editor_of
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.bookings import booking_page
from frontrow.web.site.routes import FromForm, action, go_to

Asked = Request[Any, Any, Any]
ONE = "/organiser/events/{event_id:str}/bookings/{booking_id:str}"
NO_REASON = N_("Enter a reason: a refund outside the policy is recorded with it.")
REFUSED = N_("That was not possible. Nothing was changed.")
REFUSALS = {
    "reseat_refused": N_("Those seats do not match: choose the same number of free seats at the same price."),
    "email_change_refused": N_(
        "This buyer has an account, or has bought elsewhere too, and changes the address themselves."
    ),
    "invalid_input": N_("This is not an email address."),
    "seats_taken": N_("Someone was faster: these seats are taken."),
    "ticket_scanned": N_("This ticket has been admitted. Undo the admission at the door first."),
    "refund_refused": N_("This refund is in progress or already paid."),
    "move_refused": N_("This booking has changed. Please review it again."),
}


@action(f"{ONE}/refund", "own_refund", Access.staff("refunds:write"))
async def refund(
    request: Asked,
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    booking_id: FromPath[str],
    form: FromForm,
) -> Response[bytes]:
    """All of it or some seats; less the fee of the policy, or in full with a reason."""
    full, reason = form.one("how") == "full", form.one("reason", 200)
    if full and not reason:
        return await booking_page(request, platform, caller, event_id, booking_id, NO_REASON)
    event, booking = await own_event_booking(platform, caller, event_id, booking_id)
    seats = form.all("seat")[:MAX_SEATS]
    work = platform.organiser.bookings.refund(
        editor_of(caller), event, booking, seats, keep_fee=not full, reason=reason
    )
    return await _done(request, platform, caller, booking, work, "refund")


@action(f"{ONE}/refunds/{{refund_id:str}}/retry", "own_retry_refund", Access.staff("refunds:write"))
async def retry(
    request: Asked,
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    booking_id: FromPath[str],
    refund_id: FromPath[str],
    form: FromForm,
) -> Response[bytes]:
    """Retry a refund that failed at the bank."""
    event, booking = await own_event_booking(platform, caller, event_id, booking_id)
    work = platform.organiser.bookings.retry_refund(editor_of(caller), event, booking, refund_id)
    return await _done(request, platform, caller, booking, work, "retry")


@action(f"{ONE}/reseat", "own_reseat", Access.staff("refunds:write"))
async def reseat(
    request: Asked,
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    booking_id: FromPath[str],
    form: FromForm,
) -> Response[bytes]:
    """Move to other free seats at the same price."""
    event, booking = await own_event_booking(platform, caller, event_id, booking_id)
    work = platform.organiser.bookings.reseat(editor_of(caller), event, booking, form.all("seat"), form.all("to"))
    return await _done(request, platform, caller, booking, work, "reseat")


@action(f"{ONE}/cancel", "own_cancel", Access.staff("refunds:write"))
async def cancel(
    request: Asked,
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    booking_id: FromPath[str],
    form: FromForm,
) -> Response[bytes]:
    """Cancel a booking that is not paid yet."""
    event, booking = await own_event_booking(platform, caller, event_id, booking_id)
    work = platform.organiser.bookings.cancel_unpaid(editor_of(caller), event, booking)
    return await _done(request, platform, caller, booking, work, "cancel")


@action(f"{ONE}/resend", "own_resend", Access.staff("refunds:write"))
async def resend(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], booking_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Send the tickets by email again."""
    event, booking = await own_event_booking(platform, caller, event_id, booking_id)
    sent = await platform.organiser.bookings.resend_tickets(editor_of(caller), event, booking)
    return _back(booking, "resend" if sent else "nobody")


@action(f"{ONE}/email", "own_change_email", Access.staff("refunds:write"))
async def change_email(
    request: Asked,
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    booking_id: FromPath[str],
    form: FromForm,
) -> Response[bytes]:
    """Correct the buyer's address and send the tickets there."""
    event, booking = await own_event_booking(platform, caller, event_id, booking_id)
    email = form.one("email", MAX_EMAIL_CHARS)
    work = platform.organiser.bookings.change_email(editor_of(caller), event, booking, email)
    return await _done(request, platform, caller, booking, work, "email")


async def _done(
    request: Asked, platform: Platform, caller: Caller, booking: Booking, work: Awaitable[object], done: str
) -> Response[bytes]:
    """Do it and redirect back. A refusal is shown on the page; not-found and unavailable errors are raised."""
    try:
        await work
    except (NotFound, Unavailable):
        raise
    except FrontrowError as error:
        refusal = REFUSALS.get(error.code, REFUSED)
        return await booking_page(request, platform, caller, booking.event_id, booking.id, refusal)
    return _back(booking, done)


def _back(booking: Booking, done: str) -> Response[bytes]:
    return go_to(f"/organiser/events/{booking.event_id}/bookings/{booking.id}?done={done}")


ROUTES: list[HTTPRouteHandler] = [refund, retry, reseat, cancel, resend, change_email]
