"""The port of the ledger's message book.

Everything here is delivered at least once: what was not acknowledged comes again. A consumer that must not act twice
records the message in the ledger (`MessageBook.once`), in the same transaction as its effect.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from frontrow.boxoffice.facts.ports import Inbox, PlannedWrite
from frontrow.boxoffice.messages.model.channel_reports import BlockedAddress, ReportKind
from frontrow.boxoffice.messages.model.messages import (
    CodeAnswer,
    Contact,
    Delivery,
    DeliveryResult,
    Endpoint,
    InAppMessage,
)
from frontrow.shared.quiet_time import QuietTime


class MessageReads(Protocol):
    """Read-only access to contacts, webhooks and messages (`ledger.messages`)."""

    async def contact(self, fan: str) -> Contact | None: ...

    async def endpoint(self, endpoint_id: str) -> Endpoint | None: ...

    async def endpoints_of(self, event_id: str) -> list[Endpoint]:
        """The active webhook endpoints for an event."""
        ...

    async def in_app(self, fan: str, limit: int = 50) -> list[InAppMessage]:
        """Newest first."""
        ...

    async def blocked(self, addresses: Sequence[tuple[str, str]]) -> dict[tuple[str, str], BlockedAddress]:
        """Those of the (channel, address) pairs that get no more messages, and why."""
        ...


class MessageBook(MessageReads, Inbox, Protocol):
    """Messages in the ledger (`ledger.messages`): deliveries and retries, contacts, webhooks, and the inbox."""

    @property
    def quiet(self) -> QuietTime:
        """When workers may sleep."""
        ...

    async def claim_deliveries(
        self, kind: str, now_us: int, claim_us: int, limit: int, per_queue: int
    ) -> list[Delivery]:
        """Claim due deliveries: at most `per_queue` per queue, and none of a queue that another worker has claimed.

        So a slow or broken queue does not delay the others.
        """
        ...

    async def renew_deliveries(self, numbers: Sequence[int], now_us: int, claim_us: int) -> None:
        """Renew the claims of these deliveries. Claims that have ended are not renewed."""
        ...

    async def save_delivery_results(self, results: Sequence[DeliveryResult], now_us: int) -> None:
        """Record what became of claimed deliveries: sent, given up, or due again later."""
        ...

    async def put_contact(self, contact: Contact, now_us: int) -> None:
        """Store a whole contact with its devices. The address is stored in canonical form."""
        ...

    async def keep_buyer(self, buyer: Contact, event_id: str, now_us: int) -> None:
        """Store the name and address that a buyer entered for this event.

        Empty fields change nothing, and a proven address is not replaced. The name can be searched for in this event
        from now on.
        """
        ...

    async def put_phone_code(self, fan: str, phone: str, digest: str, ends_at_us: int, now_us: int) -> None:
        """Keep the code that was sent to this number, instead of the one before."""
        ...

    async def check_phone_code(self, fan: str, digest_of: Callable[[str], str], now_us: int) -> CodeAnswer:
        """Try a code, in one atomic step. The right one is used up, and its number becomes the fan's proven number.

        `digest_of` gives the digest of what was typed for a number. After five wrong tries a code is over.
        """
        ...

    def make_block_writes(
        self, channel: str, address: str, reason: ReportKind, detail: str, now_us: int
    ) -> Sequence[PlannedWrite]:
        """The writes that stop further messages to an address. A complaint stays the reason, whatever else follows."""
        ...

    def make_unblock_writes(self, channel: str, address: str, reason: ReportKind) -> Sequence[PlannedWrite]:
        """The writes that allow messages again to an address that was blocked for this reason."""
        ...

    async def unblock(self, channel: str, address: str, now_us: int) -> bool:
        """Allow messages to this address again, whatever the reason was. False when it was not blocked."""
        ...

    async def drop_device(self, fan: str, endpoint: str, now_us: int) -> None:
        """Forget a device for push that is gone."""
        ...

    async def put_endpoint(self, endpoint: Endpoint, now_us: int) -> None: ...

    async def put_in_app(self, messages: Sequence[InAppMessage], now_us: int) -> None:
        """Add messages to the fan's page. An existing message stays as it is."""
        ...

    def make_in_app_writes(self, messages: Sequence[InAppMessage]) -> Sequence[PlannedWrite]:
        """The writes of `put_in_app`."""
        ...

    # -- webhook secrets that are not sealed yet
    async def unsealed_endpoints(self, limit: int) -> list[Endpoint]:
        """Endpoints whose secret is not sealed yet."""
        ...

    async def seal_endpoint(self, was: Endpoint, sealed: str, now_us: int) -> None:
        """Replace the secret, unless it was changed meanwhile."""
        ...
