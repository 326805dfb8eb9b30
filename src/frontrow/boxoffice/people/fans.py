"""Fans: sign-in by magic link, guests, their bookings and messages, export and erasure of their data.

A sign-in mail has a link and a six-digit code. Both work once and for a short time. The code works only in the browser
that asked for the mail. The link signs that browser in at once; in another one it needs a confirmation that names the
address, so a link that somebody else asked for signs nobody in by a click. What was bought without an account belongs
to whoever proves the address it was bought with.
"""

import base64
import hashlib
import hmac
import unicodedata
from typing import Any, Final

from msgspec.structs import replace

from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.messages.model.messages import Contact, InAppMessage
from frontrow.boxoffice.messages.ports.channels import InAppWriter
from frontrow.boxoffice.people.account_mail import AccountMail
from frontrow.boxoffice.people.model.email_addresses import checked_email, is_email
from frontrow.boxoffice.people.model.people import (
    Fan,
    LinkSpent,
    OtherBrowser,
    PersonNotFound,
    Session,
    SubjectKind,
    WrongSignInCode,
    secret_hash,
)
from frontrow.boxoffice.people.model.person_names import clean_name
from frontrow.boxoffice.people.ports import PeopleLedger
from frontrow.boxoffice.people.sessions import Sessions, SignedIn, is_secret, new_secret
from frontrow.boxoffice.people.sign_in_limits import SignInLimits
from frontrow.boxoffice.tickets.model.ticket_transfers import Transfer
from frontrow.core.clock import US_PER_S, Clock
from frontrow.shared.ids import Ids

LINK_PREFIX, ASK_PREFIX = "frl_", "fra_"
CODE_DIGITS: Final = 6


class FanAccounts:
    """Signs fans in and shows them what is theirs."""

    def __init__(
        self,
        ledger: PeopleLedger,
        sessions: Sessions,
        mail: AccountMail,
        limits: SignInLimits,
        clock: Clock,
        ids: Ids,
        link_life_s: int,
        key: bytes,
        writer: InAppWriter | None = None,
    ) -> None:
        self._ledger, self._sessions, self._mail, self._limits = ledger, sessions, mail, limits
        self._clock, self._ids, self._life_s, self._key, self._writer = clock, ids, link_life_s, key, writer

    async def send_sign_in_link(self, email: str, ip: str, locale: str, back: str = "") -> str:
        """Send a magic link that leads to the page `back`. Returns the secret that the requesting browser keeps.

        Known and unknown addresses are treated the same.
        """
        address = checked_email(email)
        await self._limits.link_ip.count_attempt(ip)
        await self._limits.link.count_attempt(address)
        ask, now_us = new_secret(ASK_PREFIX), self._clock()
        link = self._link_for(ask)
        ends_at_us = now_us + self._life_s * US_PER_S
        await self._ledger.people.add_magic_link(
            secret_hash("link", link), secret_hash("ask", ask), address, now_us, ends_at_us
        )
        await self._mail.send_sign_in_link(address, link, self._code_for(ask), locale, self._life_s, back)
        return ask

    async def redeem_link(
        self,
        link: str,
        ask: str,
        *,
        confirmed: bool = False,
        agent: str = "",
        replaces: Session | None = None,
        locale: str = "en",
    ) -> SignedIn:
        """Start a session of the fan whose address the link proves.

        Raises `LinkSpent`, or `OtherBrowser` with the address, without using up the link: then it works in this browser
        once it is `confirmed`.
        """
        now_us, hashed, book = self._clock(), secret_hash("link", link), self._ledger.people
        if not is_secret(link, LINK_PREFIX):
            raise LinkSpent("this link was used or has run out; ask for a new one")
        if confirmed:
            email = await book.use_confirmed_link(hashed, now_us)
        else:
            email = await book.use_magic_link(hashed, secret_hash("ask", ask), now_us)
        if not email:
            if address := await book.open_magic_link(hashed, now_us):
                raise OtherBrowser("confirm that you want to sign in in this browser", email=address)
            raise LinkSpent("this link was used or has run out; ask for a new one")
        return await self._sign_in(email, now_us, agent=agent, replaces=replaces, locale=locale)

    async def redeem_code(
        self, code: str, ask: str, ip: str, *, agent: str = "", replaces: Session | None = None, locale: str = "en"
    ) -> SignedIn:
        """Start a session by the code of the mail, in the browser that asked for it. Raises `WrongSignInCode`,
        `TooManyTries` or `LinkSpent`."""
        if not is_secret(ask, ASK_PREFIX):
            raise WrongSignInCode("type the code in the browser where you asked for it, or ask for a new one here")
        await self._limits.ip.count_attempt(ip)
        await self._limits.link_code.count_attempt(ask)
        if not hmac.compare_digest(read_digits(code).encode(), self._code_for(ask).encode()):
            raise WrongSignInCode("this code is not the one in the mail; look again, or ask for a new one")
        signed_in = await self.redeem_link(self._link_for(ask), ask, agent=agent, replaces=replaces, locale=locale)
        await self._limits.ip.forgive_attempt(ip)
        return signed_in

    def _link_for(self, ask: str) -> str:
        """The link of the mail that this browser asked for: only a server can compute it."""
        digest = hmac.digest(self._key, f"sign-in link\n{ask}".encode(), hashlib.sha256)
        return LINK_PREFIX + base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def _code_for(self, ask: str) -> str:
        digest = hmac.digest(self._key, f"sign-in code\n{ask}".encode(), hashlib.sha256)
        return f"{int.from_bytes(digest, 'big') % 10**CODE_DIGITS:0{CODE_DIGITS}}"

    async def _sign_in(self, email: str, now_us: int, *, agent: str, replaces: Session | None, locale: str) -> SignedIn:
        fan = await self._ledger.people.fan_of_address(Fan(self._ids.new("fan"), email, now_us))
        if await self._ledger.messages.contact(fan.id) is None:
            await self._ledger.messages.put_contact(Contact(fan.id, email, locale=locale), now_us)
        return await self._sessions.start(SubjectKind.FAN, fan.id, agent=agent, replaces=replaces)

    async def start_guest_session(
        self, email: str, locale: str, *, agent: str = "", replaces: Session | None = None
    ) -> SignedIn:
        """Start a session without an account. The address, if given, only says where tickets go."""
        now_us = self._clock()
        fan = Fan(self._ids.new("fan"), "", now_us)
        contact = Contact(fan.id, checked_email(email) if email else "", locale=locale)
        await self._ledger.people.add_fan(fan)
        await self._ledger.messages.put_contact(contact, now_us)
        return await self._sessions.start(SubjectKind.GUEST, fan.id, agent=agent, replaces=replaces)

    async def ids_of(self, fan_id: str) -> list[str]:
        """Every id that belongs to this fan: their own, and all ids that gave the address they have proven."""
        fan = await self._ledger.people.fan(fan_id)
        return [fan_id, *await self._ledger.people.names_of_address(fan.email)] if fan is not None else [fan_id]

    async def owns_booking(self, fan_id: str, booking: Booking) -> bool:
        """Whether the booking belongs to this fan: made by them, or with the address that they have proven."""
        if booking.fan == fan_id:
            return True
        fan = await self._ledger.people.fan(fan_id)
        return fan is not None and await self._ledger.people.is_reached_at(booking.fan, fan.email)

    async def fan(self, fan_id: str) -> Fan:
        fan = await self._ledger.people.fan(fan_id)
        if fan is None or fan.erased_at_us:
            raise PersonNotFound("this account is gone", fan=fan_id)
        return fan

    async def is_proven(self, fan_id: str) -> bool:
        """Whether this fan has proven an e-mail address. Guests have not."""
        fan = await self._ledger.people.fan(fan_id)
        return fan is not None and bool(fan.email) and not fan.erased_at_us

    async def contact(self, fan_id: str) -> Contact:
        return await self._ledger.messages.contact(fan_id) or Contact(fan_id)

    async def put_contact(self, contact: Contact) -> None:
        await self._ledger.messages.put_contact(contact, self._clock())

    async def keep_buyer(self, booking: Booking, *, name: str, email: str, locale: str) -> None:
        """Save the buyer's name and where the tickets go. Empty values change nothing. A proven address stays."""
        buyer = Contact(booking.fan, checked_email(email) if email else "", locale=locale, name=clean_name(name))
        await self._ledger.messages.keep_buyer(buyer, booking.event_id, self._clock())

    async def keep_address(self, fan_id: str, event_id: str, *, email: str, locale: str) -> bool:
        """Whether the fan can be mailed about this event: at the known address, or at the one given here."""
        contact = await self.contact(fan_id)
        if contact.email:
            return True
        if not is_email(email):
            return False
        buyer = replace(contact, email=checked_email(email), locale=locale)
        await self._ledger.messages.keep_buyer(buyer, event_id, self._clock())
        return True

    async def proven_address(self, fan_id: str) -> str:
        """The address that the buyer has proven; empty for guests and for people from the waiting room."""
        fan = await self._ledger.people.fan(fan_id)
        return fan.email if fan is not None and not fan.erased_at_us else ""

    async def bookings(self, fan_id: str) -> list[Booking]:
        fan = await self._ledger.people.fan(fan_id)
        found = await self._ledger.people.purchases_of([fan_id])
        found += await self._ledger.people.purchases_of_address(fan.email if fan is not None else "")
        return sorted(found, key=lambda one: (one.created_at_us, one.id), reverse=True)

    async def received(self, fan_id: str) -> list[Transfer]:
        """The tickets that others transferred to the address that this fan has proven."""
        return await self._ledger.transfers.received(await self.proven_address(fan_id))

    async def messages(self, fan_id: str, limit: int = 50) -> list[InAppMessage]:
        found: list[InAppMessage] = []
        for name in await self.ids_of(fan_id):
            found += await self._ledger.messages.in_app(name, limit)
        newest = sorted(found, key=lambda one: (-one.created_at_us, one.id))[:limit]
        return await self._writer.write_in_app(newest) if self._writer is not None else newest

    async def export(self, fan_id: str) -> dict[str, Any]:
        """Everything stored about a person, as plain values."""
        fan, names = await self.fan(fan_id), await self.ids_of(fan_id)
        contacts = [await self._ledger.messages.contact(name) for name in names]
        return {
            "fan": fan,
            "known_as": names,
            "contacts": [one for one in contacts if one is not None],
            "bookings": await self.bookings(fan_id),
            "waitlist": await self._ledger.people.entries_of(names),
            "messages": await self.messages(fan_id, 500),
            "sessions": await self._sessions.of(fan_id),
            "tickets_received": [_received(one) for one in await self._ledger.transfers.received(fan.email)],
        }

    async def erase(self, fan_id: str) -> None:
        """Forget who this is and remove them from waitlists. Bookings and payments stay under a random id."""
        if not await self._ledger.people.erase_fan(fan_id, self._clock()):
            raise PersonNotFound("this account is gone", fan=fan_id)


def read_digits(text: str) -> str:
    """The digits of what somebody typed, of any script, without spaces and hyphens."""
    return "".join(str(unicodedata.decimal(char)) for char in text[:40] if char.isdecimal())


def _received(transfer: Transfer) -> dict[str, Any]:
    """A transfer as its recipient may know it: nothing about the sender's booking and other tickets."""
    return {
        "id": transfer.id,
        "event_id": transfer.event_id,
        "seat_index": transfer.seat_index,
        "ticket_id": transfer.new_ticket_id,
        "email": transfer.email,
        "name": transfer.name,
        "locale": transfer.locale,
        "state": transfer.state,
        "created_at_us": transfer.created_at_us,
        "expires_at_us": transfer.expires_at_us,
    }
