"""Messages to buyers (B13, B15): an organiser writes to the people who have tickets, sees who gets what, and sends it.

Only for what concerns the tickets: a changed time, another entrance, safety. So there is nothing to unsubscribe from,
and an event sends only a few per day. Sending writes one row. A job then queues deliveries to the holders, a few
hundred bookings per transaction, in the order of the bookings' fences. After a crash the next worker continues there,
so nobody is queued twice and nobody is left out. The job stays a bounded number of deliveries ahead of the mails. See
ADR 0159.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.holds.model.bookings import Booking, BookingNotFound
from frontrow.boxoffice.messages.buyer_message_mail import BuyerMessageMail, queues_of
from frontrow.boxoffice.messages.model.buyer_messages import (
    Audience,
    AudienceKind,
    AudienceScope,
    BuyerMessage,
    BuyerMessageNotFound,
    BuyerMessageState,
    MailCounts,
    NoRecipients,
    RecipientCount,
    check_message,
)
from frontrow.boxoffice.messages.model.messages import Message
from frontrow.boxoffice.messages.ports.buyer_messages import BuyerMessageBook
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import InvalidInput
from frontrow.shared.ids import Ids
from frontrow.shared.jobs import Job, every
from frontrow.shared.quiet_time import QuietTime

EVERY_S: Final = 0.5
AGAIN_US: Final = US_PER_S // 2
MESSAGES_PER_TURN: Final = 20
BATCH: Final = 500  # bookings per transaction
AHEAD: Final = 4_000  # deliveries that nobody has tried to send yet
BATCHES_PER_TURN: Final = 20


class MessagePreview(msgspec.Struct, frozen=True):
    """A message as one of its readers gets it, and how many get it."""

    count: RecipientCount
    example: Message


class BuyerMessages:
    """Writes, previews and sends messages to buyers. The caller has checked whose event it is."""

    def __init__(
        self,
        book: BuyerMessageBook,
        mail: BuyerMessageMail,
        clock: Clock,
        ids: Ids,
        *,
        event_of: Callable[[str], Awaitable[Event]],
        booking_of: Callable[[str], Awaitable[Booking | None]],
        plan_of: Callable[[str], Awaitable[Plan]],
    ) -> None:
        self._book, self._mail, self._clock, self._ids = book, mail, clock, ids
        self._event_of, self._booking_of, self._plan_of = event_of, booking_of, plan_of

    async def write(self, editor: Editor, event: Event, audience: Audience, subject: str, text: str) -> BuyerMessage:
        """A new message, checked, that is neither kept nor sent yet."""
        subject, text = check_message(subject, text)
        await self._scope(event, audience)
        return BuyerMessage(
            self._ids.new("msg"),
            event.id,
            editor.id,
            audience,
            subject,
            text,
            BuyerMessageState.DRAFT,
            self._clock(),
        )

    async def keep_draft(self, message: BuyerMessage) -> None:
        """Keep it until it is sent, or until this member writes another one."""
        await self._book.save_draft(message)

    async def preview(self, event: Event, message: BuyerMessage) -> MessagePreview:
        """How many people get it, and what the first of them would read. `NoRecipients` if there is nobody."""
        scope = await self._scope(event, message.audience)
        count, holder = await self._book.count(scope), await self._book.first_holder(scope)
        example = await self._mail.write_mail(message, event, holder) if holder is not None else None
        if example is None:
            raise NoRecipients("nobody who has valid tickets here has an e-mail address", param="audience")
        return MessagePreview(count, example)

    async def send(self, editor: Editor, event: Event, message: BuyerMessage) -> BuyerMessage:
        """Begin to send it. Sending it again changes nothing."""
        if message.state is not BuyerMessageState.DRAFT:
            return message
        count = await self._book.count(await self._scope(event, message.audience))
        if not count.addresses:
            raise NoRecipients("nobody who has valid tickets here has an e-mail address", param="audience")
        sending = msgspec.structs.replace(
            message,
            made_by=editor.id,
            state=BuyerMessageState.SENDING,
            created_at_us=self._clock(),
            recipients=count.addresses,
        )
        return await self._book.send(sending, self._change(editor, sending))

    def _change(self, editor: Editor, message: BuyerMessage) -> Change:
        audience = message.audience
        detail: dict[str, Any] = {audience.kind.value: audience.key} if audience.key else {}
        if audience.kind is not AudienceKind.BOOKING:  # it may name the person, and the audit log is never erased
            detail["subject"] = message.subject
        detail |= {"recipients": message.recipients, "message_id": message.id}
        return Change(editor, "write_to_buyers", message.event_id, message.created_at_us, detail)

    async def of_event(self, event: Event, message_id: str) -> BuyerMessage:
        message = await self._book.message(message_id)
        if message is None or message.event_id != event.id:
            raise BuyerMessageNotFound(message_id)
        return message

    async def sent(self, event: Event, before_us: int, limit: int) -> list[BuyerMessage]:
        """The event's messages, newest first."""
        return await self._book.messages_of(event.id, before_us, limit)

    async def progress(self, message: BuyerMessage) -> MailCounts:
        """How many mails went out."""
        if message.state is BuyerMessageState.SENT:
            return MailCounts(message.recipients, message.sent, message.failed, message.skipped)
        mails = await self._book.mails(queues_of(message.id))
        if message.all_queued:
            return mails
        return msgspec.structs.replace(mails, total=max(message.recipients, mails.total))

    async def work(self) -> int:
        """One round over the messages that are being sent. Returns how many there were."""
        now_us = self._clock()
        due = await self._book.due(now_us, now_us + AGAIN_US, MESSAGES_PER_TURN)
        for message in due:
            await self._advance(message)
        return len(due)

    async def _advance(self, message: BuyerMessage) -> None:
        """Queue more deliveries, unless enough are waiting; finish a message that everybody got."""
        mails = await self._book.mails(queues_of(message.id))
        if message.all_queued:
            if not mails.waiting:
                await self._book.finish(message.id, mails, self._clock())
            return
        scope = await self._scope(await self._event_of(message.event_id), message.audience)
        waiting = mails.untried
        for _ in range(BATCHES_PER_TURN):
            if waiting >= AHEAD:
                return
            queued = await self._book.queue_next(
                message.id, scope, lambda holder: self._mail.deliveries_to(message.id, holder), BATCH, self._clock()
            )
            if queued is None:
                return
            waiting += queued

    async def _scope(self, event: Event, audience: Audience) -> AudienceScope:
        """The audience in seats and bookings; `InvalidInput` or `BookingNotFound` if there is no such thing."""
        plan = await self._plan_of(event.plan_hash)
        scope = AudienceScope(event.id, event.plan_hash, 0, plan.size)
        match audience.kind:
            case AudienceKind.ALL:
                return scope
            case AudienceKind.SECTION:
                section = {one.id: number for number, one in enumerate(plan.sections)}.get(audience.key)
                if section is None:
                    raise InvalidInput(f"{plan.name} has no section {audience.key[:60]!r}", param="audience")
                seats = plan.section_range(section)
                return msgspec.structs.replace(scope, first=seats.start, end=seats.stop)
            case AudienceKind.TIER:
                if audience.key not in [tier.key for tier in event.tiers]:
                    raise InvalidInput(f"this event has no price tier {audience.key[:60]!r}", param="audience")
                return msgspec.structs.replace(scope, tier=audience.key)
            case AudienceKind.BOOKING:
                booking = await self._booking_of(audience.key)
                if booking is None or booking.event_id != event.id:
                    raise BookingNotFound(audience.key[:60])
                return msgspec.structs.replace(scope, booking_id=booking.id)

    def jobs(self, quiet: QuietTime | None = None) -> list[Job]:
        worker = self._mail.worker()
        return [Job("buyer message mail", worker.run, worker.stop), every("buyer messages", self.work, EVERY_S, quiet)]
