"""Reports (B13): days are the venue's, amounts are in units of the currency, workbooks run nothing, mails come once."""

import asyncio
import csv
import io
import zipfile
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import icalendar
import pytest

from frontrow.boxoffice.gate.model.scans import Scan
from frontrow.boxoffice.messages.model.messages import Outcome
from frontrow.boxoffice.organiser import workbooks
from frontrow.boxoffice.organiser.model.csv_cells import amount_cell
from frontrow.boxoffice.organiser.model.report_mails import ReportFrequency, days_reported, next_mail_at_us
from frontrow.boxoffice.organiser.model.reports import QUARTER_US, sales_by_day
from frontrow.boxoffice.organiser.report_mails import ReportMails
from frontrow.boxoffice.organiser.reports import Reports
from frontrow.boxoffice.organiser.workbooks import WorkbookFile
from frontrow.boxoffice.people.model.people import Staff
from frontrow.boxoffice.people.model.roles import Role
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput
from frontrow.shared.vault import Vault
from tests.boxoffice.organiser.http import an_organiser_api
from tests.boxoffice.organiser.site import Site
from tests.boxoffice.organiser.support import NOW_US, a_clock, a_hold, a_purchase, an_office, on_sale, some_figures
from tests.boxoffice.people.support import member

VIENNA = ZoneInfo("Europe/Vienna")


def us(*parts, zone=VIENNA):
    return round(datetime(*parts, tzinfo=zone).timestamp()) * US_PER_S


def quarter(*parts):
    return us(*parts) // QUARTER_US


def test_a_day_is_a_day_at_the_venue_also_when_the_clocks_change():
    sold = [
        (quarter(2026, 10, 26, 0, 30), 1, 2, 100),
        (quarter(2026, 10, 25, 23, 45), 2, 3, 200),  # the long day: clocks go back at three
        (quarter(2026, 10, 25, 0, 0), 4, 5, 300),
        (quarter(2026, 10, 23, 12, 0), 1, 1, 50),
    ]
    refunded = [(quarter(2026, 10, 27, 9, 0), 1, 40)]
    days = sales_by_day(sold, refunded, VIENNA, datetime(2026, 10, 27, tzinfo=VIENNA).date())
    assert [(one.day, one.bookings, one.seats, one.sold_minor, one.refunded_minor) for one in days] == [
        ("2026-10-23", 1, 1, 50, 0),
        ("2026-10-24", 0, 0, 0, 0),
        ("2026-10-25", 6, 8, 500, 0),
        ("2026-10-26", 1, 2, 100, 0),
        ("2026-10-27", 0, 0, 0, 40),
    ]
    assert sales_by_day([], [], VIENNA, datetime(2026, 10, 27, tzinfo=VIENNA).date()) == []


async def test_b13_a_report_adds_up_to_what_was_sold_and_checked_in(ledger):
    clock = a_clock()
    office = an_office(ledger, clock)
    event = await on_sale(office, sale_starts_at_us=NOW_US + 60 * US_PER_S, presale_starts_at_us=NOW_US - US_PER_S)
    await a_purchase(ledger, event, (0, 1), number=1, at_us=NOW_US)  # before the general sale
    for number in (2, 3):
        at_us = NOW_US + number * 86_400 * US_PER_S
        await a_purchase(ledger, event, (number,), number=number, at_us=at_us)
    await a_hold(ledger, event, (9,), number=9)
    (ticket,) = await ledger.tickets.tickets_of("bkg_" + "2".zfill(26))
    clock.now_us = event.starts_at_us + 3600 * US_PER_S
    await ledger.tickets.record_scans([Scan("scn_1", event.id, ticket.id, "north", clock.now_us)])
    report = await Reports(ledger.figures, some_figures(ledger, office, clock), clock).of(event, "Europe/Vienna")
    assert [(one.bookings, one.seats, one.sold_minor) for one in report.days if one.bookings] == [
        (1, 2, 10000),
        (1, 1, 5000),
        (1, 1, 5000),
    ]
    assert {one.channel: (one.bookings, one.seats) for one in report.channels} == {"online": (2, 2), "presale": (1, 2)}
    assert (report.check_ins.tickets, report.check_ins.admitted, report.check_ins.no_shows) == (4, 1, 3)
    assert [admitted for _, admitted in report.check_ins.steps] == [1]


async def test_b13_the_page_its_files_and_the_api_show_amounts_in_units_of_the_currency(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        booking = await api.bought("S-A-1", "S-A-2", fan="fan_evil", email="evil@example.org", name='=HYPERLINK("x")')
        owner = Site(api)
        text = await owner.get(f"{owner.base}/reports")
        assert "Sales by day" in text
        assert "€100" in text
        report = await api.get(f"/v1/organiser/events/{api.event}/report")
        assert [one["sold_minor"] for one in report["days"]] == [10000]
        days = list(csv.DictReader(io.StringIO((await owner.get(f"{owner.base}/reports/days.csv")).lstrip("\ufeff"))))
        assert [(one["tickets"], one["sold"], one["currency"]) for one in days] == [("2", "100.00", "EUR")]
        for path in ("reports/report.xlsx", "exports/bookings.xlsx"):
            answer = await api.client.get(f"{owner.base}/{path}", headers=owner.headers)
            assert answer.status_code == 200, path
            sheet = zipfile.ZipFile(io.BytesIO(answer.content)).read("xl/worksheets/sheet1.xml").decode()
            assert "<v>100</v>" in sheet, path  # a number, shown as 100.00
            assert "<f>" not in sheet, path  # no formula, whatever a fan is called
        assert "HYPERLINK" in sheet  # the name is there, as text
        await owner.get(f"{owner.base}/reports/people.csv", 404)
        await owner.get(f"{owner.base}/exports/bookings.pdf", 404)
        await owner.post(f"{owner.base}/bookings/{booking.id}/refund", how="full", seat=["S-A-1"], reason="ill")
        report = await api.get(f"/v1/organiser/events/{api.event}/report")
        (day,) = report["days"]
        assert (day["sold_minor"], day["refunded_minor"]) == (10000, 5000), "what is left is what was sold less refunds"
        assert [one["sold_minor"] for one in report["channels"]] == [10000]


def test_amounts_have_the_digits_of_their_currency():
    shown = [str(amount_cell(14000, currency)) for currency in ("EUR", "JPY", "KWD")]
    assert shown == ["140.00", "14000", "14.000"]


def test_a_workbook_refuses_more_rows_than_a_spreadsheet_likes(tmp_path, monkeypatch):
    monkeypatch.setattr(workbooks, "MAX_ROWS", 2)
    file = WorkbookFile(tmp_path / "a.xlsx", "UTC")
    file.begin_sheet("bookings", ("a",))
    file.add_rows([(1,), ("=1+1",)])
    with pytest.raises(InvalidInput, match="download it as CSV"):
        file.add_rows([(3,)])
    file.close()


@pytest.mark.parametrize(
    ("frequency", "now", "due", "days"),
    [
        ("daily", (2026, 11, 16, 6, 59), (2026, 11, 16, 7, 0), ("2026-11-15", "2026-11-15")),
        ("daily", (2026, 11, 16, 7, 0), (2026, 11, 17, 7, 0), ("2026-11-15", "2026-11-15")),
        ("daily", (2026, 3, 28, 12, 0), (2026, 3, 29, 7, 0), ("2026-03-27", "2026-03-27")),  # clocks go forward
        ("weekly", (2026, 11, 16, 6, 0), (2026, 11, 16, 7, 0), ("2026-11-09", "2026-11-15")),  # a Monday
        ("weekly", (2026, 11, 18, 6, 0), (2026, 11, 23, 7, 0), ("2026-11-09", "2026-11-15")),
        ("weekly", (2026, 11, 22, 23, 0), (2026, 11, 23, 7, 0), ("2026-11-09", "2026-11-15")),  # a Sunday
    ],
)
def test_a_report_is_due_in_the_morning_at_the_venue(frequency, now, due, days):
    wanted, now_us = ReportFrequency(frequency), us(*now)
    assert next_mail_at_us(wanted, now_us, VIENNA) == us(*due)
    assert tuple(day.isoformat() for day in days_reported(wanted, now_us, VIENNA)) == days


async def test_b13_each_period_is_mailed_once_by_however_many_workers(ledger):
    clock = a_clock()
    office = an_office(ledger, clock)
    event = await on_sale(office)
    await a_purchase(ledger, event, (0, 1), number=1, at_us=NOW_US)

    async def ada(_):
        return ledger_member

    async def vienna(_):
        return "Europe/Vienna"

    ledger_member = Staff("stf_ada", event.organiser_id, "ada@example.org", "Ada", Role.OWNER)
    sent = []

    class Channel:
        name = "email"

        async def send(self, messages, note=None):
            sent.extend(messages)
            return [Outcome(True)] * len(messages)

    workers = [
        ReportMails(
            ledger.reports,
            Reports(ledger.figures, some_figures(ledger, office, clock), clock),
            ledger.messages,
            Channel(),
            Vault([bytes(32)]),
            clock,
            "https://x.example",
            event_of=ledger.catalogue.event,
            zone_of=vienna,
            member_of=ada,
        )
        for _ in range(5)
    ]
    await workers[0].choose("stf_ada", event, ReportFrequency.DAILY, "en")
    assert await workers[0].send_due() == 0  # not before the morning
    clock.now_us += 86_400 * US_PER_S
    assert sum(await asyncio.gather(*(one.send_due() for one in workers * 10))) == 1
    await workers[0]._mail.worker().drain()
    (mail,) = sent
    assert mail.subject == "Sales report for Aurora: 2 tickets sold"
    assert "€100.00" in mail.text
    assert f"https://x.example/organiser/events/{event.id}/reports" in mail.text
    clock.now_us += 3 * 86_400 * US_PER_S  # an outage of days: one mail about the newest period
    assert sum(await asyncio.gather(*(one.send_due() for one in workers))) == 1
    await workers[0].choose("stf_ada", event, None, "en")
    clock.now_us += 3 * 86_400 * US_PER_S
    assert await workers[0].send_due() == 0
    await workers[0].choose("stf_ada", event, ReportFrequency.WEEKLY, "en")
    ledger_member = Staff("stf_ada", event.organiser_id, "ada@example.org", "Ada", Role.DOOR)  # may no longer see it
    clock.now_us += 8 * 86_400 * US_PER_S
    assert await workers[0].send_due() == 0
    assert await workers[0].chosen("stf_ada", event) is None


async def test_b13_a_member_chooses_the_mail_on_the_page_and_stops_it_there(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        owner = Site(api)
        await owner.post(f"{owner.base}/reports/mail", frequency="weekly")
        assert '<option value="weekly" selected>' in await owner.get(f"{owner.base}/reports?done=mail")
        await owner.post(f"{owner.base}/reports/mail", frequency="")
        assert '<option value="" selected>' in await owner.get(f"{owner.base}/reports")
        assert "Report by email chosen" in await owner.get("/organiser/audit")


async def test_b13_feeds_are_secret_follow_the_role_and_can_be_ended(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        await api.bought("S-A-1")
        owner = Site(api)
        shown = await owner.post("/organiser/feeds", 200)
        base = shown.text.partition("/feeds/frf_")[2][:43]
        feed = f"/feeds/frf_{base}"
        assert "frf_" not in await owner.get("/organiser/feeds")  # shown once
        calendar = icalendar.Calendar.from_ical((await api.client.get(f"{feed}/events.ics")).content)
        (entry,) = calendar.walk("VEVENT")
        event = await api.platform.ledger.catalogue.event(api.event)
        assert str(entry["summary"]) == event.name
        assert entry["dtstart"].dt == datetime.fromtimestamp(event.starts_at_us // US_PER_S, UTC)
        (row,) = csv.DictReader(io.StringIO((await api.client.get(f"{feed}/sales.csv")).text))
        assert (row["event"], row["sold"], row["revenue"], row["currency"]) == (api.event, "1", "50.00", "EUR")
        for wrong in (f"{feed}/people.csv", f"{feed}x/sales.csv", "/feeds/frf_/sales.csv"):
            assert (await api.client.get(wrong)).status_code == 404
        newer = (await owner.post("/organiser/feeds", 200)).text.partition("/feeds/frf_")[2][:43]
        assert (await api.client.get(f"{feed}/sales.csv")).status_code == 404  # the old address has ended
        people = api.platform.ledger.people
        await member(api.platform, Role.OWNER, name="other")
        await people.set_role("org_hall", api.person.id, Role.DOOR, "stf_x", api.platform.clock())
        assert (await api.client.get(f"/feeds/frf_{newer}/sales.csv")).status_code == 404  # no figures for gatekeepers
        assert (await api.client.get(f"/feeds/frf_{newer}/events.ics")).status_code == 200
        await api.platform.organiser.feeds.revoke(api.person.id)
        assert (await api.client.get(f"/feeds/frf_{newer}/events.ics")).status_code == 404
