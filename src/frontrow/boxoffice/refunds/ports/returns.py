"""The ports of ticket returns: seats given back to the pool, and what became of them."""

from collections.abc import Sequence
from typing import Protocol

from frontrow.boxoffice.refunds.model.ticket_returns import Return, ReturnState


class ReturnReads(Protocol):
    """Read-only access to seats given back (`ledger.returns`)."""

    async def returns_of_event(self, event_id: str, after: str, limit: int) -> list[Return]:
        """Unsettled returns of an event, ordered by id, from after `after` on."""
        ...

    async def returns_of(self, booking_id: str) -> list[Return]: ...

    async def returns_in(self, state: ReturnState, limit: int) -> list[Return]:
        """Those in this state, the longest unchanged first."""
        ...


class ReturnsBook(ReturnReads, Protocol):
    """Seats given back, as the ledger keeps them (`ledger.returns`). Every method is safe to repeat."""

    async def begin_return(
        self, booking_id: str, fan: str, fence: int, seats: Sequence[int], now_us: int
    ) -> list[Return]:
        """Save the intent to return seats of this fan's confirmed booking. Repeating it changes nothing."""
        ...

    async def list_return(self, booking_id: str, seats: Sequence[int], now_us: int) -> list[Return]:
        """Free seats that are being given back, with a fact TicketReturned. Returns those that this call freed."""
        ...

    async def mark_resales(self, now_us: int, limit: int) -> list[Return]:
        """Find listed seats that were sold again, each once, with a fact TicketResold."""
        ...

    async def turn_return(self, given_id: str, was: ReturnState, to: ReturnState, now_us: int) -> bool: ...


class TicketRevoker(Protocol):
    """Revokes tickets at gates that have a list of their own, before the seat is free."""

    async def revoke(self, booking_id: str, seats: Sequence[int], now_us: int) -> None:
        """Revoke the tickets of these seats for good. Safe to repeat."""
        ...
