"""Ports of facts and messages: the bus that carries facts, the channels that reach people, the ledger's message book.

Everything here is delivered at least once: what was not acknowledged comes again. A consumer that must not act twice
records the message in the ledger (`MessageBook.once`), in the same transaction as its effect.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from frontrow.boxoffice.facts.model import OutboxFact
from frontrow.boxoffice.messages.model.messages import (
    BusFact,
    Contact,
    Delivery,
    DeliveryResult,
    Endpoint,
    InAppMessage,
    Message,
    NewDelivery,
    Outcome,
)
from frontrow.boxoffice.queries import Query
from frontrow.core.quiet_time import QuietTime


class BusReader(Protocol):
    """One member of a group of readers. Each fact goes to one member of every group.

    `is_new_group`: the bus did not know the group when the reader came. It is the first, or the bus lost its memory.
    """

    is_new_group: bool

    async def read(self, limit: int, wait_s: float) -> list[BusFact]:
        """At most `limit` facts, oldest first. Empty when none came within `wait_s`.

        A new group starts with the oldest fact on the bus. Facts of one event come in the order of publishing.
        """
        ...

    async def done(self, facts: Sequence[BusFact]) -> None:
        """Acknowledge these facts, which are all that the last `read` returned.

        Facts that a reader read and did not acknowledge come again, to another member or to the next reader, after this
        one was closed or died (Redis: after a timeout; Kafka: when the group has noticed).
        """
        ...

    def stop_waiting(self) -> None:
        """Let a `read` that waits return at once. Where it could bring facts at that very moment (Redis, Kafka), it
        returns when its `wait_s` is over."""
        ...

    async def aclose(self) -> None: ...


class Bus(Protocol):
    """Carries facts from the outbox to their consumers."""

    async def publish(self, facts: Sequence[BusFact]) -> None:
        """When it returns, the bus has stored all facts.

        On `Unavailable` some may be stored: publish all of them again.
        """
        ...

    async def reader(self, group: str) -> BusReader: ...

    async def measure_lag(self, groups: Sequence[str]) -> dict[tuple[str, str], int]:
        """Facts on the bus that each of these groups has not finished, by group and partition (`all` where there is
        only one). Groups that the bus does not know are left out."""
        ...

    async def aclose(self) -> None: ...


NoteMessage = Callable[[int, Outcome], Awaitable[None]]  # a message's place in its batch, and what became of it


class Channel(Protocol):
    """A way to reach people."""

    name: str

    async def send(self, messages: Sequence[Message], note: NoteMessage | None = None) -> list[Outcome]:
        """Send these messages, over one connection where there is one. Returns an outcome per message. Never raises.

        Where a second copy of a message would reach the person too (e-mail), `note` is awaited after each message and
        before the next one. When our own stores are away and nothing can be noted, the rest is not tried.
        """
        ...


class MessageBook(Protocol):
    """Messages in the ledger (`ledger.messages`): inbox of consumers, deliveries and retries, contacts, webhooks."""

    @property
    def quiet(self) -> QuietTime:
        """When workers may sleep."""
        ...

    async def once(self, source: str, message_id: str, queries: Sequence[Query], now_us: int) -> bool:
        """Run the statements and record the message, in one transaction. False when the message was seen before.

        Of many racing callers with one message, exactly one gets True. After a crash at any point, either both happened
        or neither.
        """
        ...

    async def once_each(self, source: str, messages: Sequence[tuple[str, Sequence[Query]]], now_us: int) -> list[bool]:
        """`once` for many (message id, statements) in one transaction. Returns whether each was new."""
        ...

    async def noticed(self, source: str, message_id: str) -> bool:
        """Whether this message was seen before. Does not record it."""
        ...

    async def seen_before(self, source: str, message_id: str, now_us: int) -> bool:
        """Whether this message was seen before; records it. Of many racing callers exactly one gets False."""
        ...

    async def first_seen(self, source: str, message_id: str, now_us: int) -> int:
        """When this message was first seen, by any server; records it."""
        ...

    def make_delivery_queries(self, deliveries: Sequence[NewDelivery], now_us: int) -> list[Query]:
        """The statements that queue deliveries. A delivery with a known `dedupe` is already queued."""
        ...

    async def lease_deliveries(
        self, kind: str, now_us: int, lease_us: int, limit: int, per_lane: int
    ) -> list[Delivery]:
        """Lease due deliveries: at most `per_lane` per lane, and none of a lane that another worker has leased.

        So a slow or broken lane does not delay the others.
        """
        ...

    async def renew_deliveries(self, numbers: Sequence[int], now_us: int, lease_us: int) -> None:
        """Lease these deliveries for longer. Leases that have ended are not renewed."""
        ...

    async def save_delivery_results(self, results: Sequence[DeliveryResult], now_us: int) -> None:
        """Record what became of leased deliveries: sent, given up, or due again later."""
        ...

    async def missed_facts(self, source: str, after: int, limit: int) -> list[OutboxFact]:
        """Of the newest published facts those that this consumer has not recorded, oldest first, at most `limit`.

        Only facts with a greater number than `after`: a consumer does not record facts that it does not want.
        """
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

    async def contact(self, fan: str) -> Contact | None: ...

    async def put_endpoint(self, endpoint: Endpoint, now_us: int) -> None: ...

    async def endpoint(self, endpoint_id: str) -> Endpoint | None: ...

    async def endpoints_of(self, event_id: str) -> list[Endpoint]:
        """The active webhook endpoints for an event."""
        ...

    async def put_in_app(self, messages: Sequence[InAppMessage], now_us: int) -> None:
        """Add messages to the fan's page. An existing message stays as it is."""
        ...

    def make_in_app_queries(self, messages: Sequence[InAppMessage]) -> list[Query]:
        """The statements of `put_in_app`."""
        ...

    async def in_app(self, fan: str, limit: int = 50) -> list[InAppMessage]:
        """Newest first."""
        ...


class InAppWriter(Protocol):
    """Writes the texts of messages on a fan's page."""

    async def write_in_app(self, messages: Sequence[InAppMessage]) -> list[InAppMessage]:
        """The messages with their texts. Those that were written already stay as they are."""
        ...
