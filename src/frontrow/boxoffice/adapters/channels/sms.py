"""SMS: the channel, and a provider with a plain HTTP API that takes one POST per message with an idempotency key."""

import asyncio
from collections.abc import Sequence
from typing import Final

import httpx

from frontrow.boxoffice.messages.model.messages import SENT, Message, Outcome
from frontrow.boxoffice.messages.model.phone_numbers import CountryNotServed
from frontrow.boxoffice.messages.ports.channels import NoteMessage, Sms, SmsProvider
from frontrow.boxoffice.messages.sms_limits import SmsLimits
from frontrow.core.errors import FrontrowError, Unavailable
from frontrow.core.failures import note_failure

TIMEOUT_S: Final = 10.0
AT_ONCE: Final = 10
MAX_CHARS: Final = 320  # two SMS


class SmsProviderAway(Unavailable):
    """The SMS provider cannot be reached, or does not take messages for now."""


class HttpSmsProvider:
    """A provider that accepts `POST url {"to", "text", "from"}` with a bearer key and an Idempotency-Key."""

    def __init__(self, url: str, api_key: str, sender: str = "Frontrow") -> None:
        self._url, self._sender = url, sender
        headers = {"Authorization": f"Bearer {api_key}"}
        self._client = httpx.AsyncClient(timeout=TIMEOUT_S, headers=headers, trust_env=False)

    async def send(self, sms: Sms) -> Outcome:
        body = {"to": sms.phone, "text": sms.text, "from": self._sender}
        try:
            response = await self._client.post(self._url, json=body, headers={"Idempotency-Key": sms.key})
        except httpx.HTTPError as error:
            return _away(f"SMS provider: {type(error).__name__}")
        if response.is_success:
            return SENT
        final = response.is_client_error and response.status_code not in (408, 409, 425, 429)
        reason = f"SMS provider answered {response.status_code}"
        return Outcome(False, reason=reason) if final else _away(reason)

    async def aclose(self) -> None:
        await self._client.aclose()


def _away(reason: str) -> Outcome:
    note_failure(SmsProviderAway(reason))
    return Outcome(False, final=False, reason=reason)


class SmsChannel:
    """Sends short texts to phones whose owners have proven their number, within the caps of `limits`."""

    name = "sms"

    def __init__(self, provider: SmsProvider, limits: SmsLimits) -> None:
        self._provider, self._limits = provider, limits

    async def send(self, messages: Sequence[Message], note: NoteMessage | None = None) -> list[Outcome]:
        turn = asyncio.Semaphore(AT_ONCE)

        async def one(message: Message) -> Outcome:
            async with turn:
                return await self._send_one(message)

        return list(await asyncio.gather(*map(one, messages)))

    async def _send_one(self, message: Message) -> Outcome:
        contact = message.contact
        if not contact.takes_sms:
            return Outcome(False, reason="the person has no phone number that they have proven")
        try:
            await self._limits.count(contact.phone)
        except CountryNotServed as error:
            return Outcome(False, reason=error.message)
        except FrontrowError as error:  # over a cap, or the counters are away: later
            return Outcome(False, final=False, reason=f"cap of SMS: {error.message}")
        return await self._provider.send(Sms(contact.phone, sms_text(message), message.id, message.since_us))

    async def aclose(self) -> None:
        await self._provider.aclose()


def sms_text(message: Message) -> str:
    """The short form, cut to fit, followed by the whole link (a cut link would not work)."""
    link = f"\n{message.url}" if message.url else ""
    return message.short[: MAX_CHARS - len(link)] + link
