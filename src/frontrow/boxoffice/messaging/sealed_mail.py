"""Mails whose content is sealed while it waits in the ledger, so that the ledger holds no usable link or address."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from frontrow.boxoffice.messaging.message_texts import render
from frontrow.boxoffice.model.messages import Contact, Delivery, Message, Outcome
from frontrow.boxoffice.ports.messages import Channel


def mail_lane(email: str, lanes: int) -> str:
    """The delivery lane of an address: one of `lanes`, always the same for one address."""
    return f"email/{zlib.crc32(email.encode()) % lanes}"


def mail_message(message_id: str, kind: str, email: str, locale: str, about: Mapping[str, Any], url: str) -> Message:
    """The mail of this kind in the reader's language."""
    words = render(kind, locale, about, url=url)
    contact = Contact("", email, locale=locale)
    return Message(message_id, kind, contact, words.subject, words.text, words.html, words.short, url=url)


async def send_sealed(
    channel: Channel, deliveries: Sequence[Delivery], open_message: Callable[[Delivery], Message | None]
) -> list[Outcome]:
    """Send a lane's mails as one batch. `open_message` returns None for a mail that was sealed with another key."""
    messages = [open_message(delivery) for delivery in deliveries]
    outcomes = iter(await channel.send([message for message in messages if message is not None]))
    broken = Outcome(False, reason="sealed with another key")
    return [next(outcomes) if message is not None else broken for message in messages]
