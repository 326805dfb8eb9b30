"""The ports of channels: ways to reach people, and who writes the messages on a fan's page."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

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


class InAppWriter(Protocol):
    """Writes the texts of messages on a fan's page."""

    async def write_in_app(self, messages: Sequence[InAppMessage]) -> list[InAppMessage]:
        """The messages with their texts. Those that were written already stay as they are."""
        ...
