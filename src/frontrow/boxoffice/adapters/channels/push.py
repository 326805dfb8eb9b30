"""Push to the devices of a person: browsers by web push, apps by FCM (`adapters/channels/fcm.py`).

Web push is encrypted for the browser that subscribed (pywebpush), signed with our VAPID key, and sent through
`safe_http`, because the URL comes from outside.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from py_vapid import Vapid02  # type: ignore[import-untyped]
from pywebpush import WebPusher, WebPushException  # type: ignore[import-untyped]

from frontrow.boxoffice.adapters.channels.fcm import FcmPusher
from frontrow.boxoffice.messages.model.messages import APP_DEVICE, SENT, Message, Outcome
from frontrow.boxoffice.messages.ports.channels import NoteMessage
from frontrow.boxoffice.messages.safe_http import SafeHttpClient, UnsafeAddress
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError, Unavailable
from frontrow.core.failures import note_failure

TTL_S: Final = 24 * 3600
VALID_S: Final = 12 * 3600  # the life of a VAPID signature; the standard allows a day
GONE: Final = (404, 410)

DropDevice = Callable[[str, str], Awaitable[None]]  # a person and the endpoint of a device that is gone


class PushChannel:
    """Push to every device of a person. The message counts as sent if one of them accepted it.

    A device that says that it is gone is forgotten.
    """

    name = "push"

    def __init__(
        self, *, web: "WebPush | None" = None, apps: FcmPusher | None = None, drop_device: DropDevice | None = None
    ) -> None:
        self._web, self._apps, self._drop_device = web, apps, drop_device

    async def send(self, messages: Sequence[Message], note: NoteMessage | None = None) -> list[Outcome]:
        return list(await asyncio.gather(*(self._to_person(message) for message in messages)))

    async def _to_person(self, message: Message) -> Outcome:
        if not message.contact.push:
            return Outcome(False, reason="the person has no device for push")
        outcomes = [await self._to_device(document, message) for document in message.contact.push]
        if any(one.sent for one in outcomes):
            return SENT
        return next((one for one in outcomes if not one.final), outcomes[0])

    async def _to_device(self, document: str, message: Message) -> Outcome:
        try:
            subscription: dict[str, Any] = msgspec.json.decode(document)
            endpoint = str(subscription["endpoint"])
        except (ValueError, KeyError, TypeError) as error:
            return Outcome(False, reason=f"no usable subscription: {error}")
        if endpoint.startswith(APP_DEVICE):
            if self._apps is None:
                return Outcome(False, reason="push to apps is not set up on this server")
            outcome = await self._apps.send(endpoint.removeprefix(APP_DEVICE), message)
        elif self._web is None:
            return Outcome(False, reason="push to browsers is not set up on this server")
        else:
            outcome = await self._web.send(subscription, message)
        if outcome.final and not outcome.sent and self._drop_device is not None:
            try:
                await self._drop_device(message.contact.fan, endpoint)
            except FrontrowError as error:  # it is told again next time
                note_failure(error)
        return outcome

    async def aclose(self) -> None:
        if self._apps is not None:
            await self._apps.aclose()


class WebPush:
    """Sends to one browser at a time."""

    def __init__(self, vapid_private_key: str, contact: str, outgoing: SafeHttpClient, clock: Clock) -> None:
        self._vapid = Vapid02.from_string(vapid_private_key)
        self._contact, self._outgoing, self._clock = contact, outgoing, clock

    async def send(self, subscription: dict[str, Any], message: Message) -> Outcome:
        """Send to the browser that made this subscription."""
        note = {"id": message.id, "title": message.subject, "body": message.short, "url": message.url}
        try:
            encrypted = WebPusher(subscription).encode(msgspec.json.encode(note))
            parts = urlsplit(str(subscription["endpoint"]))
            status = await self._outgoing.post(
                str(subscription["endpoint"]), encrypted["body"], self._headers(f"{parts.scheme}://{parts.netloc}")
            )
        except Unavailable as error:
            return Outcome(False, final=False, reason=error.message)
        except (UnsafeAddress, WebPushException, ValueError, KeyError, TypeError) as error:
            return Outcome(False, reason=f"no usable subscription: {error}")
        if 200 <= status < 300:
            return SENT
        return Outcome(False, final=status in GONE, reason=f"answered {status}")

    def _headers(self, audience: str) -> dict[str, str]:
        claims = {"sub": self._contact, "aud": audience, "exp": self._clock() // US_PER_S + VALID_S}
        signed: dict[str, str] = self._vapid.sign(claims)
        return {**signed, "Content-Encoding": "aes128gcm", "TTL": str(TTL_S), "Urgency": "high"}
