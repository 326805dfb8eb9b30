"""What a box office does with a booking: refund, change seats, transfer, cancel, resend tickets, correct the address.

Each is one form and calls the same service as the API, so checks, effects and audit are the same.
"""

from collections.abc import Awaitable

from litestar import Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.organiser.bookings import MAX_SEATS
from frontrow.boxoffice.people.model.email_addresses import MAX_EMAIL_CHARS
from frontrow.boxoffice.tickets.model.ticket_transfers import TransferRefused
from frontrow.core.errors import FrontrowError, NotFound, Unavailable
from frontrow.web.http.access import Access, editor_of
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.bookings.booking_list import ABOUT_BOOKING, BookingForm, FromBooking
from frontrow.web.site.refund_rows import MAX_NUMBER, chosen_add_ons, find_sent, kept_add_ons
from frontrow.web.site.render import words_for
from frontrow.web.site.routes import FromForm, action

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
    "ticket_scanned": N_("This ticket has been admitted. Undo the admission at the gate first."),
    "booking_disputed": N_("The buyer’s bank is taking this money back, so nothing of it is refunded."),
    "refund_refused": N_("This refund is in progress or already paid."),
    "move_refused": N_("This booking has changed. Please review it again."),
    # reasons of a refused transfer
    "sent": N_("This ticket is already on its way to somebody. Cancel that transfer first."),
    "used": N_("A ticket that was admitted cannot be transferred."),
    "too_many": N_("Too many transfers today. Please try again tomorrow."),
    "forbidden": N_("This ticket cannot be transferred."),
    "over": N_("This ticket cannot be transferred."),
}


@action(f"{ONE}/refund", "own_refund", Access.staff("refunds:write"), loads=ABOUT_BOOKING)
async def refund(of: FromBooking, form: FromForm) -> Response[bytes]:
    """All of it, or some seats and add-ons; less what the policy keeps, or in full with a reason.

    `number` is the refund's number when the dialog was shown, so that a form that is sent twice refunds once.
    """
    full, reason = form.one("how") == "full", form.one("reason", 200)
    if full and not reason:
        return await of.refuse(NO_REASON)
    seats = form.all("seat")[:MAX_SEATS]
    extras = chosen_add_ons(await kept_add_ons(of.platform, of.booking), form.one)
    number = form.number("number", 0, MAX_NUMBER, 0)
    sent = await find_sent(of.platform, of.booking, form)
    if sent:
        return of.back("?done=refund")
    if sent is False or not (seats or extras):  # something has gone back meanwhile
        return await of.refuse(REFUSALS["move_refused"])
    work = of.platform.organiser.bookings.refund(
        editor_of(of.caller),
        of.event,
        of.booking,
        seats,
        keep_fee=not full,
        reason=reason,
        add_ons=extras,
        number=number or None,
    )
    return await _done(of, work, "refund")


@action(
    f"{ONE}/refunds/{{refund_id:str}}/retry", "own_retry_refund", Access.staff("refunds:write"), loads=ABOUT_BOOKING
)
async def retry(of: FromBooking, refund_id: FromPath[str], form: FromForm) -> Response[bytes]:
    """Retry a refund that failed at the bank."""
    work = of.platform.organiser.bookings.retry_refund(editor_of(of.caller), of.event, of.booking, refund_id)
    return await _done(of, work, "retry")


@action(f"{ONE}/reseat", "own_reseat", Access.staff("refunds:write"), loads=ABOUT_BOOKING)
async def reseat(of: FromBooking, form: FromForm) -> Response[bytes]:
    """Move to other free seats at the same price."""
    bookings = of.platform.organiser.bookings
    work = bookings.reseat(editor_of(of.caller), of.event, of.booking, form.all("seat"), form.all("to"))
    return await _done(of, work, "reseat")


@action(f"{ONE}/cancel", "own_cancel", Access.staff("refunds:write"), loads=ABOUT_BOOKING)
async def cancel(of: FromBooking, form: FromForm) -> Response[bytes]:
    """Cancel a booking that is not paid yet."""
    work = of.platform.organiser.bookings.cancel_unpaid(editor_of(of.caller), of.event, of.booking)
    return await _done(of, work, "cancel")


@action(f"{ONE}/resend", "own_resend", Access.staff("refunds:write"), loads=ABOUT_BOOKING)
async def resend(of: FromBooking, form: FromForm) -> Response[bytes]:
    """Send the tickets by email again."""
    sent = await of.platform.organiser.bookings.resend_tickets(editor_of(of.caller), of.event, of.booking)
    return of.back("?done=resend" if sent else "?done=nobody")


@action(f"{ONE}/transfer", "own_transfer", Access.staff("refunds:write"), loads=ABOUT_BOOKING)
async def transfer(of: FromBooking, form: FromForm) -> Response[bytes]:
    """Send one ticket to somebody else."""
    email, locale = form.one("email", MAX_EMAIL_CHARS), words_for(of.request).language
    work = of.platform.organiser.bookings.transfer(
        editor_of(of.caller), of.event, of.booking, form.one("seat", 60), email, locale
    )
    return await _done(of, work, "transfer")


@action(f"{ONE}/email", "own_change_email", Access.staff("refunds:write"), loads=ABOUT_BOOKING)
async def change_email(of: FromBooking, form: FromForm) -> Response[bytes]:
    """Correct the buyer's address and send the tickets there."""
    email = form.one("email", MAX_EMAIL_CHARS)
    work = of.platform.organiser.bookings.change_email(editor_of(of.caller), of.event, of.booking, email)
    return await _done(of, work, "email")


async def _done(of: BookingForm, work: Awaitable[object], done: str) -> Response[bytes]:
    """Do it and redirect back. A refusal is shown on the page; not-found and unavailable errors are raised."""
    try:
        await work
    except (NotFound, Unavailable):
        raise
    except FrontrowError as error:
        reason = str(error.about.get("reason", "")) if isinstance(error, TransferRefused) else ""
        return await of.refuse(REFUSALS.get(reason or error.code, REFUSED))
    return of.back(f"?done={done}")


ROUTES: list[HTTPRouteHandler] = [refund, retry, reseat, cancel, resend, transfer, change_email]
