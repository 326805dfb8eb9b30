"""The organiser's page about its account: what lies there, and the way to an account of one's own."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.boxoffice.payments.model.payment_accounts import AccountState, PaymentAccount, SellerCannotBePaid
from frontrow.boxoffice.people.model.roles import Role
from frontrow.web.http.access import booking_token
from tests.boxoffice.organiser.http import an_organiser_api
from tests.boxoffice.organiser.site import Site
from tests.support.browser_headers import BROWSER

PAGE = "/organiser/payouts"


async def test_an_organiser_sees_which_account_has_its_money(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path) as api:
        site = Site(api)
        assert "platform’s own account takes the payments" in await site.get(PAGE)
        await api.bought("S-A-1")
        page = await site.get(PAGE)
        assert all(found in page for found in ("Money by account", "Demo", "Platform’s own account", "€50"))
        await site.get(PAGE.replace("payouts", "seller"))
        assert PAGE in page, "the menu leads there"
        other = await site.as_(Role.OWNER, "org_other")
        assert "€50" not in await other.get(PAGE)
        await (await site.as_(Role.DOOR)).get(PAGE, 403)


async def test_the_page_says_how_an_own_account_stands(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path) as api:
        site, platform = Site(api), api.platform
        now_us = platform.clock()
        one = PaymentAccount("org_hall", "adyen", "HallECOM", AccountState.ACTIVE, "", 250, now_us, now_us)
        for state, told in (
            (AccountState.ACTIVE, "Active"),
            (AccountState.ONBOARDING, "Until then the platform’s own account takes the payments"),
            (AccountState.RESTRICTED, "This account takes no new payments. Refunds wait"),
            (AccountState.CLOSED, "Account closed"),
        ):
            reason = "the owner left" if state is AccountState.CLOSED else ""
            await platform.box_office.accounts._put(
                replace(one, state=state, reason=reason), Editor("provider", "org_hall")
            )
            page = await site.get(PAGE)
            assert told in page
            assert "HallECOM" in page
            assert "2.5%" in page
        assert "the owner left" in page
        assert "change_payment_account" in str(await api.get("/v1/organiser/audit"))
        await site.post(f"{PAGE}/connect", 422)  # this server has no Stripe


async def test_a_fan_of_an_organiser_who_cannot_be_paid_is_told_and_keeps_the_seats(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path) as api:
        platform = api.platform
        now_us = platform.clock()
        one = PaymentAccount("org_hall", "adyen", "HallECOM", AccountState.RESTRICTED, "", 0, now_us, now_us)
        await platform.box_office.accounts._put(one, Editor("provider", "org_hall"))
        held = await api.bought("S-A-1", pay="")
        own = {"frontrow-booking": booking_token(platform.secrets, held.id)}
        with pytest.raises(SellerCannotBePaid):
            await platform.box_office.checkout.pay(held.id, held.fence, "pm_card_visa")
        api.client.cookies.set("__Host-frontrow-bookings", own["frontrow-booking"])
        page = await api.client.get(f"/checkout/{held.id}", headers=BROWSER)
        assert page.status_code == 409
        assert "The organiser cannot take payments at the moment. Nothing was charged" in page.text
        kept = await platform.ledger.booking(held.id)
        assert kept is not None
        assert (kept.state, await platform.ledger.payments.payments_of(held.id)) == ("held", [])
