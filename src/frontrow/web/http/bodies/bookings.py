"""The bodies of bookings, payments and refunds (`endpoints.booking_views` makes them from the ledger's records)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from frontrow.boxoffice.checkout.checkout import CheckoutResult, CheckoutState
from frontrow.boxoffice.payments.model.card_declines import MISTYPED
from frontrow.boxoffice.pricing.model.prices import DIFFERENT, PriceLine
from frontrow.boxoffice.pricing.model.sale_options import MAX_ADD_ONS, MAX_OF_ONE_ADD_ON
from frontrow.boxoffice.seats.model.seat_names import seat_name
from frontrow.core.errors import Refused
from frontrow.shared.local_time import time_text
from frontrow.web.http.bodies.json_values import MoneyView, PriceLineView, Time


class BankTransferView(msgspec.Struct):
    """Where a bank transfer goes. `reference` must be given with it."""

    iban: Annotated[str, msgspec.Meta(examples=["DE89370400440532013000"])]
    reference: str
    holder: str = ""
    bic: str = ""


class CheckoutView(msgspec.Struct):
    """The state of the payment. `retrying`: the provider does not answer; the seats stay held and the payment continues
    automatically at `retry_at`. `open`: `problem` says what was wrong with the last card, `tries_left` how many cards
    may still be declined, and `methods` which methods can be used. `action`: the fan goes on at `action_url`.
    `awaited`: the money is on its way, and the seats stay held until `hold_expires_at`; a bank transfer goes to
    `transfer`."""

    state: Annotated[str, msgspec.Meta(examples=["confirmed"])]
    client_secret: str = ""
    action_url: str = ""
    retry_at: Time | None = None
    problem: str = ""
    tries_left: int | None = None
    methods: list[Annotated[str, msgspec.Meta(examples=["ideal"])]] = []
    transfer: BankTransferView | None = None


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


def checkout_view(outcome: CheckoutResult) -> CheckoutView:
    retry_at_us, to, is_open = outcome.retry_at_us, outcome.transfer, outcome.state is CheckoutState.OPEN
    offered = outcome.payment.offered if outcome.payment is not None and is_open else ""
    return CheckoutView(
        outcome.state.value,
        outcome.client_secret,
        outcome.action_url,
        time_text(retry_at_us) if retry_at_us else None,
        outcome.problem,
        outcome.tries_left if is_open else None,
        offered.split(",") if offered else [],
        BankTransferView(to.iban, to.reference, to.holder, to.bic) if to is not None else None,
    )


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


def line_views(
    lines: Sequence[PriceLine], names: Sequence[str] | Mapping[int, str], currency: str
) -> list[PriceLineView]:
    """The lines with the ids of their seats, which `names` has by index."""
    return [
        PriceLineView(
            line.kind,
            line.name,
            line.quantity,
            None if line.unit_minor == DIFFERENT else MoneyView(line.unit_minor, currency),
            MoneyView(line.amount_minor, currency),
            [seat_name(names, seat) for seat in line.seats],
            line.included,
        )
        for line in lines
    ]
