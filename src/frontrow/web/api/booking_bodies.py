"""The bodies of bookings, payments and refunds, and how they are made from the ledger's records."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from frontrow.boxoffice.checkout.checkout import CheckoutResult, CheckoutState
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState, HoldEnded
from frontrow.boxoffice.payments.model.provider_intents import MISTYPED
from frontrow.boxoffice.pricing.model.prices import decode_lines
from frontrow.boxoffice.pricing.model.sale_options import MAX_ADD_ONS, MAX_OF_ONE_ADD_ON
from frontrow.boxoffice.refunds.model.refund_lines import RefundLine, RefundLineKind, decode_refund_lines
from frontrow.boxoffice.refunds.model.refunds import Refund
from frontrow.core.errors import NotFound, Refused
from frontrow.web.endpoints.json_values import MoneyView, Time, time_text
from frontrow.web.endpoints.price_lines import PriceLineView, line_views
from frontrow.web.platform.platform import Platform


class CheckoutView(msgspec.Struct):
    """The state of the payment. `retrying`: the provider does not answer; the seats stay held and the payment continues
    automatically at `retry_at`. `open`: `problem` says what was wrong with the last card, and `tries_left` how many
    cards may still be declined."""

    state: Annotated[str, msgspec.Meta(examples=["confirmed"])]
    client_secret: str = ""
    action_url: str = ""
    retry_at: Time | None = None
    problem: str = ""
    tries_left: int | None = None


class BookingView(msgspec.Struct):
    """One booking as its owner sees it. `lines` are the price as it was sold, whatever was returned later."""

    booking: Annotated[str, msgspec.Meta(examples=["bkg_01JCQ3W2N4X7Z8Y9A0B1C2D3E4"])]
    event: str
    state: Annotated[str, msgspec.Meta(examples=["held"])]
    seats: list[str]
    amount: MoneyView
    fence: int
    created_at: Time
    hold_expires_at: Time | None = None
    confirmed_at: Time | None = None
    checkout: CheckoutView | None = None
    lines: list[PriceLineView] = []


class RefundLineView(msgspec.Struct):
    """One line of a refund; they add up to its amount. `seat`, `add_on` and `fee` (per booking) go back at what was
    paid for them. Of the other kinds, a negative amount is withheld: `group_price`, because the seats that stay are too
    few for their price; `seat_fees_kept`, `booking_fees_kept`, `share_kept` and `refund_fee`, by the event's policy;
    `refunded_before`, because that money went back in another way."""

    kind: Annotated[str, msgspec.Meta(examples=["add_on"])]
    name: Annotated[str, msgspec.Meta(examples=["Dinner"])]
    quantity: int
    amount: MoneyView
    seats: list[str]
    add_on: Annotated[str, msgspec.Meta(description="the key of an add-on", examples=["dinner"])] = ""


class RefundView(msgspec.Struct):
    """The refund of seats and add-ons. `fee` is what the organiser keeps. Refunds from before lines were stored have
    none."""

    refund: str
    booking: str
    state: Annotated[str, msgspec.Meta(examples=["asked"])]
    seats: list[str]
    amount: MoneyView
    fee: MoneyView
    created_at: Time
    lines: list[RefundLineView] = []


AddOnCounts = Annotated[
    dict[str, Annotated[int, msgspec.Meta(ge=1, le=MAX_OF_ONE_ADD_ON)]],
    msgspec.Meta(max_length=MAX_ADD_ONS, description="how many of which add-on, by key", examples=[{"dinner": 1}]),
]
RefundNumber = Annotated[
    int | None,
    msgspec.Meta(description="the `number` of the quote: repeating the request then never refunds twice"),
]


class CardDeclined(Refused):
    """The bank declined the card (B9). While `tries_left` is above 0 another card may be tried."""

    code = "payment_declined"
    http_status = 402


class CardMistyped(Refused):
    """The card number, date or security code is wrong. The card was not declined, and the seats stay held."""

    code = "card_mistyped"
    http_status = 402


async def seat_ids(platform: Platform, event_id: str, seats: tuple[int, ...]) -> list[str]:
    """The public ids of seats of an event, also of one that is not sold on this server."""
    names = await all_seat_ids(platform, event_id)
    return [names[seat] for seat in seats if seat < len(names)]


async def all_seat_ids(platform: Platform, event_id: str) -> tuple[str, ...]:
    """The public ids of all seats of an event, by index."""
    try:
        return platform.box_office.sales.get(event_id).plan.seat_ids
    except NotFound:
        return await platform.box_office.renderer.seat_names(await platform.ledger.catalogue.event(event_id))


async def indexes(platform: Platform, booking: Booking, seats: list[str]) -> list[int] | None:
    """The seats' indexes; None when none are named (all)."""
    if not seats:
        return None
    names = await seat_ids(platform, booking.event_id, booking.seats)
    indexes = dict(zip(names, booking.seats, strict=True))
    missing = [seat for seat in seats if seat not in indexes]
    if missing:
        raise Refused(f"not part of this booking: {', '.join(missing[:10])}", param="seats", seats=missing[:10])
    return sorted({indexes[seat] for seat in seats})


async def booking_view(
    platform: Platform, booking: Booking, outcome: CheckoutResult | None = None, *, tax: bool = False
) -> BookingView:
    """The booking. With `tax` its price has a line for the tax too."""
    live = booking.state in (BookingState.HELD, BookingState.PAYING)
    over = live and not booking.live(platform.clock())
    names = await all_seat_ids(platform, booking.event_id)
    taxes = await platform.box_office.receipts.tax_lines(booking) if tax else ()
    return BookingView(
        booking.id,
        booking.event_id,
        "expired" if over else booking.state.value,
        [names[seat] for seat in booking.seats if seat < len(names)],
        MoneyView(booking.amount_minor, booking.currency),
        booking.fence,
        time_text(booking.created_at_us),
        time_text(booking.hold_expires_at_us) if live else None,
        time_text(booking.confirmed_at_us) if booking.confirmed_at_us else None,
        checkout_view(outcome) if outcome is not None else None,
        line_views((*decode_lines(booking.price_lines), *taxes), names, booking.currency),
    )


def checkout_view(outcome: CheckoutResult) -> CheckoutView:
    retry_at_us = outcome.retry_at_us
    return CheckoutView(
        outcome.state.value,
        outcome.client_secret,
        outcome.action_url,
        time_text(retry_at_us) if retry_at_us else None,
        outcome.problem,
        outcome.tries_left if outcome.state is CheckoutState.OPEN else None,
    )


async def read_booking_view(platform: Platform, booking: Booking) -> BookingView:
    """The booking with the state of its payment, if there is one."""
    if booking.state is not BookingState.PAYING:
        return await booking_view(platform, booking, tax=True)
    try:
        outcome = await platform.box_office.checkout.check(booking.id, booking.fence)
    except HoldEnded:
        return await booking_view(platform, booking, tax=True)
    return await booking_view(platform, outcome.booking, outcome, tax=True)


def declined(outcome: CheckoutResult, *, tried: bool = True) -> Refused | None:
    """The error for a card that was `tried` and refused; None otherwise."""
    about: dict[str, Any] = {"booking": outcome.booking.id, "reason": outcome.payment.reason if outcome.payment else ""}
    if outcome.state is CheckoutState.DECLINED:
        return CardDeclined("the card was declined and the seats are free again", **about, tries_left=0)
    if not tried or not outcome.problem:
        return None
    if outcome.problem in MISTYPED:
        return CardMistyped("the card number, date or security code is wrong; the seats are still held", **about)
    return CardDeclined(
        "the card was declined; the seats are still held, try another card", **about, tries_left=outcome.tries_left
    )


async def refund_view(platform: Platform, refund: Refund, event_id: str) -> RefundView:
    return RefundView(
        refund.id,
        refund.booking_id,
        refund.state.value,
        await seat_ids(platform, event_id, refund.seats),
        MoneyView(refund.amount_minor, refund.currency),
        MoneyView(refund.fee_minor, refund.currency),
        time_text(refund.created_at_us),
        await refund_line_views(platform, event_id, decode_refund_lines(refund.lines), refund.currency),
    )


async def refund_line_views(
    platform: Platform, event_id: str, lines: Sequence[RefundLine], currency: str
) -> list[RefundLineView]:
    """The lines of a refund with the ids of their seats."""
    return [
        RefundLineView(
            line.kind.value,
            line.name,
            line.quantity,
            MoneyView(line.amount_minor, currency),
            await seat_ids(platform, event_id, line.seats),
            line.key if line.kind is RefundLineKind.ADD_ON else "",
        )
        for line in lines
    ]
