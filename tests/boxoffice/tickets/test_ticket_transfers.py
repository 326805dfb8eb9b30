"""Transfers as the service makes them: whose transfer it is, and until when a ticket can change hands."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.tickets.model.ticket_transfers import (
    TRANSFER_LIFE_US,
    TransferNotFound,
    TransferRefused,
    TransferState,
)
from frontrow.boxoffice.tickets.model.tickets import TicketNotFound, TicketState
from frontrow.boxoffice.tickets.ticket_transfers import TicketTransfers
from frontrow.core.clock import US_PER_S
from frontrow.shared.ids import Ids
from tests.boxoffice.checkout.office import Office, an_office
from tests.boxoffice.checkout.till import ISSUER
from tests.boxoffice.shop import EVENT, sqlite_url

HOUR_US = 3_600 * US_PER_S


class Sender:
    """An office whose tickets can be sent."""

    def __init__(self, office: Office) -> None:
        self.office, self.clock, self.ledger = office, office.clock, office.ledger
        self.transfers = TicketTransfers(office.ledger, ISSUER, office.clock, Ids(office.clock))

    async def bought(self, fan: str, *seats: int) -> Booking:
        booking_id, _ = await self.office.sell(fan, *seats)
        booking = await self.ledger.booking(booking_id)
        assert booking is not None
        return booking

    async def change_event(self, **changes: Any) -> None:
        event = await self.ledger.catalogue.event(EVENT)
        await self.ledger.catalogue.put_event(replace(event, **changes), self.clock())

    async def valid(self, booking: Booking) -> list[str]:
        return [one.id for one in await self.ledger.tickets.tickets_of(booking.id) if one.state is TicketState.VALID]


@contextlib.asynccontextmanager
async def a_sender(folder: Path) -> AsyncIterator[Sender]:
    async with an_office(sqlite_url(folder)) as office:
        yield Sender(office)


async def test_nobody_withdraws_anothers_transfer_through_a_booking_of_their_own(tmp_path: Path) -> None:
    async with a_sender(tmp_path) as sender:
        mine, hers = await sender.bought("eve", 0), await sender.bought("ada", 1)
        sent = await sender.transfers.send(hers, 1, "grace@example.org", "en")
        with pytest.raises(TransferNotFound):
            await sender.transfers.withdraw(mine, sent.id)
        kept = await sender.ledger.transfers.transfer(sent.id)
        assert kept is not None
        assert kept.state is TransferState.SENT
        assert (await sender.transfers.withdraw(hers, sent.id)).state is TransferState.WITHDRAWN


async def test_nobody_accepts_a_ticket_after_the_show_began(tmp_path: Path) -> None:
    """Also if the show was brought forward after the ticket was sent."""
    async with a_sender(tmp_path) as sender:
        booking = await sender.bought("ada", 1)
        before = await sender.valid(booking)
        sent = await sender.transfers.send(booking, 1, "grace@example.org", "en")
        assert sent.expires_at_us == sender.clock() + TRANSFER_LIFE_US
        await sender.change_event(starts_at_us=sender.clock() + HOUR_US)
        sender.clock.advance(us=HOUR_US)
        with pytest.raises(TransferRefused) as refused:
            await sender.transfers.accept(sent.id, "Grace", "en")
        assert refused.value.about["reason"] == "over"
        with pytest.raises(TransferRefused):
            await sender.transfers.send(booking, 1, "joan@example.org", "en")
        assert await sender.valid(booking) == before


async def test_a_transfer_ends_when_the_show_begins(tmp_path: Path) -> None:
    async with a_sender(tmp_path) as sender:
        booking = await sender.bought("ada", 1)
        starts_us = sender.clock() + HOUR_US
        await sender.change_event(starts_at_us=starts_us)
        assert (await sender.transfers.send(booking, 1, "grace@example.org", "en")).expires_at_us == starts_us


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"transfers_allowed": False}, "forbidden"),
        ({"status": EventStatus.CANCELLED}, "over"),
        ({"status": EventStatus.COMPLETED}, "over"),
    ],
)
async def test_what_the_organiser_decides_counts_for_tickets_on_their_way_too(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    async with a_sender(tmp_path) as sender:
        booking = await sender.bought("ada", 1)
        sent = await sender.transfers.send(booking, 1, "grace@example.org", "en")
        await sender.change_event(**changes)
        with pytest.raises(TransferRefused) as refused:
            await sender.transfers.accept(sent.id, "Grace", "en")
        assert refused.value.about["reason"] == reason


async def test_accepting_twice_is_accepting_once_and_the_ticket_has_a_new_number(tmp_path: Path) -> None:
    async with a_sender(tmp_path) as sender:
        booking = await sender.bought("ada", 1)
        before = await sender.valid(booking)
        sent = await sender.transfers.send(booking, 1, "grace@example.org", "en")
        first = await sender.transfers.accept(sent.id, "  Grace\u0000 Hopper ", "de")
        again = await sender.transfers.accept(sent.id, "Somebody", "en")
        assert (again.new_ticket_id, again.name) == (first.new_ticket_id, first.name)
        assert await sender.valid(booking) == [first.new_ticket_id] != before
        with pytest.raises(TicketNotFound):
            await sender.transfers.send(booking, 7, "joan@example.org", "en")
