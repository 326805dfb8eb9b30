"""Payments (B6, B7): one row per attempt to collect a booking's money, and the table of its states.

A state that ends in `-ing` is saved before the call to the provider and left only on a definite answer. It means that
the outcome is unknown: a process that finds it reads the provider's object and continues. `retry_at_us` says when a
worker should continue (0: never), so a crash needs no other record.

Idempotency keys are `booking:operation:attempt`. A call whose request or answer was lost is repeated under its key. A
new key (`attempt.call`) is used only after the provider's definite answer to the old one (such as a stored 500) and a
read of the object. A card after a declined one is a new call too.

The fan may confirm an `open` payment in the browser without us, so the provider's object changes first. One object
takes several cards. A payment counts the cards that were declined (`declines`) and stores the last failure it has read
(`failure`), so that a failure counts once however often it is reported.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from frontrow.boxoffice.payments.model.provider_intents import TransferDetails
from frontrow.boxoffice.payments.model.retry_schedule import RETRIES_S, retry_pause_s
from frontrow.core.errors import NotFound, Refused

EXTERNAL: Final = "external"  # the provider of payments that were made at the box office
BY_FAN: Final = "fan"  # the reason of a refund that its fan asked for
PROVIDER_UNAVAILABLE: Final = "provider_unavailable"  # the reason of a payment that an outage ended
LATE_MONEY: Final = "late_money"  # the reason of a payment that was ended here and got money after all: it goes back


class PaymentState(StrEnum):
    """The state of one attempt to collect the money."""

    CREATING = "creating"
    OPEN = "open"
    AUTHORISING = "authorising"
    ACTION = "action"
    PROCESSING = "processing"  # the fan has agreed, the money is awaited
    AUTHORISED = "authorised"
    CAPTURING = "capturing"
    CAPTURED = "captured"
    VOIDING = "voiding"
    VOIDED = "voided"
    DECLINED = "declined"
    LAPSED = "lapsed"


_TABLE: Final = """
creating     open authorising voiding voided
open         authorising action processing authorised declined captured voiding voided
authorising  open action processing authorised capturing declined captured voiding voided
action       open processing authorised capturing declined captured voiding voided
processing   open authorised capturing declined captured voiding voided
authorised   capturing captured voiding voided
capturing    captured lapsed voiding
captured     -
voiding      voided captured
voided       -
declined     -
lapsed       -
"""  # a state, then every state that may follow it

NEXT: Final[Mapping[PaymentState, frozenset[PaymentState]]] = {
    PaymentState(words[0]): frozenset(PaymentState(word) for word in words[1:] if word != "-")
    for words in (line.split() for line in _TABLE.strip().splitlines())
}
UNKNOWN: Final = frozenset(
    {PaymentState.CREATING, PaymentState.AUTHORISING, PaymentState.CAPTURING, PaymentState.VOIDING}
)
TAKES_CARDS: Final = frozenset(
    {PaymentState.OPEN, PaymentState.AUTHORISING, PaymentState.ACTION, PaymentState.PROCESSING}
)
BEFORE_SALE: Final = TAKES_CARDS | {PaymentState.CREATING, PaymentState.AUTHORISED}  # a fan is trying to pay
ENDED: Final = frozenset({PaymentState.VOIDED, PaymentState.DECLINED, PaymentState.LAPSED})


class Payment(msgspec.Struct, frozen=True, gc=False):
    """One attempt to collect the money of one booking. `version` grows with each change (compare and set)."""

    id: str
    booking_id: str
    attempt: int
    provider: str
    amount_minor: int
    currency: str
    state: PaymentState = PaymentState.CREATING
    ref: str = ""  # the provider's name for it
    method: str = ""  # the provider's name for the card, or our id of another way of paying
    reason: str = ""  # why it was declined, lapsed or voided
    call: int = 1  # the attempt at the present operation
    tries: int = 0  # retries of the present operation that an outage caused; at most len(RETRIES_S)
    retry_at_us: int = 0
    version: int = 1
    created_at_us: int = 0
    changed_at_us: int = 0
    declines: int = 0  # cards that the bank declined, of all attempts of the booking so far
    failure: str = ""  # the provider's name for the last failure that was seen here
    account: str = ""  # whose account has the money at the provider: "" is the server's own; it never changes
    paid_with: str = ""  # our id of the way of paying that the fan chose, once the provider has told it
    agreed_at_us: int = 0  # of a payment that is `processing`: since when
    offered: str = ""  # our ids of what the provider's form offers, with commas between them; none: a card
    fee_minor: int = 0  # of the amount, what the platform keeps when an organiser's own account takes it
    transfer: TransferDetails | None = None  # of a payment that is `processing`: where the fan has to send the money
    reminded_at_us: int = 0  # of a payment that is `processing`: when its fan was reminded of the transfer

    def moved(self, state: PaymentState, now_us: int, *, retry_at_us: int = 0, **changes: object) -> "Payment":
        """The next version in `state`; a step that is not in the table is a bug."""
        if state is not self.state:
            assert state in NEXT[self.state], f"a payment that is {self.state} cannot become {state}"
            call = self.call if {self.state, state} <= TAKES_CARDS else 1  # a key is never used for two cards
            agreed_at_us = now_us if state is PaymentState.PROCESSING else 0
            as_new = {"call": call, "tries": 0, "agreed_at_us": agreed_at_us, "transfer": None, "reminded_at_us": 0}
            changes = as_new | changes
        return replace(
            self, state=state, changed_at_us=now_us, retry_at_us=retry_at_us, version=self.version + 1, **changes
        )

    def retry_later(self, now_us: int, *, answered: bool) -> "Payment":
        """The next version after an outage. The key changes only if the provider answered the old one.

        `tries` stops growing: servers of version 0.1 give a payment up after five.
        """
        return replace(
            self,
            tries=min(self.tries + 1, len(RETRIES_S)),
            call=self.call + answered,
            retry_at_us=now_us + retry_pause_s(self.tries) * 1_000_000,
            changed_at_us=now_us,
            version=self.version + 1,
        )

    def key(self, operation: str) -> str:
        """The idempotency key of the present call."""
        return call_key(self.booking_id, operation, self.attempt, self.call)

    @property
    def may_have_object(self) -> bool:
        """Whether the provider may have an object that can take or hold money: one that is known, or one whose creation
        with a card was not answered yet."""
        return bool(self.ref or self.method)

    @property
    def is_lost_to_outage(self) -> bool:
        """Whether an outage of the provider ended this payment of a hold that is over, or is about to: the fan gets
        priority."""
        return self.reason == PROVIDER_UNAVAILABLE or (self.tries > 0 and self.state in BEFORE_SALE)


def call_key(booking_id: str, operation: str, attempt: int, call: int) -> str:
    """`booking:operation:attempt`, and `.call` where a stored answer forced a new key."""
    return f"{booking_id}:{operation}:{attempt}" + (f".{call}" if call > 1 else "")


class PaymentChanged(Refused):
    """Another process changed this payment or refund: load it and decide again."""

    code = "payment_changed"

    def __init__(self, payment_id: str) -> None:
        super().__init__(f"payment {payment_id} was changed by another process; load it again", payment=payment_id)


class PaymentNotFound(NotFound):
    code = "payment_not_found"
