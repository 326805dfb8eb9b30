"""What a payment provider answers: its object for one payment (`Intent`) with its refunds, and how a call can fail.

ProviderError
├── ProviderUnknown    no answer, or a 5xx: it may or may not have been carried out; read the object
├── ProviderNotCalled  the call was not made (breaker open, cap reached, 429): nothing happened
└── ProviderRefused    a definite no (`reason`): nothing happened, and a retry will not help
"""

from enum import StrEnum
from typing import Final

import msgspec

from frontrow.boxoffice.payments.model.card_declines import MISTYPED
from frontrow.core.errors import FrontrowError


class IntentState(StrEnum):
    """The state of the provider's object."""

    CREATED = "created"  # nothing was tried, or the last try was declined (`error`)
    ACTION = "action"  # the fan has something to do: the bank's question (3-D Secure), the bank's page
    # The fan has agreed and the money is awaited; it can still fail. Also the answer to a capture or a void whose
    # result the provider tells later.
    PROCESSING = "processing"
    AUTHORISED = "authorised"
    CAPTURED = "captured"
    VOID = "void"


class ProviderRefund(msgspec.Struct, frozen=True):
    """A refund at the provider. `pending`: the bank has not decided."""

    ref: str
    amount_minor: int
    refund_id: str = ""  # ours, from its metadata
    failed: bool = False
    pending: bool = False
    failure: str = ""  # why it failed, in the provider's words


class TransferDetails(msgspec.Struct, frozen=True):
    """Where a fan has to send the money, and with which words."""

    iban: str
    reference: str
    holder: str = ""
    bic: str = ""


class Intent(msgspec.Struct, frozen=True):
    """The provider's object for one payment, as it was when read."""

    ref: str
    state: IntentState
    amount_minor: int
    currency: str
    captured_minor: int = 0
    booking_id: str = ""
    attempt: int = 0
    client_secret: str = ""
    action_url: str = ""
    error: str = ""  # why the last card failed
    failure: str = ""  # identifies that failure, so that it counts once: the charge, or the card
    refunds: tuple[ProviderRefund, ...] = ()
    created_at_us: int = 0
    method: str = ""  # our id of the way of paying that the fan chose (payment_methods), once it is known
    transfer: TransferDetails | None = None  # while it waits for a bank transfer

    @property
    def declined(self) -> bool:
        """Whether the last card failed. Another may be tried."""
        return self.state is IntentState.CREATED and bool(self.error)

    @property
    def mistyped(self) -> bool:
        """Whether it failed because of a wrong number, date or code."""
        return self.error in MISTYPED

    @property
    def refunded_minor(self) -> int:
        return sum(refund.amount_minor for refund in self.refunds if not refund.failed)


class NewIntent(msgspec.Struct, frozen=True, gc=False):
    """What is to be paid. Amount, currency and seats come from the ledger.

    With a `method` the provider should authorise it in the same call. If it does not, `authorise` is called next. It is
    our id of a way of paying (payment_methods), or the provider's own name for a card that the fan gave to its form.
    `methods` are the ids of the ways of paying that the fan may choose from in the provider's own form; none: a card.
    `return_url` is where a bank's page sends the fan back to.
    """

    booking_id: str
    attempt: int
    amount_minor: int
    currency: str
    event_id: str
    fence: int
    seats: tuple[int, ...]
    key: str
    method: str = ""
    methods: tuple[str, ...] = ()
    return_url: str = ""
    fee_minor: int = 0  # of the amount, what the platform keeps of a payment to an organiser's own account

    def metadata(self) -> dict[str, str]:
        """What the provider stores with the object, so that each side can be found from the other."""
        return {
            "booking": self.booking_id,
            "attempt": str(self.attempt),
            "event": self.event_id,
            "fence": str(self.fence),
            "seats": ",".join(map(str, self.seats))[:500],
        }


class NoticeKind(StrEnum):
    """What a provider's webhook is about. An adapter maps the provider's own event names to these."""

    AUTHORISED = "authorised"  # the money is reserved on the card
    PAID = "paid"  # the money is there
    PAYMENT = "payment"  # anything else that happened to a payment: on its way, failed, cancelled
    REFUND = "refund"  # a refund was made, paid or refused
    DISPUTE_OPENED = "dispute_opened"  # the fan's bank takes the money back, for now
    DISPUTE_WON = "dispute_won"  # it came back
    DISPUTE_LOST = "dispute_lost"  # it is gone
    DISPUTE_CLOSED = "dispute_closed"  # it ended without a decision, such as an inquiry; no money moved
    ACCOUNT_CHANGED = "account_changed"  # an organiser's own account was verified, restricted or closed
    OTHER = "other"


DISPUTES: Final = frozenset(
    {NoticeKind.DISPUTE_OPENED, NoticeKind.DISPUTE_WON, NoticeKind.DISPUTE_LOST, NoticeKind.DISPUTE_CLOSED}
)


class Dispute(msgspec.Struct, frozen=True):
    """What a notice says of a dispute."""

    ref: str  # the provider's name for the dispute
    amount_minor: int
    currency: str
    reason: str = ""  # in the provider's words
    answer_by_us: int = 0  # until when evidence can be given; 0: unknown, or it cannot


class Notice(msgspec.Struct, frozen=True):
    """A verified webhook: something happened to `ref`. What happened is read from the provider.

    `account` names the account that it concerns ("" is the server's own). `dispute` comes with the kinds of disputes.
    `intent` is for providers whose objects cannot be read: the object, as the notice tells it.
    """

    id: str
    kind: NoticeKind
    ref: str  # of the payment; of the account where the kind is `account_changed`
    account: str = ""
    dispute: Dispute | None = None
    intent: Intent | None = None
    told: str = ""  # what a provider that remembers notices wants to keep of it


class ProviderError(FrontrowError):
    code = "provider_error"
    http_status = 502


class ProviderUnknown(ProviderError):
    """`answered`: the provider answered (a 5xx) and will repeat that answer for the same key."""

    code = "provider_unknown"

    def __init__(self, message: str, *, answered: bool = False) -> None:
        super().__init__(message)
        self.answered = answered


class ProviderNotCalled(ProviderError):
    code = "provider_spared"
    http_status = 503


class ProviderRefused(ProviderError):
    code = "provider_refused"

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message, reason=reason)
        self.reason = reason
