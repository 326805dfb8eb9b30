"""Links of messages without a browser: what each purpose opens and what it does not; an address for the waitlist."""

from pathlib import Path

import httpx
import pytest

from frontrow.app.wiring import Platform
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.messages.mail_links import LinkPurpose
from frontrow.core.clock import US_PER_S
from frontrow.web.http.cookies import SESSION_COOKIE
from tests.support.browser_headers import BROWSER, FORM
from tests.support.form_answers import submit
from tests.web.api.support import EVENT_ID, a_client, a_platform, one_row

DAY_US = 86_400 * US_PER_S
ARABIC = {"accept-language": "ar"}


async def bought(platform: Platform, seat: str = "S-A-1") -> str:
    """A paid booking of somebody who is not here."""
    visit = ShopPass(EVENT_ID, "fan_away", platform.clock() + 900 * US_PER_S)
    hold = await platform.box_office.holds.place(EVENT_ID, visit, [seat])
    return (await platform.box_office.checkout.pay(hold.booking_id, hold.fence, "pm_card_visa")).booking.id


async def opened(client: httpx.AsyncClient, capability: str) -> httpx.Response:
    return await submit(client, "/open", {"link": f"https://t.example/open#{capability}"})


@pytest.mark.parametrize("purpose", [LinkPurpose.BOOKING, LinkPurpose.PRIORITY])
async def test_a_link_shows_exactly_its_booking_and_changes_nothing(tmp_path: Path, purpose: LinkPurpose) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        booking, other = await bought(platform), await bought(platform, "S-A-2")
        for path in (f"/bookings/{booking}", f"/bookings/{booking}/tickets.pdf", f"/bookings/{booking}/receipt"):
            assert (await client.get(path, headers=BROWSER)).status_code == 404
        capability = platform.messaging.links.capability(purpose, booking, platform.clock() + DAY_US)
        led = await opened(client, capability)
        assert (led.status_code, led.headers["location"]) == (303, f"/bookings/{booking}")
        assert "HttpOnly" in led.headers["set-cookie"]
        assert "frm_" not in led.headers["location"]
        for path in ("", "/tickets.pdf", "/tickets.ics", "/receipt"):
            assert (await client.get(f"/bookings/{booking}{path}", headers=BROWSER)).status_code == 200
            assert (await client.get(f"/bookings/{other}{path}", headers=BROWSER)).status_code == 404
        page = (await client.get(f"/bookings/{booking}", headers=BROWSER)).text
        assert "/give-back" not in page
        assert "frontrow_bookings" not in client.cookies  # looking makes nobody the owner
        give = {"seat": "S-A-1", "how": "refund"}
        assert (await client.post(f"/bookings/{booking}/give-back", data=give, headers=FORM)).status_code == 404
        assert (await client.get(f"/v1/bookings/{booking}")).status_code == 404
        priority = await client.post(f"/bookings/{booking}/priority", data={"x": "1"}, headers=FORM)
        assert priority.status_code == (409 if purpose is LinkPurpose.PRIORITY else 404)  # paid: nothing to repair


async def test_a_link_that_ended_or_was_cut_opens_nothing(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        booking = await bought(platform)
        ended = platform.messaging.links.capability(LinkPurpose.BOOKING, booking, platform.clock() - US_PER_S)
        assert (await opened(client, ended)).status_code == 410
        assert (await opened(client, ended[:-3])).status_code == 422
        assert (await opened(client, "")).status_code == 422
        client.cookies.set("frontrow_links", ended)
        assert (await client.get(f"/bookings/{booking}", headers=BROWSER)).status_code == 404
        assert (await client.get("/offers/ofr_none", headers=BROWSER)).status_code == 404


async def test_b11_somebody_without_an_account_gives_an_address_for_the_offer(tmp_path: Path) -> None:
    """The offer's mail needs an address; it is asked for once and written to in the page's language."""
    async with a_platform(tmp_path, one_row(1)) as platform, a_client(platform) as client:
        await bought(platform)
        text, _ = platform.room.passes.beside_the_line(EVENT_ID, "place_1", "a test")
        client.cookies.set("frontrow_pass", text)
        path = f"/events/{EVENT_ID}/waitlist"
        assert 'name="email"' in (await client.get(path, headers=BROWSER)).text
        without = await submit(client, path, {"count": "1"})
        assert without.status_code == 409
        joined = await client.post(path, data={"count": "1", "email": "Ada@Example.org"}, headers=FORM | ARABIC)
        assert joined.status_code == 303
        contact = await platform.ledger.messages.contact("place_1")
        assert contact is not None
        assert (contact.email, contact.locale) == ("ada@example.org", "ar")
        assert 'name="email"' not in (await client.get(path, headers=BROWSER)).text


async def test_b11_the_waitlist_takes_an_address_and_the_offer_shows_its_price(
    tmp_path: Path,
) -> None:
    async with a_platform(tmp_path, one_row(1)) as platform, a_client(platform) as client:
        booking = await bought(platform)
        path = f"/events/{EVENT_ID}/waitlist"
        assert 'name="email"' in (await client.get(path, headers=BROWSER)).text
        refused = await submit(client, path, {"count": "1", "email": "nobody"})
        assert refused.status_code == 409
        joined = await client.post(path, data={"count": "1", "email": "ada@example.org"}, headers=FORM)
        assert joined.status_code == 303
        session = joined.headers["set-cookie"].partition("=")[2].partition(";")[0]
        guest = BROWSER | {"cookie": f"{SESSION_COOKIE}={session}"}
        waiting = (await client.get(path, headers=guest)).text
        assert "Your place on the waitlist" in waiting
        sold = await platform.ledger.booking(booking)
        assert sold is not None
        await platform.box_office.refunds.override(booking, sold.seats)
        await platform.box_office.offering.serve_event(EVENT_ID)
        offered = (await client.get(path, headers=guest)).text
        assert "Seats for you" in offered
        assert '<strong class="num">€50</strong>' in offered
