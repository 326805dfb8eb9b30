"""What a box office does with a booking: refund, change seats, cancel, resend tickets.

Each is one form and calls the same function as the API, so checks, effects and audit are the same.
"""

from typing import Any

import msgspec
from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.model.bookings import BookingState
from frontrow.boxoffice.model.event_changes import Change
from frontrow.core.errors import FrontrowError, Unavailable
from frontrow.web.api import FromCaller, FromPlatform
from frontrow.web.api.access import Access, Caller, own_event_booking
from frontrow.web.api.organiser.bookings import RefundAsked, ReseatAsked, refund_booking, reseat_booking, retry_refund
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
    asked = RefundAsked(form.all("seat")[:100], keep_fee=not full, reason=reason)
    try:
        await refund_booking.fn(platform, caller, event_id, booking_id, asked)
    except FrontrowError as error:
        return await _refused(request, platform, caller, event_id, booking_id, error)
    return _back(event_id, booking_id, "refund")


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
    try:
        await retry_refund.fn(platform, caller, event_id, booking_id, refund_id)
    except FrontrowError as error:
        return await _refused(request, platform, caller, event_id, booking_id, error)
    return _back(event_id, booking_id, "retry")


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
    try:
        asked = msgspec.convert({"leave": form.all("seat"), "to": form.all("to")}, ReseatAsked)
        await reseat_booking.fn(platform, caller, event_id, booking_id, asked)
    except msgspec.ValidationError:
        return await booking_page(request, platform, caller, event_id, booking_id, REFUSALS["reseat_refused"])
    except FrontrowError as error:
        return await _refused(request, platform, caller, event_id, booking_id, error)
    return _back(event_id, booking_id, "reseat")


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
    if booking.state not in (BookingState.HELD, BookingState.PAYING):
        return await booking_page(request, platform, caller, event_id, booking_id, REFUSALS["move_refused"])
    became = await platform.box_office.refunds.cancel_booking(booking.id)
    if became == "failed":
        return await booking_page(request, platform, caller, event_id, booking_id, REFUSED)
    detail = {"booking": booking.id, "became": became}
    await platform.ledger.organiser.note(
        Change(editor_of(caller), "cancel_booking", event.id, platform.clock(), detail)
    )
    return _back(event_id, booking_id, "cancel")


@action(f"{ONE}/resend", "own_resend", Access.staff("refunds:write"))
async def resend(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], booking_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Send the tickets by email again."""
    event, booking = await own_event_booking(platform, caller, event_id, booking_id)
    if booking.state is not BookingState.CONFIRMED or not await platform.messaging.notifier.resend_confirmation(
        booking
    ):
        return _back(event_id, booking_id, "nobody")
    change = Change(editor_of(caller), "resend", event.id, platform.clock(), {"booking": booking.id})
    await platform.ledger.organiser.note(change)
    return _back(event_id, booking_id, "resend")


def _back(event_id: str, booking_id: str, done: str) -> Response[bytes]:
    return go_to(f"/organiser/events/{event_id}/bookings/{booking_id}?done={done}")


async def _refused(
    request: Asked, platform: Platform, caller: Caller, event_id: str, booking_id: str, error: FrontrowError
) -> Response[bytes]:
    """The page again, with why the action was refused. Not-found and unavailable errors are raised as they are."""
    if error.http_status == 404 or isinstance(error, Unavailable):
        raise error
    return await booking_page(request, platform, caller, event_id, booking_id, REFUSALS.get(error.code, REFUSED))


ROUTES: list[HTTPRouteHandler] = [refund, retry, reseat, cancel, resend]
