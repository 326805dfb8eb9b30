"""A dispute from the provider's webhook to the organiser: the gate, the booking, the event's page, and mails."""

import csv
import io
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from frontrow.boxoffice.gate.gate_bundle import Bundle
from frontrow.boxoffice.gate.gate_check import Gate, GateVerdict
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.messages.notifications import KIND, STAFF_KIND_OF_FACT
from frontrow.boxoffice.organiser import exports
from frontrow.boxoffice.payments.disputes import Disputes
from frontrow.boxoffice.payments.model.disputes import DisputeState, sum_by_state
from frontrow.boxoffice.payments.model.provider_intents import Dispute, Notice, NoticeKind
from frontrow.boxoffice.people.model.roles import Role
from frontrow.core.errors import InvalidInput
from frontrow.web.site.organiser.reports.exports import TABLES
from tests.boxoffice.organiser.http import OrganiserApi, an_organiser_api, patched
from tests.boxoffice.organiser.site import Site


async def tell(api: OrganiserApi, booking: Booking, kind: NoticeKind, number: int = 1) -> None:
    """What the provider's notice says, heard as the checkout hears it."""
    (payment,) = await api.platform.stores.ledger.payments.payments_of(booking.id)
    disputes = Disputes(api.platform.stores.ledger, api.platform.clock)
    notice = Notice(f"evt_{kind}", kind, payment.ref, dispute=Dispute(f"dp_{number}", 5_000, "EUR", "fraudulent"))
    await disputes.heard(payment.provider, notice, payment)


@pytest.mark.parametrize("block", [True, False])
async def test_the_rule_reaches_gates_online_at_once_and_offline_ones_with_the_next_sync(
    tmp_path: Path, block: bool
) -> None:
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        booking = await api.bought("S-A-1", "S-A-2")
        first, second = await api.codes(booking)
        path = f"/v1/door/events/{api.event}"
        if block:
            await patched(api, api.event, block_disputed=True)
        door = await api.as_(Role.DOOR, name="door")

        async def scan(code: str) -> Any:
            return await door.post(f"{path}/scan", json={"code": code, "gate": "north"})

        async def bundle() -> Bundle:
            return msgspec.convert(await door.get(f"{path}/bundle"), Bundle)

        before, mark = await bundle(), (await door.get(f"{path}/counts"))["disputes"]
        offline = Gate(before, "south")
        assert offline.verify(first, api.platform.clock())[0] is GateVerdict.WELCOME
        await tell(api, booking, NoticeKind.DISPUTE_OPENED)
        found = await scan(first)
        assert (found["verdict"], found["disputed"]) == (("disputed", False) if block else ("ok", True))
        counts = await door.get(f"{path}/counts")
        assert counts["disputes"] != mark, "a gate that syncs sees that it needs a newer bundle"
        assert counts["inside"] == (0 if block else 1)
        verdict = Gate(await bundle(), "south").verify(second, api.platform.clock())[0]
        assert verdict is (GateVerdict.DISPUTED if block else GateVerdict.WELCOME)
        await tell(api, booking, NoticeKind.DISPUTE_WON)
        found = await scan(second)
        assert (found["verdict"], found["disputed"]) == ("ok", False)
        assert (await bundle()).disputed == ()
        await tell(api, booking, NoticeKind.DISPUTE_LOST, 2)
        assert len((await bundle()).disputed) == 2, "what is lost is not paid for either"


async def test_a_dispute_stands_on_the_booking_in_the_list_and_in_a_mail_to_the_team(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        booking = await api.bought("S-A-1", email="ada@example.org", name="Ada")
        one = f"/v1/organiser/events/{api.event}/bookings/{booking.id}"
        assert (await api.get(one))["disputes"] == []
        await tell(api, booking, NoticeKind.DISPUTE_OPENED)
        (shown,) = (await api.get(one))["disputes"]
        assert (shown["id"], shown["state"], shown["amount"]["amount_minor"]) == ("dp_1", "open", 5_000)
        assert (await api.get("/v1/organiser/disputes"))["disputes"] == [shown]
        stranger = await api.as_(Role.OWNER, "org_other", "stranger")
        assert (await stranger.get("/v1/organiser/disputes"))["disputes"] == []
        refused = await api.post(f"{one}/refunds", status=409, json={})
        assert refused["code"] == "booking_disputed"
        notifier, ledger = api.platform.messaging.notifier, api.platform.stores.ledger
        facts = [one.fact for one in await ledger.claim_facts(api.platform.clock(), 1, 100)]
        (fact,) = [one for one in facts if type(one).__name__ == "DisputeOpened"]
        await ledger.messages.once("notify", "77", await notifier.plan(77, fact), api.platform.clock())
        rows = await ledger.messages.claim_deliveries(KIND, api.platform.clock(), 1_000, 100, 100)
        kinds = [msgspec.json.decode(row.body) for row in rows]
        told = [one for one in kinds if one["kind"] == "dispute_opened"]
        assert [one["channel"] for one in told] == ["email"], "the owner, and not the fan"
        assert told[0]["staff"]
        assert {kind for kind, _ in STAFF_KIND_OF_FACT.values()} >= {"dispute_opened", "dispute_ended", "dispute_lost"}


def sheet_rows(workbook: bytes, name: str) -> list[dict[str, str]]:
    """The rows of one sheet by the names of its columns."""
    book = zipfile.ZipFile(io.BytesIO(workbook))
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    names = [one.get("name") for one in ElementTree.fromstring(book.read("xl/workbook.xml")).iter(f"{space}sheet")]
    sheet = ElementTree.fromstring(book.read(f"xl/worksheets/sheet{names.index(name) + 1}.xml"))
    head, *body = [["".join(cell.itertext()) for cell in row] for row in sheet.iter(f"{space}row")]
    return [dict(zip(head, row, strict=True)) for row in body]


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
async def test_the_table_of_disputes_adds_up_to_what_the_ledger_says(tmp_path: Path, ending: str) -> None:
    """One is open, one is won, one is lost for good, one ended without a decision; and one of another event."""
    ends = [None, NoticeKind.DISPUTE_WON, NoticeKind.DISPUTE_LOST, NoticeKind.DISPUTE_CLOSED]
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        bookings = [await api.bought(f"S-A-{seat}") for seat in range(1, 5)]
        for number, (booking, end) in enumerate(zip(bookings, ends, strict=True), 1):
            await tell(api, booking, NoticeKind.DISPUTE_OPENED, number)
            if end is not None:
                await tell(api, booking, end, number)
        ledger, platform = api.platform.stores.ledger, api.platform
        event = await ledger.catalogue.event(api.event)
        names = (await platform.organiser.organise.venues.plan(event.plan_hash)).seat_ids
        path = tmp_path / "disputes.xlsx"
        if ending == "csv":
            text = "".join([part async for part in platform.organiser.exports.table("disputes", event, names)])
            rows = list(csv.DictReader(io.StringIO(text)))
        else:
            await platform.organiser.exports.workbook("disputes", event, names, "Europe/Vienna", path)
            rows = sheet_rows(path.read_bytes(), "disputes")
        assert [(row["booking"], row["state"]) for row in rows] == [
            (one.id, state)
            for one, state in reversed(list(zip(bookings, ["open", "won", "lost", "closed"], strict=True)))
        ]
        for column, state in (("disputed", DisputeState.OPEN), ("lost", DisputeState.LOST)):
            summed = sum(round(100 * float(row[column])) for row in rows)
            assert {"EUR": summed} == sum_by_state(await ledger.payments.disputes("", "", 100), state)
            assert summed == 5_000
        assert all(row["opened_at"] and row["changed_at"] for row in rows)


def test_every_table_of_the_exports_can_be_downloaded_from_the_page() -> None:
    assert list(TABLES) == list(exports.HEADERS)


async def test_a_table_that_would_leave_disputes_out_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "MAX_DISPUTES", 1)
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        for seat in (1, 2):
            await tell(api, await api.bought(f"S-A-{seat}"), NoticeKind.DISPUTE_OPENED, seat)
        event = await api.platform.stores.ledger.catalogue.event(api.event)
        with pytest.raises(InvalidInput, match="more than 1 disputes"):
            await anext(api.platform.organiser.exports.table("disputes", event, []))


async def test_the_workbook_of_the_report_has_the_same_disputes(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        await tell(api, await api.bought("S-A-1"), NoticeKind.DISPUTE_OPENED)
        owner = Site(api)
        sheets = {
            path: sheet_rows((await api.client.get(f"{owner.base}/{path}", headers=owner.headers)).content, "disputes")
            for path in ("reports/report.xlsx", "exports/disputes.xlsx")
        }
        assert sheets["reports/report.xlsx"] == sheets["exports/disputes.xlsx"]
        (found,) = sheets["reports/report.xlsx"]
        assert (found["dispute"], found["state"], found["disputed"]) == ("dp_1", "open", "50")
        text = (await owner.get(f"{owner.base}/reports/disputes.csv")).lstrip("\ufeff")
        assert [row["dispute"] for row in csv.DictReader(io.StringIO(text))] == ["dp_1"]


async def test_while_a_dispute_is_open_the_page_of_the_booking_offers_no_refund(tmp_path: Path) -> None:
    """Before: a red button stood below the sentence that nothing is refunded, and only said no."""
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        booking, site = await api.bought("S-A-1"), Site(api)
        page = f"/organiser/events/{api.event}/bookings/{booking.id}"
        offer = 'name="do" value="refund"'
        assert offer in await site.get(page)
        await tell(api, booking, NoticeKind.DISPUTE_OPENED)
        disputed = await site.get(page)
        assert "Nothing of this booking is refunded meanwhile" in disputed
        assert offer not in disputed
        await tell(api, booking, NoticeKind.DISPUTE_WON)
        assert offer in await site.get(page)
