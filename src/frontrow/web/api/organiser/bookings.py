"""An event's bookings for its organiser (B12, B13): search, refund, reseat, transfer, resend, correct the address."""

from typing import Annotated

import msgspec
from litestar import get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody, QueryParameter

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.messages.model.messages import NOBODY
from frontrow.boxoffice.organiser.bookings import MAX_SEATS
from frontrow.boxoffice.organiser.model.booking_search import MAX_SEARCH_CHARS
from frontrow.boxoffice.payments.model.disputes import PaymentDispute
from frontrow.boxoffice.refunds.model.refunds import Refund, RefundState
from frontrow.core.errors import InvalidInput
from frontrow.shared.local_time import time_text
from frontrow.web.api.fans.transfers import TransferAsked, TransferView, transfer_view
from frontrow.web.api.organiser.parameters import Cursor, Limit
from frontrow.web.http.access import Access, editor_of
from frontrow.web.http.bodies.bookings import AddOnCounts, RefundLineView, RefundNumber, RefundView
from frontrow.web.http.bodies.json_values import MoneyView, Time
from frontrow.web.http.cursors import next_of, read_number
from frontrow.web.platform.event_access import own_event, own_event_booking
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform

ALL = "/v1/organiser/events/{event_id:str}/bookings"
ONE = f"{ALL}/{{booking_id:str}}"
SeatIds = Annotated[list[str], msgspec.Meta(min_length=1, max_length=MAX_SEATS, examples=[["S-A-1"]])]


class OwnBookingView(msgspec.Struct):
    """A booking as the box office sees it."""

    booking: str
    state: Annotated[str, msgspec.Meta(examples=["confirmed"])]
    fan: str
    email: str
    seats: list[str]
    amount: MoneyView
    fence: int
    created_at: Time
    hold_expires_at: Time
    confirmed_at: Time | None
    name: Annotated[str, msgspec.Meta(description="of the buyer", examples=["Ada Lovelace"])] = ""


class OwnBookingPage(msgspec.Struct):
    bookings: list[OwnBookingView]
    next: str | None = None


class OwnRefundView(msgspec.Struct):
    """A refund as the box office sees it. `failed`: the money is still owed. `failure` is the provider's
    reason. A failed refund can be retried."""

    refund: str
    booking: str
    state: Annotated[str, msgspec.Meta(examples=["failed"])]
    seats: list[str]
    amount: MoneyView
    fee: MoneyView
    created_at: Time
    failure: str = ""
    lines: list[RefundLineView] = []


class OwnBookingDetail(OwnBookingView):
    """A booking with its refunds. `email_blocked` says why no mail is sent to the buyer, if none is."""

    refunds: list[OwnRefundView] = []
    email_blocked: Annotated[str, msgspec.Meta(examples=["bounced"])] = ""
    disputes: list["DisputeView"] = []


class DisputeView(msgspec.Struct):
    """A dispute of the booking's payment: the buyer's bank takes the money back. `answer_by`: until when the payment
    provider takes evidence."""

    id: Annotated[str, msgspec.Meta(examples=["dp_1"])]
    booking: str
    event: str
    state: Annotated[str, msgspec.Meta(examples=["open"], description="open, won, lost or closed")]
    amount: MoneyView
    reason: str
    opened_at: Time
    answer_by: Time | None = None


class DisputeList(msgspec.Struct):
    """Disputes, newest first."""

    disputes: list[DisputeView]


class FailedRefunds(msgspec.Struct):
    """Refunds that failed, oldest first."""

    refunds: list[OwnRefundView]


class RefundAsked(msgspec.Struct, forbid_unknown_fields=True):
    """Some seats and add-ons, or everything when nothing is named. Seats alone are refunded without add-ons; with its
    last seat, all that is left of the booking goes back. `keep_fee`: less what the event's policy keeps, and less what
    the seats that stay cost more if they are too few for a group."""

    seats: Annotated[list[str], msgspec.Meta(max_length=MAX_SEATS)] = []
    keep_fee: bool = False
    reason: Annotated[str, msgspec.Meta(max_length=200, examples=["ill"])] = ""
    add_ons: AddOnCounts = {}
    number: RefundNumber = None


class EmailAsked(msgspec.Struct, forbid_unknown_fields=True):
    """The buyer's right address."""

    email: Annotated[str, msgspec.Meta(max_length=254, examples=["ada@example.org"])]


class SentView(msgspec.Struct):
    """Whether an e-mail is on its way. It is not when the booking has no tickets or no address."""

    sent: bool


class ReseatAsked(msgspec.Struct, forbid_unknown_fields=True):
    """Move from the seats `leave` to the free seats `to`: as many, and at the same prices."""

    leave: SeatIds
    to: SeatIds


@get(
    ALL,
    operation_id="search_bookings",
    summary="Bookings, newest first, by words (`q`), or by one of id, e-mail, name, seat and status",
    opt={"access": Access.staff("bookings:read")},
)
async def search_bookings(
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    q: Annotated[
        str,
        QueryParameter(
            max_length=MAX_SEARCH_CHARS,
            description="a part of a name, of an e-mail address or of a booking's number, or a seat",
        ),
    ] = "",
    email: Annotated[
        str, QueryParameter(max_length=254, description="purchases and live bookings of this address")
    ] = "",
    name: Annotated[
        str, QueryParameter(max_length=120, description="buyers with these words, or parts of them, in their name")
    ] = "",
    seat: Annotated[str, QueryParameter(max_length=100, description="bookings that have or had this seat")] = "",
    status: Annotated[BookingState | None, QueryParameter(description="only bookings in this state")] = None,
    booking: Annotated[str, QueryParameter(max_length=60)] = "",
    cursor: Cursor = "",
    limit: Limit = 20,
) -> OwnBookingPage:
    event = await own_event(platform, caller, event_id)
    if sum(map(bool, (q, email, name, seat, status, booking))) > 1:
        raise InvalidInput("search by one of q, booking, email, name, seat and status", param="email")
    before = read_number(cursor)
    bookings = platform.organiser.bookings
    if q:
        page = await bookings.find(event, q, before, limit)
    elif booking:
        page = await bookings.by_id(event, booking)
    elif email:
        page = await bookings.by_email(event, email, before, limit)
    elif name:
        page = await bookings.by_name(event, name, before, limit)
    elif seat:
        page = await bookings.by_seat(event, seat, before, limit)
    else:
        page = await bookings.by_state(event, status.value if status else "", before, limit)
    views = await booking_views(platform, event, page)
    return OwnBookingPage(views, next_of(page, limit, page[-1].fence if page else None))


@get(ONE, operation_id="get_own_booking", summary="One booking", opt={"access": Access.staff("bookings:read")})
async def get_own_booking(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], booking_id: FromPath[str]
) -> OwnBookingDetail:
    event, booking = await own_event_booking(platform, caller, event_id, booking_id)
    (view,) = await booking_views(platform, event, [booking])
    refunds = [
        await _own_refund(platform, one, event.id) for one in await platform.ledger.payments.refunds_of(booking.id)
    ]
    fields = {name: getattr(view, name) for name in view.__struct_fields__}
    disputes = [_dispute(one) for one in await platform.ledger.payments.disputes_of(booking.id)]
    mailed = ("email", view.email)
    blocked = (await platform.ledger.messages.blocked([mailed])).get(mailed) if view.email else None
    return OwnBookingDetail(
        **fields, refunds=refunds, email_blocked=blocked.reason.value if blocked else "", disputes=disputes
    )


@post(
    f"{ONE}/refunds",
    operation_id="refund_booking",
    summary="Refund a booking, whatever the event's policy says",
    status_code=201,
    opt={"access": Access.staff("refunds:write")},
)
async def refund_booking(
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    booking_id: FromPath[str],
    data: JSONBody[RefundAsked],
) -> RefundView:
    event, booking = await own_event_booking(platform, caller, event_id, booking_id)
    refund = await platform.organiser.bookings.refund(
        editor_of(caller),
        event,
        booking,
        data.seats,
        keep_fee=data.keep_fee,
        reason=data.reason,
        add_ons=data.add_ons,
        number=data.number,
    )
    return await platform.booking_views.refund(refund, event.id)


@get(
    "/v1/organiser/events/{event_id:str}/failed-refunds",
    operation_id="list_failed_refunds",
    summary="Refunds that failed at the bank: the money is still owed",
    opt={"access": Access.staff("bookings:read")},
)
async def list_failed_refunds(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], limit: Limit = 20
) -> FailedRefunds:
    event = await own_event(platform, caller, event_id)
    found = await platform.ledger.organiser.failed_refunds(caller.organiser_id, event.id, limit)
    return FailedRefunds([await _own_refund(platform, one, event.id) for _, one in found])


@get(
    "/v1/organiser/disputes",
    operation_id="list_disputes",
    summary="Disputed payments of all events: buyers' banks take the money back",
    opt={"access": Access.staff("bookings:read")},
)
async def list_disputes(platform: FromPlatform, caller: FromCaller, limit: Limit = 20) -> DisputeList:
    found = await platform.ledger.payments.disputes(caller.organiser_id, "", limit)
    return DisputeList([_dispute(one) for one in found])


def _dispute(one: PaymentDispute) -> DisputeView:
    return DisputeView(
        one.ref,
        one.booking_id,
        one.event_id,
        one.state.value,
        MoneyView(one.amount_minor, one.currency),
        one.reason,
        time_text(one.opened_at_us),
        time_text(one.answer_by_us) if one.answer_by_us else None,
    )


@post(
    f"{ONE}/refunds/{{refund_id:str}}/retry",
    operation_id="retry_refund",
    summary="Retry a refund that failed, under a new key",
    status_code=200,
    opt={"access": Access.staff("refunds:write")},
)
async def retry_refund(
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    booking_id: FromPath[str],
    refund_id: FromPath[str],
) -> OwnRefundView:
    event, booking = await own_event_booking(platform, caller, event_id, booking_id)
    refund = await platform.organiser.bookings.retry_refund(editor_of(caller), event, booking, refund_id)
    return await _own_refund(platform, refund, event.id)


@post(
    f"{ONE}/resend",
    operation_id="resend_tickets",
    summary="Send the tickets of a booking by e-mail again",
    status_code=200,
    opt={"access": Access.staff("refunds:write")},
)
async def resend_tickets(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], booking_id: FromPath[str]
) -> SentView:
    event, booking = await own_event_booking(platform, caller, event_id, booking_id)
    return SentView(await platform.organiser.bookings.resend_tickets(editor_of(caller), event, booking))


@post(
    f"{ONE}/email",
    operation_id="change_buyer_email",
    summary="Correct the e-mail address of a buyer without an account; the tickets are sent there",
    status_code=200,
    opt={"access": Access.staff("refunds:write")},
)
async def change_buyer_email(
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    booking_id: FromPath[str],
    data: JSONBody[EmailAsked],
) -> OwnBookingView:
    event, booking = await own_event_booking(platform, caller, event_id, booking_id)
    await platform.organiser.bookings.change_email(editor_of(caller), event, booking, data.email)
    return (await booking_views(platform, event, [booking]))[0]


async def _own_refund(platform: Platform, refund: Refund, event_id: str) -> OwnRefundView:
    view = await platform.booking_views.refund(refund, event_id)
    failure = refund.failure if refund.state is RefundState.FAILED else ""
    return OwnRefundView(
        view.refund, view.booking, view.state, view.seats, view.amount, view.fee, view.created_at, failure, view.lines
    )


@post(
    f"{ONE}/reseat",
    operation_id="reseat_booking",
    summary="Move a booking to other free seats of equal price",
    status_code=200,
    opt={"access": Access.staff("refunds:write")},
)
async def reseat_booking(
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    booking_id: FromPath[str],
    data: JSONBody[ReseatAsked],
) -> OwnBookingView:
    event, booking = await own_event_booking(platform, caller, event_id, booking_id)
    moved = await platform.organiser.bookings.reseat(editor_of(caller), event, booking, data.leave, data.to)
    (view,) = await booking_views(platform, event, [moved])
    return view


@post(
    f"{ONE}/transfers",
    operation_id="transfer_ticket",
    summary="Send a ticket to somebody else for whoever has it now; it is theirs once they accept",
    opt={"access": Access.staff("refunds:write"), "problems": (409,)},
)
async def transfer_ticket(
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    booking_id: FromPath[str],
    data: JSONBody[TransferAsked],
) -> TransferView:
    event, booking = await own_event_booking(platform, caller, event_id, booking_id)
    sent = await platform.organiser.bookings.transfer(
        editor_of(caller), event, booking, data.seat, data.email, data.locale
    )
    return await transfer_view(platform, sent)


async def booking_views(platform: Platform, event: Event, bookings: list[Booking]) -> list[OwnBookingView]:
    buyers = await platform.ledger.organiser.buyers_of([booking.fan for booking in bookings])
    names = (await platform.organiser.organise.venues.plan(event.plan_hash)).seat_ids
    return [
        OwnBookingView(
            one.id,
            one.state.value,
            one.fan,
            buyers.get(one.fan, NOBODY).email,
            [names[seat] for seat in one.seats],
            MoneyView(one.amount_minor, one.currency),
            one.fence,
            time_text(one.created_at_us),
            time_text(one.hold_expires_at_us),
            time_text(one.confirmed_at_us) if one.confirmed_at_us else None,
            buyers.get(one.fan, NOBODY).name,
        )
        for one in bookings
    ]


ROUTES: list[HTTPRouteHandler] = [
    search_bookings,
    get_own_booking,
    refund_booking,
    list_failed_refunds,
    list_disputes,
    retry_refund,
    reseat_booking,
    transfer_ticket,
    resend_tickets,
    change_buyer_email,
]
