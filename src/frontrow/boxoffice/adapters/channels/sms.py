"""SMS through a provider behind a small HTTP port: one POST a message, with the message's id as idempotency key."""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

import httpx

from frontrow.boxoffice.model.messages import SENT, Message, Outcome

TIMEOUT_S: Final = 10.0
AT_ONCE: Final = 10
MAX_CHARS: Final = 320  # two SMS


class SmsProvider(Protocol):
    """Who carries SMS."""

    async def send(self, phone: str, text: str, key: str) -> Outcome:
        """Hand one SMS over; the same `key` again must not send it twice."""
        ...


class HttpSmsProvider:
    """A provider that takes `POST url {"to", "text", "from"}` with a bearer key and an Idempotency-Key."""

    def __init__(self, url: str, api_key: str, sender: str = "Frontrow") -> None:
        self._url, self._sender = url, sender
        headers = {"Authorization": f"Bearer {api_key}"}
        self._client = httpx.AsyncClient(timeout=TIMEOUT_S, headers=headers, trust_env=False)

    async def send(self, phone: str, text: str, key: str) -> Outcome:
        body = {"to": phone, "text": text, "from": self._sender}
        try:
            answer = await self._client.post(self._url, json=body, headers={"Idempotency-Key": key})
        except httpx.HTTPError as error:
            return Outcome(False, final=False, reason=f"SMS provider: {type(error).__name__}")
        if answer.is_success:
            return SENT
        final = answer.is_client_error and answer.status_code not in (408, 409, 425, 429)
        return Outcome(False, final=final, reason=f"SMS provider answered {answer.status_code}")

    async def aclose(self) -> None:
        await self._client.aclose()


class SmsChannel:
    """Short texts to phones."""

    name = "sms"

    def __init__(self, provider: SmsProvider) -> None:
        self._provider = provider

    async def send(self, messages: Sequence[Message]) -> list[Outcome]:
        turn = asyncio.Semaphore(AT_ONCE)

        async def one(message: Message) -> Outcome:
            if not message.contact.phone:
                return Outcome(False, reason="the person has no phone number")
            async with turn:
                return await self._provider.send(message.contact.phone, sms_text(message), message.id)

        return list(await asyncio.gather(*map(one, messages)))


def sms_text(message: Message) -> str:
    """The short form, cut where it is too long, then the whole link: a cut link opens nothing."""
    link = f"\n{message.url}" if message.url else ""
    return message.short[: MAX_CHARS - len(link)] + link
