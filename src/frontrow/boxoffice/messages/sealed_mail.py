"""Mails whose address and link must not be readable in the ledger: account mails and sign-up mails.

They go through the same deliveries, worker and mail channel as every message (B15), but the body of a delivery is
sealed. Somebody who only has the ledger sees neither the address nor the link.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from frontrow.boxoffice.messages.deliveries import DeliveryWorker, NoteDelivery, send_batch
from frontrow.boxoffice.messages.model.messages import Contact, Delivery, Message, NewDelivery, Outcome
from frontrow.boxoffice.messages.ports.channels import Channel
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.boxoffice.texts.message_texts import render
from frontrow.core.clock import Clock
from frontrow.shared.vault import SealBroken, Vault

POLL_EVERY_S: Final = 0.25  # somebody is waiting for the mail


class MailBody(msgspec.Struct, frozen=True):
    """What is sealed into a delivery; each kind of mail adds its own fields."""

    kind: str
    email: str
    locale: str
    url: str


Body = TypeVar("Body", bound=MailBody)


class SealedMail(Generic[Body]):
    """Makes sealed deliveries of one kind and sends them. `describe` gives the values that the text mentions."""

    def __init__(
        self,
        kind: str,
        body_type: type[Body],
        describe: Callable[[Body], Mapping[str, Any]],
        *,
        book: MessageBook,
        channel: Channel,
        vault: Vault,
        clock: Clock,
        seal_purpose: str,
        queues: int,
        give_up_after_s: int,
    ) -> None:
        self._kind, self._body_type, self._describe = kind, body_type, describe
        self._book, self._channel, self._vault, self._clock = book, channel, vault, clock
        self._seal_purpose, self._queues, self._give_up_after_s = seal_purpose, queues, give_up_after_s

    def new_delivery(self, message_id: str, body: Body) -> NewDelivery:
        """A delivery of this mail. Mails to one address are always in the same queue."""
        sealed = self._vault.seal(msgspec.json.encode(body).decode(), f"{self._seal_purpose}:{message_id}")
        queue = f"email/{zlib.crc32(body.email.encode()) % self._queues}"
        return NewDelivery(self._kind, queue, message_id, sealed)

    async def send(self, deliveries: Sequence[Delivery], note: NoteDelivery) -> list[Outcome]:
        """Open, render and send the mails of one queue as one batch."""
        return await send_batch(self._channel, deliveries, [self._render(one) for one in deliveries], note)

    def _render(self, delivery: Delivery) -> Message | Outcome:
        try:
            opened = self._vault.open(delivery.body, f"{self._seal_purpose}:{delivery.dedupe}")
        except SealBroken:
            return Outcome(False, reason="sealed with another key")
        body = msgspec.json.decode(opened, type=self._body_type)
        text = render(body.kind, body.locale, self._describe(body), url=body.url)
        contact = Contact("", body.email, locale=body.locale)
        return Message(
            delivery.dedupe, body.kind, contact, text.subject, text.text, text.html, text.short, url=body.url
        )

    def worker(self) -> DeliveryWorker:
        return DeliveryWorker(
            self._kind,
            self._book,
            self._clock,
            self.send,
            give_up_after_s=self._give_up_after_s,
            every_s=POLL_EVERY_S,
        )
