"""The port of messages to buyers."""

from collections.abc import Callable, Sequence
from typing import Protocol

from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.messages.model.buyer_messages import (
    AudienceScope,
    BuyerMessage,
    MailCounts,
    RecipientCount,
    TicketHolder,
)
from frontrow.boxoffice.messages.model.messages import NewDelivery


class BuyerMessageBook(Protocol):
    """Messages to buyers, and who has tickets (`ledger.buyer_messages`)."""

    async def save_draft(self, draft: BuyerMessage) -> None:
        """Keep the member's draft for this event. It replaces the one before."""
        ...

    async def send(self, message: BuyerMessage, change: Change) -> BuyerMessage:
        """Begin to send, with a note, in one transaction. A message that was sent before is returned as it is.

        `TooManyMessages` over the daily limit, whoever else sends at the same time.
        """
        ...

    async def message(self, message_id: str) -> BuyerMessage | None: ...

    async def messages_of(self, event_id: str, before_us: int, limit: int) -> list[BuyerMessage]:
        """What was sent, newest first."""
        ...

    async def due(self, now_us: int, next_at_us: int, limit: int) -> list[BuyerMessage]:
        """Messages that are being sent and due for work; they are due again at `next_at_us`."""
        ...

    async def queue_next(
        self,
        message_id: str,
        scope: AudienceScope,
        make: Callable[[TicketHolder], Sequence[NewDelivery]],
        limit: int,
        now_us: int,
    ) -> int | None:
        """Queue deliveries to the holders of the next `limit` bookings, in one transaction. Returns how many deliveries
        it made; None when all are queued."""
        ...

    async def finish(self, message_id: str, mails: MailCounts, now_us: int) -> None: ...

    async def count(self, scope: AudienceScope) -> RecipientCount: ...

    async def first_holder(self, scope: AudienceScope) -> TicketHolder | None:
        """One holder with an address."""
        ...

    async def mails(self, queues: Sequence[str]) -> MailCounts: ...
