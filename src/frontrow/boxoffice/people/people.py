"""The services about people in one place: sessions, staff, teams, fans, their mails and background jobs."""

import asyncio
from typing import Final

from frontrow.boxoffice.messages.ports.channels import Channel, InAppWriter
from frontrow.boxoffice.people.account_mail import AccountMail
from frontrow.boxoffice.people.fans import FanAccounts
from frontrow.boxoffice.people.passwords import Passwords
from frontrow.boxoffice.people.people_settings import PeopleSettings
from frontrow.boxoffice.people.ports import PeopleLedger
from frontrow.boxoffice.people.sessions import Sessions
from frontrow.boxoffice.people.sign_in_limits import SignInLimits
from frontrow.boxoffice.people.staff_sign_in import StaffAccounts
from frontrow.boxoffice.people.team import Team
from frontrow.core.clock import Clock
from frontrow.shared.ids import Ids
from frontrow.shared.jobs import Job
from frontrow.shared.vault import Vault

PURGE_EVERY_S: Final = 300.0


class People:
    """The services about people, each given its collaborators."""

    def __init__(
        self,
        ledger: PeopleLedger,
        mail_channel: Channel,
        clock: Clock,
        ids: Ids,
        key: bytes,
        *,
        settings: PeopleSettings | None = None,
        public_url: str = "http://127.0.0.1:8000",
        limits_url: str = "memory://",
        writer: InAppWriter | None = None,
    ) -> None:
        settings = settings or PeopleSettings()
        self.book, self._clock = ledger.people, clock
        self.vault = Vault([key])
        self.sign_in_limits = SignInLimits(
            limits_url,
            clock,
            account=settings.account_tries,
            ip=settings.ip_tries,
            code=settings.code_tries,
            link=settings.link_asks,
            link_ip=settings.link_asks_per_ip,
        )
        self.passwords = Passwords(settings)
        self.mail = AccountMail(ledger.messages, mail_channel, self.vault, clock, ids, public_url)
        self.sessions = Sessions(self.book, clock, ids)
        self.staff = StaffAccounts(
            self.book, self.sessions, self.passwords, self.sign_in_limits, self.vault, clock, issuer=settings.issuer
        )
        self.team = Team(self.book, self.passwords, self.mail, clock, ids, settings.invitation_life_s)
        self.fans = FanAccounts(
            ledger, self.sessions, self.mail, self.sign_in_limits, clock, ids, settings.link_life_s, key, writer
        )

    def jobs(self) -> list[Job]:
        """Send account mails, and delete expired sessions and links."""
        worker = self.mail.worker()
        return [Job("account mail", worker.run, worker.stop), Job("people purge", self._purge)]

    async def _purge(self) -> None:
        while True:  # until cancelled; each round is bounded
            await self.book.purge_people(self._clock())
            await asyncio.sleep(PURGE_EVERY_S)

    async def aclose(self) -> None:
        self.passwords.close()
        await self.sign_in_limits.aclose()
