"""The ports of facts: the outbox that they leave, the bus that carries them, and the inbox of their consumers.

Everything here is delivered at least once: what was not acknowledged comes again. A consumer that must not act twice
records the fact in the ledger (`Inbox.once`), in the same transaction as its effect.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from frontrow.boxoffice.facts.model import BusFact, OutboxFact
from frontrow.boxoffice.messages.model.messages import NewDelivery


class PlannedWrite(msgspec.Struct, frozen=True):
    """A write that the ledger makes in the transaction of whoever passes it on. Only the ledger reads its content."""


class Outbox(Protocol):
    """The facts of committed transactions. Every fact leaves it at least once."""

    async def claim_facts(self, now_us: int, claim_us: int, limit: int) -> list[OutboxFact]:
        """Claim the oldest unpublished facts until `now_us + claim_us`. Workers get distinct ones."""
        ...

    async def facts_published(self, numbers: Sequence[int], now_us: int) -> None:
        """Mark these facts as published. They are never claimed again."""
        ...

    async def purge_facts(self, before_us: int, limit: int) -> None:
        """Delete at most `limit` facts that were published before `before_us`. The audit log keeps them."""
        ...


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


class Inbox(Protocol):
    """What consumers have handled, recorded in the ledger (`ledger.messages`) together with the effect."""

    async def once(self, source: str, message_id: str, writes: Sequence[PlannedWrite], now_us: int) -> bool:
        """Make the writes and record the message, in one transaction. False when the message was seen before.

        Of many racing callers with one message, exactly one gets True. After a crash at any point, either both happened
        or neither.
        """
        ...

    async def once_each(
        self, source: str, messages: Sequence[tuple[str, Sequence[PlannedWrite]]], now_us: int
    ) -> list[bool]:
        """`once` for many (message id, writes) in one transaction. Returns whether each was new."""
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

    def make_delivery_writes(self, deliveries: Sequence[NewDelivery], now_us: int) -> Sequence[PlannedWrite]:
        """The writes that queue deliveries. A delivery with a known `dedupe` is already queued."""
        ...

    async def missed_facts(self, source: str, after: int, limit: int, since_us: int = 0) -> list[OutboxFact]:
        """Of the newest facts published since then, those that this consumer has not recorded, oldest first, at most
        `limit`.

        Only facts with a greater number than `after`: a consumer does not record facts that it does not want.
        """
        ...
