"""Notifications (B10, B15): which fact sends which message to whom, over which channels, in the person's language.

A consumer turns a fact into one delivery per channel that the person chose. The delivery worker renders it (with
tickets, QR codes and PDF from the codes in the ledger) and hands batches to the channels. The ids of deliveries and
messages are made from the fact, so a repeated message is rare, and if it happens it is the same message with the same
ticket.

The fan's page gets a notice of every message, and its text is written when somebody reads the page: most confirmations
are read in a mail (ADR 0171).
"""

import asyncio
import zlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.events.pictures import media_type_of
from frontrow.boxoffice.facts.model import (
    BankTransferAwaited,
    BankTransferReminded,
    BookingCancelled,
    BookingConfirmed,
    BookingRefunded,
    Fact,
    HoldExpired,
    PaymentDeclined,
    RefundPaid,
    decode_fact,
    encode_fact,
)
from frontrow.boxoffice.facts.ports import PlannedWrite
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState, booking_number
from frontrow.boxoffice.messages.deliveries import DeliveryWorker, NoteDelivery, send_batch
from frontrow.boxoffice.messages.mail_links import LinkPurpose, MailLinks
from frontrow.boxoffice.messages.model.messages import (
    Attachment,
    Contact,
    Delivery,
    InAppMessage,
    Message,
    NewDelivery,
    Outcome,
    not_tried,
)
from frontrow.boxoffice.messages.ports.channels import Channel
from frontrow.boxoffice.messages.ports.ledger import MessageLedger
from frontrow.boxoffice.organiser.model.brands import Brand, MailBrand, mail_brand
from frontrow.boxoffice.payments.model.payments import EXTERNAL, PROVIDER_UNAVAILABLE
from frontrow.boxoffice.people.model.roles import ROLES
from frontrow.boxoffice.pricing.model.prices import LineKind
from frontrow.boxoffice.refunds.model.refund_lines import add_on_names, add_ons_gone, decode_refund_lines, kept_lines
from frontrow.boxoffice.refunds.model.refunds import Refund, RefundState
from frontrow.boxoffice.seats.model.seat_names import seat_name
from frontrow.boxoffice.seats.model.venues import Venue
from frontrow.boxoffice.texts.locale_formats import Moment, language_of
from frontrow.boxoffice.texts.message_texts import render
from frontrow.boxoffice.tickets import qr_code as qr
from frontrow.boxoffice.tickets.calendar_entry import calendar_entry
from frontrow.boxoffice.tickets.model.ticket_transfers import TransferState
from frontrow.boxoffice.tickets.model.tickets import Sheet
from frontrow.boxoffice.tickets.model.wallets import Wallet, usable_wallets
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import NotFound, Overloaded, Unavailable
from frontrow.core.failures import note_failure
from frontrow.shared.heavy_work import Urgency
from frontrow.shared.money import Money

KIND: Final = "notification"
STAFF_LOCALE: Final = "en"  # members of a team have no language in the ledger
GIVE_UP_AFTER_S: Final = 24 * 3600
QUEUES: Final = 8  # per channel; a person's messages are always in the same one
# fact -> kind of message (boxoffice/texts/languages/*.json)
KIND_OF_FACT: Final = {
    "BookingConfirmed": "confirmed",
    "BookingCancelled": "cancelled",
    "BookingRefunded": "refunded",
    "BookingPartlyRefunded": "partly_refunded",
    "BookingReseated": "reseated",
    "PaymentDeclined": "declined",
    "HoldExpired": "expired",
    "LatePaymentReturned": "late_returned",
    "BankTransferAwaited": "bank_transfer",
    "BankTransferReminded": "bank_transfer_reminder",
    "PriorityGranted": "priority",
    "RefundPaid": "refund_paid",
    "RefundFailed": "refund_delayed",
    "OfferMade": "offer",
    "WaitlistEnded": "waitlist_ended",
    "TicketReturned": "returned",
    "TicketResold": "resold",
    "TransferAccepted": "transfer_accepted",
}
EVENT_CANCELLED: Final = "event_cancelled"
RETURNED: Final = "returned"  # why a booking is cancelled whose last tickets were returned for resale
# why a payment ended -> kind of message, where nobody declined it
KIND_OF_END: Final = {"event_cancelled": EVENT_CANCELLED, "organiser": "cancelled"}
# fact -> kind of message to the recipient of the transfer that the fact names
KIND_FOR_RECIPIENT: Final = {"TransferSent": "transfer_sent", "TransferAccepted": "transfer_ticket"}
# facts that revoke tickets; recipients of transferred ones are notified
REVOKING_FACTS: Final = frozenset({"BookingCancelled", "BookingRefunded", "BookingPartlyRefunded", "BookingReseated"})
REVOKED_KIND: Final = "transfer_ended"
# kinds whose link does not open the booking
EVENT_KINDS: Final = frozenset({"declined", "expired", "waitlist_ended", EVENT_CANCELLED})
PURPOSES: Final = {"priority": LinkPurpose.PRIORITY, "offer": LinkPurpose.OFFER}
LINK_LIFE_US: Final = 30 * 86_400 * US_PER_S  # of a booking's link, after the show
ENDED_LINK_US: Final = 86_400 * US_PER_S  # for this long after its end, a link still says that the offer is over
ANNOUNCED_REASONS: Final = frozenset({"resold", "late"})  # of refunds without lines that a mail announces
OF_TRANSFERS: Final = frozenset({"bank_transfer", "bank_transfer_reminder"})  # they say where the money has to go
QUIET: Final = frozenset({"expired"})  # not worth a mail or an SMS
WITH_TICKETS: Final = frozenset({"confirmed", "reseated", "transfer_ticket"})
WITH_RECEIPT: Final = frozenset({"confirmed", "refund_paid"})
OF_REFUNDS: Final = frozenset({"refunded", "partly_refunded"})  # they say what is still valid and what is paid back
WITHOUT_HTML: Final = frozenset({"in_app", "push", "sms"})
MAX_LOGOS: Final = 100  # kept in memory; each has at most 60 KB
IN_APP: Final = "in_app"  # the fan's page
QUIET_CHANNELS: Final = frozenset({IN_APP, "push"})


STAFF_KIND_OF_FACT: Final = {
    "RefundFailed": ("refund_failed", "refunds:write"),
    "DisputeOpened": ("dispute_opened", "refunds:write"),
    "DisputeEnded": ("dispute_ended", "refunds:write"),
    "DisputeLost": ("dispute_lost", "refunds:write"),
}  # fact -> kind, and whom: who may do it
MESSAGE_FACTS: Final = KIND_OF_FACT.keys() | KIND_FOR_RECIPIENT.keys() | REVOKING_FACTS | STAFF_KIND_OF_FACT.keys()


class _NotificationBody(msgspec.Struct, frozen=True):
    """The stored body of a delivery."""

    channel: str
    kind: str
    fact: str
    message_id: str
    staff: str = ""  # the member of the organiser's team who gets it; empty: the fan
    transfer: str = ""  # the transfer whose recipient gets it


class Notifier:
    """Plans, renders and sends messages to people."""

    def __init__(
        self,
        ledger: MessageLedger,
        renderer: TicketRenderer,
        channels: Sequence[Channel],
        clock: Clock,
        links: MailLinks,
        receipts: Receipts,
    ) -> None:
        self._ledger, self._renderer, self._clock, self._links = ledger, renderer, clock, links
        self._receipts = receipts
        self._channels = {channel.name: channel for channel in channels}
        self._logos: dict[str, bytes] = {}

    async def plan(self, number: int, fact: Fact) -> Sequence[PlannedWrite]:
        """One delivery per channel that the person wants and that is configured. The fan's page gets everything."""
        kind = await self._kind_for(fact)
        deliveries = await self._plan_for_recipients(number, fact)
        if kind is None:
            deliveries += await self._plan_for_staff(number, fact)
            return self._ledger.messages.make_delivery_writes(deliveries, self._clock()) if deliveries else []
        contact = await self._ledger.messages.contact(fact.fan) or Contact(fact.fan, channels=("in_app",))
        wanted = dict.fromkeys((*contact.channels, "in_app"))
        quiet = kind in QUIET or await self._is_announced(fact)
        chosen = [name for name in wanted if name in self._channels and (not quiet or name in QUIET_CHANNELS)]
        if not contact.takes_sms:
            chosen = [name for name in chosen if name != "sms"]
        message_id = f"{kind}-{fact.booking_id or fact.event_id}-{number}"
        page = self._notice(fact, kind, message_id) if IN_APP in chosen else []
        deliveries += [
            NewDelivery(
                KIND,
                f"{name}/{zlib.crc32(fact.fan.encode()) % QUEUES}",
                f"{message_id}:{name}",
                msgspec.json.encode(_NotificationBody(name, kind, encode_fact(fact), message_id)).decode(),
            )
            for name in chosen
            if name != IN_APP
        ]
        deliveries += await self._plan_for_staff(number, fact)
        return [*self._ledger.messages.make_delivery_writes(deliveries, self._clock()), *page]

    async def _kind_for(self, fact: Fact) -> str | None:
        """The kind of the message to the fan, or None. Seats that an outage of the payment provider cost are explained
        by one message, that of the priority pass."""
        if isinstance(fact, PaymentDeclined):
            if fact.reason == PROVIDER_UNAVAILABLE:  # of a server of version 0.1, which writes both facts
                return None
            return KIND_OF_END.get(fact.reason, "declined")
        if isinstance(fact, BookingCancelled) and fact.reason == RETURNED:
            return None  # TicketReturned tells them
        if isinstance(fact, HoldExpired) and fact.was == BookingState.PAYING:
            payments = await self._ledger.payments.payments_of(fact.booking_id)
            if payments and payments[-1].is_lost_to_outage:
                return None
        return KIND_OF_FACT.get(type(fact).__name__)

    async def _is_announced(self, fact: Fact) -> bool:
        """Whether a mail has already said that this money comes: the one about the refund, the resale or the late
        payment. After a failure the fan is waiting for news, so the payment itself is worth a mail."""
        if not isinstance(fact, RefundPaid) or fact.was_delayed:
            return False
        refunds = await self._ledger.payments.refunds_of(fact.booking_id)
        refund = next((one for one in refunds if one.id == fact.refund_id), None)
        return refund is not None and (bool(refund.lines) or refund.reason in ANNOUNCED_REASONS)

    def _notice(self, fact: Fact, kind: str, message_id: str) -> Sequence[PlannedWrite]:
        """The message on the fan's page, to be written when it is read."""
        body = msgspec.json.encode(_NotificationBody(IN_APP, kind, encode_fact(fact), message_id)).decode()
        unwritten = InAppMessage(message_id, fact.fan, "", "", self._clock(), notice=body)
        return self._ledger.messages.make_in_app_writes([unwritten])

    async def write_in_app(self, messages: Sequence[InAppMessage]) -> list[InAppMessage]:
        """Write the texts of the page's messages (`ports.InAppWriter`), without those about something that is gone."""
        written = await asyncio.gather(*(self._write(message) for message in messages))
        return [message for message in written if message is not None]

    async def _write(self, message: InAppMessage) -> InAppMessage | None:
        if not message.notice:
            return message
        try:
            written = await self._render(msgspec.json.decode(message.notice, type=_NotificationBody), asyncio.Lock())
        except NotFound:
            return None
        if written is None:
            return None
        return msgspec.structs.replace(message, subject=written.subject, body=written.text, notice="")

    async def _plan_for_recipients(self, number: int, fact: Fact) -> list[NewDelivery]:
        """A mail to the recipient of a transfer, and to those whose transferred tickets this fact revoked."""
        name = type(fact).__name__
        if "email" not in self._channels or (name not in KIND_FOR_RECIPIENT and name not in REVOKING_FACTS):
            return []
        if name in KIND_FOR_RECIPIENT:
            return [
                self._delivery_to_recipient(number, fact, KIND_FOR_RECIPIENT[name], getattr(fact, "transfer_id", ""))
            ]
        revoked = set(getattr(fact, "left", ()) or fact.seats)
        holders: dict[int, str] = {}
        for one in await self._ledger.transfers.transfers_of(fact.booking_id):  # the last one has the ticket
            if one.state is TransferState.ACCEPTED and one.seat_index in revoked:
                holders[one.seat_index] = one.id
        return [self._delivery_to_recipient(number, fact, REVOKED_KIND, one) for one in holders.values()]

    def _delivery_to_recipient(self, number: int, fact: Fact, kind: str, transfer_id: str) -> NewDelivery:
        message_id = f"{kind}-{transfer_id}-{number}"
        body = _NotificationBody("email", kind, encode_fact(fact), message_id, transfer=transfer_id)
        queue = f"email/{zlib.crc32(transfer_id.encode()) % QUEUES}"
        return NewDelivery(KIND, queue, f"{message_id}:email", msgspec.json.encode(body).decode())

    async def _plan_for_staff(self, number: int, fact: Fact) -> list[NewDelivery]:
        """A mail to each member of the organiser's team who has the permission."""
        kind, permission = STAFF_KIND_OF_FACT.get(type(fact).__name__, ("", ""))
        if not kind or "email" not in self._channels:
            return []
        event = await self._ledger.catalogue.event(fact.event_id)
        members = await self._ledger.people.staff_of(event.organiser_id)
        text, deliveries = encode_fact(fact), []
        for member in members:
            if permission in ROLES[member.role]:
                message_id = f"{kind}-{fact.booking_id}-{number}-{member.id}"
                body = msgspec.json.encode(_NotificationBody("email", kind, text, message_id, member.id)).decode()
                queue = f"email/{zlib.crc32(member.id.encode()) % QUEUES}"
                deliveries.append(NewDelivery(KIND, queue, f"{message_id}:email", body))
        return deliveries

    async def resend_confirmation(self, booking: Booking) -> bool:
        """Send the confirmation with its tickets again by e-mail. False if there is no address to send it to."""
        contact = await self._ledger.messages.contact(booking.fan)
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
        body = msgspec.json.encode(_NotificationBody("email", "confirmed", encode_fact(fact), message_id)).decode()
        queue = f"email/{zlib.crc32(booking.fan.encode()) % QUEUES}"
        writes = self._ledger.messages.make_delivery_writes(
            [NewDelivery(KIND, queue, f"{message_id}:email", body)], now_us
        )
        return await self._ledger.messages.once("resend", message_id, writes, now_us)

    async def send(self, deliveries: Sequence[Delivery], note: NoteDelivery) -> list[Outcome]:
        """Render the deliveries of one queue and send them over their channel as one batch."""
        bodies = [msgspec.json.decode(one.body, type=_NotificationBody) for one in deliveries]
        channel = self._channels.get(bodies[0].channel)
        if channel is None:
            return [Outcome(False, reason=f"there is no channel {bodies[0].channel}")] * len(deliveries)
        drawing = asyncio.Lock()  # one PDF at a time per queue
        messages = await asyncio.gather(*(self._try_render(body, drawing) for body in bodies))  # reads are gathered
        return await send_batch(channel, deliveries, messages, note)

    async def _try_render(self, body: _NotificationBody, drawing: asyncio.Lock) -> Message | Outcome:
        """The message, or the reason why there is none. A message that fails to render does not delay the others."""
        try:
            return await self._render(body, drawing) or Outcome(False, reason="the message is no longer needed")
        except (Unavailable, Overloaded) as error:
            return not_tried(error)
        except Exception as error:
            note_failure(error)
            return Outcome(False, final=False, reason=repr(error))

    async def _render(self, body: _NotificationBody, drawing: asyncio.Lock) -> Message | None:
        fact = decode_fact(body.fact)
        if body.staff:
            return await self._render_for_staff(body, fact)
        if isinstance(fact, BankTransferAwaited | BankTransferReminded) and not await self._is_awaited(fact):
            return None  # it came meanwhile, or the fan pays another way
        contact = await self._ledger.messages.contact(fact.fan) or Contact(fact.fan)
        transfer_id = getattr(fact, "transfer_id", "") or body.transfer
        transfer = await self._ledger.transfers.transfer(transfer_id) if transfer_id else None
        sender = contact.name or contact.email
        if body.transfer:
            if transfer is None or not transfer.email:
                return None  # the recipient's data was erased
            fact = msgspec.structs.replace(fact, seats=(transfer.seat_index,))
            contact = Contact(transfer.id, transfer.email, locale=transfer.locale, name=transfer.name)
        holder = transfer if body.transfer else None
        sold = await self._renderer.look_up(fact.booking_id) if body.kind in WITH_TICKETS | WITH_RECEIPT else None
        sheets = await self._renderer.sheets(fact.booking_id, holder, sold) if body.kind in WITH_TICKETS else []
        if body.kind in WITH_TICKETS and not sheets and body.channel != IN_APP:
            return None  # refunded before the mail was sent: do not send invalid tickets
        event = sold.event if sold is not None else await self._ledger.catalogue.event(fact.event_id)
        venue = sold.venue if sold is not None else await self._ledger.catalogue.venue(event.venue_id)
        about = await self._describe(fact, event, venue, sheets) | {"buyer": contact.name}
        if body.kind in OF_REFUNDS:
            about |= await self._describe_refund(fact, event)
        if body.kind in OF_TRANSFERS:
            about |= {name: getattr(fact, name) for name in ("iban", "reference", "holder", "bic")}
        if transfer is not None:
            zone = about["when"].time_zone
            about |= {"sender": sender, "recipient": transfer.email, "until": Moment(transfer.expires_at_us, zone)}
        if body.kind in WITH_RECEIPT:
            about["receipt"] = await self._receipts.of(fact.booking_id, sold)
        url = self._url(body, fact, event)
        if sheets and not any(one.rotating for one in sheets):
            keys = await self._ledger.wallets.keys_of(event.organiser_id)
            offered = usable_wallets(keys, self._clock())
            about["wallets"] = [(f"{one}_wallet", f"{url}/{one}-wallet") for one in Wallet if one in offered]
        with_html = body.channel not in WITHOUT_HTML
        attachments: tuple[Attachment, ...] = ()
        if with_html:
            is_pictured = body.channel == "email" and bool(sheets)
            about["brand"], attachments = await self._brand(event, pictured=is_pictured)
        rendered = render(body.kind, contact.locale, about, url=url, html=with_html)
        if body.channel == "email" and sheets:
            async with drawing:
                pdf = await self._renderer.pdf_for_mail(sheets, language_of(contact.locale))
                attachments += await asyncio.to_thread(_make_attachments, sheets, pdf, language_of(contact.locale))
        return Message(
            body.message_id,
            body.kind,
            contact,
            rendered.subject,
            rendered.text,
            rendered.html,
            rendered.short,
            attachments,
            url,
            since_us=fact.at_us,
        )

    async def _brand(self, event: Event, *, pictured: bool) -> tuple[MailBrand, tuple[Attachment, ...]]:
        """How a mail about this event looks, by its picture and by who sells it; the logo and, if the mail is
        `pictured`, the picture."""
        brand = await self._ledger.brands.of(event.organiser_id) if event.organiser_id else None
        brand, attachments = brand or Brand(event.organiser_id), list[Attachment]()
        body = await self._logo(brand.logo.hash) if brand.logo is not None else None
        if body is not None:
            attachments.append(Attachment("logo.png", "image/png", body))
        elif brand.logo is not None:
            brand = msgspec.structs.replace(brand, logo=None)
        art = await self._renderer.art.find(event, Urgency.MAIL) if pictured else None
        if art is not None:
            kind = media_type_of(art.picture)
            attachments.append(Attachment(f"picture.{kind.rpartition('/')[2]}", kind, art.picture))
        colour = art.colour if art is not None else await self._renderer.art.colour(event)
        return mail_brand(brand, colour, pictured=art is not None), tuple(attachments)

    async def _logo(self, picture_hash: str) -> bytes | None:
        """A logo; the last few are kept."""
        found = self._logos.get(picture_hash) or await self._ledger.pictures.find(picture_hash)
        if found is not None and picture_hash not in self._logos:
            if len(self._logos) >= MAX_LOGOS:
                self._logos.pop(next(iter(self._logos)))
            self._logos[picture_hash] = found
        return found

    async def _render_for_staff(self, body: _NotificationBody, fact: Fact) -> Message | None:
        """The mail to a member. None if they have left the team or lost the permission."""
        member = await self._ledger.people.staff(body.staff)
        event = await self._ledger.catalogue.event(fact.event_id)
        _, permission = STAFF_KIND_OF_FACT[type(fact).__name__]
        if member is None or member.organiser_id != event.organiser_id or permission not in ROLES[member.role]:
            return None
        venue = await self._ledger.catalogue.venue(event.venue_id)
        about = await self._describe(fact, event, venue, ())
        about |= {"buyer": member.name, "reason": getattr(fact, "reason", "")}
        refunds = {refund.id: refund for refund in await self._ledger.payments.refunds_of(fact.booking_id)}
        refund = refunds.get(getattr(fact, "refund_id", ""))
        if refund is not None:
            about["amount"] = Money(refund.amount_minor, refund.currency)
        url = self._links.page(f"/organiser/events/{event.id}/bookings/{fact.booking_id}")
        rendered = render(body.kind, STAFF_LOCALE, about, url=url)
        contact = Contact(member.id, member.email, locale=STAFF_LOCALE, name=member.name)
        return Message(
            body.message_id,
            body.kind,
            contact,
            rendered.subject,
            rendered.text,
            rendered.html,
            rendered.short,
            url=url,
            since_us=fact.at_us,
        )

    async def _is_awaited(self, fact: BankTransferAwaited | BankTransferReminded) -> bool:
        """Whether this transfer is still to be made."""
        payments = await self._ledger.payments.payments_of(fact.booking_id)
        to = payments[-1].transfer if payments else None
        return (
            to is not None and (to.iban, to.reference) == (fact.iban, fact.reference) and self._clock() < fact.until_us
        )

    def _url(self, body: _NotificationBody, fact: Fact, event: Event) -> str:
        """The message's link. In-app messages are stored in the ledger, so their links carry no capability."""
        if body.kind in EVENT_KINDS:
            return self._links.page(f"/events/{event.id}")
        if body.transfer:
            ends_us = max(event.ends_at_us, event.starts_at_us, fact.at_us) + LINK_LIFE_US
            return self._links.url(LinkPurpose.TRANSFER, body.transfer, ends_us)
        purpose = PURPOSES.get(body.kind, LinkPurpose.BOOKING)
        subject = getattr(fact, "offer_id", "") if purpose is LinkPurpose.OFFER else fact.booking_id
        if body.channel == IN_APP:
            return self._links.page(f"/{'offers' if purpose is LinkPurpose.OFFER else 'bookings'}/{subject}")
        if purpose is LinkPurpose.BOOKING:
            return self._links.url(
                purpose, subject, max(event.ends_at_us, event.starts_at_us, fact.at_us) + LINK_LIFE_US
            )
        return self._links.url(purpose, subject, _ends_at_us(fact) + ENDED_LINK_US)

    async def _describe(self, fact: Fact, event: Event, venue: Venue | None, sheets: Sequence[Sheet]) -> dict[str, Any]:
        """The values that the texts may use."""
        zone = venue.time_zone if venue else "UTC"
        names, labels = await self._renderer.seat_names(event), await self._renderer.seat_labels(event)
        amount = getattr(fact, "amount_minor", 0), getattr(fact, "currency", "") or event.currency
        return {
            "event_name": event.name,
            "booking_id": booking_number(fact.booking_id),
            "when": Moment(event.starts_at_us, zone),
            "place": ", ".join(part for part in (venue.name, venue.city) if part) if venue else "",
            "amount": Money(*amount),
            "seats": tuple(labels.text(seat_name(names, seat)) for seat in fact.seats),
            "seat_count": len(fact.seats),
            "add_ons": tuple(getattr(fact, "add_ons", ())),
            "until": Moment(_ends_at_us(fact), zone),
            "tickets": sheets,
        }

    async def _describe_refund(self, fact: Fact, event: Event) -> dict[str, Any]:
        """What the buyer still has of the booking, and the money that comes back. Staff give back cash by hand."""
        sold = await self._renderer.look_up(fact.booking_id)
        if sold is None:
            return {}
        booking = sold.booking
        refunds = await self._ledger.payments.refunds_of(booking.id)
        gone = add_ons_gone([decode_refund_lines(one.lines) for one in refunds])
        kept = [line for line in kept_lines(booking, gone) if line.kind is LineKind.ADD_ON]
        names, labels = await self._renderer.seat_names(event), await self._renderer.seat_labels(event)
        over = booking.state is not BookingState.CONFIRMED
        about: dict[str, Any] = {
            "kept_seats": () if over else tuple(labels.text(seat_name(names, seat)) for seat in booking.seats),
            "kept_add_ons": tuple(f"{line.quantity} × {line.name}" for line in kept),
        }
        refund = _refund_of(fact, refunds)
        payments = await self._ledger.payments.payments_of(booking.id)
        by_hand = bool(payments) and payments[-1].provider == EXTERNAL
        if refund is not None and refund.amount_minor and refund.state is not RefundState.MOOT and not by_hand:
            about["back"] = Money(refund.amount_minor, refund.currency)
        return about

    def worker(self) -> DeliveryWorker:
        return DeliveryWorker(KIND, self._ledger.messages, self._clock, self.send, give_up_after_s=GIVE_UP_AFTER_S)


def _refund_of(fact: Fact, refunds: Sequence[Refund]) -> Refund | None:
    """The refund that a fact is about: the newest of its seats and add-ons that was not made later."""
    extras = getattr(fact, "add_ons", None)
    for refund in reversed([one for one in refunds if one.lines]):
        same = isinstance(fact, BookingRefunded) or add_on_names(decode_refund_lines(refund.lines)) == extras
        if same and set(refund.seats) == set(fact.seats) and refund.created_at_us <= fact.at_us:
            return refund
    return None


def _ends_at_us(fact: Fact) -> int:
    """When the thing that the fact grants ends; 0 for facts that grant nothing."""
    return int(getattr(fact, "until_us", 0) or getattr(fact, "expires_at_us", 0))


def _make_attachments(sheets: Sequence[Sheet], pdf: bytes, language: str) -> tuple[Attachment, ...]:
    """The tickets as PDF, the calendar entry, and each QR code for the mail itself (rotating ones only show live)."""
    codes = [Attachment(f"{one.ticket_id}.png", "image/png", qr.png(one.code)) for one in sheets if not one.rotating]
    return (
        Attachment("tickets.pdf", "application/pdf", pdf),
        Attachment("event.ics", "text/calendar", calendar_entry(sheets, language)),
        *codes,
    )
