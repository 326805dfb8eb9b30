"""Reports by mail (B13): a member chooses daily or weekly for an event; the mail comes in the morning at the venue.

Any number of workers look for due mails. The transaction that queues a mail also moves it on to its next time, so each
period is mailed once. After an outage only the newest period is mailed. A member who left the team or may no longer see
figures gets nothing more. The last report comes within a week after the show.
"""

from collections.abc import Awaitable, Callable
from datetime import date, datetime, time
from typing import Any, Final
from zoneinfo import ZoneInfo

from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.messages.deliveries import DeliveryWorker
from frontrow.boxoffice.messages.model.messages import NewDelivery
from frontrow.boxoffice.messages.ports.channels import Channel
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.boxoffice.messages.sealed_mail import MailBody, SealedMail
from frontrow.boxoffice.organiser.model.report_mails import ReportFrequency, ReportMail, days_reported, next_mail_at_us
from frontrow.boxoffice.organiser.model.reports import EventReport
from frontrow.boxoffice.organiser.ports.reports import ReportBook
from frontrow.boxoffice.organiser.reports import Reports
from frontrow.boxoffice.people.model.people import Staff
from frontrow.boxoffice.people.model.roles import ROLES
from frontrow.boxoffice.texts.locale_formats import Moment, formats_of, language_of
from frontrow.core.clock import US_PER_S, Clock
from frontrow.shared.jobs import Job, every
from frontrow.shared.money import Money
from frontrow.shared.vault import Vault

KIND: Final = "report"
REPORT_MAIL_KINDS: Final = ("sales_report",)  # kinds of boxoffice/texts/languages/*.json
EVERY_S: Final = 30.0
BATCH: Final = 100
QUEUES: Final = 4
GIVE_UP_AFTER_S: Final = 24 * 3600
AFTER_SHOW_US: Final = 8 * 86_400 * US_PER_S


class _ReportMailBody(MailBody, frozen=True):
    event_name: str
    time_zone: str
    first_us: int
    last_us: int
    tickets: int
    sold_minor: int
    refunded_minor: int
    all_sold: int
    all_seats: int
    net_minor: int
    currency: str


def _describe(body: _ReportMailBody) -> dict[str, Any]:
    formats = formats_of(language_of(body.locale))
    first, last = (formats.day(Moment(at_us, body.time_zone)) for at_us in (body.first_us, body.last_us))
    return {
        "event_name": body.event_name,
        "days": first if first == last else f"{first} – {last}",
        "tickets_sold": body.tickets,
        "amount": Money(body.sold_minor, body.currency),
        "refunded": Money(body.refunded_minor, body.currency),
        "all_sold": formats.number(body.all_sold),
        "all_seats": formats.number(body.all_seats),
        "net": Money(body.net_minor, body.currency),
    }


EventOf = Callable[[str], Awaitable[Event]]
ZoneOf = Callable[[Event], Awaitable[str]]
MemberOf = Callable[[str], Awaitable[Staff | None]]


class ReportMails:
    """Keeps who wants which report, and sends them."""

    def __init__(
        self,
        book: ReportBook,
        reports: Reports,
        messages: MessageBook,
        channel: Channel,
        vault: Vault,
        clock: Clock,
        public_url: str,
        *,
        event_of: EventOf,
        zone_of: ZoneOf,
        member_of: MemberOf,
    ) -> None:
        self._book, self._reports, self._clock = book, reports, clock
        self._public_url = public_url.rstrip("/")
        self._event_of, self._zone_of, self._member_of = event_of, zone_of, member_of
        self._mail = SealedMail(
            KIND,
            _ReportMailBody,
            _describe,
            book=messages,
            channel=channel,
            vault=vault,
            clock=clock,
            seal_purpose="report mail",
            queues=QUEUES,
            give_up_after_s=GIVE_UP_AFTER_S,
        )

    async def choose(self, staff_id: str, event: Event, frequency: ReportFrequency | None, locale: str) -> None:
        """Mail the event's report to this member from now on, or never again (None)."""
        now_us = self._clock()
        if frequency is None:
            await self._book.drop_report_mail(staff_id, event.id, now_us)
            return
        zone = ZoneInfo(await self._zone_of(event))
        due_us = next_mail_at_us(frequency, now_us, zone)
        await self._book.save_report_mail(ReportMail(staff_id, event.id, frequency, locale, due_us), now_us)

    async def chosen(self, staff_id: str, event: Event) -> ReportMail | None:
        """What this member gets now."""
        return await self._book.report_mail(staff_id, event.id)

    async def send_due(self) -> int:
        """Queue the mails that are due, at most BATCH. Returns how many this worker queued."""
        now_us = self._clock()
        due = await self._book.due_report_mails(now_us, BATCH)
        return sum([await self._send(mail, now_us) for mail in due])

    async def _send(self, mail: ReportMail, now_us: int) -> bool:
        event, member = await self._event_of(mail.event_id), await self._member_of(mail.staff_id)
        if member is None or member.organiser_id != event.organiser_id or "figures:read" not in ROLES[member.role]:
            await self._book.drop_report_mail(mail.staff_id, mail.event_id, now_us)
            return False
        over = max(event.starts_at_us, event.ends_at_us) + AFTER_SHOW_US < now_us
        if over or event.status is EventStatus.CANCELLED:
            await self._book.drop_report_mail(mail.staff_id, mail.event_id, now_us)
            return False
        time_zone = await self._zone_of(event)
        zone = ZoneInfo(time_zone)
        next_us = next_mail_at_us(mail.frequency, now_us, zone)
        delivery = self._delivery(mail, event, member, await self._reports.of(event, time_zone), zone)
        return await self._book.send_report_mail(mail, next_us, delivery, now_us)

    def _delivery(
        self, mail: ReportMail, event: Event, member: Staff, report: EventReport, zone: ZoneInfo
    ) -> NewDelivery:
        first, last = days_reported(mail.frequency, report.at_us, zone)
        days = [day for day in report.days if first.isoformat() <= day.day <= last.isoformat()]
        body = _ReportMailBody(
            REPORT_MAIL_KINDS[0],
            member.email,
            mail.locale,
            f"{self._public_url}/organiser/events/{event.id}/reports",
            event.name,
            report.time_zone,
            _noon_us(first, zone),
            _noon_us(last, zone),
            tickets=sum(day.seats for day in days),
            sold_minor=sum(day.sold_minor for day in days),
            refunded_minor=sum(day.refunded_minor for day in days),
            all_sold=report.seats.sold,
            all_seats=report.seats.seats - report.seats.withheld,
            net_minor=sum(one.net_minor for one in report.money if one.currency == event.currency),
            currency=event.currency,
        )
        return self._mail.new_delivery(f"report-{member.id}-{event.id}-{mail.frequency.value}-{last}", body)

    def jobs(self) -> list[Job]:
        worker: DeliveryWorker = self._mail.worker()
        return [Job("report mail", worker.run, worker.stop), every("reports", self.send_due, EVERY_S)]


def _noon_us(day: date, zone: ZoneInfo) -> int:
    return round(datetime.combine(day, time(12), zone).timestamp()) * US_PER_S
