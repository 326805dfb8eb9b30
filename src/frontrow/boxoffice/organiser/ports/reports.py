"""The port of report mails and feed addresses."""

from typing import Protocol

from frontrow.boxoffice.messages.model.messages import NewDelivery
from frontrow.boxoffice.organiser.model.report_mails import ReportMail
from frontrow.boxoffice.people.model.people import Staff


class ReportBook(Protocol):
    """What each member of a team wants to get regularly: report mails and feeds (`ledger.reports`)."""

    async def save_report_mail(self, mail: ReportMail, now_us: int) -> None: ...

    async def drop_report_mail(self, staff_id: str, event_id: str, now_us: int) -> None: ...

    async def report_mail(self, staff_id: str, event_id: str) -> ReportMail | None: ...

    async def due_report_mails(self, now_us: int, limit: int) -> list[ReportMail]: ...

    async def send_report_mail(self, mail: ReportMail, next_at_us: int, delivery: NewDelivery, now_us: int) -> bool:
        """Move the mail on to its next time and queue the delivery, in one transaction. False if another worker did."""
        ...

    async def save_feed_address(self, staff_id: str, secret_hash: str, now_us: int) -> None:
        """Keep the hash of a member's feed address. It replaces the one before."""
        ...

    async def drop_feed_address(self, staff_id: str, now_us: int) -> None: ...

    async def feed_made_at_us(self, staff_id: str) -> int | None: ...

    async def member_of_feed(self, secret_hash: str) -> Staff | None: ...
