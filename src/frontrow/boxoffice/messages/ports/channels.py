"""The ports of channels: ways to reach people, what providers report, and who writes the messages on a fan's page."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from frontrow.boxoffice.messages.model.channel_reports import ChannelReport
from frontrow.boxoffice.messages.model.messages import InAppMessage, Message, Outcome

NoteMessage = Callable[[int, Outcome], Awaitable[None]]  # a message's place in its batch, and what became of it


class Channel(Protocol):
    """A way to reach people."""

    name: str

    async def send(self, messages: Sequence[Message], note: NoteMessage | None = None) -> list[Outcome]:
        """Send these messages, over one connection where there is one. Returns an outcome per message. Never raises.

        Where a second copy of a message would reach the person too (e-mail), `note` is awaited after each message and
        before the next one. When our own stores are away and nothing can be noted, the rest is not tried.
        """
        ...


class Sms(msgspec.Struct, frozen=True):
    """One SMS. `key` is the same however often it is sent. No copy of it was sent before `since_us`."""

    phone: str
    text: str
    key: str
    since_us: int = 0


class SmsProvider(Protocol):
    """Sends SMS. A provider of one's own is named by `messages.sms_url = "python:MODULE:FUNCTION"`."""

    async def send(self, sms: Sms) -> Outcome:
        """Send one SMS, once per `key`, also when an earlier answer was lost. Never raises.

        A number that can never be reached is a final outcome; a provider that is away or busy is not.
        """
        ...

    async def aclose(self) -> None: ...


class ReportReader(Protocol):
    """Reads what a provider reports to `POST /v1/channels/{name}`."""

    name: str

    async def read(self, url: str, body: bytes, headers: Mapping[str, str], now_us: int) -> Sequence[ChannelReport]:
        """The reports in a request. `Unauthorised` if it is not genuine; nothing if it does not concern us.

        `url` is the address that the provider called, `headers` have names in small letters.
        """
        ...


class InAppWriter(Protocol):
    """Writes the texts of messages on a fan's page."""

    async def write_in_app(self, messages: Sequence[InAppMessage]) -> list[InAppMessage]:
        """The messages with their texts. Those that were written already stay as they are."""
        ...
