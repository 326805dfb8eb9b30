"""Bookings (B5-B9, B12): read, pay, cancel, refunds, ticket returns, the priority pass."""

from typing import Annotated

import msgspec
from litestar import get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody, QueryParameter

from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.pricing.model.sale_options import MAX_ADD_ONS
from frontrow.core.errors import InvalidInput, NotFound
from frontrow.web.api.shared_routes import shared_route
from frontrow.web.endpoints.room.openapi_shapes import PassView
from frontrow.web.endpoints.routes import GET_BOOKING, PAY
from frontrow.web.http.access import Access
from frontrow.web.http.bodies.bookings import AddOnCounts, BookingView, RefundLineView, RefundNumber, RefundView
from frontrow.web.http.bodies.holds import SeatName
from frontrow.web.http.bodies.json_values import MoneyView
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.platform.priority_passes import make_priority_pass

SomeSeats = Annotated[list[SeatName], msgspec.Meta(max_length=100)]


class SeatsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Seats of the booking. None named means all."""

    seats: SomeSeats = []


class RefundBody(msgspec.Struct, forbid_unknown_fields=True):
    """Seats and add-ons of the booking. Nothing named means everything. Seats alone are refunded without add-ons; with
    its last seat, all that is left of the booking goes back."""

    seats: SomeSeats = []
    add_ons: AddOnCounts = {}
    number: RefundNumber = None


class RefundQuote(msgspec.Struct):
    """What a refund would pay now, line by line, and what the organiser would keep. `number` is the number it would
    have among the booking's refunds. `kept` is what was paid for what stays."""

    seats: list[str]
    amount: MoneyView
    fee: MoneyView
    lines: list[RefundLineView]
    number: int
    kept: MoneyView


class RefundList(msgspec.Struct):
    refunds: list[RefundView]


class ReturnView(msgspec.Struct):
    """One ticket returned to the pool. It is refunded when somebody else has bought the seat."""

    seat: str
    state: str


class ReturnList(msgspec.Struct):
    returns: list[ReturnView]


@post(
    "/v1/bookings/{booking_id:str}/cancel",
    operation_id="cancel_booking",
    summary="Cancel a booking: a held one is released, a sold one is refunded by the event's policy",
    status_code=200,
    opt={"access": Access.OWNER, "problems": (409,)},
)
async def cancel_booking(platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]) -> BookingView:
    booking = await platform.own_bookings.find(caller, booking_id)
    if booking.state is BookingState.CONFIRMED:
        await platform.box_office.refunds.refund(booking.id, booking.fence)
        booking = await platform.own_bookings.find(caller, booking_id)
    elif booking.state is not BookingState.REFUNDED:
        booking = await platform.box_office.checkout.release(booking.id, booking.fence)
    return await platform.booking_views.view(booking)


@get(
    "/v1/bookings/{booking_id:str}/refund-quote",
    operation_id="quote_refund",
    summary="What a refund of seats and add-ons would pay now; nothing named means everything",
    opt={"access": Access.OWNER, "problems": (409,)},
)
async def quote_refund(
    platform: FromPlatform,
    caller: FromCaller,
    booking_id: FromPath[str],
    seat: Annotated[list[str] | None, QueryParameter(max_items=100)] = None,
    add_on: Annotated[list[str] | None, QueryParameter(max_items=MAX_ADD_ONS, description="like dinner:2")] = None,
) -> RefundQuote:
    booking = await platform.own_bookings.find(caller, booking_id)
    some = await platform.booking_views.indexes(booking, seat or [])
    quote = await platform.box_office.refunds.quote(booking, some, _counts(add_on or []))
    worked_out, currency = quote.sum, booking.currency
    return RefundQuote(
        await platform.booking_views.seat_ids(booking.event_id, worked_out.choice.seats),
        MoneyView(worked_out.amount_minor, currency),
        MoneyView(worked_out.fee_minor, currency),
        await platform.booking_views.refund_lines(booking.event_id, worked_out.lines, currency),
        quote.number,
        MoneyView(booking.amount_minor - worked_out.worth_minor, currency),
    )


def _counts(texts: list[str]) -> dict[str, int]:
    """How many of which add-on, from texts like `dinner:2`."""
    counts: dict[str, int] = {}
    for text in texts:
        key, _, count = text.partition(":")
        if not count.isascii() or not count.isdigit() or len(count) > 3:
            raise InvalidInput("add_on is the key of an add-on and how many, like dinner:2", param="add_on")
        counts[key] = counts.get(key, 0) + int(count)
    return counts


@post(
    "/v1/bookings/{booking_id:str}/refunds",
    operation_id="ask_refund",
    summary="Return seats and add-ons for a refund, by the event's policy",
    opt={"access": Access.OWNER, "problems": (409,)},
)
async def ask_refund(
    platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], data: JSONBody[RefundBody]
) -> RefundView:
    booking = await platform.own_bookings.find(caller, booking_id)
    some = await platform.booking_views.indexes(booking, data.seats)
    refund = await platform.box_office.refunds.refund(booking.id, booking.fence, some, data.add_ons, number=data.number)
    return await platform.booking_views.refund(refund, booking.event_id)


@get(
    "/v1/bookings/{booking_id:str}/refunds",
    operation_id="list_refunds",
    summary="The refunds of a booking",
    opt={"access": Access.OWNER},
)
async def list_refunds(platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]) -> RefundList:
    booking = await platform.own_bookings.find(caller, booking_id)
    refunds = await platform.ledger.payments.refunds_of(booking.id)
    return RefundList([await platform.booking_views.refund(one, booking.event_id) for one in refunds])


@post(
    "/v1/bookings/{booking_id:str}/returns",
    operation_id="return_tickets",
    summary="Return tickets to the pool: refunded once they are sold again",
    opt={"access": Access.OWNER, "problems": (409,)},
)
async def return_tickets(
    platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], data: JSONBody[SeatsBody]
) -> ReturnList:
    booking = await platform.own_bookings.find(caller, booking_id)
    some = await platform.booking_views.indexes(booking, data.seats) or ()
    given = await platform.box_office.resale.give_back(booking.id, booking.fan, booking.fence, some)
    views = [
        ReturnView((await platform.booking_views.seat_ids(one.event_id, (one.seat_index,)))[0], one.state.value)
        for one in given
    ]
    return ReturnList(views)


@post(
    "/v1/bookings/{booking_id:str}/priority",
    operation_id="priority_pass",
    summary="A pass for a fan who lost seats because the payment provider was away",
    opt={"access": Access.OWNER, "problems": (409,), "idempotency": "own"},  # asked for again it is the same
)
async def priority_pass(platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]) -> PassView:
    booking = await platform.own_bookings.find(caller, booking_id)
    text, expires_s = await make_priority_pass(platform, booking)
    return PassView(pass_=text, expires_at_s=expires_s)


def give_pass(platform: Platform, event_id: str, fan: str, why: str) -> PassView:
    """A pass for the fan of an offer, without a place in the queue. It cannot be renewed."""
    text, expires_s = platform.room.passes.beside_the_line(event_id, fan, why)
    return PassView(pass_=text, expires_at_s=expires_s)


@post(
    "/v1/bookings/{booking_id:str}/simulated-bank",
    operation_id="answer_bank",
    summary="Demo only: complete the simulated bank's 3-D Secure step",
    status_code=200,
    opt={"access": Access.OWNER, "problems": (410,)},
)
async def answer_bank(platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]) -> BookingView:
    booking = await platform.own_bookings.find(caller, booking_id)
    finish = getattr(getattr(platform.box_office.provider, "inner", None), "finish_action", None)
    payments = await platform.ledger.payments.payments_of(booking.id)
    if finish is None or not payments or not payments[-1].ref:
        raise NotFound("there is no simulated bank here")
    finish(payments[-1].ref)
    return await platform.booking_views.current(booking)


ROUTES: list[HTTPRouteHandler] = [
    shared_route(GET_BOOKING),
    shared_route(PAY),
    cancel_booking,
    quote_refund,
    ask_refund,
    list_refunds,
    return_tickets,
    priority_pass,
    answer_bank,
]
