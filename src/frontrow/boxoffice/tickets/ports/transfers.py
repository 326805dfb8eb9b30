"""The port of ticket transfers: tickets on their way to somebody else, and who has them now."""

from typing import Protocol

from frontrow.boxoffice.tickets.model.ticket_transfers import HandOver, Transfer


class TransferReads(Protocol):
    """Read-only access to transfers (`ledger.transfers`)."""

    async def transfer(self, transfer_id: str) -> Transfer | None: ...

    async def transfers_of(self, booking_id: str) -> list[Transfer]:
        """The transfers of a booking's tickets, oldest first."""
        ...

    async def received(self, email: str, limit: int = 100) -> list[Transfer]:
        """The accepted transfers to this address, newest first."""
        ...


class TransferBook(TransferReads, Protocol):
    """Transfers, as the ledger keeps them (`ledger.transfers`). Every method is safe to repeat."""

    async def send(self, transfer: Transfer) -> Transfer:
        """Save the transfer with a fact TransferSent. The same ticket sent again to the same address is the first one.

        Raises `TransferRefused` unless the ticket is valid, unused, the sender's and not on its way to somebody else,
        or when too many were sent.
        """
        ...

    async def accept(self, ask: HandOver) -> Transfer:
        """In one transaction: the sender's ticket is revoked, the new one is valid, with a fact TransferAccepted.

        An accepted transfer is returned as it is. Raises `TransferRefused` when it is over or the ticket is not valid
        any more.
        """
        ...

    async def withdraw(self, transfer_id: str, now_us: int) -> Transfer:
        """End a transfer that is not accepted. An accepted one raises `TransferRefused`."""
        ...
