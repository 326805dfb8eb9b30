"""The delivery worker: claims due deliveries queue by queue, sends them and records the outcome. At least once.

One worker at a time works on a queue, and queues run in parallel, so a slow or broken receiver delays nobody else. If
the worker is killed after sending and before recording, the delivery is sent again with the same id when its work claim
ends. Each mail is recorded before the next one of its queue is sent, so that is one mail per queue at most. A worker
that is not killed sends nothing twice: while the ledger is away it keeps the outcomes and records them later.

`OpenAddresses` sends nothing to addresses that bounced, whose readers complained, or who asked to stop.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import Final

from frontrow.boxoffice.messages.delivery_retries import apply_outcome
from frontrow.boxoffice.messages.model.channel_reports import BlockedAddress, ReportKind
from frontrow.boxoffice.messages.model.messages import Delivery, DeliveryState, Message, Outcome, not_tried
from frontrow.boxoffice.messages.ports.channels import Channel, NoteMessage
from frontrow.boxoffice.messages.ports.message_book import MessageBook, MessageReads
from frontrow.core.background_tasks import start_task
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import Overloaded, Unavailable
from frontrow.core.failures import job_name, note_failure
from frontrow.shared.log_lines import DELIVERY_GIVEN_UP, DELIVERY_RETRIED, DELIVERY_SENT
from frontrow.shared.polling import PollLoop

PER_QUEUE: Final = 50
LIMIT: Final = 500
MAX_QUEUES: Final = 32  # in work at once, per worker
WORK_CLAIM_S: Final = 30.0  # how long the deliveries of a killed worker wait
RENEWALS: Final = 4  # of a claim while the worker runs, so that an outage of the ledger does not end it
WORK_S: Final = 120.0  # the longest work on a queue
SETTLE_S: Final = 1.0  # after an outage of the ledger others record what they sent before anything is claimed
EVERY_S: Final = 0.5
LONGEST_PAUSE_S: Final = 2.0
SAVE_AGAIN_S: Final = 0.5
BUSY_PAUSE_S: Final = 0.01  # there may be more
MAX_ROUNDS: Final = 10_000

REASONS: Final = {
    ReportKind.BOUNCED: "this address does not exist any more",
    ReportKind.COMPLAINED: "this reader reported our messages as spam",
    ReportKind.STOPPED: "this person asked to get no more messages",
}
_LINES: Final = {DeliveryState.SENT: DELIVERY_SENT, DeliveryState.GIVEN_UP: DELIVERY_GIVEN_UP}

NoteDelivery = Callable[[Delivery, Outcome], Awaitable[None]]
Send = Callable[[Sequence[Delivery], NoteDelivery], Awaitable[Sequence[Outcome]]]


async def send_batch(
    channel: Channel, deliveries: Sequence[Delivery], messages: Sequence[Message | Outcome], note: NoteDelivery
) -> list[Outcome]:
    """Send the messages of these deliveries as one batch; what is an outcome already has no message."""
    places = [place for place, one in enumerate(messages) if isinstance(one, Message)]

    async def note_message(place: int, outcome: Outcome) -> None:
        await note(deliveries[places[place]], outcome)

    sent = iter(await channel.send([one for one in messages if isinstance(one, Message)], note_message))
    return [next(sent) if isinstance(one, Message) else one for one in messages]


class OpenAddresses:
    """A channel that leaves out blocked addresses (see Channel)."""

    def __init__(self, channel: Channel, book: MessageReads) -> None:
        self.name = channel.name
        self.channel, self._book = channel, book

    async def send(self, messages: Sequence[Message], note: NoteMessage | None = None) -> list[Outcome]:
        try:
            blocked = await self._book.blocked([self._key(one) for one in messages])
        except (Unavailable, Overloaded) as error:
            return [not_tried(error)] * len(messages)
        if not blocked:
            return await self.channel.send(messages, note)
        places = [place for place, one in enumerate(messages) if self._key(one) not in blocked]

        async def note_place(place: int, outcome: Outcome) -> None:
            if note is not None:
                await note(places[place], outcome)

        outcomes = [_left_out(blocked.get(self._key(one))) for one in messages]
        sent = await self.channel.send([messages[place] for place in places], note_place) if places else []
        for place, outcome in zip(places, sent, strict=True):
            outcomes[place] = outcome
        return outcomes

    def _key(self, message: Message) -> tuple[str, str]:
        return self.name, message.contact.email if self.name == "email" else message.contact.phone


def _left_out(blocked: BlockedAddress | None) -> Outcome:
    return Outcome(False, reason=REASONS.get(blocked.reason, "") if blocked else "")


class DeliveryWorker:
    """Sends the deliveries of one kind. `send` gets the deliveries of one queue and returns one outcome per delivery.
    It may record outcomes earlier, by the function that it gets."""

    def __init__(
        self,
        kind: str,
        book: MessageBook,
        clock: Clock,
        send: Send,
        *,
        give_up_after_s: int,
        per_queue: int = PER_QUEUE,
        claim_s: float = WORK_CLAIM_S,
        every_s: float = EVERY_S,
    ) -> None:
        self.kind = kind
        self._book, self._clock, self._send = book, clock, send
        self._give_up_after_s, self._per_queue, self._every_s = give_up_after_s, per_queue, every_s
        self._claim_us = round(claim_s * US_PER_S)
        self._queues: dict[str, asyncio.Task[None]] = {}
        self._claimed: set[int] = set()
        self._renewing: asyncio.Task[None] | None = None
        self._was_away = False
        self._rounds = PollLoop(every_s, LONGEST_PAUSE_S, book.quiet)
        self.sent = 0
        self.failed = 0

    async def round(self) -> int:
        """Start work on every queue with due deliveries that nobody works on. Returns the number of deliveries."""
        if len(self._queues) >= MAX_QUEUES:
            return 0
        due = await self._claim_due()
        for queue, of_queue in groupby(sorted(due, key=lambda one: (one.queue, one.number)), key=lambda one: one.queue):
            self._queues[queue] = start_task(self._work(queue, list(of_queue)), job_name.get())
        if due and self._renewing is None:
            self._renewing = start_task(self._renew(), job_name.get())
        return len(due)

    async def _claim_due(self) -> list[Delivery]:
        if self._was_away:
            await asyncio.sleep(SETTLE_S)
        try:
            due = await self._book.claim_deliveries(self.kind, self._clock(), self._claim_us, LIMIT, self._per_queue)
        except (Unavailable, Overloaded):
            self._was_away = True
            raise
        self._was_away = False
        new = [one for one in due if one.number not in self._claimed]  # a claim that ended during an outage
        self._claimed.update(one.number for one in new)
        return new

    async def _renew(self) -> None:
        """Renew the claims of what is in work. Ends with the work."""
        while self._claimed:
            await asyncio.sleep(self._claim_us / US_PER_S / RENEWALS)
            with contextlib.suppress(Unavailable, Overloaded):
                await self._book.renew_deliveries(sorted(self._claimed), self._clock(), self._claim_us)
        self._renewing = None

    async def _work(self, queue: str, deliveries: list[Delivery]) -> None:
        known: dict[int, Outcome] = {}
        recorded: set[int] = set()

        async def note(delivery: Delivery, outcome: Outcome) -> None:
            known[delivery.number] = outcome
            await self._save([(delivery, outcome)])
            recorded.add(delivery.number)
            self._claimed.discard(delivery.number)

        try:
            try:
                async with asyncio.timeout(WORK_S):
                    outcomes = await self._send(deliveries, note)
            except (Unavailable, Overloaded) as error:
                outcomes = [known.get(one.number) or not_tried(error) for one in deliveries]
            except Exception as error:  # whatever it is, it must not affect other queues
                note_failure(error, delivery=deliveries[0].number, about=deliveries[0].dedupe)
                failed = Outcome(False, final=False, reason=repr(error))
                outcomes = [known.get(one.number) or failed for one in deliveries]
            pairs = zip(deliveries, outcomes, strict=True)
            await self._record([(one, out) for one, out in pairs if one.number not in recorded])
            self.sent += sum(out.sent for out in outcomes)
            self.failed += sum(not out.sent for out in outcomes)
        except (Unavailable, Overloaded) as error:
            self.failed += len(deliveries)  # not recorded, so they are sent again when the claim ends
            note_failure(error, delivery=deliveries[0].number)
        finally:
            self._queues.pop(queue, None)
            self._claimed.difference_update(one.number for one in deliveries)

    async def _save(self, pairs: Sequence[tuple[Delivery, Outcome]]) -> None:
        now_us = self._clock()
        results = [apply_outcome(one, out, now_us, self._give_up_after_s) for one, out in pairs]
        await self._book.save_delivery_results(results, now_us)
        for (delivery, _), result in zip(pairs, results, strict=True):
            line = _LINES.get(result.state)
            if line is not None:
                line(delivery=delivery.number, kind=self.kind, about=delivery.dedupe, attempts=result.attempts)
            elif delivery.attempts == 0 and result.attempts == 1:  # the first try failed
                retry_in_s = (result.next_at_us - now_us) // US_PER_S
                DELIVERY_RETRIED(delivery=delivery.number, kind=self.kind, about=delivery.dedupe, retry_in_s=retry_in_s)

    async def _record(self, pairs: Sequence[tuple[Delivery, Outcome]]) -> None:
        """Record these outcomes. While the ledger is away, try again for as long as the work may take."""
        began_us = self._clock()
        while True:  # bounded by WORK_S
            try:
                await self._save(pairs)
                return
            except (Unavailable, Overloaded):
                if self._rounds.stopping or self._clock() - began_us > WORK_S * US_PER_S:
                    raise
            await asyncio.sleep(SAVE_AGAIN_S)

    async def wait_for_queues(self) -> None:
        """Wait for the queues in work."""
        if self._queues:
            await asyncio.wait(list(self._queues.values()))
        if self._renewing is not None:
            self._renewing.cancel()
            self._renewing = None

    async def drain(self) -> int:
        """Deliver everything that is due now. Returns the number of attempts."""
        count = 0
        for _ in range(MAX_ROUNDS):
            began = await self.round()
            await self.wait_for_queues()
            count += began
            if not began:
                break
        return count

    def stop(self) -> None:
        """Stop after the queues in work."""
        self._rounds.stop()

    async def run(self) -> None:
        """Deliver until stopped."""
        await self._rounds.run(self._round)
        await self.wait_for_queues()

    async def _round(self) -> float:
        return BUSY_PAUSE_S if await self.round() else self._every_s
