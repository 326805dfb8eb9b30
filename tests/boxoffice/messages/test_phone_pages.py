"""A fan's number on the account page and in the API, Twilio's report over HTTP, and who reads that mail comes back."""

import contextlib
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pytest
from typer.testing import CliRunner

from frontrow.app.wiring import open_platform
from frontrow.boxoffice.adapters.channels.from_settings import MessageSettings
from frontrow.boxoffice.messages.model.channel_reports import ReportKind
from frontrow.boxoffice.people.model.people import csrf_of
from frontrow.cli.ledger import app
from frontrow.web.http.cookies import SESSION_COOKIE
from frontrow.web.platform.platform import Platform
from tests.boxoffice.adapters.channels.stand_ins import TwilioStandIn
from tests.boxoffice.organiser.site import a_site
from tests.boxoffice.people.support import CHEAP, asking, fan, opened
from tests.boxoffice.shop import NOW
from tests.support.browser_headers import BROWSER
from tests.support.form_answers import submit
from tests.web.api.support import settings_for

PHONE = "+436641234567"


@contextlib.asynccontextmanager
async def with_sms(folder: Path, stand_in: TwilioStandIn) -> AsyncIterator[Platform]:
    """A platform whose SMS go to this stand-in."""
    url = f"twilio:{stand_in.account}?from={stand_in.number}"
    messages = MessageSettings(sms_url=url, sms_key=stand_in.token, sms_api=stand_in.url)
    async with open_platform(replace(settings_for(folder), people=CHEAP, messages=messages)) as platform:
        yield platform


def code_in(stand_in: TwilioStandIn) -> str:
    (found,) = re.findall(r"\d{6}", stand_in.messages[-1]["body"])
    return str(found)


async def test_a_fan_proves_a_number_on_the_page_and_stop_shows_there(tmp_path: Path) -> None:
    stand_in = TwilioStandIn(lambda: NOW)
    async with stand_in.served(), with_sms(tmp_path, stand_in) as platform, asking(platform) as client:
        person = await fan(platform, "ada@example.org")
        headers = BROWSER | {"cookie": f"{SESSION_COOKIE}={person.session}"}
        csrf = csrf_of(person.session)

        async def send(path: str, **fields: str) -> str:
            return (await submit(client, path, {"csrf": csrf, **fields}, headers)).text

        async def page() -> str:
            return (await client.get("/account", headers=headers)).text

        assert "Send the code" not in await page(), "there is no number yet"
        await send("/account", phone="+43 664 1234567", language="en", channel="email")
        assert "Send the code" in await page()
        sent = await send("/account/phone")
        assert "Code from the text message" in sent
        wrong = await send("/account/phone/code", code="000000" if code_in(stand_in) != "000000" else "111111")
        assert "This code is not right" in wrong
        await send("/account/phone/code", code=code_in(stand_in))
        shown = await page()
        assert "This number is confirmed" in shown
        assert re.search(r'value="sms"\s+checked', shown), "confirming chooses SMS too"
        me = (await client.get("/v1/me", headers=person.bearer)).json()
        assert me["preferences"]["phone_proven"] is True

        # STOP comes from Twilio, at the address that people know
        form = {"AccountSid": stand_in.account, "MessageSid": "SM1", "From": PHONE, "Body": "Stop"}
        address = f"{platform.settings.public_url.rstrip('/')}/v1/channels/twilio"
        kind = {"content-type": "application/x-www-form-urlencoded"}
        forged = await client.post(
            "/v1/channels/twilio", content=urlencode(form), headers=kind | {"x-twilio-signature": "bm90"}
        )
        assert (forged.status_code, forged.json()["code"]) == (401, "unauthorised")
        genuine = kind | stand_in.signed(address, form)
        heard = await client.post("/v1/channels/twilio", content=urlencode(form), headers=genuine)
        assert (heard.status_code, heard.text) == (200, "<Response></Response>")
        assert heard.headers["content-type"].startswith("text/xml")
        assert "This number gets no text messages" in await page()
        refused = await client.post("/v1/me/phone/code", json={"phone": PHONE}, headers=person.bearer)
        assert (refused.status_code, refused.json()["code"]) == (409, "phone_stopped")


async def test_the_api_proves_a_number_and_takes_an_app(tmp_path: Path) -> None:
    stand_in = TwilioStandIn(lambda: NOW)
    async with stand_in.served(), with_sms(tmp_path, stand_in) as platform, asking(platform) as client:
        person = await fan(platform)
        asked = await client.post("/v1/me/phone/code", json={"phone": PHONE}, headers=person.bearer)
        assert asked.status_code == 204
        wrong = await client.post("/v1/me/phone", json={"code": "12345x"}, headers=person.bearer)
        assert (wrong.status_code, wrong.json()["code"]) == (409, "wrong_phone_code")
        proven = await client.post("/v1/me/phone", json={"code": code_in(stand_in)}, headers=person.bearer)
        assert proven.json()["preferences"]["phone_proven"] is True
        token = "dGVzdA:APA91bE-x_" + "a" * 100
        added = await client.post("/v1/me/apps", json={"token": token}, headers=person.bearer)
        assert added.status_code == 201
        contact = await platform.people.fans.contact(person.id)
        assert [msgspec.json.decode(one) for one in contact.push] == [{"endpoint": f"fcm:{token}"}]
        gone = await client.delete(f"/v1/me/push/{added.json()['id']}", headers=person.bearer)
        assert gone.status_code == 204


async def test_without_sms_no_number_is_asked_for(tmp_path: Path) -> None:
    async with opened(tmp_path) as platform, asking(platform) as client:
        person = await fan(platform)
        asked = await client.post("/v1/me/phone/code", json={"phone": PHONE}, headers=person.bearer)
        assert (asked.status_code, asked.json()["code"]) == (409, "sms_off")
        assert (await client.post("/v1/channels/twilio", content="")).status_code == 404


@pytest.mark.parametrize(
    ("reason", "words"),
    [(ReportKind.BOUNCED, "come back, so none are sent there"), (ReportKind.COMPLAINED, "reported a mail as spam")],
)
async def test_the_booking_says_that_mail_comes_back_until_the_address_is_allowed_again(
    tmp_path: Path, reason: ReportKind, words: str
) -> None:
    async with a_site(tmp_path) as site:
        booking = await site.api.bought("S-A-1", email="ada@example.org", name="Ada")
        ledger, one = site.api.platform.stores.ledger, f"{site.base}/bookings/{booking.id}"
        api = f"/v1/organiser/events/{site.api.event}/bookings/{booking.id}"
        assert words not in await site.get(one)
        writes = ledger.messages.make_block_writes("email", "ada@example.org", reason, "", NOW)
        await ledger.messages.once("reports", "1", writes, NOW)
        assert words in await site.get(one)
        assert (await site.api.get(api))["email_blocked"] == reason.value
        assert await ledger.messages.unblock("email", "Ada@example.org", NOW)
        assert words not in await site.get(one)


def test_the_command_allows_an_address_again_and_says_when_it_was_not_blocked(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/frontrow.db"
    assert CliRunner().invoke(app, ["migrate", "--ledger", url]).exit_code == 0
    told = CliRunner().invoke(app, ["allow-address", "ada@example.org", "--ledger", url])
    assert (told.exit_code, "was not blocked" in told.output) == (1, True)
