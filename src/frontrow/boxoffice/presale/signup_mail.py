"""Mails before a sale: confirm your address, the sale is open, your presale code, no code this time.

Deliveries are sealed (`sealed_mail`), and what was sent is dropped soon after, so that a forgotten person leaves
nothing behind. Links that confirm or end a sign-up carry a signature. The ledger holds no link.
"""

import base64
import hashlib
import hmac
from typing import Any, Final

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.messages.deliveries import DeliveryWorker
from frontrow.boxoffice.messages.model.messages import NewDelivery
from frontrow.boxoffice.messages.ports.channels import Channel
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.boxoffice.messages.sealed_mail import MailBody, SealedMail
from frontrow.boxoffice.presale.model import Purpose, Signup
from frontrow.boxoffice.texts.locale_formats import Moment
from frontrow.core.clock import Clock
from frontrow.shared.vault import Vault

KIND: Final = "signup"
GIVE_UP_AFTER_S: Final = 24 * 3600
QUEUES: Final = 8
CONFIRM_PATH, END_PATH = "/sign-ups/confirm", "/sign-ups/end"
_MAC_BYTES: Final = 16


class _SignupMailBody(MailBody, frozen=True):
    end_url: str
    event_name: str
    time_zone: str
    presale_at_us: int
    sale_at_us: int
    code: str = ""


def _describe(body: _SignupMailBody) -> dict[str, Any]:
    return {
        "event_name": body.event_name,
        "presale": Moment(body.presale_at_us, body.time_zone),
        "general_sale": Moment(body.sale_at_us, body.time_zone),
        "code": body.code,
        "end_url": body.end_url,
    }


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
    """Makes the deliveries of sign-up mails; its worker sends them."""

    def __init__(self, book: MessageBook, channel: Channel, vault: Vault, clock: Clock, links: SignupLinks) -> None:
        self.links = links
        self._mail = SealedMail(
            KIND,
            _SignupMailBody,
            _describe,
            book=book,
            channel=channel,
            vault=vault,
            clock=clock,
            seal_purpose="signup mail",
            queues=QUEUES,
            give_up_after_s=GIVE_UP_AFTER_S,
        )

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
        return self._mail.new_delivery(message_id, body)

    def worker(self) -> DeliveryWorker:
        return self._mail.worker()
