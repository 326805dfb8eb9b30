"""The ledger's report mails and feed addresses: what each member of a team wants to get regularly."""

from typing import cast

from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerStore, RunProgram, RunStatements
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program
from frontrow.boxoffice.adapters.ledger.messages.message_book import ADD_DELIVERIES
from frontrow.boxoffice.adapters.ledger.people.people_book import read_staff
from frontrow.boxoffice.messages.model.messages import NewDelivery
from frontrow.boxoffice.organiser.model.report_mails import ReportFrequency, ReportMail
from frontrow.boxoffice.people.model.people import Staff


class SqlReportBook:
    """Report mails and feed addresses. See `organiser.report_mails` and `organiser.feeds`."""

    def __init__(self, store: LedgerStore, line: CommitLine) -> None:
        self._store, self._line = store, line

    async def save_report_mail(self, mail: ReportMail, now_us: int) -> None:
        row = (mail.staff_id, mail.event_id, mail.frequency.value, mail.locale, mail.next_at_us, now_us)
        await self._line.submit(RunStatements((Query("put_report_mails", [row]),), now_us=now_us))

    async def drop_report_mail(self, staff_id: str, event_id: str, now_us: int) -> None:
        query = Query("drop_report_mails", [(staff_id, event_id)])
        await self._line.submit(RunStatements((query,), now_us=now_us))

    async def report_mail(self, staff_id: str, event_id: str) -> ReportMail | None:
        rows = await self._store.read(Query("report_mail_of", params=(staff_id, event_id)))
        return _report_mail(rows[0]) if rows else None

    async def due_report_mails(self, now_us: int, limit: int) -> list[ReportMail]:
        rows = await self._store.read(Query("due_report_mails", params=(now_us, limit)))
        return [_report_mail(row) for row in rows]

    async def send_report_mail(self, mail: ReportMail, next_at_us: int, delivery: NewDelivery, now_us: int) -> bool:
        """Move the mail on to its next time and queue the delivery, in one transaction. False if another worker did."""

        def run() -> Program[bool]:
            moved = yield Query("move_report_mails", [(mail.staff_id, mail.event_id, mail.next_at_us, next_at_us)])
            if moved:
                row = (delivery.kind, delivery.queue, delivery.dedupe, delivery.body, now_us)
                yield Query(ADD_DELIVERIES, [row])
            return bool(moved)

        return cast(bool, await self._line.submit(RunProgram(lambda _: run(), now_us)))

    async def save_feed_address(self, staff_id: str, secret_hash: str, now_us: int) -> None:
        query = Query("put_feed_addresses", [(staff_id, secret_hash, now_us)])
        await self._line.submit(RunStatements((query,), now_us=now_us))

    async def drop_feed_address(self, staff_id: str, now_us: int) -> None:
        await self._line.submit(RunStatements((Query("drop_feed_addresses", [(staff_id,)]),), now_us=now_us))

    async def feed_made_at_us(self, staff_id: str) -> int | None:
        rows = await self._store.read(Query("feed_address_of", params=(staff_id,)))
        return int(rows[0][0]) if rows else None

    async def member_of_feed(self, secret_hash: str) -> Staff | None:
        rows = await self._store.read(Query("member_of_feed", params=(secret_hash,)))
        return read_staff(rows[0]) if rows else None


def _report_mail(row: Row) -> ReportMail:
    return ReportMail(str(row[0]), str(row[1]), ReportFrequency(row[2]), str(row[3]), int(row[4]))
