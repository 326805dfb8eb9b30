"""Facts: what happened, past tense, written to the outbox in the very transaction that made it so.

On the wire a fact is JSON with its class name under `fact`. Consumers may see one twice (the outbox delivers at least
once) and deduplicate by the outbox number. Unknown fields are ignored, so a newer writer does not stop an older reader.
"""

from typing import Final, TypeAlias, get_args

import msgspec

from frontrow.shared.guest_identity import with_event


class _Fact(msgspec.Struct, frozen=True, tag_field="fact", tag=True, gc=False):
    booking_id: str
    event_id: str
    fan: str
    fence: int
    seats: tuple[int, ...]
    at_us: int


class HoldPlaced(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    expires_at_us: int = 0


class HoldExtended(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    expires_at_us: int = 0


class HoldChanged(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The fan chose other seats: `seats` are those held now, `left` those that are free again."""

    left: tuple[int, ...] = ()


class HoldReleased(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The fan gave the seats back."""


class HoldExpired(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    """Time ran out. `was` is `paying` when an authorisation may have to be voided."""

    was: str = "held"


class PaymentBegun(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    pass


class PaymentSteppedBack(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The fan went back from paying to a plain hold."""


class PaymentDeclined(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The payment failed; the seats are free (B9). `reason`: the bank's, or `event_cancelled`."""

    reason: str = ""


class BookingConfirmed(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    amount_minor: int = 0
    currency: str = ""


class BookingCancelled(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    reason: str = ""  # `capture_failed`: the bank took its word back


class BookingRefunded(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    pass


class BookingPartlyRefunded(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    """`seats` are those given back, `add_ons` what else was, by name: ("2 × Dinner",)."""

    add_ons: tuple[str, ...] = ()


class BookingReseated(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The organiser moved the booking: `seats` are its new ones, `left` those it had."""

    left: tuple[int, ...] = ()


class LatePaymentReturned(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The money came after the hold had ended; the fan gets it back and hears so once (B9, F4)."""

    amount_minor: int = 0
    currency: str = ""


class _TransferAwaitedFact(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    amount_minor: int = 0
    currency: str = ""
    until_us: int = 0  # for so long the seats are held for it
    iban: str = ""
    reference: str = ""
    holder: str = ""
    bic: str = ""


class BankTransferAwaited(_TransferAwaitedFact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The fan chose to transfer the money. Written again if the organiser gives more time for it."""


class BankTransferReminded(_TransferAwaitedFact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The time for it is nearly over, and the money has not come."""


class PriorityGranted(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The provider was away until the hold ended: a pass for the next chance, until `until_us` (B8)."""

    until_us: int = 0


class RefundPaid(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    """`was_delayed`: it failed before."""

    refund_id: str = ""
    amount_minor: int = 0
    currency: str = ""
    was_delayed: bool = False


class RefundFailed(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The provider refused for good: a person must look."""

    refund_id: str = ""
    reason: str = ""


class _DisputeFact(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    dispute: str = ""  # the provider's name for it
    amount_minor: int = 0
    currency: str = ""
    reason: str = ""


class DisputeOpened(_DisputeFact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The fan's bank takes the money back, for now."""


class DisputeEnded(_DisputeFact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The money is the organiser's: the dispute was won, or it ended without a decision."""


class DisputeLost(_DisputeFact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The bank keeps the money."""


# --- Waitlist and resale


class _WaitlistFact(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    entry_id: str = ""


class WaitlistJoined(_WaitlistFact, frozen=True, tag_field="fact", tag=True, gc=False):
    """No booking yet: `booking_id` is empty, `fence` 0."""

    seat_count: int = 0


class WaitlistLeft(_WaitlistFact, frozen=True, tag_field="fact", tag=True, gc=False):
    pass


class WaitlistEnded(_WaitlistFact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The line is over for this fan because the event was cancelled; an open offer was withdrawn."""


class OfferMade(_WaitlistFact, frozen=True, tag_field="fact", tag=True, gc=False):
    """These seats are kept for this fan until `expires_at_us`."""

    offer_id: str = ""
    expires_at_us: int = 0


class OfferClaimed(_WaitlistFact, frozen=True, tag_field="fact", tag=True, gc=False):
    offer_id: str = ""


class OfferDeclined(_WaitlistFact, frozen=True, tag_field="fact", tag=True, gc=False):
    offer_id: str = ""


class OfferLapsed(_WaitlistFact, frozen=True, tag_field="fact", tag=True, gc=False):
    """`last`: the fan did not answer too often and is no longer in line."""

    offer_id: str = ""
    last: bool = False


class TicketReturned(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The holder gave these seats back to the pool; the tickets are dead, the money follows when they are resold."""


class TicketResold(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The returned seat has a new holder (`resold_booking_id`): `amount_minor` is owed to the old one."""

    return_id: str = ""
    resold_booking_id: str = ""
    amount_minor: int = 0
    currency: str = ""


# --- Transfers: `seats` is the one seat, `fan` the buyer


class _TransferFact(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    transfer_id: str = ""


class TransferSent(_TransferFact, frozen=True, tag_field="fact", tag=True, gc=False):
    """A ticket is offered to somebody by e-mail. The sender's ticket is still valid."""


class TransferAccepted(_TransferFact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The recipient has the ticket. The sender's code is revoked."""


class TransferWithdrawn(_TransferFact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The sender keeps the ticket."""


# --- The event itself: no booking (`booking_id` is empty, `fence` 0, no seats) and no fan


class EventSoldOut(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    """Every seat is sold; the public can only join the waitlist."""


class EventReopened(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    """Seats of a sold-out event came back: it is on sale again."""


class EventCompleted(_Fact, frozen=True, tag_field="fact", tag=True, gc=False):
    """The show has ended and nothing more is sold."""


Fact: TypeAlias = (
    HoldPlaced
    | HoldExtended
    | HoldChanged
    | HoldReleased
    | HoldExpired
    | PaymentBegun
    | PaymentSteppedBack
    | PaymentDeclined
    | BookingConfirmed
    | BookingCancelled
    | BookingRefunded
    | BookingPartlyRefunded
    | BookingReseated
    | LatePaymentReturned
    | BankTransferAwaited
    | BankTransferReminded
    | PriorityGranted
    | RefundPaid
    | RefundFailed
    | DisputeOpened
    | DisputeEnded
    | DisputeLost
    | WaitlistJoined
    | WaitlistLeft
    | WaitlistEnded
    | OfferMade
    | OfferClaimed
    | OfferDeclined
    | OfferLapsed
    | TicketReturned
    | TicketResold
    | TransferSent
    | TransferAccepted
    | TransferWithdrawn
    | EventSoldOut
    | EventReopened
    | EventCompleted
)

_encoder = msgspec.json.Encoder()
_decoder: "msgspec.json.Decoder[Fact]" = msgspec.json.Decoder(Fact)


def encode_fact(fact: Fact) -> str:
    """The fact as the outbox and the bus carry it."""
    return _encoder.encode(fact).decode()


FACT_KINDS: Final = frozenset(kind.__name__ for kind in get_args(Fact))
_START: Final = b'{"fact":"'


def kind_of(body: bytes) -> str:
    """The kind of an encoded fact, without decoding it. Empty if it does not look like one."""
    if not body.startswith(_START):
        return ""
    kind = body[len(_START) : body.find(b'"', len(_START))].decode("ascii", "replace")
    return kind if kind in FACT_KINDS else ""


def decode_fact(body: str | bytes) -> Fact:
    """The fact of a text; the person of a fact written before version 12 of the ledger gets the event's name."""
    fact = _decoder.decode(body)
    person = with_event(fact.fan, fact.event_id)
    return fact if person == fact.fan else msgspec.structs.replace(fact, fan=person)


class OutboxFact(msgspec.Struct, frozen=True):
    """A fact with its place in the outbox; `number` grows and identifies it for deduplication."""

    number: int
    fact: Fact
    body: str = ""  # as the outbox has it


class BusFact(msgspec.Struct, frozen=True):
    """A fact on the bus. `number` (of the outbox) identifies it; facts of one `key` keep their order; `place` is the
    bus's own name for this delivery of it."""

    number: int
    key: str
    body: bytes
    place: str = ""

    def fact(self) -> Fact:
        return decode_fact(self.body)


def on_the_bus(outbox: OutboxFact) -> BusFact:
    """A fact as the bus carries it. Its key is its event, so the facts of one event keep their order."""
    fact = outbox.fact
    return BusFact(outbox.number, fact.event_id or fact.booking_id, (outbox.body or encode_fact(fact)).encode())
