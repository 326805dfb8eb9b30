"""What staff do with bookings (B12, B13): cancelling, mail once more, tables, the chain, webhook tests."""

import asyncio
import csv
import io
from decimal import ROUND_HALF_UP, Decimal

import pytest

from frontrow.boxoffice.adapters.ledger.audit_verification import CACHED_US, ChainCheck
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.messages.model.messages import Endpoint
from frontrow.boxoffice.organiser.exports import HEADERS, PAGE, Exports, checked_kind
from frontrow.core.errors import NotFound
from tests.boxoffice.organiser.http import EVENTS, an_organiser_api
from tests.boxoffice.organiser.support import ADA, NOW_US, a_clock, a_purchase, an_office, on_sale


async def table(api, kind):
    event = await api.platform.ledger.catalogue.event(api.event)
    plan = await api.platform.organiser.organise.venues.plan(event.plan_hash)
    parts = [part async for part in api.platform.organiser.exports.table(kind, event, plan.seat_ids)]
    return list(csv.DictReader(io.StringIO("".join(parts), newline="")))


async def test_b12_a_hold_is_cancelled_by_its_organiser_and_a_purchase_is_refunded_in_full(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        refunds = api.platform.box_office.refunds
        held = await api.bought("S-A-1", pay="")
        assert await refunds.cancel_booking(held.id) == "released"
        bought = await api.bought("S-A-2", fan="fan_b")
        assert await refunds.cancel_booking(bought.id) == "refunded"
        (refund,) = await api.platform.ledger.payments.refunds_of(bought.id)
        assert (refund.amount_minor, refund.reason) == (5000, "organiser")
        states = [(await api.platform.ledger.booking(one.id)).state for one in (held, bought)]
        assert states == [BookingState.CANCELLED, BookingState.REFUNDED]
        assert await refunds.cancel_booking(held.id) == "over"
        await api.bought("S-A-1", "S-A-2", fan="fan_c")  # both are free again


async def test_b10_the_tickets_go_out_once_more_with_the_same_codes(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        booking = await api.bought("S-A-1", email="eve@example.org")
        assert await api.platform.messaging.notifier.resend_confirmation(booking)
        assert await api.platform.messaging.notifier.worker().drain() == 1
        (mail,) = list((tmp_path / "mail").rglob("*.eml")) or list(tmp_path.rglob("*.eml"))
        body = mail.read_text("utf-8", "replace")
        assert "eve@example.org" in body
        assert "tickets.pdf" in body
        nobody = await api.bought("S-A-2", fan="fan_nobody")
        assert not await api.platform.messaging.notifier.resend_confirmation(nobody)


async def test_b13_tables_tell_what_was_sold_and_are_safe_in_a_spreadsheet(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        first = await api.bought("S-A-1", "S-A-2", email="=cmd@example.org", name="=1+1 Ada")
        await api.bought("B-A-1", fan="fan_held", pay="")
        await api.platform.box_office.refunds.override(first.id, [0])
        bookings = await table(api, "bookings")
        assert [(one["state"], one["seats"]) for one in bookings] == [("held", "B-A-1"), ("confirmed", "S-A-2")]
        assert (bookings[1]["email"], bookings[1]["name"]) == ("'=cmd@example.org", "'=1+1 Ada")
        tickets = await table(api, "tickets")
        assert sorted((one["seat"], one["state"]) for one in tickets) == [("S-A-1", "revoked"), ("S-A-2", "valid")]
        (guest,) = await table(api, "attendees")
        assert (guest["seat"], guest["booking"], guest["scanned_at"]) == ("S-A-2", first.id, "")
        assert guest["name"] == "'=1+1 Ada"
        (row,) = await table(api, "revenue")
        assert (row["captured"], row["refunded"], row["net"]) == ("100.00", "50.00", "50.00")
        with pytest.raises(NotFound):
            checked_kind("people")


async def test_tables_have_ticket_types_extras_and_taxes_as_invoices_say_and_the_report_knows_staff_and_guests(
    tmp_path,
):
    async with an_organiser_api(tmp_path) as api:
        own = f"{EVENTS}/{api.event}"
        options = {
            "ticket_types": [
                {"key": "adult", "name": "Adult"},
                {"key": "child", "name": "Child", "basis_points": 5000},
            ],
            "add_ons": [{"key": "parking", "name": "Parking", "price_minor": 799}],
            "discounts": [{"code": "TEN", "basis_points": 1000}],
        }
        assert (await api.ask("PATCH", own, json=options | {"tax_basis_points": 1900})).status_code == 200
        await api.bought("S-C-1")
        seats = ["S-A-1", "S-A-2", "S-A-3"]
        wish = {"types": {"S-A-2": "child"}, "add_ons": {"parking": 2}}
        sold = await api.post(f"{own}/desk-sales", 201, json={"seats": seats, "paid_by": "cash", **wish})
        assert (await api.ask("PATCH", own, json={"tax_basis_points": 700})).status_code == 200
        guest = {"name": "Ada", "email": "ada@example.org", "paid_by": "free", "types": {"S-B-1": "child"}}
        await api.post(f"{own}/desk-sales", 201, json=guest | {"seats": ["S-B-1"]})
        await api.post(f"{own}/desk-sales", 201, json={"seats": ["S-B-2"], "paid_by": "card_reader", "code": "TEN"})
        later, free, first, online = await table(api, "bookings")
        taxed = ("ticket_types", "extras", "discount_code", "gross_amount", "tax_percent", "tax", "net_amount")
        assert [later[name] for name in taxed] == ["1 Adult", "", "TEN", "45.00", "7.00", "2.94", "42.06"]
        assert [free[name] for name in taxed] == ["1 Child", "", "", "0.00", "7.00", "0.00", "0.00"]
        rate = ["140.98", "19.00", "22.51", "118.47"]
        assert [first[name] for name in taxed] == ["2 Adult, 1 Child", "2 Parking", "", *rate]
        assert [online[name] for name in taxed] == ["1 Adult", "", "", "50.00", "19.00", "7.98", "42.02"]
        await api.post(f"{own}/bookings/{sold['booking']}/refunds", 201, json={"seats": ["S-A-2"]})
        row = next(one for one in await table(api, "revenue") if one["booking"] == sold["booking"])
        refunded = Decimal(row["refunded"])
        tax = (refunded * 19 / 119).quantize(Decimal("0.01"), ROUND_HALF_UP)
        assert (row["gross_amount"], row["net"]) == (str(Decimal("140.98") - refunded),) * 2
        assert row["tax"] == str(Decimal("22.51") - tax), "rounded per payment and refund, as invoices are"
        assert Decimal(row["net_amount"]) + Decimal(row["tax"]) == Decimal(row["gross_amount"])
        assert (row["ticket_types"], row["extras_amount"]) == ("2 Adult", "15.98")
        report = await api.get(f"{own}/report")
        channels = [(one["channel"], one["bookings"], one["seats"]) for one in report["channels"]]
        assert channels == [("online", 1, 1), ("box_office", 2, 3), ("guests", 1, 1)]


async def test_a_table_goes_through_all_pages_and_repeats_nothing(sqlite_ledger):
    clock = a_clock()
    office = an_office(sqlite_ledger, clock)
    event = await on_sale(office)
    for number in range(3):
        await a_purchase(sqlite_ledger, event, (number,), number=number)
    asked = []

    class SmallPages:
        buyers_of, tax_rates = sqlite_ledger.organiser.buyers_of, sqlite_ledger.organiser.tax_rates

        async def event_bookings(self, event_id, state, before, limit):
            assert limit == PAGE
            asked.append(before)
            page = await sqlite_ledger.organiser.event_bookings(event_id, state, before, 1)
            return page * PAGE if len(asked) < 3 else page  # as if each page were full

    class Small:
        organiser, tickets, payments = SmallPages(), sqlite_ledger.tickets, sqlite_ledger.payments

    parts = [part async for part in Exports(Small()).table("bookings", event, [str(n) for n in range(60)])]
    rows = list(csv.reader(io.StringIO("".join(parts), newline="")))
    assert rows[0] == list(HEADERS["bookings"])
    assert len(rows) == 1 + 2 * PAGE + 1
    assert asked[0] == 0
    assert asked[1] > asked[2] > 0


async def test_the_chain_is_checked_by_one_at_a_time_and_remembered_for_a_minute():
    clock, looks = a_clock(), []

    async def verify():
        looks.append(clock.now_us)
        await asyncio.sleep(0)
        return (["a gap"] if len(looks) > 1 else []), 7

    check = ChainCheck(verify, clock)
    found = await asyncio.gather(*(check.check(10) for _ in range(50)))
    assert len(looks) == 1
    assert {(one.entries, one.wrong) for one in found} == {(7, 0)}
    clock.now_us += CACHED_US - 1
    assert (await check.check(10)).wrong == 0
    clock.now_us += 1
    assert (await check.check(10)).wrong == 1

    async def never():
        await asyncio.Event().wait()

    assert await ChainCheck(never, clock).check(0.01) is None


async def test_b16_changes_are_found_by_kind_by_member_and_by_booking(ledger):
    office = an_office(ledger, a_clock())
    event = await on_sale(office)
    eve = Editor("stf_eve", ADA.organiser_id)
    for editor, act, booking in ((ADA, "refund", "bkg_1"), (eve, "refund", "bkg_2"), (eve, "resend", "bkg_1")):
        await ledger.organiser.note(Change(editor, act, event.id, NOW_US, {"booking": booking}))

    async def found(**wanted):
        return [
            (one.act, one.actor) for one in await ledger.organiser.changes(ADA.organiser_id, event.id, 0, 10, **wanted)
        ]

    assert await found(act="refund") == [("refund", "stf_eve"), ("refund", "stf_ada")]
    assert await found(actor="stf_eve") == [("resend", "stf_eve"), ("refund", "stf_eve")]
    assert await found(booking_id="bkg_1") == [("resend", "stf_eve"), ("refund", "stf_ada")]
    assert await found(booking_id="%") == []


async def test_b15_a_webhook_test_is_a_delivery_like_any_other(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        ledger = api.platform.ledger
        endpoint = Endpoint("whk_1", api.person.staff.organiser_id, api.event, "https://hooks.example.org/", "s")
        await ledger.messages.put_endpoint(endpoint, api.platform.clock())
        assert await api.platform.messaging.webhooks.test(endpoint)
        (sent,) = await ledger.organiser.endpoint_deliveries(endpoint, 0, 10)
        assert sent.state == "waiting"
        params = (endpoint.organiser, f"webhook:{endpoint.id}:%", sent.number + 1, 10)
        (row,) = await ledger.store.read(Query("deliveries_of_endpoint", params=params))
        assert '\\"type\\":\\"Test\\"' in row[7]
