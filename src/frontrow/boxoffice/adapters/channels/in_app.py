"""The in-app page: messages stored in the ledger for the person to read. Sending one again changes nothing."""

from collections.abc import Sequence

from frontrow.boxoffice.messages.model.messages import SENT, InAppMessage, Message, Outcome, not_tried
from frontrow.boxoffice.messages.ports.channels import NoteMessage
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError, Overloaded, Unavailable


class InAppChannel:
    """Stores every message to a person, for one page."""

    name = "in_app"

    def __init__(self, book: MessageBook, clock: Clock) -> None:
        self._book, self._clock = book, clock

    async def send(self, messages: Sequence[Message], note: NoteMessage | None = None) -> list[Outcome]:
        now_us = self._clock()
        rows = [InAppMessage(one.id, one.contact.fan, one.subject, one.text, now_us) for one in messages]
        try:
            await self._book.put_in_app(rows, now_us)
        except (Unavailable, Overloaded) as error:
            return [not_tried(error)] * len(messages)
        except FrontrowError as error:
            return [Outcome(False, final=False, reason=error.message)] * len(messages)
        return [SENT] * len(messages)
