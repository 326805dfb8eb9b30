"""Mails about accounts: the magic link of a fan, the invitation or password reset of a member.

Deliveries are sealed (`sealed_mail`), so the ledger holds no usable link. In the mail the secret is behind `#`, where
no server, proxy or referrer ever sees it.
"""

from typing import Any, Final
from urllib.parse import urlencode

from frontrow.boxoffice.messages.deliveries import DeliveryWorker
from frontrow.boxoffice.messages.ports.channels import Channel
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.boxoffice.messages.sealed_mail import MailBody, SealedMail
from frontrow.boxoffice.people.model.people import Invitation
from frontrow.core.clock import Clock
from frontrow.shared.ids import Ids
from frontrow.shared.vault import Vault

KIND: Final = "account"
GIVE_UP_AFTER_S: Final = 15 * 60
QUEUES: Final = 4
SIGN_IN_PATH, INVITATION_PATH = "/sign-in", "/invitation"


class _AccountMailBody(MailBody, frozen=True):
    minutes: int
    code: str = ""  # of a sign-in mail


def _describe(body: _AccountMailBody) -> dict[str, Any]:
    shown = f"{body.code[:3]} {body.code[3:]}" if body.code else ""
    return {"minutes": body.minutes, "hours": body.minutes // 60, "code": shown}


class AccountMail:
    """Queues account mails; its worker sends them."""

    def __init__(
        self, book: MessageBook, channel: Channel, vault: Vault, clock: Clock, ids: Ids, public_url: str
    ) -> None:
        self._book, self._clock, self._ids, self._public_url = book, clock, ids, public_url.rstrip("/")
        self._mail = SealedMail(
            KIND,
            _AccountMailBody,
            _describe,
            book=book,
            channel=channel,
            vault=vault,
            clock=clock,
            seal_purpose="mail",
            queues=QUEUES,
            give_up_after_s=GIVE_UP_AFTER_S,
        )

    def invitation_url(self, secret: str) -> str:
        return f"{self._public_url}{INVITATION_PATH}#{secret}"

    async def send_sign_in_link(
        self, email: str, secret: str, code: str, locale: str, life_s: int, back: str = ""
    ) -> None:
        """`back` is the page that the link leads to, in any browser."""
        query = f"?{urlencode({'back': back})}" if back else ""
        url = f"{self._public_url}{SIGN_IN_PATH}{query}#{secret}"
        await self._queue(_AccountMailBody("sign_in", email, locale, url, life_s // 60, code))

    async def send_invitation(self, invitation: Invitation, secret: str, locale: str) -> None:
        minutes = (invitation.ends_at_us - invitation.created_at_us) // 60_000_000
        kind = "password_reset" if invitation.staff_id else "invitation"
        await self._queue(_AccountMailBody(kind, invitation.email, locale, self.invitation_url(secret), minutes))

    async def _queue(self, body: _AccountMailBody) -> None:
        message_id, now_us = self._ids.new("msg"), self._clock()
        writes = self._book.make_delivery_writes([self._mail.new_delivery(message_id, body)], now_us)
        await self._book.once("account mail", message_id, writes, now_us)

    def worker(self) -> DeliveryWorker:
        return self._mail.worker()
