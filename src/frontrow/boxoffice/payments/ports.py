"""The ports of payments: the provider that collects the money, and the ledger's payment book."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.events.ports import Catalogue
from frontrow.boxoffice.facts.model import Fact
from frontrow.boxoffice.holds.model.bookings import Booking, Move
from frontrow.boxoffice.holds.ports.ledger import Ledger
from frontrow.boxoffice.payments.model.disputes import PaymentDispute
from frontrow.boxoffice.payments.model.payment_accounts import PaymentAccount
from frontrow.boxoffice.payments.model.payment_methods import PaymentMethod
from frontrow.boxoffice.payments.model.payments import Payment
from frontrow.boxoffice.payments.model.provider_intents import Intent, NewIntent, Notice, ProviderRefund
from frontrow.boxoffice.refunds.model.refunds import BookingSeen, Refund
from frontrow.boxoffice.refunds.ports.returns import ReturnsBook
from frontrow.boxoffice.tickets.model.tickets import NewTicket
from frontrow.core.breaker import Breaker


class PaymentProvider(Protocol):
    """A payment provider. Each write has a key: a repeated key is the same call and gets the same answer.

    Every method may raise `ProviderUnknown` (it may or may not have happened) and `ProviderNotCalled` (it did not).
    `ProviderRefused` is a definite refusal. Adapters do not retry; the services do.
    """

    @property
    def name(self) -> str:
        """Names it in the ledger and in `/v1/webhooks/{name}`: small letters, digits and dashes."""
        ...

    @property
    def methods(self) -> Sequence[PaymentMethod]:
        """What people can pay with here, in the order in which it is offered."""
        ...

    async def create(self, new: NewIntent) -> Intent:
        """Create the provider's object. Without a method no money moves and none is reserved.

        With a method the money is reserved on that card, and the answer is that of `authorise`. A provider that needs
        two calls for it may ignore the method and answer `created` without an error. `new.methods` are what its form
        may offer. What it can never take, such as a currency, is a `ProviderRefused` in one sentence.
        """
        ...

    async def authorise(self, ref: str, method: str, key: str, return_url: str = "") -> Intent:
        """Reserve the money on this card, or begin to pay with this method of another family.

        `method` is one of our ids in `methods` other than `card`, or the provider's name for a card. The result is
        `authorised`, `action` (the fan has something to do at `action_url`), or declined: an `error` on a `created`
        object, which may be tried with another card. Money that comes at once is `captured` without a capture, slow
        money is `processing` first; a bank transfer names its `transfer` details with it. A bank's page sends the fan
        back to `return_url`. Once it is known, the answer names the `method`, ours.
        """
        ...

    async def capture(self, ref: str, key: str) -> Intent:
        """Take the reserved money, once. `ProviderRefused` when the reservation is gone.

        `processing`: it was accepted, and the result comes with a notice, or is read later.
        """
        ...

    async def void(self, ref: str, key: str) -> Intent:
        """Cancel the object and its reservation for good. Safe to repeat. `ProviderRefused` once captured.

        `processing`: it was accepted and the result comes later, or awaited money cannot be stopped any more. Then the
        object is read until it is `void` or `captured`.
        """
        ...

    async def refund(self, ref: str, amount_minor: int, refund_id: str, key: str) -> ProviderRefund:
        """Refund part of what was captured, never more than that in total."""
        ...

    async def read(self, ref: str) -> Intent:
        """The object as it is now, with its refunds. `ProviderRefused` when it does not exist."""
        ...

    async def page(self, since_us: int, after: str = "", limit: int = 100) -> list[Intent]:
        """Our objects created at `since_us` or later, newest first, from after `after` on. Used to reconcile."""
        ...

    def notice(self, body: bytes, headers: Mapping[str, str], now_us: int) -> Notice | None:
        """The notice in a webhook, or None if it does not concern us. `Unauthorised` if it is not genuine and fresh.

        `headers` are all headers of the request, by their names in small letters.
        """
        ...

    async def aclose(self) -> None: ...


class ProviderNote(msgspec.Struct, frozen=True):
    """One thing that was said between us and a provider about one of its objects."""

    ref: str  # of the object, as our payments name it
    name: str  # what it is about; a note is kept once per object and name
    account: str = ""
    their_ref: str = ""  # the provider's own name for what it is about
    body: str = "{}"  # JSON, as the adapter wants to read it again
    at_us: int = 0


class ProviderNotes(Protocol):
    """Keeps what was said of objects that cannot be read at their provider (`ledger.provider_notes`)."""

    async def keep(self, provider: str, note: ProviderNote) -> bool:
        """Keep a note. False if there was one of this name."""
        ...

    async def notes_of(self, provider: str, refs: Sequence[str]) -> dict[str, list[ProviderNote]]:
        """The notes of these objects, the oldest first."""
        ...

    async def ref_of(self, provider: str, their_ref: str) -> str:
        """The object that the provider names so; empty if there is none."""
        ...

    async def newest(self, provider: str, account: str, since_us: int, after: str, limit: int) -> list[str]:
        """The objects whose note `made` is of `since_us` or later, the newest first, from after `after` on."""
        ...


@runtime_checkable
class RemembersNotices(Protocol):
    """A provider whose objects cannot be read: what it tells is kept, and read from there."""

    async def remember(self, notice: Notice) -> Notice:
        """Keep a verified notice. Returns it with the name that our payment has for the object."""
        ...

    async def returned(self, ref: str, answers: Mapping[str, str]) -> bool:
        """Keep what the provider says of a fan who has come back from its page with these answers. False: the answers
        are not of its page."""
        ...


@runtime_checkable
class HasAccounts(Protocol):
    """A provider that can collect money for accounts other than the server's own."""

    def for_account(self, account: str) -> PaymentProvider:
        """The same provider, each call of which is made for this account. It needs no closing."""
        ...


class Payee(msgspec.Struct, frozen=True):
    """Who takes the money of a new payment. `provider` "": the default. `account` "": the server's own."""

    provider: str = ""
    account: str = ""
    fee_basis_points: int = 0  # of the amount, what the platform keeps of it


class AccountLook(msgspec.Struct, frozen=True):
    """What a provider says of an organiser's account."""

    ready: bool  # it can take payments
    closed: bool = False  # it was closed, or taken away from us: nothing can be called for it any more
    reason: str = ""  # what is missing, in the provider's words


class ProviderPayout(msgspec.Struct, frozen=True):
    """Money that a provider sent from an account to its owner's bank."""

    ref: str
    amount_minor: int
    currency: str
    arrives_at_us: int
    paid: bool


@runtime_checkable
class OpensAccounts(Protocol):
    """A provider at which organisers open accounts of their own."""

    async def open_account(self, organiser_id: str, key: str) -> str:
        """A new account for this organiser, still to be filled in. The same key gives the same account."""
        ...

    async def onboarding_url(self, account: str, return_url: str) -> str:
        """Where its owner fills in what is missing, and comes back from. Good for a few minutes, once."""
        ...

    async def look(self, account: str) -> AccountLook:
        """How the account stands now."""
        ...

    async def payouts(self, account: str, limit: int) -> list[ProviderPayout]:
        """The last payouts of the account, the newest first."""
        ...


class MoneyAtAccount(msgspec.Struct, frozen=True):
    """What one organiser's sales took at one account, in one currency."""

    provider: str
    account: str
    currency: str
    captured_minor: int = 0
    refunded_minor: int = 0
    fee_minor: int = 0  # of the captured money, what is the platform's
    waiting: int = 0  # refunds that are owed

    @property
    def kept_minor(self) -> int:
        """What is left for the organiser."""
        return self.captured_minor - self.refunded_minor - self.fee_minor


class PaymentAccountBook(Protocol):
    """The accounts of organisers (`ledger.payment_accounts`). None is ever deleted: refunds go where the charge was."""

    async def put(self, account: PaymentAccount, change: Change) -> None:
        """Make or change an account, and end the organiser's other one if this one is not ended."""
        ...

    async def all_accounts(self) -> list[PaymentAccount]: ...

    async def money(self, organiser_id: str) -> list[MoneyAtAccount]:
        """What the organiser's sales took, by account and currency."""
        ...


class AccountsLedger(Protocol):
    """The ledger as the accounts of organisers use it."""

    @property
    def catalogue(self) -> Catalogue: ...

    @property
    def payment_accounts(self) -> PaymentAccountBook: ...


class Payees(Protocol):
    """Decides who takes the money of a booking's next payment. Those that were begun stay where they are."""

    async def payee(self, booking: Booking) -> Payee: ...

    async def accounts(self) -> Sequence[Payee]:
        """Every account other than the server's own that may have taken money, to be reconciled."""
        ...


class NoticeListener(Protocol):
    """Acts on notices that are not about how a payment stands, such as disputes and accounts.

    It is called again if the process dies before the notice is recorded, so it must be safe to repeat.
    """

    async def heard(self, provider: str, notice: Notice, payment: Payment | None) -> None: ...


@runtime_checkable
class BehindBreaker(Protocol):
    """A provider that is not called while it does not answer."""

    @property
    def breaker(self) -> Breaker: ...


class PaymentReads(Protocol):
    """Read-only access to payments and refunds (`ledger.payments`)."""

    async def payment(self, payment_id: str) -> Payment | None: ...

    async def payments_of(self, booking_id: str) -> list[Payment]:
        """All payments of a booking, first to last."""
        ...

    async def payment_by_ref(self, provider: str, ref: str) -> Payment | None: ...

    async def seat_prices(self, booking_id: str) -> dict[int, int]:
        """What was paid for each seat that the booking still has, in minor units: its price, its fees, its part of a
        discount. In bookings made before ADR 0180 also shares of add-ons and fees per booking."""
        ...

    async def refunds_of(self, booking_id: str) -> list[Refund]: ...

    async def disputes_of(self, booking_id: str) -> list[PaymentDispute]:
        """The disputes of a booking's payments, the earliest first."""
        ...

    async def disputes_of_ref(self, provider: str, payment_ref: str) -> list[PaymentDispute]:
        """The disputes of the provider's object with this name, whether a payment of ours has it or not."""
        ...

    async def disputes(self, organiser_id: str, event_id: str, limit: int) -> list[PaymentDispute]:
        """Disputes, the newest first, of one event or (empty) of all; an empty organiser is everybody."""
        ...

    async def dispute_mark(self, event_id: str) -> tuple[int, int]:
        """(number of disputes, time of the last change): it changes with every dispute of the event."""
        ...

    async def disputed_tickets(self, event_id: str, limit: int) -> list[str]:
        """The ids of the event's valid tickets whose money is disputed or lost."""
        ...

    def all_payments(self) -> AsyncIterator[Payment]:
        """Every payment in the order of ids, read page by page."""
        ...

    def payments_between(self, spans: Sequence[tuple[int, int]]) -> AsyncIterator[Payment]:
        """The payments created in one of these spans (from, until], and all that are unfinished or lapsed."""
        ...


class PaymentBook(PaymentReads, Protocol):
    """Payments and refunds in the ledger (`ledger.payments`).

    Every change is compare-and-set on `version`. Where it moves the booking, both are written or neither. A repeated
    change gets the same answer again.
    """

    async def save_payment(
        self,
        payment: Payment,
        *,
        now_us: int,
        move: Move | None = None,
        fence: int = 0,
        facts: Sequence[Fact] = (),
        reason: str = "",
        tickets: Sequence[NewTicket] = (),
        expires_at_us: int = 0,
    ) -> Booking | None:
        """Write version n of a payment over version n-1 (or the first version), and make the booking's move with it.

        `PaymentChanged` when another caller was faster, or when the booking has another unfinished payment. `tickets`
        are written with a confirm, `expires_at_us` is the hold's new end in an extend. The move's
        errors are those of the Ledger; then nothing has changed.
        """
        ...

    async def claim_payments(self, now_us: int, until_us: int, limit: int) -> list[Payment]:
        """Claim payments that are due (`0 < retry_at_us <= now_us`). Nobody else gets them before `until_us`."""
        ...

    async def wake_payments(self, now_us: int, limit: int) -> int:
        """Make payments due now that an outage postponed, the longest unchanged first.

        Their retries begin anew. Payments that a driver has claimed are left to it. Returns how many there were.
        """
        ...

    async def ask_refund(
        self,
        refund: Refund,
        *,
        fence: int,
        now_us: int,
        late: bool = False,
        seen: BookingSeen | None = None,
        uses: Sequence[tuple[str, int]] = (),
        facts: Sequence[Fact] = (),
    ) -> Refund:
        """Record that money is owed for the refund's lines and free its seats, in one transaction.

        For all seats: confirmed -> refunded. For some or none: the booking keeps the others. Of many racing callers
        exactly one gets a seat's refund; the others are refused (`MoveRefused`, `SeatsNotInBooking`). A repeated refund
        gets the same answer; another one with the same id, or for a booking that is no longer as it was `seen`, is
        refused (`PaymentChanged`). `uses` is what the booking still uses of codes, stocks and limits. `late`: money
        came for a booking that is over, and only the refund is written. The `facts` are written with the refund, once.
        """
        ...

    async def save_refund(self, refund: Refund, *, now_us: int, facts: Sequence[Fact] = ()) -> None: ...

    async def record_dispute(self, dispute: PaymentDispute, *, facts: Sequence[Fact] = ()) -> bool:
        """Write a new dispute, or move a known one as its table allows, in one atomic step. False: nothing was new.

        The facts are written with it. Refunds of the booking that waited for its end are due at once.
        """
        ...

    async def claim_refunds(self, now_us: int, until_us: int, limit: int) -> list[Refund]: ...


class PaymentLedger(Ledger, Protocol):
    """The ledger as payments use it."""

    @property
    def catalogue(self) -> Catalogue: ...

    @property
    def payments(self) -> PaymentBook: ...

    @property
    def payment_accounts(self) -> PaymentAccountBook: ...

    @property
    def returns(self) -> ReturnsBook: ...
