"""The bookings of an event (B12, B13): found by words, a number, a seat or a state; one of them and its history.

This page asks before a change, with the exact amounts. The change itself is a form in `booking_actions`.
"""

from dataclasses import dataclass
from typing import Any, Final

from litestar import Request, Response
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, SkipValidation

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.messages.model.channel_reports import ReportKind
from frontrow.boxoffice.messages.model.messages import NOBODY, Buyer
from frontrow.boxoffice.payments.model.payments import PaymentState
from frontrow.boxoffice.refunds.model.refund_lines import add_on_names, decode_refund_lines
from frontrow.boxoffice.refunds.model.refund_rules import RefundRefused, check_window
from frontrow.boxoffice.refunds.model.refunds import Refund, RefundState
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.boxoffice.tickets.model.ticket_transfers import TransferRefused, TransferState
from frontrow.boxoffice.tickets.model.tickets import TicketState
from frontrow.boxoffice.tickets.ticket_transfers import check_transferable
from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.web.http.access import Access, Caller
from frontrow.web.http.cursors import cursor_of, read_number
from frontrow.web.platform.event_access import own_event, own_event_booking
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.event_display import shown
from frontrow.web.site.fans.tickets import STATES
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.bookings.reseating import choice_of
from frontrow.web.site.organiser.organisation.change_log import acts_of
from frontrow.web.site.refund_rows import chosen_add_ons, extra_fields, kept_add_ons, refund_rows
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import go_to, page

Asked = Request[Any, Any, Any]
PAGE: Final = 25
MAIL_BLOCKED: Final = {
    ReportKind.BOUNCED: N_("Mails to this address come back, so none are sent there. Correct the address."),
    ReportKind.COMPLAINED: N_("This reader reported a mail as spam, so none are sent there."),
}
MAX_ACTS: Final = 50
ENDED: Final = (BookingState.EXPIRED, BookingState.CANCELLED, BookingState.REFUNDED)
DONE: Final = {
    "refund": N_("The refund is in progress. Returned seats are free again."),
    "reseat": N_("Moved. The new tickets are sent by email."),
    "retry": N_("The refund is being retried."),
    "cancel": N_("Cancelled. The seats are free again."),
    "sold": N_("Sold. The seats are booked."),
    "resend": N_("The email with the tickets is being sent again."),
    "email": N_("Corrected. The tickets are being sent to the new address."),
    "transfer": N_("Sent. The ticket changes hands when the recipient accepts."),
    "nobody": N_("Nothing was sent: this booking has no email address."),
}
PAYMENTS: Final = {
    PaymentState.CAPTURED: ("ok", N_("Paid")),
    PaymentState.CAPTURING: ("warn", N_("In progress")),
    PaymentState.DECLINED: ("bad", N_("Declined")),
    PaymentState.VOIDED: ("", N_("Voided")),
    PaymentState.LAPSED: ("", N_("Voided")),
}
TRANSFERS: Final = {
    TransferState.SENT: ("warn", N_("Not accepted yet")),
    TransferState.ACCEPTED: ("ok", N_("Accepted")),
    TransferState.WITHDRAWN: ("", N_("Withdrawn")),
}
RUN_OUT: Final = ("", N_("Not accepted in time"))
UNDER_WAY: Final = ("warn", N_("Started"))
REFUNDS: Final = {
    RefundState.ASKED: ("warn", N_("In progress")),
    RefundState.PENDING: ("warn", N_("At the bank")),
    RefundState.DONE: ("ok", N_("Refunded")),
    RefundState.MOOT: ("", N_("Nothing to refund")),
    RefundState.FAILED: ("bad", N_("Needs attention")),
}


@dataclass(frozen=True, slots=True)
class TransferLine:
    """A transfer of one ticket, as the page lists it. Who asked to be forgotten has no name."""

    seat: tuple[str, str, str]  # section, row and number
    sender: str
    recipient: str
    sent_at_us: int
    state: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Line:
    """One booking in the list."""

    booking: Booking
    state: tuple[str, str]
    buyer: Buyer
    seats: list[tuple[str, str, str]]  # section, row and number


@page("/organiser/events/{event_id:str}/bookings", "own_bookings", Access.staff("bookings:read"))
async def bookings(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """All bookings, newest first, or those that match the search."""
    event = await own_event(platform, caller, event_id)
    query = request.query_params
    words, wanted = query.get("q", "")[:254].strip(), query.get("state", "")
    state = wanted if wanted in [one.value for one in STATES] else ""
    plan = await platform.organiser.organise.venues.plan(event.plan_hash)
    found = await _found(platform, event, words, state, _cursor(query.get("after", "")))
    buyers = await platform.ledger.organiser.buyers_of([one.fan for one in found])
    lines = [
        Line(
            one,
            state_of(one, platform.clock()),
            buyers.get(one.fan, NOBODY),
            [plan.labels.parts(plan.seat_id(seat)) for seat in one.seats],
        )
        for one in found
        if not state or one.state == state
    ]
    more = cursor_of(found[-1].fence) if len(found) == PAGE else ""
    return render(
        request,
        "organiser/bookings.html",
        of_event=event,
        zone=await zone_of(platform, event),
        lines=lines,
        q=words,
        state=state,
        states={one.value: text for one, (_, text) in STATES.items()},
        more=more,
    )


async def _found(platform: Platform, event: Event, words: str, state: str, before: int) -> list[Booking]:
    bookings = platform.organiser.bookings
    if words:
        return await bookings.find(event, words, before, PAGE)
    return await bookings.by_state(event, state, before, PAGE)


def _cursor(text: str) -> int:
    try:
        return read_number(text[:200])
    except InvalidInput:
        return 0


def state_of(booking: Booking, now_us: int) -> tuple[str, str]:
    """The status chip of a booking. An overdue hold shows as expired, even before it is released."""
    over = booking.state in (BookingState.HELD, BookingState.PAYING) and not booking.live(now_us)
    return STATES[BookingState.EXPIRED if over else booking.state]


async def zone_of(platform: Platform, event: Event) -> str:
    return shown(platform, event, await platform.ledger.catalogue.venue(event.venue_id)).zone


@page("/organiser/events/{event_id:str}/bookings/{booking_id:str}", "own_booking", Access.staff("bookings:read"))
async def booking(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], booking_id: FromPath[str]
) -> Response[bytes]:
    """One booking: seats, tickets, money, and who did what to it."""
    return await booking_page(request, platform, caller, event_id, booking_id)


async def booking_page(
    request: Asked, platform: Platform, caller: Caller, event_id: str, booking_id: str, refusal: str = ""
) -> Response[bytes]:
    """The page, with a confirmation dialog (`do` in the query) or with why an action was refused."""
    event, booking = await own_event_booking(platform, caller, event_id, booking_id)
    plan = await platform.organiser.organise.venues.plan(event.plan_hash)
    query, may = request.query_params, "refunds:write" in caller.permissions
    buyer = (await platform.ledger.organiser.buyers_of([booking.fan])).get(booking.fan, NOBODY)
    mailed = ("email", buyer.email)
    blocked = (await platform.ledger.messages.blocked([mailed])).get(mailed) if buyer.email else None
    changes = []
    if "audit:read" in caller.permissions:
        changes = await platform.ledger.organiser.changes(
            caller.organiser_id, event.id, 0, MAX_ACTS, booking_id=booking.id
        )
    do = query.get("do", "") if may and not refusal else ""
    own = {plan.seat_id(seat): seat for seat in booking.seats}
    named = [own[seat] for seat in query.getall("seat", [])[:100] if seat in own]
    add_ons = await kept_add_ons(platform, booking) if booking.state is BookingState.CONFIRMED else []
    extras = chosen_add_ons(add_ons, lambda name: query.get(name, ""))
    chosen = named or ([] if extras else list(booking.seats))
    records = await _records(platform, event, booking, plan)
    return render(
        request,
        "organiser/booking.html",
        script="js/organiser/reseat.js" if do == "reseat" else "js/organiser/dialogs.js",
        status=409 if refusal else 200,
        of_event=event,
        zone=await zone_of(platform, event),
        booking=booking,
        state=state_of(booking, platform.clock()),
        buyer=buyer,
        disputes=await platform.ledger.payments.disputes_of(booking.id),
        mail_blocked=MAIL_BLOCKED.get(blocked.reason, "") if blocked is not None else "",
        refusal=refusal,
        done=DONE.get(query.get("done", ""), ""),
        may=may,
        do=do,
        acts=await acts_of(platform, caller, changes, words_for(request), {event.id: event.currency}),
        chosen=[plan.seat_id(one) for one in chosen],
        place=plan.labels.parts,
        add_ons=add_ons,
        extras=extra_fields(extras),
        back=await _amounts(platform, event, booking, chosen, extras) if do == "refund" else None,
        reseat=await choice_of(platform, event, plan, chosen, query) if do in ("reseat", "move") else None,
        ended=booking.state in ENDED,
        transfers=await _transfers(platform, booking, plan, buyer),
        transferable=_transferable(platform, event, records) if may else [],
        **records,
    )


def _transferable(platform: Platform, event: Event, records: dict[str, Any]) -> list[str]:
    """The seats whose tickets can be sent to somebody else now."""
    try:
        check_transferable(event, platform.clock())
    except TransferRefused:
        return []
    return [
        seat
        for seat, _, ticket in records["seats"]
        if ticket and ticket.state is TicketState.VALID and not ticket.scanned_at_us
    ]


@dataclass(frozen=True, slots=True)
class BookingForm:
    """A form about one booking of the caller's event: what its handlers share."""

    request: Asked
    platform: Platform
    caller: Caller
    event: Event
    booking: Booking

    async def refuse(self, refusal: str) -> Response[bytes]:
        """The booking's page with the reason."""
        return await booking_page(self.request, self.platform, self.caller, self.event.id, self.booking.id, refusal)

    def back(self, to: str) -> Response[bytes]:
        """Redirect to the booking's page; `to` is its query or its part."""
        return go_to(f"/organiser/events/{self.event.id}/bookings/{self.booking.id}{to}")


async def load_booking_form(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], booking_id: FromPath[str]
) -> BookingForm:
    """For actions: `loads={"of": load_booking_form}`. Another organiser's booking answers 404."""
    return BookingForm(request, platform, caller, *await own_event_booking(platform, caller, event_id, booking_id))


FromBooking = NamedDependency[SkipValidation[BookingForm]]
ABOUT_BOOKING: Final = {"of": load_booking_form}


async def _transfers(platform: Platform, booking: Booking, plan: Plan, buyer: Buyer) -> list[TransferLine]:
    """The transfers of the booking's tickets, oldest first: a ticket may have gone through several hands."""
    found = await platform.ledger.transfers.transfers_of(booking.id)
    names = {one.id: one.email for one in found} | {"": buyer.email or buyer.name}
    now_us = platform.clock()
    return [
        TransferLine(
            plan.labels.parts(plan.seat_id(one.seat_index)),
            names.get(one.from_transfer, ""),
            one.email,
            one.created_at_us,
            RUN_OUT if one.state is TransferState.SENT and not one.open(now_us) else TRANSFERS[one.state],
        )
        for one in found
    ]


async def _records(platform: Platform, event: Event, booking: Booking, plan: Plan) -> dict[str, Any]:
    """Seats with their tickets, payments and refunds, as the page lists them."""
    ledger = platform.ledger
    tickets = {one.seat_index: one for one in await ledger.tickets.tickets_of(booking.id)}
    summary = await platform.box_office.receipts.summary(booking, event)
    prices = summary.prices()
    payments, refunds = await ledger.payments.payments_of(booking.id), await ledger.payments.refunds_of(booking.id)
    invoices = await platform.box_office.invoices.of_booking(booking.id)
    paid_back = [one for one in refunds if one.state is RefundState.DONE and one.amount_minor]
    return {
        "summary": summary,
        "invoices": invoices,
        "missing_invoices": len(invoices) < 1 + len(paid_back),
        "seats": [(plan.seat_id(one), prices.get(plan.seat_id(one)), tickets.get(one)) for one in booking.seats],
        "gone": [(plan.seat_id(seat), one) for seat, one in sorted(tickets.items()) if seat not in booking.seats],
        "payments": [(one, PAYMENTS.get(one.state, UNDER_WAY)) for one in payments],
        "refunds": [(one, REFUNDS[one.state], _refunded_names(one, plan)) for one in refunds],
    }


def _refunded_names(refund: Refund, plan: Plan) -> list[str]:
    """The seats and add-ons of a refund."""
    return [
        *(plan.labels.text(plan.seat_id(seat)) for seat in refund.seats),
        *add_on_names(decode_refund_lines(refund.lines)),
    ]


async def _amounts(
    platform: Platform, event: Event, booking: Booking, seats: list[int], add_ons: dict[str, int]
) -> dict[str, Any] | None:
    """The refund in full and by the policy, line by line, and whether a fan could still request it."""
    refunds = platform.box_office.refunds
    try:
        full = await refunds.work_out(event, booking, seats, add_ons, by_policy=False)
        policy = await refunds.work_out(event, booking, seats, add_ons, by_policy=True)
    except FrontrowError:
        return None
    try:
        check_window(event, platform.clock())
        open_ = True
    except RefundRefused:
        open_ = False
    kept = [line for line in policy.sum.lines if line not in full.sum.lines]
    return {
        "number": full.number,
        "full": full.sum.amount_minor,
        "rows": await refund_rows(platform, event.id, full.sum.lines, full.sum),
        "policy": policy.sum.amount_minor,
        "kept": await refund_rows(platform, event.id, kept),
        "open": open_,
        "hours": event.refunds.all_steps[-1].until_s // 3600,
    }


ROUTES: list[HTTPRouteHandler] = [bookings, booking]
