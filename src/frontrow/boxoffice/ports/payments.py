"""The box office's ports to money: the provider who takes it and the part of the ledger that writes it down."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from frontrow.boxoffice.model.bookings import Booking, Move
from frontrow.boxoffice.model.facts import Fact
from frontrow.boxoffice.model.payments import Payment, Refund
from frontrow.boxoffice.model.provider_intents import Intent, NewIntent, Notice, ProviderRefund
from frontrow.boxoffice.model.tickets import NewTicket


class PaymentProvider(Protocol):
    """Somebody who can take money. Each write has a key: the same key again is the same call, with the same answer.

    Every method may raise `ProviderUnknown` (it may or may not have happened) and `ProviderNotCalled` (it did not);
    `ProviderRefused` is a definite no. Nothing here retries: that is the services' business.
    """

    @property
    def name(self) -> str: ...

    async def create(self, new: NewIntent) -> Intent:
        """Make the provider's object. No money moves and none is reserved."""
        ...

    async def authorise(self, ref: str, method: str, key: str) -> Intent:
        """Reserve the money on this card: `authorised`, `action` (the bank wants to see the fan) or declined (an
        `error` on a `created` object, which may be tried with another card)."""
        ...

    async def capture(self, ref: str, key: str) -> Intent:
        """Take the reserved money, once. `ProviderRefused` when the reservation is gone."""
        ...

    async def void(self, ref: str, key: str) -> Intent:
        """Drop the object and what it reserves, for ever; void already is fine. `ProviderRefused` once captured."""
        ...

    async def refund(self, ref: str, amount_minor: int, refund_id: str, key: str) -> ProviderRefund:
        """Give back so much of what was captured; never more than that in all."""
        ...

    async def read(self, ref: str) -> Intent:
        """The object as it is now, with its refunds. `ProviderRefused` when there is none."""
        ...

    async def page(self, since_us: int, after: str = "", limit: int = 100) -> list[Intent]:
        """Our objects made at `since_us` or later, newest first, from after `after` on; for the reconciler."""
        ...

    def notice(self, body: bytes, signature: str, now_us: int) -> Notice | None:
        """What a webhook says, if it is genuine and fresh (`Unauthorised` if not); None: nothing that concerns us."""
        ...

    async def aclose(self) -> None: ...


class PaymentBook(Protocol):
    """Payments and refunds in the ledger. Every change is compare-and-set on `version`, together with a move of the
    booking where there is one: both or neither. The same change again is answered as the first time."""

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
        """Write version n of a payment over version n-1 (or the first one), and make the booking's move with it.

        `PaymentChanged` when somebody else was quicker, also when the booking has another payment that is not over.
        `tickets` go with a confirm. The move's errors are those of the Ledger; nothing changed then.
        """
        ...

    async def payment(self, payment_id: str) -> Payment | None: ...

    async def payments_of(self, booking_id: str) -> list[Payment]:
        """All attempts, first to last."""
        ...

    async def payment_by_ref(self, provider: str, ref: str) -> Payment | None: ...

    async def lease_payments(self, now_us: int, until_us: int, limit: int) -> list[Payment]:
        """Payments that somebody should look at now (`0 < retry_at_us <= now_us`); nobody else gets them until then."""
        ...

    async def seat_prices(self, booking_id: str) -> dict[int, int]:
        """What each seat of the booking that is still its own was sold for, in minor units, fees included."""
        ...

    async def ask_refund(self, refund: Refund, *, fence: int, now_us: int, late: bool = False) -> Refund:
        """Write down that money is owed for these seats and give the seats back to sale, in one transaction.

        All seats: confirmed -> refunded; some: the booking shrinks. Exactly one of many racing callers gets a seat's
        refund; the others are refused (`MoveRefused`, `SeatsNotInBooking`). The same refund id again: as before.
        `late`: money came for a booking that is over; the refund is all that changes.
        """
        ...

    async def save_refund(self, refund: Refund, *, now_us: int, facts: Sequence[Fact] = ()) -> None: ...

    async def refunds_of(self, booking_id: str) -> list[Refund]: ...

    async def lease_refunds(self, now_us: int, until_us: int, limit: int) -> list[Refund]: ...

    def all_payments(self) -> AsyncIterator[Payment]:
        """Every payment in the order of ids, read page by page."""
        ...
