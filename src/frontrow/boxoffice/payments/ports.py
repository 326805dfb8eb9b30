"""The ports of payments: the provider that collects the money, and the ledger's payment book."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol, runtime_checkable

from frontrow.boxoffice.events.ports import Catalogue
from frontrow.boxoffice.facts.model import Fact
from frontrow.boxoffice.holds.model.bookings import Booking, Move
from frontrow.boxoffice.holds.ports.ledger import Ledger
from frontrow.boxoffice.payments.model.payments import Payment
from frontrow.boxoffice.payments.model.provider_intents import Intent, NewIntent, Notice, ProviderRefund
from frontrow.boxoffice.refunds.model.refunds import Refund
from frontrow.boxoffice.refunds.ports.returns import ReturnsBook
from frontrow.boxoffice.tickets.model.tickets import NewTicket
from frontrow.core.breaker import Breaker


class PaymentProvider(Protocol):
    """A payment provider. Each write has a key: a repeated key is the same call and gets the same answer.

    Every method may raise `ProviderUnknown` (it may or may not have happened) and `ProviderNotCalled` (it did not).
    `ProviderRefused` is a definite refusal. Adapters do not retry; the services do.
    """

    @property
    def name(self) -> str: ...

    async def create(self, new: NewIntent) -> Intent:
        """Create the provider's object. Without a method no money moves and none is reserved.

        With a method the money is reserved on that card, and the answer is that of `authorise`. A provider that needs
        two calls for it may ignore the method and answer `created` without an error.
        """
        ...

    async def authorise(self, ref: str, method: str, key: str) -> Intent:
        """Reserve the money on this card.

        The result is `authorised`, `action` (the bank must verify the fan), or declined: an `error` on a `created`
        object, which may be tried with another card.
        """
        ...

    async def capture(self, ref: str, key: str) -> Intent:
        """Take the reserved money, once. `ProviderRefused` when the reservation is gone."""
        ...

    async def void(self, ref: str, key: str) -> Intent:
        """Cancel the object and its reservation for good. Safe to repeat. `ProviderRefused` once captured."""
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

    def notice(self, body: bytes, signature: str, now_us: int) -> Notice | None:
        """The notice in a webhook, or None if it does not concern us. `Unauthorised` if it is not genuine and fresh."""
        ...

    async def aclose(self) -> None: ...


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
    ) -> Booking | None:
        """Write version n of a payment over version n-1 (or the first version), and make the booking's move with it.

        `PaymentChanged` when another caller was faster, or when the booking has another unfinished payment. `tickets`
        are written with a confirm. The move's errors are those of the Ledger; then nothing has changed.
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
        worth_minor: int | None = None,
        uses: Sequence[tuple[str, int]] = (),
        facts: Sequence[Fact] = (),
    ) -> Refund:
        """Record that money is owed for the refund's lines and free its seats, in one transaction.

        For all seats: confirmed -> refunded. For some or none: the booking keeps the others. Of many racing callers
        exactly one gets a seat's refund; the others are refused (`MoveRefused`, `SeatsNotInBooking`). A repeated refund
        gets the same answer; another one with the same id, or for a booking that is no longer worth `worth_minor`, is
        refused (`PaymentChanged`). `uses` is what the booking still uses of codes, stocks and limits. `late`: money
        came for a booking that is over, and only the refund is written. The `facts` are written with the refund, once.
        """
        ...

    async def save_refund(self, refund: Refund, *, now_us: int, facts: Sequence[Fact] = ()) -> None: ...

    async def claim_refunds(self, now_us: int, until_us: int, limit: int) -> list[Refund]: ...


class PaymentLedger(Ledger, Protocol):
    """The ledger as payments use it."""

    @property
    def catalogue(self) -> Catalogue: ...

    @property
    def payments(self) -> PaymentBook: ...

    @property
    def returns(self) -> ReturnsBook: ...
