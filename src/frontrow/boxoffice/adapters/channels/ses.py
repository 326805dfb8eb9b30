"""E-mail through Amazon SES: each mail is one signed call of its API (version 2, `SendEmail` with the raw mail).

SES has no key by which it recognises a call, so a mail whose answer was lost is sent again, as with SMTP. What SES says
later (bounces, complaints) comes through SNS: `adapters/channels/sns.py`.
"""

import asyncio
import base64
from collections.abc import Sequence
from typing import Any, Final

import httpx
import msgspec

from frontrow.boxoffice.adapters.channels.aws_signature import AwsKey, sign_request
from frontrow.boxoffice.adapters.channels.email import SEVEN_BIT, BadAddress, MailServerAway, build_email
from frontrow.boxoffice.messages.model.messages import SENT, Message, Outcome, not_tried
from frontrow.boxoffice.messages.ports.channels import NoteMessage
from frontrow.core.clock import Clock
from frontrow.core.errors import Overloaded, Unavailable
from frontrow.core.failures import note_failure

TIMEOUT_S: Final = 20.0
PATH: Final = "/v2/email/outbound-emails"
# SES's refusals of one mail; every other 4xx is about the account or its speed, and may be mended
FINAL: Final = frozenset({"MessageRejected", "BadRequestException"})
MAX_REASON_CHARS: Final = 200


class SesChannel:
    """See Channel. `api` is the address of another server that speaks SES's API."""

    name = "email"

    def __init__(
        self,
        region: str,
        key: AwsKey,
        sender: str,
        clock: Clock,
        *,
        configuration_set: str = "",
        api: str = "",
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._region, self._key, self._sender, self._clock = region, key, sender, clock
        self._configuration_set = configuration_set
        self._base = api or f"https://email.{region}.amazonaws.com"
        self._building = asyncio.Lock()  # one mail at a time, as in SmtpChannel
        self._client = httpx.AsyncClient(timeout=timeout_s, trust_env=False)

    async def send(self, messages: Sequence[Message], note: NoteMessage | None = None) -> list[Outcome]:
        outcomes: list[Outcome] = []
        try:
            for place, message in enumerate(messages):
                outcomes.append(await self._send_one(message))
                if note is not None:
                    await note(place, outcomes[-1])
        except (Unavailable, Overloaded) as error:
            outcomes += [not_tried(error)] * (len(messages) - len(outcomes))
        return outcomes

    async def _send_one(self, message: Message) -> Outcome:
        try:
            async with self._building:
                raw = build_email(message, self._sender).as_bytes(policy=SEVEN_BIT)
        except (BadAddress, ValueError) as error:
            return Outcome(False, reason=str(error))
        asked: dict[str, Any] = {
            "FromEmailAddress": self._sender,
            "Destination": {"ToAddresses": [message.contact.email]},
            "Content": {"Raw": {"Data": base64.b64encode(raw).decode()}},
        }
        if self._configuration_set:
            asked["ConfigurationSetName"] = self._configuration_set
        try:
            response = await self._call("POST", PATH, msgspec.json.encode(asked))
        except httpx.HTTPError as error:
            return _away(f"SES: {type(error).__name__}")
        if response.is_success:
            return SENT
        reason = f"SES answered {response.status_code} {_words(response)}"
        return Outcome(False, reason=reason) if _kind(response) in FINAL else _away(reason)

    async def _call(self, method: str, path: str, body: bytes) -> httpx.Response:
        url = self._base + path
        headers = sign_request(self._key, self._region, "ses", url, body, self._clock())
        return await self._client.request(method, url, content=body, headers=headers)

    async def look(self) -> None:
        """Ask SES whether it knows the key, by a mail that it must refuse. Raises `MailServerAway`."""
        try:
            response = await self._call("POST", PATH, b"{}")
        except httpx.HTTPError as error:
            raise MailServerAway(f"SES: {type(error).__name__}") from error
        if response.status_code != 400:
            raise MailServerAway(f"SES answered {response.status_code} {_words(response)}")

    async def aclose(self) -> None:
        await self._client.aclose()


def _kind(response: httpx.Response) -> str:
    """The name of SES's error."""
    named = response.headers.get("x-amzn-errortype", "").partition(":")[0]
    return str(named or _body(response).get("__type", "")).rpartition("#")[2]


def _words(response: httpx.Response) -> str:
    said = str(_body(response).get("message", ""))
    return f"{_kind(response)} {said}".strip()[:MAX_REASON_CHARS]


def _body(response: httpx.Response) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(response.content)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _away(reason: str) -> Outcome:
    note_failure(MailServerAway(reason))
    return Outcome(False, final=False, reason=reason)
