"""Every form that asks for an email address says whether it is missing or mistyped (issue 26)."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from frontrow.web.http.access import booking_token
from tests.support.browser_headers import FORM
from tests.support.form_answers import submit
from tests.web.api.support import EVENT_ID, a_client, a_platform
from tests.web.site.purchases import buy

MISSING, MISTYPED = "Please enter an email address.", "This does not look like an email address."
FORMS = {
    "sign in": "/sign-in",
    "waitlist": f"/events/{EVENT_ID}/waitlist",
    "notice": f"/events/{EVENT_ID}/notify",
    "presale": f"/events/{EVENT_ID}/presale",
    "transfer": "/bookings/{booking}/transfers",
}
OTHER_FIELDS = {"seat": "S-A-1", "count": "2", "back": "/"}


@pytest.fixture
async def ada(tmp_path: Path) -> AsyncIterator[tuple[httpx.AsyncClient, str]]:
    """A browser that has bought a ticket."""
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        booking_id = await buy(platform, "S-A-1")
        client.cookies.set("frontrow_bookings", booking_token(platform.secrets, booking_id))
        yield client, booking_id


@pytest.mark.parametrize("name", FORMS)
async def test_a_missing_address_is_called_missing_and_a_mistyped_one_mistyped(
    ada: tuple[httpx.AsyncClient, str], name: str
) -> None:
    """Before: an empty field did "not look like an email address"."""
    client, booking_id = ada
    path = FORMS[name].format(booking=booking_id)
    for typed, said, unsaid in (("", MISSING, MISTYPED), ("  ", MISSING, MISTYPED), ("nobody", MISTYPED, MISSING)):
        shown = await submit(client, path, OTHER_FIELDS | {"email": typed})
        assert said in shown.text
        assert unsaid not in shown.text
    client.cookies.set("frontrow_lang", "de")
    german = await submit(client, path, OTHER_FIELDS | {"email": ""})
    assert "Bitte geben Sie eine E-Mail-Adresse ein." in german.text


async def test_while_waiting_no_address_is_needed(ada: tuple[httpx.AsyncClient, str]) -> None:
    client, _ = ada
    kept = await client.post("/ready", data={"name": "Ada", "email": "", "back": "/"}, headers=FORM)
    assert kept.headers["location"] == "/"
    wrong = await submit(client, "/ready", {"name": "Ada", "email": "nobody", "back": "/"})
    assert MISTYPED in wrong.text
