"""Refunds of chosen lines over HTTP and on the pages: what the dialog shows is what comes back."""

import csv
import io
from pathlib import Path
from typing import Any

import httpx

from frontrow.boxoffice.events.model.events import Event, Fee
from frontrow.boxoffice.pricing.model.sale_options import AddOn, TicketType
from frontrow.boxoffice.refunds.model.refund_policy import RefundPolicy, RefundStep
from frontrow.core.clock import US_PER_S
from frontrow.testing.clock import ManualClock
from frontrow.web.http.access import booking_token
from frontrow.web.platform.platform import Platform
from frontrow.web.site.organiser.events.event_forms import read_sale, sale
from frontrow.web.site.organiser.form_fields import Reading
from frontrow.web.site.routes import Form
from tests.boxoffice.organiser.http import OrganiserApi, an_organiser_api
from tests.boxoffice.organiser.site import Site
from tests.boxoffice.shop import shop_event, shop_plan
from tests.support.browser_headers import BROWSER, FORM
from tests.support.form_answers import submit
from tests.web.api.script import Buyer, a_buyer
from tests.web.api.support import EVENT_ID, a_client, a_platform, put_event

PLAN = shop_plan()
NOW_US = 1_800_000_000 * US_PER_S
DAY_US = 86_400 * US_PER_S
OPTIONS: dict[str, Any] = {
    "ticket_types": (TicketType("adult", "Adult"), TicketType("family", "Family", 5_000, min_per_booking=3)),
    "add_ons": (AddOn("dinner", "Dinner", 20_000), AddOn("parking", "Parking", 800, 3)),
    "fees": (Fee("Order fee", per_booking_minor=199),),
}


async def a_purchase(
    platform: Platform, client: httpx.AsyncClient, *seats: str, types: dict[str, str] | None = None, **add_ons: int
) -> tuple[Buyer, str]:
    buyer = await a_buyer(client)
    await buyer.enter(EVENT_ID)
    booking = (await buyer.hold(EVENT_ID, seats=list(seats)))["booking"]
    chosen = await buyer.call("choose", booking_id=booking, json={"types": types or {}, "add_ons": add_ons})
    assert chosen.status_code == 200, chosen.text
    await buyer.pay(booking)
    return buyer, booking


async def opened(platform: Platform, **changes: Any) -> Event:
    event = await put_event(platform, **OPTIONS | changes)
    await platform.box_office.openings.refresh()
    return event


def lines_of(answer: Any) -> list[tuple[str, str, int, int]]:
    return [(one["kind"], one["name"], one["quantity"], one["amount"]["amount_minor"]) for one in answer["lines"]]


async def test_a_fan_returns_lines_and_the_old_form_means_seats_only(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        await opened(platform)
        buyer, booking = await a_purchase(platform, client, "S-A-1", "S-A-2", dinner=1, parking=2)
        seat = (await buyer.call("ask_refund", booking_id=booking, json={"seats": ["S-A-1"]})).json()
        assert lines_of(seat) == [("seat", "Front · Adult", 1, 5000)]
        quote = (
            await buyer.call("quote_refund", booking_id=booking, params={"add_on": ["dinner:1", "parking:1"]})
        ).json()
        assert lines_of(quote) == [("add_on", "Dinner", 1, 20_000), ("add_on", "Parking", 1, 800)]
        assert (quote["seats"], quote["number"], quote["kept"]["amount_minor"]) == ([], 2, 5000 + 800 + 199)
        body = {"add_ons": {"dinner": 1, "parking": 1}, "number": 2}
        asked = [(await buyer.call("ask_refund", booking_id=booking, json=body)).json() for _ in range(3)]
        assert {one["refund"] for one in asked} == {asked[0]["refund"]}, "three requests, one refund"
        assert asked[0]["amount"] == quote["amount"]
        for bad, status, code in (
            ({"add_ons": {"dinner": 1}}, 422, "invalid_input"),
            ({"add_ons": {"parking": 0}}, 422, "invalid_input"),
            ({"add_ons": {"boat": 1}}, 422, "invalid_input"),
            ({"add_ons": {"parking": 1}, "number": 1}, 409, "payment_changed"),
            ({"seats": ["S-A-1"]}, 409, "refused"),
            ({"lines": []}, 422, "invalid_input"),
        ):
            refused = await buyer.call("ask_refund", booking_id=booking, json=bad)
            assert (refused.status_code, refused.json()["code"]) == (status, code), bad
        for rubbish in ("dinner", "dinner:x", "dinner:", ":1", "dinner:-1", "dinner:²"):
            refused = await buyer.call("quote_refund", booking_id=booking, params={"add_on": rubbish})
            assert refused.status_code == 422, rubbish
        rest = (await buyer.call("ask_refund", booking_id=booking, json={})).json()
        assert lines_of(rest)[1:] == [("add_on", "Parking", 1, 800), ("fee", "Order fee", 1, 199)]
        listed = (await buyer.call("list_refunds", booking_id=booking)).json()["refunds"]
        assert sum(one["amount"]["amount_minor"] for one in listed) == 2 * 5000 + 20_000 + 2 * 800 + 199


async def test_the_fans_dialog_shows_each_line_and_a_form_sent_twice_refunds_once(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        await opened(platform)
        seats = ("S-A-1", "S-A-2", "S-A-3")
        _, booking = await a_purchase(
            platform, client, *seats, types=dict.fromkeys(seats, "family"), dinner=1, parking=2
        )
        client.cookies.set("frontrow_bookings", booking_token(platform.secrets, booking))
        path = f"/bookings/{booking}"
        page = (await client.get(path, headers=BROWSER)).text
        assert 'name="extra.dinner"' in page
        assert 'name="extra.parking"' in page
        asked = "seat=S-A-1&seat=S-A-2&extra.dinner=0&extra.parking=1&how=refund"
        dialog = (await client.get(f"{path}/return?{asked}", headers=BROWSER)).text
        for part in (
            "Front · Family",
            "Parking",
            "€8",
            "The remaining seats no longer get the group price",
            "-€25",
            "€33",
        ):
            assert part in dialog, part
        assert "Paid for what you keep" in dialog
        form = {"seat": ["S-A-1", "S-A-2"], "extra.parking": "1", "how": "refund", "amount": "3300", "number": "1"}
        for _ in range(2):
            sent = await client.post(f"{path}/give-back", data=form, headers=FORM)
            assert sent.status_code == 303, sent.text[-500:]
        (refund,) = await platform.ledger.payments.refunds_of(booking)
        assert (refund.amount_minor, refund.seats) == (3300, refund.seats[:2])
        # only an add-on, twice the same form
        extra = {"extra.parking": "1", "how": "refund", "amount": "800", "number": "2"}
        for _ in range(2):
            assert (await client.post(f"{path}/give-back", data=extra, headers=FORM)).status_code == 303
        assert [one.amount_minor for one in await platform.ledger.payments.refunds_of(booking)] == [3300, 800]
        assert (await submit(client, f"{path}/give-back", extra | {"number": "3"})).status_code == 409
        # a dialog that was open while something else went back is shown again
        late = {"seat": ["S-A-3"], "how": "refund", "amount": "25199", "number": "2"}
        overtaken = await submit(client, f"{path}/give-back", late)
        assert (overtaken.status_code, "The amount has changed" in overtaken.text) == (409, True)
        assert 'name="number" value="3"' in overtaken.text
        assert len(await platform.ledger.payments.refunds_of(booking)) == 2
        assert 'name="extra.parking"' not in (await client.get(path, headers=BROWSER)).text


async def test_an_add_on_alone_cannot_be_offered_for_resale(tmp_path: Path) -> None:
    """No seat was named, and no seat named means all of them: every ticket of the booking was given up."""
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        await opened(platform)
        _, booking = await a_purchase(platform, client, "S-A-1", "S-A-2", dinner=1)
        client.cookies.set("frontrow_bookings", booking_token(platform.secrets, booking))
        path = f"/bookings/{booking}"
        shown = await client.get(f"{path}/return?extra.dinner=1&how=pool", headers=BROWSER)
        assert (shown.status_code, "Select what you want to return" in shown.text) == (409, True)
        form = {"extra.dinner": "1", "how": "pool", "amount": "30199", "number": "0"}
        assert (await submit(client, f"{path}/give-back", form)).status_code == 409
        assert await platform.ledger.returns.returns_of(booking) == []


async def test_the_dialog_says_what_the_step_of_the_day_refunds(tmp_path: Path) -> None:
    clock = ManualClock(NOW_US)
    steps = (RefundStep(9 * 86_400), RefundStep(5 * 86_400, 5_000))
    async with a_platform(tmp_path, clock=clock) as platform, a_client(platform) as client:
        event = await opened(platform, refunds=RefundPolicy(window_s=steps[0].until_s, steps=steps))
        _, booking = await a_purchase(platform, client, "S-A-1")
        client.cookies.set("frontrow_bookings", booking_token(platform.secrets, booking))
        shown = (await client.get(f"/events/{EVENT_ID}", headers=BROWSER)).text
        assert "until 216 hours before the show" in shown
        assert "You get 50% back." in shown
        path = f"/bookings/{booking}"
        page = (await client.get(path, headers=BROWSER)).text
        assert "100% until" in page
        assert "50% until" in page
        whole = (await client.get(f"{path}/return?seat=S-A-1&how=refund", headers=BROWSER)).text
        assert "€51.99" in whole
        clock.now_us = event.starts_at_us - 9 * DAY_US
        half = (await client.get(f"{path}/return?seat=S-A-1&how=refund", headers=BROWSER)).text
        assert "Only a part is refunded this close to the event" in half
        assert "€26" in half
        late = {"seat": "S-A-1", "how": "refund", "amount": "5199", "number": "1"}
        again = await submit(client, f"{path}/give-back", late)
        assert (again.status_code, "The amount has changed" in again.text) == (409, True), "agreed to the other amount"
        clock.now_us = event.starts_at_us - 5 * DAY_US
        assert "See the refund" in (await client.get(path, headers=BROWSER)).text  # for resale
        assert (await client.get(f"{path}/return?seat=S-A-1&how=refund", headers=BROWSER)).status_code == 409


async def sold_at_desk(api: OrganiserApi) -> str:
    """A booking of two seats and two parking places."""
    add_on = {"key": "parking", "name": "Parking", "price_minor": 1200}
    changed = await api.ask("PATCH", f"/v1/organiser/events/{api.event}", json={"add_ons": [add_on]})
    assert changed.status_code == 200, changed.text
    sale = {"seats": ["S-A-1", "S-A-2"], "paid_by": "cash", "add_ons": {"parking": 2}}
    sold = await api.post(f"/v1/organiser/events/{api.event}/desk-sales", 201, json=sale)
    return str(sold["booking"])


async def test_the_teams_dialog_shows_each_line_and_refunds_the_chosen_ones(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path) as api:
        owner, booking = Site(api), await sold_at_desk(api)
        one = f"{owner.base}/bookings/{booking}"
        assert 'name="extra.parking"' in await owner.get(one)
        dialog = await owner.get(f"{one}?do=refund&extra.parking=1")
        assert "Parking" in dialog
        assert "€12" in dialog
        assert 'type="hidden" name="seat"' not in dialog
        assert "The seats go back on sale" not in dialog
        form = {"extra.parking": "1", "number": "1", "how": "policy", "reason": ""}
        for _ in range(2):
            await owner.post(f"{one}/refund", **form)
        (refund,) = await api.platform.ledger.payments.refunds_of(booking)
        assert (refund.amount_minor, refund.seats) == (1200, ())
        assert "1 × Parking" in await owner.get(one)
        reports = await owner.get(f"{owner.base}/reports")
        assert "Add-ons and fees per booking" in reports
        assert reports.count("€12<") >= 1, "what is left of the parking"
        (row,) = csv.DictReader(io.StringIO(await owner.get(f"{owner.base}/exports/revenue.csv")))
        assert (row["extras"], row["extras_amount"], row["refunded"]) == ("1 Parking", "12.00", "12.00")
        (row,) = csv.DictReader(io.StringIO(await owner.get(f"{owner.base}/exports/bookings.csv")))
        assert row["extras"] == "1 Parking"
        await owner.post(f"{one}/refund", 409, number="2", how="policy")  # nothing is chosen: nothing goes back
        await owner.post(f"{one}/refund", 409, number="1", how="policy", seat=["S-A-1"])  # overtaken by another refund
        body = {"seats": ["S-A-1"], "add_ons": {"parking": 1}, "number": 2}
        path = f"/v1/organiser/events/{api.event}/bookings/{booking}"
        given = [await api.ask("POST", f"{path}/refunds", json=body) for _ in range(2)]
        assert [one.status_code for one in given] == [201, 201]
        assert given[0].json() == given[1].json()
        assert [line[0] for line in lines_of(given[0].json())] == ["seat", "add_on"]
        detail = await api.get(path)
        assert len(detail["refunds"]) == 2
        assert [line["add_on"] for line in detail["refunds"][1]["lines"]] == ["", "parking"]


async def test_the_rules_are_set_over_http(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path) as api:
        path = f"/v1/organiser/events/{api.event}"
        rules = {
            "allowed": True,
            "window_s": 172_800,
            "fee_per_seat_minor": 0,
            "fee_basis_points": 0,
            "keeps_seat_fees": True,
            "keeps_booking_fees": False,
            "steps": [{"until_s": 172_800, "basis_points": 10_000}, {"until_s": 86_400, "basis_points": 5_000}],
        }
        changed = await api.ask("PATCH", path, json={"refunds": rules})
        assert changed.status_code == 200, changed.text
        assert changed.json()["refunds"] == rules
        worse = rules | {"steps": [{"until_s": 60, "basis_points": 100}, {"until_s": 90, "basis_points": 50}]}
        refused = await api.ask("PATCH", path, json={"refunds": worse})
        assert (refused.status_code, refused.json()["param"]) == (422, "refunds")


def read_policy(event: Event, **typed: str) -> tuple[RefundPolicy | None, dict[str, str]]:
    """What the wizard's step "Sale" makes of this, with everything else as it is shown."""
    fields = sale(event, PLAN, "UTC") | typed
    reading = Reading(Form(list(fields.items())), "UTC", "EUR")
    return read_sale(reading, event, PLAN).refunds, reading.errors


def test_the_wizard_shows_and_reads_the_steps() -> None:
    sales = {"sale_starts_at_us": NOW_US}
    plain = shop_event(refunds=RefundPolicy(window_s=7200, fee_per_seat_minor=250), **sales)
    assert read_policy(plain) == (plain.refunds, {}), "one step is the policy without steps"
    steps = (RefundStep(172_800), RefundStep(86_400, 5_050))
    stepped = RefundPolicy(window_s=172_800, steps=steps, keeps_seat_fees=True, keeps_booking_fees=True)
    assert read_policy(shop_event(refunds=stepped, **sales)) == (stepped, {})
    typed = {"refund_hours": "48", "refund_share": "90", "refund_hours2": "24", "refund_share2": "50,5"}
    first = RefundStep(172_800, 9_000)
    assert read_policy(plain, **typed) == (
        RefundPolicy(window_s=172_800, fee_per_seat_minor=250, steps=(first, steps[1])),
        {},
    )
    for wrong in (
        {"refund_hours2": "48", "refund_share2": "50"},  # not nearer to the show
        {"refund_hours2": "24"},  # not less
        {"refund_share": "0"},
        {"refund_share": "101"},
        {"refund_hours2": "x", "refund_share2": "50"},
    ):
        _, errors = read_policy(plain, **{"refund_hours": "48"} | wrong)
        assert errors, wrong
    six = tuple(RefundStep((9 - n) * 3600, 9_000 - n) for n in range(6))
    many = RefundPolicy(window_s=six[0].until_s, steps=six)
    assert read_policy(shop_event(refunds=many, **sales)) == (many, {}), "more than the form has rows for are kept"
