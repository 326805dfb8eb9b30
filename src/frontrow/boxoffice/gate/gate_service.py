"""What the server does for the gates of an event: bundles to check tickets offline, revocation lists, verdicts, scans.

Whether a genuine ticket is still valid is in the ledger: `verify` proves only that a code was signed for this event.
"""

from collections.abc import Sequence
from typing import Final

from frontrow.boxoffice.events.model.event_changes import Change, Editor, tag_of
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.gate.gate_bundle import Bundle, Revocations, make_bundle, sign_revocations
from frontrow.boxoffice.gate.gate_check import GateVerdict, check_rotating_code
from frontrow.boxoffice.gate.guest_list import GuestLists
from frontrow.boxoffice.gate.model.redemptions import (
    MAX_TOGETHER,
    AddOnUse,
    GateGuest,
    Redeemed,
    Redemption,
    count_used,
    find_add_ons,
)
from frontrow.boxoffice.gate.model.scans import DuplicateScan, Scan
from frontrow.boxoffice.gate.ports import GateLedger
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.payments.model.disputes import is_disputed
from frontrow.boxoffice.pricing.model.booking_choices import type_names
from frontrow.boxoffice.pricing.model.prices import has_add_ons
from frontrow.boxoffice.refunds.model.refund_lines import add_ons_gone, decode_refund_lines
from frontrow.boxoffice.tickets.model.tickets import Ticket
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Misread, ReadTicket, event_hash, read_code, signed_text
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.core.errors import InvalidInput, Overloaded

PAGE: Final = 10_000
MAX_DISPUTED: Final = 10_000  # tickets of one event whose money is disputed
MAX_PAGES: Final = 200  # per revocation list


class GateService:
    """Makes bundles and revocation lists for gates, checks codes that are scanned online, and records scans."""

    def __init__(self, ledger: GateLedger, keys: TicketKeys, renderer: TicketRenderer) -> None:
        self._ledger, self._keys, self._renderer = ledger, keys, renderer
        self.guests = GuestLists(ledger)

    def verify(self, event_id: str, code: str, now_us: int) -> tuple[GateVerdict, ReadTicket | None]:
        """Whether the code is a genuine ticket of this event. Whether it is still valid is checked in the ledger."""
        try:
            ticket = read_code(code.strip())
        except Misread:
            return GateVerdict.MISREAD, None
        if ticket.kid not in self._keys.verifying:
            return GateVerdict.UNKNOWN_KEY, None
        if not self._keys.verifying.signed(ticket.kid, signed_text(ticket.body), ticket.signature):
            return GateVerdict.FORGED, None
        if ticket.event != event_hash(event_id):
            return GateVerdict.OTHER_EVENT, ticket
        return check_rotating_code(ticket, self._keys.rotating_secret(event_id), now_us), ticket

    async def bundle(self, event_id: str, now_us: int) -> Bundle:
        """The bundle for the gates of an event: keys, seats, ticket types and the whole revocation list."""
        event = await self._ledger.catalogue.event(event_id)
        revoked, names = await self._revoked(event_id), await self._renderer.seat_names(event)
        types = await self._sold_types(event)
        return make_bundle(
            self._keys,
            event_id,
            event.name,
            revoked,
            now_us,
            names,
            types,
            reentry=event.reentry,
            disputed=await self._ledger.payments.disputed_tickets(event_id, MAX_DISPUTED),
            block_disputed=event.block_disputed,
        )

    async def revocations(self, event_id: str, now_us: int) -> Revocations:
        """Only the signed revocation list, for a gate that has its bundle."""
        return sign_revocations(self._keys, event_id, await self._revoked(event_id), now_us)

    async def bundle_tag(self, event: Event) -> str:
        """The tag of a bundle's version. It changes when keys, seats, revoked or disputed tickets or the gate's rules
        change, and with each sale if there are ticket types."""
        count, last_us = await self._ledger.organiser.revocation_mark(event.id)
        sold_us = (await self._ledger.figures.sold_span(event.id))[1] if event.ticket_types else 0
        types = ",".join(one.name for one in event.ticket_types)
        about = f"{event.id}\n{event.name}\n{event.plan_hash}\n{self._key_ring_mark()}"
        rules = f"{event.reentry}\n{event.block_disputed}\n{await self.disputes_mark(event.id)}"
        return tag_of(f"{about}\n{count}\n{last_us}\n{types}\n{sold_us}\n{rules}")

    async def disputes_mark(self, event_id: str) -> str:
        """A short text that changes with every dispute of the event: a gate with another one fetches a new bundle."""
        count, last_us = await self._ledger.payments.dispute_mark(event_id)
        return f"{count}.{last_us}"

    async def is_disputed(self, ticket: Ticket) -> bool:
        """Whether the money of a ticket is disputed or lost."""
        return is_disputed(await self._ledger.payments.disputes_of(ticket.booking_id))

    async def revocations_tag(self, event_id: str) -> str:
        """The tag of a revocation list's version."""
        count, last_us = await self._ledger.organiser.revocation_mark(event_id)
        return tag_of(f"{event_id} {self._key_ring_mark()} {count} {last_us}")

    def _key_ring_mark(self) -> str:
        """A text that changes when a key is added to the ring."""
        return "".join(kid.hex() for kid in sorted(self._keys.verifying.public))

    # scans

    async def find_ticket(self, event: Event, ticket_id: str) -> Ticket | None:
        """The ticket with this id, which may be one of another event."""
        tickets = self._ledger.tickets
        return await tickets.ticket(ticket_id, event.id) or await tickets.ticket(ticket_id)

    async def find_type(self, event: Event, ticket: Ticket) -> str:
        """The name of the ticket's type, if the event has types."""
        if not event.ticket_types:
            return ""
        booking = await self._ledger.booking(ticket.booking_id)
        return type_names(event, booking.price_lines if booking else "", [ticket.seat_index])[ticket.seat_index]

    async def find_reason(self, ticket: Ticket) -> str:
        """Why a ticket was revoked: `refunded` or `transferred`. Empty: it was moved, returned or cancelled."""
        if ticket.handed_over:
            return "transferred"
        refunds = await self._ledger.payments.refunds_of(ticket.booking_id)
        return "refunded" if any(ticket.seat_index in one.seats for one in refunds) else ""

    async def admit(self, event: Event, scan: Scan) -> Scan | None:
        """Admit a ticket. Returns the scan that admitted it before, if the ticket may not come in again: with re-entry
        the last one, else the first. `TicketRevoked` when it is no longer valid. Safe to repeat."""
        before = await self._ledger.organiser.admit(scan, again=event.reentry)
        return (before[-1] if event.reentry else before[0]) if before else None

    async def let_out(self, scan: Scan) -> bool:
        """Let a ticket out. False when it is not inside. Safe to repeat."""
        return await self._ledger.organiser.let_out(scan)

    async def undo_admission(self, editor: Editor, event: Event, scan_id: str, ticket_id: str, now_us: int) -> bool:
        """Undo one scan, with a note. The ticket may be admitted again unless it has another scan."""
        change = Change(editor, "undo_scan", event.id, now_us, {"scan": scan_id, "ticket": ticket_id})
        return await self._ledger.organiser.undo_admission(scan_id, ticket_id, change)

    # add-ons

    async def find_add_ons(self, booking: Booking | None) -> tuple[AddOnUse, ...]:
        """The add-ons that a booking has, and how many of each were redeemed."""
        if booking is None or not has_add_ons(booking.price_lines):
            return ()
        refunds = await self._ledger.payments.refunds_of(booking.id)
        gone = add_ons_gone([decode_refund_lines(one.lines) for one in refunds])
        used = count_used(await self._ledger.redemptions.redemptions_of(booking.id))
        return find_add_ons(booking, gone, used)

    async def find_holder(self, ticket: Ticket) -> GateGuest:
        """Who has a ticket. The add-ons of the booking are its buyer's."""
        if ticket.transfer_id:
            transfer = await self._ledger.transfers.transfer(ticket.transfer_id)
            return GateGuest(transfer.name if transfer is not None else "")
        booking = await self._ledger.booking(ticket.booking_id)
        name = await self._ledger.tickets.name_of_buyer(ticket.booking_id)
        return GateGuest(name, await self.find_add_ons(booking))

    async def redeem(self, redemption: Redemption, *, offline: bool = False) -> Redeemed:
        """Hand out some of an add-on, at most what the booking has left. Safe to repeat. `offline`: it has happened."""
        if not 1 <= redemption.quantity <= MAX_TOGETHER:
            raise InvalidInput(f"quantity is 1 to {MAX_TOGETHER}", param="quantity")
        return await self._ledger.redemptions.redeem(redemption, offline=offline)

    async def undo_redemption(self, editor: Editor, event: Event, redemption_id: str, now_us: int) -> bool:
        """Take a redemption back, with a note. The add-on may then be redeemed again, or refunded."""
        change = Change(editor, "undo_redemption", event.id, now_us, {"redemption": redemption_id})
        return await self._ledger.redemptions.undo(redemption_id, change)

    async def record_scans(self, scans: Sequence[Scan]) -> list[DuplicateScan]:
        """Record scans of a gate that was offline. Safe to repeat. Returns the tickets among them that were admitted
        more than once so far."""
        return await self._ledger.tickets.record_scans(scans)

    async def _sold_types(self, event: Event) -> dict[str, list[int]]:
        """The sold seats of each ticket type."""
        found: dict[str, list[int]] = {one.name: [] for one in event.ticket_types}
        after = ""
        for _ in range(MAX_PAGES if found else 0):
            page = await self._ledger.live_bookings(event.id, after, PAGE)
            for one in page:
                if one.state is BookingState.CONFIRMED:
                    for seat, name in type_names(event, one.price_lines, one.seats).items():
                        found[name].append(seat)
            if len(page) < PAGE:
                break
            after = page[-1].id
        return found

    async def _revoked(self, event_id: str) -> list[str]:
        revoked: list[str] = []
        after = (-1, "")
        for _ in range(MAX_PAGES):
            page = await self._ledger.tickets.revoked_tickets(event_id, after, PAGE)
            revoked += [ticket for ticket, _ in page]
            if len(page) < PAGE:
                return revoked
            after = (page[-1][1], page[-1][0])
        raise Overloaded(f"more than {MAX_PAGES * PAGE:,} tickets of {event_id} are revoked")
