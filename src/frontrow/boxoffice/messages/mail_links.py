"""Links in messages (ADR 0115): a signed capability that opens one booking, offer or priority pass in any browser.

The capability is placed after `#`, where no server, proxy or referrer sees it. It contains its purpose, its subject and
its expiry, so a link that shows tickets cannot be used to claim an offer. It is made when the message is rendered. The
ledger never stores one.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from frontrow.core.clock import US_PER_S

LINK_PREFIX: Final = "frm_"
OPEN_PATH: Final = "/open"
MAC_BYTES: Final = 16
MAX_CHARS: Final = 200
_DOMAIN: Final = b"frontrow mail link 1\0"


class LinkPurpose(StrEnum):
    """What a link allows."""

    BOOKING = "booking"  # view one booking: its tickets, its receipt
    PRIORITY = "priority"  # choose seats without waiting, after the payment provider failed
    OFFER = "offer"  # claim or decline one offer of the waitlist
    TRANSFER = "transfer"  # accept one ticket that somebody sent, and show it


# where the page of a link's subject is
FOLDERS: Final = {
    LinkPurpose.BOOKING: "bookings",
    LinkPurpose.PRIORITY: "bookings",
    LinkPurpose.OFFER: "offers",
    LinkPurpose.TRANSFER: "transfers",
}


@dataclass(frozen=True, slots=True)
class OpenedLink:
    """A genuine link. An `ended` link opens nothing."""

    purpose: LinkPurpose
    subject: str
    expires_s: int

    def ended(self, now_us: int) -> bool:
        return now_us >= self.expires_s * US_PER_S


class MailLinks:
    """Makes and reads the links of one platform. Without a key, links lead to the plain pages and grant nothing."""

    def __init__(self, key: bytes, public_url: str) -> None:
        self._key, self._public_url = key, public_url.rstrip("/")

    def page(self, path: str) -> str:
        """The URL of a page that is public or asks the visitor to sign in."""
        return self._public_url + path

    def url(self, purpose: LinkPurpose, subject: str, expires_at_us: int) -> str:
        """A link that opens the subject until it expires."""
        if not self._key:
            return self.page(f"/{FOLDERS[purpose]}/{subject}")
        return f"{self._public_url}{OPEN_PATH}#{self.capability(purpose, subject, expires_at_us)}"

    def capability(self, purpose: LinkPurpose, subject: str, expires_at_us: int) -> str:
        signed = f"{purpose.value}.{subject}.{-(-expires_at_us // US_PER_S)}"
        return f"{LINK_PREFIX}{signed}.{self._mac(signed)}"

    def read(self, text: str) -> OpenedLink | None:
        """The link, if it is genuine. The caller checks whether it has ended."""
        signed, _, mac = text.removeprefix(LINK_PREFIX).rpartition(".")
        if len(text) > MAX_CHARS or not text.isascii() or not text.startswith(LINK_PREFIX) or not self._key:
            return None
        if not hmac.compare_digest(mac, self._mac(signed)):
            return None
        purpose, subject, expires = signed.split(".")
        return OpenedLink(LinkPurpose(purpose), subject, int(expires))

    def _mac(self, signed: str) -> str:
        digest = hmac.new(self._key, _DOMAIN + signed.encode(), hashlib.sha256).digest()[:MAC_BYTES]
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def __repr__(self) -> str:
        return f"MailLinks({self._public_url})"
