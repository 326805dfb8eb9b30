"""Sign-ups before a sale: people ask to be notified when it opens, or register for its presale, once per address.

A sign-up counts once the address is proven. Requests are limited as for sign-in links. When the sale opens, a job sends
each confirmed notice its mail. Marking the notice and queueing the mail is one transaction.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.messages.model.messages import NewDelivery
from frontrow.boxoffice.people.model.email_addresses import checked_email
from frontrow.boxoffice.people.sign_in_limits import SignInLimits
from frontrow.boxoffice.presale.model import (
    Presale,
    PresaleNotFound,
    Purpose,
    RegistrationClosed,
    Signup,
    SignupNotFound,
    SignupState,
)
from frontrow.boxoffice.presale.ports import SignupBook
from frontrow.boxoffice.presale.signup_mail import SignupMail
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import NotFound, Refused
from frontrow.shared.ids import Ids
from frontrow.shared.jobs import Job, every

BATCH: Final = 200
BATCHES_PER_ROUND: Final = 20  # of one event, before the next one
EVERY_S: Final = 1.0
KEEP_UNCONFIRMED_US: Final = 7 * 86_400 * US_PER_S
DROP_EVERY_S: Final = 600.0

LoadEvent = Callable[[str], Awaitable[Event]]
FindTimeZone = Callable[[Event], Awaitable[str]]


class NoticeRefused(Refused):
    """The sale is open or will not open. `reason` says which."""

    code = "notice_refused"


class Signups:
    """Takes, confirms and ends sign-ups, and sends the notices."""

    def __init__(
        self,
        book: SignupBook,
        mail: SignupMail,
        limits: SignInLimits,
        clock: Clock,
        ids: Ids,
        event_of: LoadEvent,
        zone_of: FindTimeZone,
    ) -> None:
        self._book, self.mail, self._limits, self._clock, self._ids = book, mail, limits, clock, ids
        self._event_of, self._zone_of = event_of, zone_of

    async def request(self, event: Event, purpose: Purpose, email: str, ip: str, locale: str) -> None:
        """Mail a link that proves the address. The answer does not reveal whether the address is known."""
        await self._check(event, purpose)
        address = checked_email(email)
        await self._limits.link_ip.count_attempt(ip)
        await self._limits.link.count_attempt(address)
        await self._save(event, purpose, address, locale, SignupState.ASKED)

    async def sign_up_fan(self, event: Event, purpose: Purpose, email: str, locale: str) -> Signup:
        """The sign-up of a signed-in fan, whose address is already proven."""
        await self._check(event, purpose)
        return await self._save(event, purpose, checked_email(email), locale, SignupState.CONFIRMED)

    async def _save(self, event: Event, purpose: Purpose, email: str, locale: str, state: SignupState) -> Signup:
        prefix = "ntc" if purpose is Purpose.NOTICE else "reg"
        wanted = Signup(self._ids.new(prefix), event.id, purpose, email, locale, state, 0, self._clock())
        zone, message_id = await self._zone_of(event), self._ids.new("msg")

        def mail(signup_id: str) -> NewDelivery:
            signup = Signup(signup_id, event.id, purpose, email, locale, state)
            return self.mail.confirm(signup, event, zone, message_id)

        needs_proof = state is SignupState.ASKED
        signup_id, saved_state = await self._book.save_signup(wanted, mail if needs_proof else None)
        return Signup(signup_id, event.id, purpose, email, locale, saved_state, 0, wanted.created_at_us)

    async def _check(self, event: Event, purpose: Purpose) -> None:
        """Refuse a sign-up that would never be served."""
        now_us = self._clock()
        if purpose is Purpose.PRESALE:
            presale = await self._book.presale(event.id)
            if presale is None or event.status is not EventStatus.ON_SALE:
                raise PresaleNotFound(f"{event.name} has no presale to register for", event=event.id)
            check_registration_open(presale, now_us)
        elif event.status is not EventStatus.ON_SALE:
            raise NoticeRefused(f"{event.name} is {event.status.value.replace('_', ' ')}", reason=event.status.value)
        elif now_us >= event.sale_starts_at_us:
            raise NoticeRefused("the sale is already open; join the waiting room", reason="open")

    async def find(self, act: str, token: str) -> Signup:
        """The sign-up of a mailed link. `SignupNotFound` for a wrong link and for a sign-up that was ended."""
        signup_id = self.mail.links.read(act, token)
        signup = await self._book.signup(signup_id) if signup_id else None
        if signup is None:
            raise SignupNotFound("this link is incomplete, or its sign-up has ended")
        return signup

    async def confirm(self, token: str) -> Signup:
        """Confirm the address. Repeating it changes nothing. `RegistrationClosed` when it is too late for a presale."""
        signup = await self.find("confirm", token)
        if signup.state is SignupState.ASKED:
            await self._book.confirm(signup.id, self._clock())
            signup = await self.find("confirm", token)
        if signup.state is SignupState.ASKED:
            raise RegistrationClosed("registration is over", reason="over")
        return signup

    async def end(self, token: str) -> Signup:
        """Stop mails to this address about the event. The result of a draw stays."""
        signup = await self.find("end", token)
        await self._book.drop(signup.id)
        return signup

    async def of_address(self, email: str) -> list[Signup]:
        """Every sign-up of an address, for its owner."""
        return await self._book.of_address(email) if email else []

    # When the sale opens.

    async def send_due(self) -> int:
        """Queue the mails of every open sale, in bounded batches. Returns how many."""
        sent = 0
        for event_id in await self._book.events_with_notices(self._clock()):
            sent += await self._send(event_id)
        return sent

    async def _send(self, event_id: str) -> int:
        now_us = self._clock()
        try:
            event = await self._event_of(event_id)
        except NotFound:
            return 0
        over = event.status in (EventStatus.CANCELLED, EventStatus.COMPLETED) or now_us >= event.sale_ends_at_us
        if not over and (now_us < event.sale_starts_at_us or event.paused or event.status is EventStatus.SOLD_OUT):
            return 0  # postponed, paused or sold out: notified when there is something to buy
        zone, sent = await self._zone_of(event), 0
        for _ in range(BATCHES_PER_ROUND):
            count = await self._book.send_notices(
                event_id,
                lambda signup: None if over else self.mail.sale_opens(signup, event, zone),
                BATCH,
                now_us,
            )
            sent += count
            if count < BATCH:
                break
        return sent

    async def drop_unconfirmed(self) -> None:
        """Delete sign-ups whose address nobody confirmed."""
        await self._book.drop_unconfirmed(self._clock() - KEEP_UNCONFIRMED_US)

    def jobs(self) -> list[Job]:
        worker = self.mail.worker()
        return [
            Job("sign-up mail", worker.run, worker.stop),
            every("sale notices", self.send_due, EVERY_S),
            every("unconfirmed sign-ups", self.drop_unconfirmed, DROP_EVERY_S),
        ]


def check_registration_open(presale: Presale, now_us: int) -> None:
    """Raise `RegistrationClosed` while the presale takes no registrations."""
    if presale.takes_registrations(now_us):
        return
    if now_us < presale.opens_at_us:
        wait_s = (presale.opens_at_us - now_us) / US_PER_S
        raise RegistrationClosed("registration has not begun", reason="not_begun", retry_after_s=wait_s)
    raise RegistrationClosed("registration is over", reason="over")
