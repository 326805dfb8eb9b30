"""Wallet passes from the organiser's keys to the fan's phone (issue 15): pages, API, who gets one and who does not."""

import base64
import functools
import io
import json
import logging
import zipfile
from pathlib import Path
from typing import Any

import jwt
import pytest

from frontrow.boxoffice.messages.mail_links import LinkPurpose
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.tickets.google_passes import SAVE_URL
from frontrow.boxoffice.tickets.model.tickets import TicketState
from frontrow.testing.clock import ManualClock
from frontrow.web.http.access import booking_token
from tests.boxoffice.organiser.http import EVENTS, a_desk, a_venue_body, an_event_body
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


async def test_the_organisers_keys_are_checked_sealed_recorded_and_never_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "frontrow")
    async with a_desk(tmp_path, clock=ManualClock(NOW_US)) as desk:
        site = Site(desk)
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
        assert await desk.get(WALLETS) == {"apple": None, "google": None}

        await site.post("/organiser/wallets/apple", **apple_form())
        await site.post("/organiser/wallets/google", issuer_id=ISSUER_ID, service_account=text(service_account()))
        shown = {
            "apple": {
                "pass_type_id": PASS_TYPE_ID,
                "team_id": TEAM_ID,
                "expires_at": "2040-01-01T00:00:00Z",
                "usable": True,
            },
            "google": {"issuer_id": ISSUER_ID, "client_email": CLIENT_EMAIL},
        }
        assert await desk.get(WALLETS) == shown
        page = await site.get("/organiser/wallets?done=saved")
        assert all(found in page for found in (PASS_TYPE_ID, TEAM_ID, ISSUER_ID, CLIENT_EMAIL, "Replace the keys"))

        body = {"certificate": text(pem(pass_certificate())), "key": text(pem(rsa_key()))}
        missing = await desk.ask("PUT", f"{WALLETS}/apple", json=body)
        assert (missing.status_code, missing.json()["param"], missing.json()["reason"]) == (
            422,
            "intermediate",
            "no_intermediate",
        )
        put = await desk.ask("PUT", f"{WALLETS}/apple", json=body | {"intermediate": text(pem(authority()[0]))})
        assert (put.status_code, put.json()) == (200, shown)
        audit = str(await desk.get("/v1/organiser/audit"))
        assert audit.count("change_wallet") == 3
        assert "Keys of a wallet changed" in await site.get("/organiser/audit")
        reader = await site.as_(Role.READ_ONLY)
        assert "Replace the keys" not in await reader.get("/organiser/wallets")
        assert (await reader.desk.ask("DELETE", f"{WALLETS}/apple")).status_code == 403
        other = await site.as_(Role.OWNER, "org_other")
        assert (await other.desk.get(WALLETS))["apple"] is None
        keys = await desk.platform.ledger.wallets.keys_of("org_hall")
        secret = pem(rsa_key()).decode().splitlines()[3]
        everything = [audit, page, put.text, caplog.text, *(one.sealed for one in keys), str(keys)]
        assert not any(secret in found or "PRIVATE KEY" in found for found in everything)
        assert len(keys) == 2

        assert (await desk.ask("DELETE", f"{WALLETS}/apple")).json() == {"apple": None, "google": shown["google"]}
        await site.post("/organiser/wallets/google", remove="yes")
        assert await desk.get(WALLETS) == {"apple": None, "google": None}
        assert str(await desk.get("/v1/organiser/audit")).count("remove_wallet") == 2


async def test_only_who_has_the_ticket_gets_its_wallet_pass(tmp_path: Path) -> None:
    clock = ManualClock(NOW_US)
    async with a_desk(tmp_path, clock=clock) as desk:
        site, client, platform = Site(desk), desk.client, desk.platform
        booking = await desk.bought("S-A-1", "S-A-2", email="ada@example.org", name="Ada Lovelace")
        first, second = await signed_tickets(platform, booking.id)
        own = {"frontrow-booking": booking_token(platform.secrets, booking.id)}
        page, api = f"/bookings/{booking.id}", f"/v1/bookings/{booking.id}"
        client.cookies.set("__Host-frontrow-bookings", own["frontrow-booking"])
        assert "Wallet" not in (await client.get(page, headers=BROWSER)).text
        none = await client.get(f"{api}/apple-wallet", headers=own)
        assert (none.status_code, none.json()["code"], none.json()["reason"]) == (
            409,
            "no_wallet_pass",
            "not_configured",
        )
        await site.post("/organiser/wallets/apple", **apple_form())
        await site.post("/organiser/wallets/google", issuer_id=ISSUER_ID, service_account=text(service_account()))

        shown = (await client.get(page, headers=BROWSER)).text
        assert shown.count("Add to Apple Wallet") == 3  # each ticket, and all together
        assert shown.count("Save to Google Wallet") == 2
        german = (await client.get(page, headers=BROWSER | {"accept-language": "de"})).text
        assert "Zu Apple Wallet hinzufügen" in german
        both = await client.get(f"{page}/apple-wallet", headers=BROWSER)
        assert both.headers["content-type"] == "application/vnd.apple.pkpasses"
        with zipfile.ZipFile(io.BytesIO(both.content)) as bundle:
            passes = [pass_of(bundle.read(name)) for name in bundle.namelist()]
        assert [one["barcodes"][0]["message"] for one in passes] == [first.code, second.code]
        one = await client.get(f"{api}/tickets/{first.id}/apple-wallet", headers=own)
        assert one.headers["content-type"] == "application/vnd.apple.pkpass"
        assert one.headers["cache-control"] == "private, no-store"
        fields = pass_of(one.content)["eventTicket"]
        assert [field["value"] for field in fields["auxiliaryFields"]] == ["Stalls", "A", "1"]
        back = {field["key"]: field["value"] for field in fields["backFields"]}
        assert (back["name"], back["price"]) == ("Ada Lovelace", 50.0)
        again = await client.get(f"{page}/tickets/{first.id}/apple-wallet", headers=BROWSER)
        assert again.content == one.content, "signed once, then from the cache"
        google = await client.get(f"{page}/tickets/{second.id}/google-wallet", headers=BROWSER)
        assert google.status_code == 303
        link = (await client.get(f"{api}/tickets/{second.id}/google-wallet", headers=own)).json()["url"]
        assert google.headers["location"] == link
        claims = jwt.decode(link[len(SAVE_URL) :], rsa_key().public_key(), ["RS256"], audience="google")
        assert claims["payload"]["eventTicketObjects"][0]["barcode"]["value"] == second.code
        several = await client.get(f"{page}/google-wallet", headers=BROWSER)
        assert several.headers["location"] == page  # a link has room for one

        # strangers, and the link of a mail
        client.cookies.clear()
        for path in (f"{page}/apple-wallet", f"{page}/tickets/{first.id}/google-wallet"):
            assert (await client.get(path, headers=BROWSER)).status_code == 404
            assert (await client.get(f"/v1{path}")).status_code in (401, 404)
        mailed = platform.messaging.links.url(LinkPurpose.BOOKING, booking.id, NOW_US + 10**12)
        opened = await client.post("/open", data={"link": f"{mailed}/apple-wallet"}, headers=FORM)
        assert opened.headers["location"] == f"{page}/apple-wallet"
        assert (await client.get(f"{page}/apple-wallet", headers=BROWSER)).content == both.content
        strange = await client.post("/open", data={"link": f"{mailed}/../admin"}, headers=FORM)
        assert strange.headers["location"] == page
        client.cookies.clear()

        # transferred: the sender gets none any more, the recipient does
        sent = await platform.box_office.transfers.send(booking, booking.seats[0], "grace@example.org", "en")
        link = platform.messaging.links.url(LinkPurpose.TRANSFER, sent.id, NOW_US + 10**12)
        await client.post("/open", data={"link": link}, headers=FORM)
        hers = f"/transfers/{sent.id}"
        assert (await client.get(f"{hers}/apple-wallet", headers=BROWSER)).status_code == 404
        await platform.box_office.transfers.accept(sent.id, "Grace Hopper", "en")
        new = next(
            ticket
            for ticket in await signed_tickets(platform, booking.id)
            if ticket.transfer_id and ticket.state is TicketState.VALID
        )
        assert "Add to Apple Wallet" in (await client.get(hers, headers=BROWSER)).text
        received = pass_of((await client.get(f"{hers}/apple-wallet", headers=BROWSER)).content)
        assert received["barcode"]["message"] == new.code != first.code
        assert "price" not in str(received), "what it cost is the buyer's affair"
        assert (await client.get(f"{hers}/google-wallet", headers=BROWSER)).headers["location"].startswith(SAVE_URL)
        for ticket in (first.id, new.id):
            gone = await client.get(f"{api}/tickets/{ticket}/apple-wallet", headers=own)
            assert (gone.status_code, gone.json()["code"]) == (404, "ticket_not_found")

        clock.now_us = int(END.timestamp()) * 1_000_000
        late = await client.get(f"{api}/apple-wallet", headers=own)
        assert late.json()["reason"] == "expired"


async def test_an_event_with_rotating_codes_says_that_it_has_no_wallet_passes(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        await Site(desk).post("/organiser/wallets/apple", **apple_form())
        venue = (await desk.post("/v1/organiser/venues", 201, json=a_venue_body()))["venue"]
        made = await desk.post(EVENTS, 201, json=an_event_body(venue, rotating_codes=True))
        desk.event = made["event"]
        await desk.post(f"{EVENTS}/{desk.event}/publish")
        await desk.platform.box_office.openings.refresh()
        booking = await desk.bought("S-A-1")
        own = {"frontrow-booking": booking_token(desk.platform.secrets, booking.id)}
        refused = await desk.client.get(f"/v1/bookings/{booking.id}/apple-wallet", headers=own)
        assert (refused.status_code, refused.json()["reason"]) == (409, "rotating_code")
        desk.client.cookies.set("__Host-frontrow-bookings", own["frontrow-booking"])
        page = (await desk.client.get(f"/bookings/{booking.id}", headers=BROWSER)).text
        assert "so it cannot be added to a wallet" in page
        assert "Add to Apple Wallet" not in page
