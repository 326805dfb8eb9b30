"""Wallet passes from the organiser's keys to the fan's phone (issue 15): pages, API, who gets one and who does not."""

import base64
import contextlib
import functools
import io
import json
import logging
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.messages.mail_links import LinkPurpose
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.tickets.google_passes import SAVE_URL
from frontrow.boxoffice.tickets.model.tickets import Ticket, TicketState
from frontrow.testing.clock import ManualClock
from frontrow.web.http.access import booking_token
from tests.boxoffice.organiser.http import EVENTS, OrganiserApi, a_venue_body, an_event_body, an_organiser_api
from tests.boxoffice.organiser.site import Site
from tests.support.browser_headers import BROWSER, FORM
from tests.support.signed_tickets import signed_tickets
from tests.support.wallet_files import (
    CLIENT_EMAIL,
    END,
    ISSUER_ID,
    PASS_TYPE_ID,
    TEAM_ID,
    authority,
    der,
    p12,
    pass_certificate,
    pem,
    rsa_key,
    service_account,
)

WALLETS = "/v1/organiser/wallets"
NOW_US = 1_760_000_000_000_000  # 2025


def text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


@functools.cache
def certificate_file() -> str:
    return text(p12(pass_certificate()))


def apple_form(**changes: str) -> dict[str, str]:
    given = {"certificate": certificate_file(), "password": "secret"}
    return given | {"intermediate": text(der(authority()[0]))} | changes


def pass_of(archive: bytes) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return dict(json.loads(opened.read("pass.json")))


SHOWN_APPLE = {
    "pass_type_id": PASS_TYPE_ID,
    "team_id": TEAM_ID,
    "expires_at": "2040-01-01T00:00:00Z",
    "usable": True,
}
SHOWN = {"apple": SHOWN_APPLE, "google": {"issuer_id": ISSUER_ID, "client_email": CLIENT_EMAIL}}
NOTHING = {"apple": None, "google": None}


async def save_keys(site: Site) -> None:
    """The organiser enters the keys of both wallets on their page."""
    await site.post("/organiser/wallets/apple", **apple_form())
    await site.post("/organiser/wallets/google", issuer_id=ISSUER_ID, service_account=text(service_account()))


async def test_wrong_keys_of_a_wallet_are_refused_in_words_and_keep_what_was_typed(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path, clock=ManualClock(NOW_US)) as api:
        site = Site(api)
        assert "Wallet passes" in await site.get("/organiser")
        assert "Certificate of the pass type" in await site.get("/organiser/wallets")
        refused = (
            (apple_form(password="guess"), "The password does not open this file."),
            (apple_form(certificate="rubbish"), "too large"),  # no base64
            (apple_form(certificate=""), "This certificate could not be read."),
            (apple_form(intermediate=""), "intermediate certificate is missing (Test WWDR)."),
            (apple_form(pass_type_id="pass.org.other"), f"another pass type: {PASS_TYPE_ID}."),
            (apple_form(certificate="A" * 60_000), "too large"),
        )
        for form, words in refused:
            answer = await site.post("/organiser/wallets/apple", 422, **form)
            assert words in answer.text, words
            assert all(f'value="{form.get(name, "")}"' in answer.text for name in ("pass_type_id", "team_id"))
        bad = await site.post("/organiser/wallets/google", 422, issuer_id="1", service_account=text(b"{}"))
        assert "An issuer ID is a number." in bad.text
        assert await api.get(WALLETS) == NOTHING


async def test_the_keys_of_wallets_are_saved_and_removed_by_page_and_api(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path, clock=ManualClock(NOW_US)) as api:
        site = Site(api)
        await save_keys(site)
        assert await api.get(WALLETS) == SHOWN
        page = await site.get("/organiser/wallets?done=saved")
        assert all(found in page for found in (PASS_TYPE_ID, TEAM_ID, ISSUER_ID, CLIENT_EMAIL, "Replace the keys"))

        body = {"certificate": text(pem(pass_certificate())), "key": text(pem(rsa_key()))}
        missing = await api.ask("PUT", f"{WALLETS}/apple", json=body)
        told = (missing.status_code, missing.json()["param"], missing.json()["reason"])
        assert told == (422, "intermediate", "no_intermediate")
        put = await api.ask("PUT", f"{WALLETS}/apple", json=body | {"intermediate": text(pem(authority()[0]))})
        assert (put.status_code, put.json()) == (200, SHOWN)

        assert (await api.ask("DELETE", f"{WALLETS}/apple")).json() == {"apple": None, "google": SHOWN["google"]}
        await site.post("/organiser/wallets/google", remove="yes")
        assert await api.get(WALLETS) == NOTHING
        audit = str(await api.get("/v1/organiser/audit"))
        assert (audit.count("change_wallet"), audit.count("remove_wallet")) == (3, 2)
        assert "Keys of a wallet changed" in await site.get("/organiser/audit")


async def test_the_keys_of_wallets_are_sealed_and_never_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "frontrow")
    async with an_organiser_api(tmp_path, clock=ManualClock(NOW_US)) as api:
        site = Site(api)
        await save_keys(site)
        page = await site.get("/organiser/wallets")
        answered = (await api.ask("GET", WALLETS)).text
        audit = str(await api.get("/v1/organiser/audit"))
        keys = await api.platform.ledger.wallets.keys_of("org_hall")
        secret = pem(rsa_key()).decode().splitlines()[3]
        everything = [audit, page, answered, caplog.text, *(one.sealed for one in keys), str(keys)]
        assert not any(secret in found or "PRIVATE KEY" in found for found in everything)
        assert len(keys) == 2


async def test_the_keys_of_wallets_are_changed_by_those_who_may_in_their_own_organisation(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path, clock=ManualClock(NOW_US)) as api:
        site = Site(api)
        await save_keys(site)
        reader = await site.as_(Role.READ_ONLY)
        assert "Replace the keys" not in await reader.get("/organiser/wallets")
        assert (await reader.api.ask("DELETE", f"{WALLETS}/apple")).status_code == 403
        other = await site.as_(Role.OWNER, "org_other")
        assert (await other.api.get(WALLETS))["apple"] is None


@dataclass
class Bought:
    """Ada has bought two tickets of an organiser who has entered the keys of both wallets."""

    api: OrganiserApi
    booking: Booking
    first: Ticket
    second: Ticket

    @property
    def own(self) -> dict[str, str]:
        """What Ada's API calls prove that the booking is hers with."""
        return {"frontrow-booking": booking_token(self.api.platform.secrets, self.booking.id)}

    @property
    def page(self) -> str:
        return f"/bookings/{self.booking.id}"

    @property
    def path(self) -> str:
        return f"/v1/bookings/{self.booking.id}"

    def has_cookie(self) -> None:
        """This browser is the one in which Ada bought them."""
        self.api.client.cookies.set("__Host-frontrow-bookings", self.own["frontrow-booking"])

    async def look(self, path: str, **headers: str) -> httpx.Response:
        """A page or a file, as the browser asks for it."""
        return await self.api.client.get(path, headers=BROWSER | headers)


@contextlib.asynccontextmanager
async def two_tickets(folder: Path, clock: ManualClock | None = None, *, keys: bool = True) -> AsyncIterator[Bought]:
    async with an_organiser_api(folder, clock=clock or ManualClock(NOW_US)) as api:
        booking = await api.bought("S-A-1", "S-A-2", email="ada@example.org", name="Ada Lovelace")
        first, second = await signed_tickets(api.platform, booking.id)
        if keys:
            await save_keys(Site(api))
            api.client.cookies.clear()
        yield Bought(api, booking, first, second)


async def test_without_keys_there_are_no_wallet_passes(tmp_path: Path) -> None:
    async with two_tickets(tmp_path, keys=False) as bought:
        bought.has_cookie()
        assert "Wallet" not in (await bought.look(bought.page)).text
        none = await bought.api.client.get(f"{bought.path}/apple-wallet", headers=bought.own)
        told = (none.status_code, none.json()["code"], none.json()["reason"])
        assert told == (409, "no_wallet_pass", "not_configured")


async def test_the_buyer_puts_tickets_into_apple_wallet(tmp_path: Path) -> None:
    async with two_tickets(tmp_path) as bought:
        bought.has_cookie()
        shown = (await bought.look(bought.page)).text
        assert shown.count("Add to Apple Wallet") == 3  # each ticket, and all together
        german = (await bought.look(bought.page, **{"accept-language": "de"})).text
        assert "Zu Apple Wallet hinzufügen" in german
        both = await bought.look(f"{bought.page}/apple-wallet")
        assert both.headers["content-type"] == "application/vnd.apple.pkpasses"
        with zipfile.ZipFile(io.BytesIO(both.content)) as bundle:
            passes = [pass_of(bundle.read(name)) for name in bundle.namelist()]
        assert [one["barcodes"][0]["message"] for one in passes] == [bought.first.code, bought.second.code]
        of_first = f"tickets/{bought.first.id}/apple-wallet"
        one = await bought.api.client.get(f"{bought.path}/{of_first}", headers=bought.own)
        assert one.headers["content-type"] == "application/vnd.apple.pkpass"
        assert one.headers["cache-control"] == "private, no-store"
        fields = pass_of(one.content)["eventTicket"]
        assert [field["value"] for field in fields["auxiliaryFields"]] == ["Stalls", "A", "1"]
        back = {field["key"]: field["value"] for field in fields["backFields"]}
        assert (back["name"], back["price"]) == ("Ada Lovelace", 50.0)
        again = await bought.look(f"{bought.page}/{of_first}")
        assert again.content == one.content, "signed once, then from the cache"


async def test_the_buyer_saves_tickets_to_google_wallet_one_by_one(tmp_path: Path) -> None:
    async with two_tickets(tmp_path) as bought:
        bought.has_cookie()
        assert (await bought.look(bought.page)).text.count("Save to Google Wallet") == 2
        of_second = f"tickets/{bought.second.id}/google-wallet"
        google = await bought.look(f"{bought.page}/{of_second}")
        assert google.status_code == 303
        link = (await bought.api.client.get(f"{bought.path}/{of_second}", headers=bought.own)).json()["url"]
        assert google.headers["location"] == link
        claims = jwt.decode(link[len(SAVE_URL) :], rsa_key().public_key(), ["RS256"], audience="google")
        assert claims["payload"]["eventTicketObjects"][0]["barcode"]["value"] == bought.second.code
        several = await bought.look(f"{bought.page}/google-wallet")
        assert several.headers["location"] == bought.page  # a link has room for one


async def test_a_stranger_gets_no_wallet_pass_and_the_link_of_a_mail_opens_it(tmp_path: Path) -> None:
    async with two_tickets(tmp_path) as bought:
        client, page = bought.api.client, bought.page
        for path in (f"{page}/apple-wallet", f"{page}/tickets/{bought.first.id}/google-wallet"):
            assert (await bought.look(path)).status_code == 404
            assert (await client.get(f"/v1{path}")).status_code in (401, 404)
        links = bought.api.platform.messaging.links
        mailed = links.url(LinkPurpose.BOOKING, bought.booking.id, NOW_US + 10**12)
        opened = await client.post("/open", data={"link": f"{mailed}/apple-wallet"}, headers=FORM)
        assert opened.headers["location"] == f"{page}/apple-wallet"
        theirs = (await bought.look(f"{page}/apple-wallet")).content
        assert theirs == (await client.get(f"{bought.path}/apple-wallet", headers=bought.own)).content
        strange = await client.post("/open", data={"link": f"{mailed}/../admin"}, headers=FORM)
        assert strange.headers["location"] == page


async def test_after_a_transfer_the_recipient_has_the_wallet_pass_and_the_sender_none(tmp_path: Path) -> None:
    async with two_tickets(tmp_path) as bought:
        client, platform, booking = bought.api.client, bought.api.platform, bought.booking
        sent = await platform.box_office.transfers.send(booking, booking.seats[0], "grace@example.org", "en")
        link = platform.messaging.links.url(LinkPurpose.TRANSFER, sent.id, NOW_US + 10**12)
        await client.post("/open", data={"link": link}, headers=FORM)
        hers = f"/transfers/{sent.id}"
        assert (await bought.look(f"{hers}/apple-wallet")).status_code == 404
        await platform.box_office.transfers.accept(sent.id, "Grace Hopper", "en")
        new = next(
            ticket
            for ticket in await signed_tickets(platform, booking.id)
            if ticket.transfer_id and ticket.state is TicketState.VALID
        )
        assert "Add to Apple Wallet" in (await bought.look(hers)).text
        received = pass_of((await bought.look(f"{hers}/apple-wallet")).content)
        assert received["barcode"]["message"] == new.code != bought.first.code
        assert "price" not in str(received), "what it cost is the buyer's affair"
        assert (await bought.look(f"{hers}/google-wallet")).headers["location"].startswith(SAVE_URL)
        for ticket in (bought.first.id, new.id):
            gone = await client.get(f"{bought.path}/tickets/{ticket}/apple-wallet", headers=bought.own)
            assert (gone.status_code, gone.json()["code"]) == (404, "ticket_not_found")


async def test_after_the_show_there_is_no_wallet_pass(tmp_path: Path) -> None:
    clock = ManualClock(NOW_US)
    async with two_tickets(tmp_path, clock) as bought:
        clock.now_us = int(END.timestamp()) * 1_000_000
        late = await bought.api.client.get(f"{bought.path}/apple-wallet", headers=bought.own)
        assert late.json()["reason"] == "expired"


async def test_an_event_with_rotating_codes_says_that_it_has_no_wallet_passes(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path) as api:
        await Site(api).post("/organiser/wallets/apple", **apple_form())
        venue = (await api.post("/v1/organiser/venues", 201, json=a_venue_body()))["venue"]
        made = await api.post(EVENTS, 201, json=an_event_body(venue, rotating_codes=True))
        api.event = made["event"]
        await api.post(f"{EVENTS}/{api.event}/publish")
        await api.platform.box_office.openings.refresh()
        booking = await api.bought("S-A-1")
        own = {"frontrow-booking": booking_token(api.platform.secrets, booking.id)}
        refused = await api.client.get(f"/v1/bookings/{booking.id}/apple-wallet", headers=own)
        assert (refused.status_code, refused.json()["reason"]) == (409, "rotating_code")
        api.client.cookies.set("__Host-frontrow-bookings", own["frontrow-booking"])
        page = (await api.client.get(f"/bookings/{booking.id}", headers=BROWSER)).text
        assert "so it cannot be added to a wallet" in page
        assert "Add to Apple Wallet" not in page
