"""Mails before a sale: please confirm your address, the sale is open, your code, no code this time.

They go through the same delivery book, worker and mail channel as every message. The address stands in a delivery
sealed, and what was sent is dropped soon after, so that a forgotten person leaves nothing behind. Links to confirm or
to end a sign-up carry a signature; the ledger holds none.
"""

import base64
import hashlib
import hmac
import zlib
from collections.abc import Sequence
from typing import Final

import msgspec

from frontrow.boxoffice.messaging.deliveries import DeliveryWorker
from frontrow.boxoffice.messaging.locale_formats import Moment
from frontrow.boxoffice.messaging.message_texts import render
from frontrow.boxoffice.model.events import Event
from frontrow.boxoffice.model.messages import Contact, Delivery, Message, NewDelivery, Outcome
from frontrow.boxoffice.model.signups import Purpose, Signup
from frontrow.boxoffice.ports.messages import Channel, MessageBook
from frontrow.core.clock import Clock
from frontrow.core.vault import SealBroken, Vault

KIND: Final = "signup"
SIGNUP_KINDS: Final = ("confirm_notice", "confirm_registration", "sale_opens", "presale_code", "presale_missed")
GIVE_UP_AFTER_S: Final = 24 * 3600
LANES: Final = 8
EVERY_S: Final = 0.25  # somebody is waiting for it
CONFIRM_PATH, END_PATH = "/sign-ups/confirm", "/sign-ups/end"
_MAC_BYTES: Final = 16


class _Body(msgspec.Struct, frozen=True):
    """What is sealed into a delivery."""

    kind: str
    email: str
    locale: str
    url: str
    end_url: str
    event_name: str
    time_zone: str
    presale_at_us: int
    sale_at_us: int
    code: str = ""


class SignupLinks:
    """Makes and reads the signed links of sign-ups."""

    def __init__(self, key: bytes, public_url: str) -> None:
        self._key, self._public_url = key, public_url.rstrip("/")

    def page(self, path: str) -> str:
        return self._public_url + path

    def confirm_url(self, signup_id: str) -> str:
        return self.page(f"{CONFIRM_PATH}/{self.token('confirm', signup_id)}")

    def end_url(self, signup_id: str) -> str:
        return self.page(f"{END_PATH}/{self.token('end', signup_id)}")

    def token(self, act: str, signup_id: str) -> str:
        digest = hmac.digest(self._key, f"frontrow sign-up {act}\n{signup_id}".encode(), hashlib.sha256)[:_MAC_BYTES]
        return f"{signup_id}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"

    def read(self, act: str, token: str) -> str:
        """The sign-up that the token may `act` on; empty for any other text."""
        signup_id = token.partition(".")[0]
        return signup_id if hmac.compare_digest(token.encode(), self.token(act, signup_id).encode()) else ""

    def __repr__(self) -> str:
        return f"SignupLinks({self._public_url})"


class SignupMail:
    """Makes the deliveries of sign-ups and sends them."""

    def __init__(self, book: MessageBook, channel: Channel, vault: Vault, clock: Clock, links: SignupLinks) -> None:
        self._book, self._channel, self._vault, self._clock, self.links = book, channel, vault, clock, links

    def confirm(self, signup: Signup, event: Event, time_zone: str, message_id: str) -> NewDelivery:
        """The link that proves the address of a sign-up."""
        kind = "confirm_notice" if signup.purpose is Purpose.NOTICE else "confirm_registration"
        return self._delivery(kind, signup, event, time_zone, self.links.confirm_url(signup.id), message_id)

    def sale_opens(self, signup: Signup, event: Event, time_zone: str) -> NewDelivery:
        """The one mail of a notice."""
        url = self.links.page(f"/v1/events/{event.id}/room/")
        return self._delivery("sale_opens", signup, event, time_zone, url, f"sale_opens-{signup.id}")

    def code(self, signup: Signup, event: Event, time_zone: str, code: str) -> NewDelivery:
        """A chosen registration's code; its link brings the code along where no server sees it."""
        url = self.links.page(f"/v1/events/{event.id}/room/#{code}")
        return self._delivery("presale_code", signup, event, time_zone, url, f"presale_code-{signup.id}", code)

    def missed(self, signup: Signup, event: Event, time_zone: str) -> NewDelivery:
        """There were more people than codes."""
        url = self.links.page(f"/events/{event.id}")
        return self._delivery("presale_missed", signup, event, time_zone, url, f"presale_missed-{signup.id}")

    def _delivery(
        self, kind: str, signup: Signup, event: Event, time_zone: str, url: str, message_id: str, code: str = ""
    ) -> NewDelivery:
        body = _Body(
            kind,
            signup.email,
            signup.locale,
            url,
            self.links.end_url(signup.id),
            event.name,
            time_zone,
            event.opens_at_us,
            event.sale_starts_at_us,
            code,
        )
        sealed = self._vault.seal(msgspec.json.encode(body).decode(), f"signup mail:{message_id}")
        return NewDelivery(KIND, f"email/{zlib.crc32(signup.email.encode()) % LANES}", message_id, sealed)

    async def send(self, deliveries: Sequence[Delivery]) -> list[Outcome]:
        """Open, render and hand over a lane's mails as one batch."""
        made = [self._message(delivery) for delivery in deliveries]
        sent = iter(await self._channel.send([one for one in made if one is not None]))
        broken = Outcome(False, reason="sealed with another key")
        return [next(sent) if one is not None else broken for one in made]

    def _message(self, delivery: Delivery) -> Message | None:
        try:
            opened = self._vault.open(delivery.body, f"signup mail:{delivery.dedupe}")
        except SealBroken:
            return None
        body = msgspec.json.decode(opened, type=_Body)
        about = {
            "event_name": body.event_name,
            "presale": Moment(body.presale_at_us, body.time_zone),
            "general_sale": Moment(body.sale_at_us, body.time_zone),
            "code": body.code,
            "end_url": body.end_url,
        }
        words = render(body.kind, body.locale, about, url=body.url)
        contact = Contact("", body.email, locale=body.locale)
        return Message(
            delivery.dedupe, body.kind, contact, words.subject, words.text, words.html, words.short, url=body.url
        )

    def worker(self) -> DeliveryWorker:
        return DeliveryWorker(
            KIND, self._book, self._clock, self.send, give_up_after_s=GIVE_UP_AFTER_S, every_s=EVERY_S
        )
