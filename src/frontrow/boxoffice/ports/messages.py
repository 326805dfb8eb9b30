"""Ports of facts and messages: the bus that carries facts, the channels that reach people, the ledger's delivery book.

Everything here is at least once: what was not said to be done comes again. Who must not do a thing twice remembers it
in the ledger (`MessageBook.once`), in the very transaction of its effect.
"""

from collections.abc import Sequence
from typing import Protocol

from frontrow.boxoffice.model.messages import (
    BusFact,
    Contact,
    Delivery,
    Endpoint,
    InAppMessage,
    Message,
    NewDelivery,
    Outcome,
    Settled,
)
from frontrow.boxoffice.ports.queries import Query


class BusReader(Protocol):
    """One member of a group of readers; each fact goes to one member of every group."""

    async def read(self, limit: int, wait_s: float) -> list[BusFact]:
        """At most `limit` facts, oldest first; empty when none came within `wait_s`.

        A new group begins with the oldest fact the bus keeps. Facts of one booking come in the order of publishing.
        """
        ...

    async def done(self, facts: Sequence[BusFact]) -> None:
        """These facts, all that the last `read` answered, need not come again.

        What a reader read and did not finish comes again: to another member, or to the next reader, after this one was
        closed or died (Redis: after a while; Kafka: when the group has noticed).
        """
        ...

    async def aclose(self) -> None: ...


class Bus(Protocol):
    """Carries facts from the outbox to their consumers."""

    async def publish(self, facts: Sequence[BusFact]) -> None:
        """When it returns, all facts are kept by the bus. `Unavailable`: some may be, publish all of them again."""
        ...

    async def reader(self, group: str) -> BusReader: ...

    async def aclose(self) -> None: ...


class Channel(Protocol):
    """A way to reach people."""

    name: str

    async def send(self, messages: Sequence[Message]) -> list[Outcome]:
        """Hand these messages over, in one connection where there is one; an outcome each. Never raises."""
        ...


class MessageBook(Protocol):
    """The ledger's part in messages: the inbox of consumers, deliveries and their retries, contacts, webhooks."""

    async def once(self, source: str, message_id: str, queries: Sequence[Query], now_us: int) -> bool:
        """Run the statements and remember the message, in one transaction; False when it was seen before.

        Of many racing callers with one message exactly one hears True; killed at any point, both happened or neither.
        """
        ...

    async def once_each(self, source: str, messages: Sequence[tuple[str, Sequence[Query]]], now_us: int) -> list[bool]:
        """`once` for many (message id, statements), all in one transaction; whether each was new."""
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

    def delivering(self, deliveries: Sequence[NewDelivery], now_us: int) -> list[Query]:
        """The statements that put deliveries in line; one with a known `dedupe` is already there."""
        ...

    async def lease_deliveries(
        self, kind: str, now_us: int, lease_us: int, limit: int, per_lane: int
    ) -> list[Delivery]:
        """Due deliveries, leased: at most `per_lane` of a lane, and none of a lane that somebody is working on.

        So a lane that is slow or broken holds up no other.
        """
        ...

    async def settle(self, settled: Sequence[Settled], now_us: int) -> None:
        """What became of leased deliveries: sent, given up, or to be tried again at a time."""
        ...

    async def put_contact(self, contact: Contact, now_us: int) -> None:
        """The contact as a whole, with its devices; the address is kept in its canonical form."""
        ...

    async def keep_buyer(self, buyer: Contact, event_id: str, now_us: int) -> None:
        """The name and address that somebody gave while buying for this event. What is empty changes nothing, nor does
        the address of somebody who has proven one. The name can be searched for in this event from now on."""
        ...

    async def contact(self, fan: str) -> Contact | None: ...

    async def put_endpoint(self, endpoint: Endpoint, now_us: int) -> None: ...

    async def endpoint(self, endpoint_id: str) -> Endpoint | None: ...

    async def endpoints_of(self, event_id: str) -> list[Endpoint]:
        """The active webhook endpoints for an event."""
        ...

    async def put_in_app(self, messages: Sequence[InAppMessage], now_us: int) -> None:
        """Messages for the person's page; one that is there already stays as it is."""
        ...

    async def in_app(self, fan: str, limit: int = 50) -> list[InAppMessage]:
        """Newest first."""
        ...
