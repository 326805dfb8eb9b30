"""The ports of refunds that staff give and of cancelled events."""

from collections.abc import Sequence
from typing import Protocol

from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.gate.ports import RedemptionReads
from frontrow.boxoffice.payments.ports import PaymentLedger
from frontrow.boxoffice.refunds.model.refunds import BookingSeen, Refund
from frontrow.boxoffice.waitlist.ports import WaitlistBook


class RefundReads(Protocol):
    """Refunds that failed (`ledger.organiser`)."""

    async def failed_refunds(self, organiser_id: str, event_id: str, limit: int) -> list[tuple[str, Refund]]:
        """Failed refunds with their events, oldest first, of one event or (empty) of all."""
        ...


class RefundBook(RefundReads, Protocol):
    """Refunds with the note of who gave them, and the jobs of cancelled events (`ledger.organiser`)."""

    async def refund_noted(
        self,
        refund: Refund,
        *,
        fence: int,
        now_us: int,
        change: Change,
        seen: BookingSeen | None = None,
        uses: Sequence[tuple[str, int]] = (),
    ) -> Refund:
        """`PaymentBook.ask_refund` with the note of who gave it, in one transaction. A repeated refund is not noted
        again."""
        ...

    async def save_refund_noted(self, refund: Refund, *, now_us: int, change: Change) -> Refund:
        """Write the next version of a refund with its note, in one transaction."""
        ...

    async def claim_cancellations(self, now_us: int, until_us: int, limit: int) -> list[tuple[str, int]]:
        """Claim cancelled events, each with the time of its cancellation. Workers get distinct ones."""
        ...

    async def note_cancellation(
        self, event_id: str, state: str, done: tuple[int, int, int, int, int], next_at_us: int, now_us: int
    ) -> None:
        """Add the counts of one page: bookings refunded, released, stopped and failed, and returns paid back."""
        ...


class RefundLedger(PaymentLedger, Protocol):
    """The ledger as refunds use it."""

    @property
    def organiser(self) -> RefundBook: ...

    @property
    def redemptions(self) -> RedemptionReads: ...

    @property
    def waitlist(self) -> WaitlistBook: ...
