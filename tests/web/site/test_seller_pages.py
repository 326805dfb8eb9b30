"""The seller's details: kept by the organiser's page and the API, checked, shown on receipts, other organisers' own."""

import re
from dataclasses import replace
from pathlib import Path

from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.refunds.model.refund_policy import RefundPolicy
from frontrow.web.http.access import booking_token
from tests.boxoffice.organiser.http import EVENTS, a_venue_body, an_event_body
from tests.boxoffice.organiser.site import a_site
from tests.support.browser_headers import BROWSER, FORM
from tests.support.form_answers import submit
from tests.support.pdf_letters import core_texts

SELLER = "/v1/organiser/seller"
HALL = {
    "name": "Waldbühne GmbH",
    "address": "Hauptstraße 1\n1010 Wien",
    "tax_id": "ATU12345678",
    "tax_basis_points": 1300,
    "invoice_prefix": "",
    "fees": [],
    "fees_currency": "",
    "contact_email": "",
}


async def test_page_and_api_keep_the_seller_and_receipts_show_it(tmp_path: Path) -> None:
    """Issue 11: a receipt with the seller's name and tax lines."""
    async with a_site(tmp_path) as site:
        wrong = await site.post("/organiser/seller", 422, name="Hall", address="", tax_id="", rate="nineteen")
        assert "0 to 50" in wrong.text
        assert 'value="nineteen"' in wrong.text
        assert (await site.post("/organiser/seller", 422, name="", address="", tax_id="", rate="5")).status_code == 422
        typed = "Hauptstraße 1\r\n 1010 Wien \r\n"
        await site.post("/organiser/seller", name="Waldbühne GmbH", address=typed, tax_id="ATU12345678", rate="13")
        assert await site.api.get(SELLER) == HALL
        assert "ATU12345678" in await site.get("/organiser/seller")
        assert "change_seller" in str(await site.api.get("/v1/organiser/audit"))

        put = await site.api.ask("PUT", SELLER, json=HALL | {"tax_basis_points": 1900})
        assert (put.status_code, put.json()["tax_basis_points"]) == (200, 1900)
        for body in (
            HALL | {"tax_basis_points": 5001},
            HALL | {"name": ""},
            HALL | {"x": 1},
            HALL | {"tax_id": "a\nb"},
        ):
            assert (await site.api.ask("PUT", SELLER, json=body)).status_code == 422
        reader = await site.as_(Role.READ_ONLY)
        assert (await reader.api.ask("PUT", SELLER, json=HALL)).status_code == 403
        other = await site.as_(Role.OWNER, "org_other")
        assert (await other.api.get(SELLER))["tax_id"] == ""

        booking = await site.api.bought("S-A-1", email="ada@example.org", name="Ada Lovelace")
        receipt = await site.api.platform.box_office.receipts.of(booking.id)
        assert receipt is not None
        assert (receipt.seller.name, receipt.buyer, receipt.tax_basis_points) == (
            "Waldbühne GmbH",
            "Ada Lovelace",
            1900,
        )
        changed = await site.api.ask("PATCH", f"{EVENTS}/{site.api.event}", json={"tax_basis_points": 700})
        assert (changed.status_code, changed.json()["tax_basis_points"]) == (200, 700)
        await site.api.ask("PUT", SELLER, json=HALL | {"name": "Renamed GmbH"})
        kept = await site.api.platform.box_office.receipts.of(booking.id)
        assert kept is not None
        assert (kept.seller.name, kept.tax_basis_points) == ("Waldbühne GmbH", 1900), "as of the sale"
        later = await site.api.bought("S-A-2", email="bob@example.org", name="Bob")
        own = await site.api.platform.box_office.receipts.of(later.id)
        assert own is not None
        assert (own.seller.name, own.tax_basis_points) == ("Renamed GmbH", 700)
        stranger = await site.api.client.get(f"/bookings/{booking.id}/receipt", headers=BROWSER)
        assert stranger.status_code == 404


async def test_new_events_begin_with_the_sellers_fees(tmp_path: Path) -> None:
    async with a_site(tmp_path) as site:
        about = {"name": "Hall", "address": "", "tax_id": "", "rate": "13", "invoice_prefix": "2026-"}
        fees = {"fee0": "Service", "seat0": "2.50", "fee1": "Levy", "percent1": "3", "fees_currency": "EUR"}
        wrong = await site.post("/organiser/seller", 422, **about, **fees | {"fee0": ""})
        assert "Each fee needs a name" in wrong.text
        assert 'value="2.50"' in wrong.text
        await site.post("/organiser/seller", **about, **fees)
        page = await site.get("/organiser/seller")
        assert 'value="2.50"' in page
        assert 'value="2026-"' in page
        venue = (await site.api.post("/v1/organiser/venues", 201, json=a_venue_body()))["venue"]
        made = await site.api.ask("POST", EVENTS, json=an_event_body(venue))
        assert made.status_code == 201, made.text
        assert [(one["name"], one["per_seat_minor"], one["basis_points"]) for one in made.json()["fees"]] == [
            ("Service", 250, 0),
            ("Levy", 0, 300),
        ]
        own = await site.api.ask("POST", EVENTS, json=an_event_body(venue, fees=[]))
        assert own.json()["fees"] == []
        yen = await site.api.ask("POST", EVENTS, json=an_event_body(venue, currency="JPY"))
        assert [one["name"] for one in yen.json()["fees"]] == ["Levy"]


async def test_an_invoice_is_issued_once_and_a_refund_gets_its_credit_note(tmp_path: Path) -> None:
    """Issue 15: invoices as PDF, numbered without gaps, for the fan and the organiser."""
    async with a_site(tmp_path) as site:
        await site.api.ask("PUT", SELLER, json=HALL | {"invoice_prefix": "2026-"})
        booking = await site.api.bought("S-A-1", "S-A-2", email="ada@example.org", name="Ada Lovelace")
        booking_url = f"/organiser/events/{site.api.event}/bookings/{booking.id}"
        client, token = site.api.client, booking_token(site.api.platform.secrets, booking.id)
        client.cookies.set("frontrow_bookings", token)
        receipt = f"/bookings/{booking.id}/receipt"
        assert "Get an invoice" in (await client.get(receipt, headers=BROWSER)).text
        bad = await submit(client, f"/bookings/{booking.id}/invoice", {"billed_to": "x" * 501})
        assert bad.status_code == 422
        asked = {"billed_to": "Analytical Engines\r\n1 Main Street"}
        assert (await client.post(f"/bookings/{booking.id}/invoice", data=asked, headers=FORM)).status_code == 303
        page = (await client.get(receipt, headers=BROWSER)).text
        assert "2026-000001" in page
        assert "Get an invoice" not in page
        pdf = await client.get(f"/bookings/{booking.id}/invoices/1", headers=BROWSER)
        assert (pdf.status_code, pdf.content[:4]) == (200, b"%PDF")
        assert "Analytical Engines" in core_texts(pdf.content)
        assert (await client.get(f"/bookings/{booking.id}/invoices/2", headers=BROWSER)).status_code == 404

        refunds = site.api.platform.box_office.refunds
        await refunds.refund(booking.id, booking.fence, [booking.seats[0]])
        await refunds.work()
        assert "Issue the credit note" in await site.get(booking_url)
        await site.post(f"{booking_url}/invoice")
        own = {"frontrow-booking": token}
        listed = (await client.get(f"/v1/bookings/{booking.id}/invoices", headers=own)).json()["invoices"]
        said = [(one["label"], one["kind"], one["total"]["amount_minor"], one["corrects"]) for one in listed]
        assert said == [
            ("2026-000001", "invoice", 10000, ""),
            ("2026-000002", "credit_note", -5000, "2026-000001"),
        ]
        again = await client.post(f"/v1/bookings/{booking.id}/invoices", json={}, headers=own)
        assert again.json()["invoices"] == listed
        assert [one["number"] for one in (await site.api.get("/v1/organiser/invoices"))["invoices"]] == [2, 1]
        table = (await site.api.ask("GET", "/v1/organiser/invoices.csv")).text.splitlines()
        assert table[2].endswith(',"Analytical Engines, 1 Main Street",EUR,8850,1150,10000,1300,')
        assert "Credit note for 2026-000001" in await site.get("/organiser/invoices")
        assert (await site.api.ask("GET", "/organiser/invoices/2")).content[:4] == b"%PDF"
        other = await site.as_(Role.OWNER, "org_other")
        assert (await other.api.ask("GET", "/v1/organiser/invoices/1")).status_code == 404
        assert (await other.api.get("/v1/organiser/invoices"))["invoices"] == []


async def test_an_events_own_tax_rate_is_a_field_of_its_wizard_and_shown_on_the_preview(tmp_path: Path) -> None:
    """Issue 11: it could be set by the API only."""
    async with a_site(tmp_path) as site:
        await site.post("/organiser/seller", name="Hall", address="", tax_id="", rate="13")
        here = f"/organiser/events/{site.api.event}"
        prices = await site.get(f"{here}/prices")
        typed = dict(re.findall(r'name="((?:tier|price)[0-9])" value="([^"]*)"', prices))
        assert re.search(r'name="tax" value=""', prices)
        assert "13 % tax: the seller&#39;s rate" in await site.get(f"{here}/preview")
        for wrong in ("nineteen", "50.01", "-1"):
            refused = await site.post(f"{here}/prices", 422, **typed, tax=wrong)
            assert "0 to 50" in refused.text
            assert f'value="{wrong}"' in refused.text
        for rate, points in (("5,5", 550), ("0", 0), ("19", 1900)):
            await site.post(f"{here}/prices", **typed, tax=rate)
            assert (await site.api.get(f"{EVENTS}/{site.api.event}"))["tax_basis_points"] == points
        await site.post(f"{here}/prices", **typed)
        assert re.search(r'name="tax" value="19"', await site.get(f"{here}/prices")), "a form without the field"
        assert "19 % tax: this event&#39;s own rate" in await site.get(f"{here}/preview")
        await site.post(f"{here}/prices", **typed, tax="")
        assert (await site.api.get(f"{EVENTS}/{site.api.event}"))["tax_basis_points"] is None
        assert "13 % tax: the seller&#39;s rate" in await site.get(f"{here}/preview")


async def test_an_invoice_says_that_the_money_is_taken_so_it_waits_for_that(tmp_path):
    """Of five bookings that were never charged, four had an invoice: for a number that cannot be taken back."""
    async with a_site(tmp_path) as site:
        platform, client = site.api.platform, site.api.client
        visit = ShopPass(site.api.event, "fan_eve", platform.clock() + 900_000_000)
        for seat, charged in (("S-A-1", True), ("S-A-2", False)):
            hold = await platform.box_office.holds.place(site.api.event, visit, [seat])
            sold = await platform.box_office.checkout.pay(hold.booking_id, hold.fence, "pm_card_visa")
            assert sold.state == "confirmed"
            token = booking_token(platform.secrets, hold.booking_id)
            own, address = {"frontrow-booking": token}, f"/v1/bookings/{hold.booking_id}/invoices"
            client.cookies.set("frontrow_bookings", token)
            early = await client.post(address, json={}, headers=own)
            assert (early.status_code, early.json()["code"]) == (409, "payment_not_taken")
            page = await submit(client, f"/bookings/{hold.booking_id}/invoice", {"billed_to": ""})
            assert page.status_code == 422
            assert "still being completed" in page.text
            booking_url = f"/organiser/events/{site.api.event}/bookings/{hold.booking_id}"
            assert "still being completed" in (await site.post(f"{booking_url}/invoice", 409)).text
            if not charged:
                await platform.box_office.refunds.refund(hold.booking_id, hold.fence)
            await platform.box_office.checkout.work()
            late = await client.post(address, json={}, headers=own)
            if charged:
                assert (late.status_code, len(late.json()["invoices"])) == (200, 1)
            else:
                assert (late.status_code, late.json()["code"]) == (409, "nothing_to_invoice")
                assert "/receipt" not in (await client.get(f"/bookings/{hold.booking_id}", headers=BROWSER)).text
            client.cookies.delete("frontrow_bookings")
        assert [one["number"] for one in (await site.api.get("/v1/organiser/invoices"))["invoices"]] == [1]


async def test_the_invoice_of_a_fee_waits_for_its_money_too(tmp_path):
    """Returned before the capture, with a fee: the money is still to be taken. "Nothing was paid" was the answer."""
    async with a_site(tmp_path) as site:
        platform, client = site.api.platform, site.api.client
        event = await platform.ledger.catalogue.event(site.api.event)
        await platform.ledger.catalogue.put_event(
            replace(event, refunds=RefundPolicy(fee_per_seat_minor=100)), platform.clock()
        )
        visit = ShopPass(site.api.event, "fan_eve", platform.clock() + 900_000_000)
        hold = await platform.box_office.holds.place(site.api.event, visit, ["S-A-1"])
        await platform.box_office.checkout.pay(hold.booking_id, hold.fence, "pm_card_visa")
        await platform.box_office.refunds.refund(hold.booking_id, hold.fence)
        own = {"frontrow-booking": booking_token(platform.secrets, hold.booking_id)}
        address = f"/v1/bookings/{hold.booking_id}/invoices"
        early = await client.post(address, json={}, headers=own)
        assert (early.status_code, early.json()["code"]) == (409, "payment_not_taken")
        await platform.box_office.checkout.work()
        await platform.box_office.refunds.work()
        late = await client.post(address, json={}, headers=own)
        assert (late.status_code, len(late.json()["invoices"])) == (200, 2), "the sale and the refund"
