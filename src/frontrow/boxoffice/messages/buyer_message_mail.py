"""A message to buyers as each reader gets it, and its sending (B15).

The frame (greeting, event, date, link) is in the reader's language and looks like every mail. The organiser's text is
as written. A delivery names the booking or the transfer, never the address: a person who has no valid ticket any more,
or whose data was erased, gets nothing, even if the delivery was queued before.
"""

import asyncio
import hashlib
import hmac
import zlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec
from markupsafe import escape

from frontrow.boxoffice.checkout.model.receipts import Seller
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.holds.model.bookings import booking_number
from frontrow.boxoffice.messages.deliveries import DeliveryWorker, NoteDelivery, send_batch
from frontrow.boxoffice.messages.mail_links import LinkPurpose, MailLinks
from frontrow.boxoffice.messages.model.buyer_messages import NOT_NEEDED, BuyerMessage, TicketHolder, fill_variables
from frontrow.boxoffice.messages.model.messages import Contact, Delivery, Message, NewDelivery, Outcome, not_tried
from frontrow.boxoffice.messages.ports.channels import Channel
from frontrow.boxoffice.messages.ports.ledger import MessageLedger
from frontrow.boxoffice.texts.locale_formats import Moment, language_of
from frontrow.boxoffice.texts.message_texts import MessageWriter, WrittenText, render
from frontrow.boxoffice.tickets.model.tickets import TicketState
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import Overloaded, Unavailable
from frontrow.core.failures import note_failure

KIND: Final = "buyer_message"  # of its deliveries, and of its texts (boxoffice/texts/languages/*.json)
QUEUES: Final = 8  # per message: one organiser's mails do not wait for another's
PER_QUEUE: Final = 10  # claimed at once: they wait for the end of the claim if their worker is killed
GIVE_UP_AFTER_S: Final = 24 * 3600
LINK_LIFE_US: Final = 30 * 86_400 * US_PER_S  # after the show
KEY_CHARS: Final = 32

SellerOf = Callable[[str], Awaitable[Seller]]
AsHtml = Callable[[str], str]


class _BuyerMailBody(msgspec.Struct, frozen=True):
    """The stored body of a delivery."""

    message: str
    channel: str
    booking: str
    fan: str
    transfer: str = ""


class _Letter(msgspec.Struct, frozen=True):
    """What is the same in all mails of a message."""

    message: BuyerMessage
    event: Event
    when: Moment
    seller: Seller
    html: str  # of the organiser's text, before its variables are filled


def queues_of(message_id: str) -> list[str]:
    """The queues of a message's mails."""
    return [f"{message_id}/{number}" for number in range(QUEUES)]


def _queue_number(who: str) -> int:
    return zlib.crc32(who.encode()) % QUEUES


class BuyerMessageMail:
    """Writes and sends the mails of messages to buyers. `as_html` turns light Markdown into safe HTML."""

    def __init__(
        self,
        ledger: MessageLedger,
        channels: Sequence[Channel],
        links: MailLinks,
        clock: Clock,
        *,
        message_of: Callable[[str], Awaitable[BuyerMessage | None]],
        seller_of: SellerOf,
        as_html: AsHtml,
        key: bytes,
    ) -> None:
        self._ledger, self._links, self._clock = ledger, links, clock
        self._channels = {channel.name: channel for channel in channels}
        self._message_of, self._seller_of, self._as_html, self._key = message_of, seller_of, as_html, key
        self._writing = asyncio.Lock()  # one mail at a time: a sale's mails do not wait for one of each queue

    def deliveries_to(self, message_id: str, holder: TicketHolder) -> list[NewDelivery]:
        """One mail per address, and one message on the buyer's page. Making them again makes the same ones."""
        found = []
        if holder.address:
            digest = hmac.new(self._key, f"{message_id}\n{holder.address}".encode(), hashlib.sha256).hexdigest()
            queue = f"{message_id}/{_queue_number(holder.address)}"
            found.append(self._delivery(message_id, "email", holder, queue, digest[:KEY_CHARS]))
        if holder.is_buyer:
            queue = f"{message_id}/page/{_queue_number(holder.fan)}"
            found.append(self._delivery(message_id, "in_app", holder, queue, holder.fan))
        return found

    def _delivery(self, message_id: str, channel: str, holder: TicketHolder, queue: str, who: str) -> NewDelivery:
        body = _BuyerMailBody(message_id, channel, holder.booking_id, holder.fan, holder.transfer_id)
        return NewDelivery(KIND, queue, f"{message_id}:{who}:{channel}", msgspec.json.encode(body).decode())

    async def send(self, deliveries: Sequence[Delivery], note: NoteDelivery) -> list[Outcome]:
        """Write the messages of one queue, which are of one message, and send them as one batch."""
        bodies = [msgspec.json.decode(one.body, type=_BuyerMailBody) for one in deliveries]
        channel = self._channels[bodies[0].channel]
        message = await self._message_of(bodies[0].message)
        if message is None:
            return [Outcome(False, reason=NOT_NEEDED)] * len(deliveries)
        letter = await self._letter(message, await self._ledger.catalogue.event(message.event_id))
        written = []
        for body, one in zip(bodies, deliveries, strict=True):
            async with self._writing:
                written.append(await self._try_write(letter, body, one))
        return await send_batch(channel, deliveries, written, note)

    async def _try_write(self, letter: _Letter, body: _BuyerMailBody, delivery: Delivery) -> Message | Outcome:
        try:
            holder = TicketHolder(body.booking, body.fan, body.transfer, "")
            if not await self._has_valid_ticket(holder):
                return Outcome(False, reason=NOT_NEEDED)
            found = await self._write(letter, holder, body.channel, delivery.dedupe)
            return found or Outcome(False, reason=NOT_NEEDED)
        except (Unavailable, Overloaded) as error:
            return not_tried(error)
        except Exception as error:
            note_failure(error)
            return Outcome(False, final=False, reason=repr(error))

    async def _has_valid_ticket(self, holder: TicketHolder) -> bool:
        tickets = await self._ledger.tickets.tickets_of(holder.booking_id)
        return any(one.state is TicketState.VALID and one.transfer_id == holder.transfer_id for one in tickets)

    async def write_mail(self, message: BuyerMessage, event: Event, holder: TicketHolder) -> Message | None:
        """The mail that this person gets, for others to look at: its link opens nothing by itself. None if the person's
        data was erased."""
        return await self._write(await self._letter(message, event), holder, "email", message.id, preview=True)

    async def _letter(self, message: BuyerMessage, event: Event) -> _Letter:
        venue = await self._ledger.catalogue.venue(event.venue_id)
        when = Moment(event.starts_at_us, venue.time_zone if venue else "UTC")
        html = self._as_html(message.text)
        return _Letter(message, event, when, await self._seller_of(event.organiser_id), html)

    async def _write(
        self, letter: _Letter, holder: TicketHolder, channel: str, message_id: str, *, preview: bool = False
    ) -> Message | None:
        contact = await self._contact_of(holder)
        if contact is None or (channel == "email" and not contact.email):
            return None
        values = {
            "name": contact.name or contact.email,
            "event": letter.event.name,
            "date": MessageWriter(language_of(contact.locale)).moment(letter.when),
            "booking": booking_number(holder.booking_id),
        }
        about: dict[str, Any] = {
            "buyer": contact.name,
            "event_name": letter.event.name,
            "booking_id": booking_number(holder.booking_id),
            "when": letter.when,
            "organiser": letter.seller.name,
            "written_subject": fill_variables(letter.message.subject, values),
        }
        safe = {name: str(escape(one)) for name, one in values.items()}
        written = WrittenText(fill_variables(letter.message.text, values), fill_variables(letter.html, safe))
        url = self._url(letter.event, holder, plain=preview or channel == "in_app")
        text = render(KIND, contact.locale, about, url=url, html=channel == "email", written=written)
        return Message(
            message_id,
            KIND,
            contact,
            text.subject,
            text.text,
            text.html,
            text.short,
            url=url,
            reply_to=letter.seller.contact_email,
        )

    async def _contact_of(self, holder: TicketHolder) -> Contact | None:
        if holder.is_buyer:
            return await self._ledger.messages.contact(holder.fan)
        transfer = await self._ledger.transfers.transfer(holder.transfer_id)
        if transfer is None or not transfer.email:
            return None
        return Contact(transfer.id, transfer.email, locale=transfer.locale, name=transfer.name)

    def _url(self, event: Event, holder: TicketHolder, *, plain: bool) -> str:
        """The link to the tickets. A plain one opens nothing by itself: for what is stored or shown to others."""
        if plain:
            return self._links.page(f"/bookings/{holder.booking_id}")
        ends_us = max(event.ends_at_us, event.starts_at_us, self._clock()) + LINK_LIFE_US
        if holder.is_buyer:
            return self._links.url(LinkPurpose.BOOKING, holder.booking_id, ends_us)
        return self._links.url(LinkPurpose.TRANSFER, holder.transfer_id, ends_us)

    def worker(self) -> DeliveryWorker:
        return DeliveryWorker(
            KIND,
            self._ledger.messages,
            self._clock,
            self.send,
            give_up_after_s=GIVE_UP_AFTER_S,
            per_queue=PER_QUEUE,
        )
