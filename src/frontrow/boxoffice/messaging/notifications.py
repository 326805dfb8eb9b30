"""Notifications (B10, B15): which fact tells a person what, over which channels, rendered in the person's language.

A consumer turns a fact into one delivery per channel the person chose; the delivery worker renders it (tickets, QR, PDF
from the codes the ledger stored) and hands batches to the channels. Each delivery and message has an id made of the
fact, so being told twice is rare and, if it happens, the very same message with the very same ticket.
"""

import asyncio
import zlib
from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec

from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.messaging.deliveries import DeliveryWorker
from frontrow.boxoffice.messaging.locale_formats import Moment, language_of
from frontrow.boxoffice.messaging.mail_links import LinkPurpose, MailLinks
from frontrow.boxoffice.messaging.message_texts import render
from frontrow.boxoffice.model.bookings import Booking
from frontrow.boxoffice.model.events import Event
from frontrow.boxoffice.model.facts import BookingConfirmed, Fact, decode_fact, encode_fact
from frontrow.boxoffice.model.messages import Attachment, Contact, Delivery, Message, NewDelivery, Outcome
from frontrow.boxoffice.model.payments import Refund
from frontrow.boxoffice.model.people import ROLES, Staff
from frontrow.boxoffice.ports.ledger import Catalogue, TicketBook
from frontrow.boxoffice.ports.messages import Channel, MessageBook
from frontrow.boxoffice.ports.queries import Query
from frontrow.boxoffice.tickets import qr_code as qr
from frontrow.boxoffice.tickets.calendar_entry import calendar_entry
from frontrow.boxoffice.tickets.door_bundle import seat_name
from frontrow.boxoffice.tickets.ticket_desk import TicketDesk
from frontrow.boxoffice.tickets.ticket_sheets import Sheet
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.money import Money

KIND: Final = "notification"
STAFF_LOCALE: Final = "en"  # members of a team have no language in the ledger
GIVE_UP_AFTER_S: Final = 24 * 3600
LANES: Final = 8  # a channel's messages travel in so many lanes, each person always in the same
# fact -> kind of message (channels/texts/*.json)
TELLS: Final = {
    "BookingConfirmed": "confirmed",
    "BookingCancelled": "cancelled",
    "BookingRefunded": "refunded",
    "BookingPartlyRefunded": "partly_refunded",
    "BookingReseated": "reseated",
    "PaymentDeclined": "declined",
    "HoldExpired": "expired",
    "LatePaymentReturned": "late_returned",
    "PriorityGranted": "priority",
    "RefundPaid": "refund_paid",
    "RefundFailed": "refund_delayed",
    "OfferMade": "offer",
    "WaitlistEnded": "waitlist_ended",
    "TicketReturned": "returned",
    "TicketResold": "resold",
}
# kinds whose link opens something else than the booking
EVENT_KINDS: Final = frozenset({"declined", "expired", "waitlist_ended"})
PURPOSES: Final = {"priority": LinkPurpose.PRIORITY, "offer": LinkPurpose.OFFER}
LINK_LIFE_US: Final = 30 * 86_400 * US_PER_S  # of a booking's link, after the show
ENDED_LINK_US: Final = 86_400 * US_PER_S  # so long a link still says that its offer is over
QUIET: Final = frozenset({"expired"})  # not worth a mail or an SMS
WITH_TICKETS: Final = frozenset({"confirmed", "reseated"})
WITH_RECEIPT: Final = frozenset({"confirmed", "refund_paid"})
WITHOUT_HTML: Final = frozenset({"in_app", "push", "sms"})
QUIET_CHANNELS: Final = frozenset({"in_app", "push"})


TELLS_STAFF: Final = {"RefundFailed": ("refund_failed", "refunds:write")}  # fact -> kind, and whom: who may do it


class NotifyLedger(Catalogue, TicketBook, MessageBook, Protocol):
    """What notifying reads and writes."""

    async def staff(self, staff_id: str) -> Staff | None: ...

    async def staff_of(self, organiser_id: str, limit: int = 200) -> list[Staff]: ...

    async def refunds_of(self, booking_id: str) -> list[Refund]: ...


class _Body(msgspec.Struct, frozen=True):
    """What a delivery keeps until it is sent."""

    channel: str
    kind: str
    fact: str
    message_id: str
    staff: str = ""  # the member of the organiser's team whom it is for; empty: the fan


class Notifier:
    """Plans, renders and sends messages to people."""

    def __init__(
        self,
        ledger: NotifyLedger,
        desk: TicketDesk,
        channels: Sequence[Channel],
        clock: Clock,
        links: MailLinks,
        receipts: Receipts,
    ) -> None:
        self._ledger, self._desk, self._clock, self._links = ledger, desk, clock, links
        self._receipts = receipts
        self._channels = {channel.name: channel for channel in channels}

    async def plan(self, number: int, fact: Fact) -> Sequence[Query]:
        """One delivery per channel the person wants and we have; the in-app page gets everything."""
        kind = TELLS.get(type(fact).__name__)
        if kind is None:
            return []
        contact = await self._ledger.contact(fact.fan) or Contact(fact.fan, channels=("in_app",))
        wanted = dict.fromkeys((*contact.channels, "in_app"))
        chosen = [name for name in wanted if name in self._channels and (kind not in QUIET or name in QUIET_CHANNELS)]
        message_id = f"{kind}-{fact.booking_id or fact.event_id}-{number}"
        deliveries = [
            NewDelivery(
                KIND,
                f"{name}/{zlib.crc32(fact.fan.encode()) % LANES}",
                f"{message_id}:{name}",
                msgspec.json.encode(_Body(name, kind, encode_fact(fact), message_id)).decode(),
            )
            for name in chosen
        ]
        deliveries += await self._plan_for_staff(number, fact)
        return self._ledger.delivering(deliveries, self._clock())

    async def _plan_for_staff(self, number: int, fact: Fact) -> list[NewDelivery]:
        """A mail to each member of the organiser's team who can do something about it."""
        kind, permission = TELLS_STAFF.get(type(fact).__name__, ("", ""))
        if not kind or "email" not in self._channels:
            return []
        event = await self._ledger.event(fact.event_id)
        members = await self._ledger.staff_of(event.organiser_id)
        text, deliveries = encode_fact(fact), []
        for member in members:
            if permission in ROLES[member.role]:
                message_id = f"{kind}-{fact.booking_id}-{number}-{member.id}"
                body = msgspec.json.encode(_Body("email", kind, text, message_id, member.id)).decode()
                lane = f"email/{zlib.crc32(member.id.encode()) % LANES}"
                deliveries.append(NewDelivery(KIND, lane, f"{message_id}:email", body))
        return deliveries

    async def again(self, booking: Booking) -> bool:
        """The confirmation with its tickets once more, by e-mail; False when there is nobody to send it to."""
        contact = await self._ledger.contact(booking.fan)
        if contact is None or not contact.email or "email" not in self._channels:
            return False
        now_us = self._clock()
        fact = BookingConfirmed(
            booking.id,
            booking.event_id,
            booking.fan,
            booking.fence,
            booking.seats,
            now_us,
            amount_minor=booking.amount_minor,
            currency=booking.currency,
        )
        message_id = f"confirmed-{booking.id}-again-{now_us}"
        body = msgspec.json.encode(_Body("email", "confirmed", encode_fact(fact), message_id)).decode()
        lane = f"email/{zlib.crc32(booking.fan.encode()) % LANES}"
        queries = self._ledger.delivering([NewDelivery(KIND, lane, f"{message_id}:email", body)], now_us)
        return await self._ledger.once("resend", message_id, queries, now_us)

    async def send(self, deliveries: Sequence[Delivery]) -> list[Outcome]:
        """Render a lane's deliveries and hand them to their channel as one batch."""
        bodies = [msgspec.json.decode(one.body, type=_Body) for one in deliveries]
        channel = self._channels.get(bodies[0].channel)
        if channel is None:
            return [Outcome(False, reason=f"there is no channel {bodies[0].channel}")] * len(deliveries)
        drawing = asyncio.Lock()  # one PDF of a lane at a time
        rendered = await asyncio.gather(*(self._rendered(body, drawing) for body in bodies))  # reads are gathered
        sent = iter(await channel.send([one for one in rendered if isinstance(one, Message)]))
        return [next(sent) if isinstance(one, Message) else one for one in rendered]

    async def _rendered(self, body: _Body, drawing: asyncio.Lock) -> Message | Outcome:
        """The message, or why there is none; one that cannot be rendered holds up no other."""
        try:
            return await self._message(body, drawing) or Outcome(False, reason="there is nothing left to tell")
        except Exception as error:
            return Outcome(False, final=False, reason=repr(error))

    async def _message(self, body: _Body, drawing: asyncio.Lock) -> Message | None:
        fact = decode_fact(body.fact)
        if body.staff:
            return await self._message_for_staff(body, fact)
        contact = await self._ledger.contact(fact.fan) or Contact(fact.fan)
        sheets = await self._desk.sheets(fact.booking_id) if body.kind in WITH_TICKETS else []
        if body.kind in WITH_TICKETS and not sheets:
            return None  # refunded before the mail went out: no dead tickets are sent
        event = await self._ledger.event(fact.event_id)
        about = await self._about(fact, event, sheets) | {"buyer": contact.name}
        if body.kind in WITH_RECEIPT:
            about["receipt"] = await self._receipts.of(fact.booking_id)
        url = self._url(body, fact, event)
        words = render(body.kind, contact.locale, about, url=url, html=body.channel not in WITHOUT_HTML)
        attachments: tuple[Attachment, ...] = ()
        if body.channel == "email" and sheets:
            async with drawing:
                attachments = await asyncio.to_thread(_attached, sheets, language_of(contact.locale))
        return Message(
            body.message_id, body.kind, contact, words.subject, words.text, words.html, words.short, attachments, url
        )

    async def _message_for_staff(self, body: _Body, fact: Fact) -> Message | None:
        """The mail to a member; None when they left the team or lost the right meanwhile."""
        member = await self._ledger.staff(body.staff)
        event = await self._ledger.event(fact.event_id)
        _, permission = TELLS_STAFF[type(fact).__name__]
        if member is None or member.organiser_id != event.organiser_id or permission not in ROLES[member.role]:
            return None
        about = await self._about(fact, event, ()) | {"buyer": member.name, "reason": getattr(fact, "reason", "")}
        refunds = {refund.id: refund for refund in await self._ledger.refunds_of(fact.booking_id)}
        refund = refunds.get(getattr(fact, "refund_id", ""))
        if refund is not None:
            about["amount"] = Money(refund.amount_minor, refund.currency)
        url = self._links.page(f"/organiser/events/{event.id}/bookings/{fact.booking_id}")
        words = render(body.kind, STAFF_LOCALE, about, url=url)
        contact = Contact(member.id, member.email, locale=STAFF_LOCALE, name=member.name)
        return Message(body.message_id, body.kind, contact, words.subject, words.text, words.html, words.short, url=url)

    def _url(self, body: _Body, fact: Fact, event: Event) -> str:
        """The link that does what the message asks for. In-app messages are kept in the ledger: no capability there."""
        if body.kind in EVENT_KINDS:
            return self._links.page(f"/events/{event.id}")
        purpose = PURPOSES.get(body.kind, LinkPurpose.BOOKING)
        subject = getattr(fact, "offer_id", "") if purpose is LinkPurpose.OFFER else fact.booking_id
        if body.channel == "in_app":
            return self._links.page(f"/{'offers' if purpose is LinkPurpose.OFFER else 'bookings'}/{subject}")
        if purpose is LinkPurpose.BOOKING:
            return self._links.url(
                purpose, subject, max(event.ends_at_us, event.starts_at_us, fact.at_us) + LINK_LIFE_US
            )
        return self._links.url(purpose, subject, _ends_at_us(fact) + ENDED_LINK_US)

    async def _about(self, fact: Fact, event: Event, sheets: Sequence[Sheet]) -> dict[str, Any]:
        """Everything the texts may speak of."""
        venue = await self._ledger.venue(event.venue_id)
        zone = venue.time_zone if venue else "UTC"
        names = await self._desk.seat_names(event)
        amount = getattr(fact, "amount_minor", 0), getattr(fact, "currency", "") or event.currency
        return {
            "event_name": event.name,
            "booking_id": fact.booking_id,
            "when": Moment(event.starts_at_us, zone),
            "place": ", ".join(part for part in (venue.name, venue.city) if part) if venue else "",
            "amount": Money(*amount),
            "seats": tuple(seat_name(names, seat) for seat in fact.seats),
            "seat_count": len(fact.seats),
            "until": Moment(_ends_at_us(fact), zone),
            "tickets": sheets,
        }

    def worker(self) -> DeliveryWorker:
        return DeliveryWorker(KIND, self._ledger, self._clock, self.send, give_up_after_s=GIVE_UP_AFTER_S)


def _ends_at_us(fact: Fact) -> int:
    """When what the fact grants is over; 0 for facts that grant nothing."""
    return int(getattr(fact, "until_us", 0) or getattr(fact, "expires_at_us", 0))


def _attached(sheets: Sequence[Sheet], locale: str) -> tuple[Attachment, ...]:
    """The tickets as PDF, the calendar entry, and each QR for the page itself (a rotating one only shows live)."""
    from frontrow.boxoffice.tickets.ticket_pdf import tickets_pdf  # takes long to import; here it is in a thread

    shown = [Attachment(f"{one.ticket_id}.png", "image/png", qr.png(one.code)) for one in sheets if not one.rotating]
    return (
        Attachment("tickets.pdf", "application/pdf", tickets_pdf(sheets, locale=locale)),
        Attachment("event.ics", "text/calendar", calendar_entry(sheets)),
        *shown,
    )
