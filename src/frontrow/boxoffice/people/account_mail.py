"""Mails about accounts: the magic link of a fan, the invitation of a member.

They go through the same delivery book, worker and mail channel as every message (B15). The address and the link stand
in it sealed, so the ledger holds no usable link; in the mail the secret is behind `#`, where no server, proxy or
referrer ever sees it.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from frontrow.boxoffice.messaging.deliveries import DeliveryWorker
from frontrow.boxoffice.messaging.sealed_mail import mail_lane, mail_message, send_sealed
from frontrow.boxoffice.model.messages import Delivery, Message, NewDelivery, Outcome
from frontrow.boxoffice.model.people import Invitation
from frontrow.boxoffice.ports.messages import Channel, MessageBook
from frontrow.core.clock import Clock
from frontrow.core.ids import Ids
from frontrow.core.vault import SealBroken, Vault

KIND: Final = "account"
ACCOUNT_KINDS: Final = ("sign_in", "invitation", "password_reset")  # of channels/texts
GIVE_UP_AFTER_S: Final = 15 * 60
LANES: Final = 4
EVERY_S: Final = 0.25  # somebody is waiting for it
SIGN_IN_PATH, INVITATION_PATH = "/sign-in", "/invitation"


class _Body(msgspec.Struct, frozen=True):
    """What is sealed into a delivery."""

    kind: str
    email: str
    locale: str
    url: str
    minutes: int


class AccountMail:
    """Puts account mails in line and sends them."""

    def __init__(
        self, book: MessageBook, channel: Channel, vault: Vault, clock: Clock, ids: Ids, public_url: str
    ) -> None:
        self._book, self._channel, self._vault = book, channel, vault
        self._clock, self._ids, self._public_url = clock, ids, public_url.rstrip("/")

    def invitation_url(self, secret: str) -> str:
        return f"{self._public_url}{INVITATION_PATH}#{secret}"

    async def sign_in(self, email: str, secret: str, locale: str, life_s: int) -> None:
        url = f"{self._public_url}{SIGN_IN_PATH}#{secret}"
        await self._put(_Body("sign_in", email, locale, url, life_s // 60))

    async def invite(self, invitation: Invitation, secret: str, locale: str) -> None:
        minutes = (invitation.ends_at_us - invitation.created_at_us) // 60_000_000
        kind = "password_reset" if invitation.staff_id else "invitation"
        await self._put(_Body(kind, invitation.email, locale, self.invitation_url(secret), minutes))

    async def _put(self, body: _Body) -> None:
        message_id, now_us = self._ids.new("msg"), self._clock()
        sealed = self._vault.seal(msgspec.json.encode(body).decode(), f"mail:{message_id}")
        delivery = NewDelivery(KIND, mail_lane(body.email, LANES), message_id, sealed)
        queries = self._book.delivering([delivery], now_us)
        await self._book.once("account mail", message_id, queries, now_us)

    async def send(self, deliveries: Sequence[Delivery]) -> list[Outcome]:
        """Send a lane's mails as one batch."""
        return await send_sealed(self._channel, deliveries, self._message)

    def _message(self, delivery: Delivery) -> Message | None:
        try:
            body = msgspec.json.decode(self._vault.open(delivery.body, f"mail:{delivery.dedupe}"), type=_Body)
        except SealBroken:
            return None
        about = {"minutes": body.minutes, "hours": body.minutes // 60}
        return mail_message(delivery.dedupe, body.kind, body.email, body.locale, about, body.url)

    def worker(self) -> DeliveryWorker:
        return DeliveryWorker(
            KIND, self._book, self._clock, self.send, give_up_after_s=GIVE_UP_AFTER_S, every_s=EVERY_S
        )
