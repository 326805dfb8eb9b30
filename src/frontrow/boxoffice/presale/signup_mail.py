"""Mails before a sale: confirm your address, the sale is open, your code, no code this time.

They use the same delivery book, worker and mail channel as every message. The address is sealed in a delivery, and a
sent delivery is dropped soon after, so that nothing remains of a person who asked to be forgotten. Links to confirm or
end a sign-up are signed and not stored in the ledger.
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

import msgspec

from frontrow.boxoffice.messaging.deliveries import DeliveryWorker
from frontrow.boxoffice.messaging.locale_formats import Moment
from frontrow.boxoffice.messaging.sealed_mail import mail_lane, mail_message, send_sealed
from frontrow.boxoffice.model.events import Event
from frontrow.boxoffice.model.messages import Delivery, Message, NewDelivery, Outcome
from frontrow.boxoffice.model.signups import Purpose, Signup
from frontrow.boxoffice.ports.messages import Channel, MessageBook
from frontrow.core.clock import Clock
from frontrow.core.vault import SealBroken, Vault

KIND: Final = "signup"
SIGNUP_KINDS: Final = ("confirm_notice", "confirm_registration", "sale_opens", "presale_code", "presale_missed")
GIVE_UP_AFTER_S: Final = 24 * 3600
LANES: Final = 8
EVERY_S: Final = 0.25  # somebody waits for this mail
CONFIRM_PATH, END_PATH = "/sign-ups/confirm", "/sign-ups/end"
_MAC_BYTES: Final = 16


class _SignupMailBody(msgspec.Struct, frozen=True):
    """The sealed content of a delivery."""

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
        """The id of the sign-up that the token may `act` on; empty for a wrong token."""
        signup_id = token.partition(".")[0]
        return signup_id if hmac.compare_digest(token.encode(), self.token(act, signup_id).encode()) else ""

    def __repr__(self) -> str:
        return f"SignupLinks({self._public_url})"


class SignupMail:
    """Builds and sends the mails of sign-ups."""

    def __init__(self, book: MessageBook, channel: Channel, vault: Vault, clock: Clock, links: SignupLinks) -> None:
        self._book, self._channel, self._vault, self._clock, self.links = book, channel, vault, clock, links

    def confirm(self, signup: Signup, event: Event, time_zone: str, message_id: str) -> NewDelivery:
        """The mail with the link that proves the address of a sign-up."""
        kind = "confirm_notice" if signup.purpose is Purpose.NOTICE else "confirm_registration"
        return self._delivery(kind, signup, event, time_zone, self.links.confirm_url(signup.id), message_id)

    def sale_opens(self, signup: Signup, event: Event, time_zone: str) -> NewDelivery:
        """The mail of a notice: the sale is open."""
        url = self.links.page(f"/v1/events/{event.id}/room/")
        return self._delivery("sale_opens", signup, event, time_zone, url, f"sale_opens-{signup.id}")

    def code(self, signup: Signup, event: Event, time_zone: str, code: str) -> NewDelivery:
        """The mail with a chosen registration's code. The link carries the code behind `#`, where no server sees it."""
        url = self.links.page(f"/v1/events/{event.id}/room/#{code}")
        return self._delivery("presale_code", signup, event, time_zone, url, f"presale_code-{signup.id}", code)

    def missed(self, signup: Signup, event: Event, time_zone: str) -> NewDelivery:
        """The mail for a registration that got no code."""
        url = self.links.page(f"/events/{event.id}")
        return self._delivery("presale_missed", signup, event, time_zone, url, f"presale_missed-{signup.id}")

    def _delivery(
        self, kind: str, signup: Signup, event: Event, time_zone: str, url: str, message_id: str, code: str = ""
    ) -> NewDelivery:
        body = _SignupMailBody(
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
        return NewDelivery(KIND, mail_lane(signup.email, LANES), message_id, sealed)

    async def send(self, deliveries: Sequence[Delivery]) -> list[Outcome]:
        """Send a lane's mails as one batch."""
        return await send_sealed(self._channel, deliveries, self._message)

    def _message(self, delivery: Delivery) -> Message | None:
        try:
            opened = self._vault.open(delivery.body, f"signup mail:{delivery.dedupe}")
        except SealBroken:
            return None
        body = msgspec.json.decode(opened, type=_SignupMailBody)
        about = {
            "event_name": body.event_name,
            "presale": Moment(body.presale_at_us, body.time_zone),
            "general_sale": Moment(body.sale_at_us, body.time_zone),
            "code": body.code,
            "end_url": body.end_url,
        }
        return mail_message(delivery.dedupe, body.kind, body.email, body.locale, about, body.url)

    def worker(self) -> DeliveryWorker:
        return DeliveryWorker(
            KIND, self._book, self._clock, self.send, give_up_after_s=GIVE_UP_AFTER_S, every_s=EVERY_S
        )
