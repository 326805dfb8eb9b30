"""Error pages lead on: in the visitor's language, without the error's own words; what is temporary is retried."""

import html
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontrow.core.errors import FrontrowError
from frontrow.web.http.problems import PROBLEMS
from frontrow.web.server.app import pages
from frontrow.web.site.error_pages import CODES, FORM_REFUSED, KINDS, LATER
from frontrow.web.site.languages import LANGUAGES, words_of
from tests.support.browser_headers import BROWSER, FORM
from tests.web.api.support import a_client, a_platform

RAW = "KeyError: the booking bkg_4711 is not at evt_0815"
REDIRECTED = ("sign_in_needed", "second_factor_needed")  # to the page that signs in
BOOKING = "/bookings/bkg_0000000000000000000000000a"


def error_of(code: str, status: int) -> FrontrowError:
    made = type("Made", (FrontrowError,), {"code": code, "http_status": status})
    return made(RAW, retry_after_s=7 if status in LATER else None, param="fan", booking="bkg_4711")


def seen(answer: httpx.Response) -> str:
    """What people read on the page."""
    text = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", answer.text, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", " ", text))


async def test_every_error_in_every_language_is_a_page_without_its_raw_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: English pages showed the error's message, with its ids."""
    async with a_platform(tmp_path, per_ip="100000/second", per_person="100000/second") as platform:
        raised: list[FrontrowError] = []

        async def refuse(*_: Any) -> Any:
            raise raised[0]

        monkeypatch.setattr(platform.own_bookings, "find_seen", refuse)
        async with a_client(platform) as client:
            for code, advice in PROBLEMS.items():
                raised[:] = [error_of(code, advice.status)]
                for language in LANGUAGES:
                    answer = await client.get(BOOKING, headers=BROWSER | {"accept-language": language})
                    words, text = words_of(language), html.unescape(answer.text)
                    assert answer.status_code == advice.status, code
                    assert not any(part in text for part in ("KeyError", "bkg_4711", "evt_0815", code)), (
                        code,
                        language,
                    )
                    heading, sentence = CODES.get(code) or KINDS.get(advice.status) or KINDS[403]
                    if advice.status in KINDS or code in CODES:
                        assert words(heading) in text, (code, language)
                        assert words(sentence) in text, (code, language)
                    assert answer.headers["content-language"] == language
                    retries = advice.status in LATER and code not in CODES
                    assert ("data-again-s" in answer.text, "http-equiv" in answer.text) == (retries, retries), code
                    assert ("retry-after" in answer.headers) == (advice.status in LATER), code


async def test_an_error_that_answers_a_form_goes_back_to_it_and_sends_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_platform(tmp_path) as platform:

        async def refuse(*_: Any) -> Any:
            raise error_of("unavailable", 503)

        monkeypatch.setattr(platform.own_bookings, "find", refuse)
        async with a_client(platform) as client:
            for language in LANGUAGES:
                answer = await client.post(
                    "/checkout/bkg_1/release", data={}, headers=FORM | {"accept-language": language}
                )
                assert answer.status_code == 503
                assert "data-back" in answer.text
                assert "http-equiv" not in answer.text
                assert words_of(language)(FORM_REFUSED) in html.unescape(answer.text)
                assert 'href="/checkout/bkg_1"' in answer.text


async def test_somebodys_own_booking_on_another_device_leads_to_the_mail_and_to_signing_in(tmp_path: Path) -> None:
    """Before: "there is no booking bkg_…"."""
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        for path in (BOOKING, BOOKING.replace("bookings", "checkout"), f"{BOOKING}/receipt"):
            for language in LANGUAGES:
                answer = await client.get(path, headers=BROWSER | {"accept-language": language})
                text, words = html.unescape(answer.text), words_of(language)
                assert answer.status_code == 404
                assert words("This booking is not open in this browser") in text
                assert words("Open the link in your email, or sign in.") in text
                assert f'href="/sign-in?back={path}"' in text
                assert "bkg_" not in seen(answer)


async def test_no_page_shows_the_id_that_it_could_not_find(tmp_path: Path) -> None:
    """Every page, with ids that nobody knows, in every language."""
    async with a_platform(tmp_path, per_ip="100000/second") as platform, a_client(platform) as client:
        paths = sorted({path for one in pages() if "GET" in one.http_methods for path in one.paths if "{" in path})
        tried = 0
        for path in paths:
            asked = re.sub(r"\{[^}]*:int\}", "7", path)
            asked = re.sub(r"\{[^}]*\}", "nothing_0815", asked)
            for language in LANGUAGES:
                answer = await client.get(asked, headers=BROWSER | {"accept-language": language})
                if answer.status_code < 400 or not answer.headers["content-type"].startswith("text/html"):
                    continue
                tried += 1
                assert "nothing_0815" not in seen(answer), asked
                assert answer.headers["content-language"] == language
        assert tried >= 10 * len(LANGUAGES)


@pytest.mark.parametrize("path", ["/favicon.ico"])
async def test_a_browser_that_asks_for_the_icon_gets_it(tmp_path: Path, path: str) -> None:
    """Before: 404, in the console of every page that names none."""
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        answer = await client.get(path)
    assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (200, "image/svg+xml")
