"""The seller's details: kept by the organiser's page and the API, checked, shown on receipts, other organisers' own."""

import re
from pathlib import Path

from frontrow.boxoffice.model.roles import Role
from tests.boxoffice.organising.http import EVENTS
from tests.web.site.test_organiser_desk_pages import BROWSER, a_site

SELLER = "/v1/organiser/seller"
HALL = {
    "name": "Waldbühne GmbH",
    "address": "Hauptstraße 1\n1010 Wien",
    "tax_id": "ATU12345678",
    "tax_basis_points": 1300,
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
        assert await site.desk.get(SELLER) == HALL
        assert "ATU12345678" in await site.get("/organiser/seller")
        assert "change_seller" in str(await site.desk.get("/v1/organiser/audit"))

        put = await site.desk.ask("PUT", SELLER, json=HALL | {"tax_basis_points": 1900})
        assert (put.status_code, put.json()["tax_basis_points"]) == (200, 1900)
        for body in (
            HALL | {"tax_basis_points": 5001},
            HALL | {"name": ""},
            HALL | {"x": 1},
            HALL | {"tax_id": "a\nb"},
        ):
            assert (await site.desk.ask("PUT", SELLER, json=body)).status_code == 422
        reader = await site.as_(Role.READ_ONLY)
        assert (await reader.desk.ask("PUT", SELLER, json=HALL)).status_code == 403
        other = await site.as_(Role.OWNER, "org_other")
        assert (await other.desk.get(SELLER))["tax_id"] == ""

        booking = await site.desk.bought("S-A-1", email="ada@example.org", name="Ada Lovelace")
        receipt = await site.desk.platform.box_office.receipts.of(booking.id)
        assert receipt is not None
        assert (receipt.seller.name, receipt.buyer, receipt.tax_basis_points) == (
            "Waldbühne GmbH",
            "Ada Lovelace",
            1900,
        )
        changed = await site.desk.ask("PATCH", f"{EVENTS}/{site.desk.event}", json={"tax_basis_points": 700})
        assert (changed.status_code, changed.json()["tax_basis_points"]) == (200, 700)
        await site.desk.ask("PUT", SELLER, json=HALL | {"name": "Renamed GmbH"})
        kept = await site.desk.platform.box_office.receipts.of(booking.id)
        assert kept is not None
        assert (kept.seller.name, kept.tax_basis_points) == ("Waldbühne GmbH", 1900), "as of the sale"
        later = await site.desk.bought("S-A-2", email="bob@example.org", name="Bob")
        own = await site.desk.platform.box_office.receipts.of(later.id)
        assert own is not None
        assert (own.seller.name, own.tax_basis_points) == ("Renamed GmbH", 700)
        stranger = await site.desk.client.get(f"/bookings/{booking.id}/receipt", headers=BROWSER)
        assert stranger.status_code == 404


async def test_an_events_own_tax_rate_is_a_field_of_its_wizard_and_shown_on_the_preview(tmp_path: Path) -> None:
    """Issue 11: it could be set by the API only."""
    async with a_site(tmp_path) as site:
        await site.post("/organiser/seller", name="Hall", address="", tax_id="", rate="13")
        here = f"/organiser/events/{site.desk.event}"
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
            assert (await site.desk.get(f"{EVENTS}/{site.desk.event}"))["tax_basis_points"] == points
        await site.post(f"{here}/prices", **typed)
        assert re.search(r'name="tax" value="19"', await site.get(f"{here}/prices")), "a form without the field"
        assert "19 % tax: this event&#39;s own rate" in await site.get(f"{here}/preview")
        await site.post(f"{here}/prices", **typed, tax="")
        assert (await site.desk.get(f"{EVENTS}/{site.desk.event}"))["tax_basis_points"] is None
        assert "13 % tax: the seller&#39;s rate" in await site.get(f"{here}/preview")
