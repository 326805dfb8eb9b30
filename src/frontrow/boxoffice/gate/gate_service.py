"""What the server does for the gates of an event: bundles to check tickets offline, revocation lists, verdicts.

Whether a genuine ticket is still valid is in the ledger: `verify` proves only that a code was signed for this event.
"""

from typing import Final

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.gate.gate_bundle import Bundle, Revocations, make_bundle, sign_revocations
from frontrow.boxoffice.gate.gate_check import GateVerdict, check_rotating_code
from frontrow.boxoffice.gate.ports import GateLedger
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.pricing.model.booking_choices import type_names
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Misread, ReadTicket, event_hash, read_code, signed_text
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.core.errors import Overloaded

PAGE: Final = 10_000
MAX_PAGES: Final = 200  # per revocation list


class GateService:
    """Makes bundles and revocation lists for gates, and checks codes that are scanned online."""

    def __init__(self, ledger: GateLedger, keys: TicketKeys, renderer: TicketRenderer) -> None:
        self._ledger, self._keys, self._renderer = ledger, keys, renderer

    def verify(self, event_id: str, code: str, now_us: int) -> tuple[GateVerdict, ReadTicket | None]:
        """Whether the code is a genuine ticket of this event. Only the ledger knows whether it is still valid."""
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

    def key_ring_mark(self) -> str:
        """A text that changes when a key is added to the ring."""
        return "".join(kid.hex() for kid in sorted(self._keys.verifying.public))

    async def bundle(self, event_id: str, now_us: int) -> Bundle:
        """The bundle for the gates of an event: keys, seats, ticket types and the whole revocation list."""
        event = await self._ledger.catalogue.event(event_id)
        revoked, names = await self._revoked(event_id), await self._renderer.seat_names(event)
        types = await self._sold_types(event)
        return make_bundle(self._keys, event_id, event.name, revoked, now_us, names, types, reentry=event.reentry)

    async def revocations(self, event_id: str, now_us: int) -> Revocations:
        """Only the signed revocation list, for a gate that has its bundle."""
        return sign_revocations(self._keys, event_id, await self._revoked(event_id), now_us)

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
