"""The pages without a browser: policy on each, forms only from our own pages, files kept for ever, escaping, errors."""

import gzip
import inspect
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from frontrow.core.clock import US_PER_S
from frontrow.web.server.app import pages, routes
from frontrow.web.site.assets import Assets, site_assets
from frontrow.web.site.fans.demo_cards import (
    BAD_CODE,
    BAD_EXPIRY,
    BAD_NUMBER,
    EXPIRED,
    NEEDED,
    TypedCard,
    method_of,
)
from frontrow.web.site.languages import LANGUAGES, words_of
from frontrow.web.site.render import as_json
from tests.support.browser_headers import BROWSER, FORM
from tests.web.api.support import EVENT_ID, a_client, a_platform, put_event

LOOKED_AT = ("/", "/?q=x", f"/events/{EVENT_ID}", "/tickets", "/sign-in", "/ready", "/style-guide", "/maintenance")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with a_platform(tmp_path) as opened, a_client(opened) as asking:
        yield asking


def test_every_page_declares_who_may_come_and_stays_out_of_the_document() -> None:
    assert len(pages()) >= 28
    for handler in pages():
        assert handler.opt["access"], handler.paths
        assert handler.include_in_schema is False, handler.paths
        assert handler.opt["page"] is True, handler.paths
    assert not {handler.operation_id for handler in pages()} & {handler.operation_id for handler in routes()}


def test_every_form_is_read_where_it_is_checked() -> None:
    """An action that took no `form` would change something without the CSRF word having been looked at."""
    for handler in pages():
        if "POST" in handler.http_methods:
            assert "form" in inspect.signature(handler.fn).parameters, handler.paths
            assert "form" in handler.dependencies, handler.paths


async def test_each_page_has_the_strict_policy_and_the_other_locks(client: httpx.AsyncClient) -> None:
    for path in (*LOOKED_AT, "/no-such-page"):
        answer = await client.get(path, headers=BROWSER)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; "), path
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert "camera=()" in answer.headers["permissions-policy"]
        assert not re.search(r"<script(?![^>]*(src=|type=\"application/(?:ld\+)?json\"))", answer.text), (
            f"inline script on {path}"
        )
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=", answer.text), f"inline style or handler on {path}"


async def test_a_page_speaks_the_visitors_language(client: httpx.AsyncClient) -> None:
    for language in LANGUAGES:
        answer = await client.get("/", headers=BROWSER | {"accept-language": language})
        assert f'<html lang="{words_of(language).tag}"' in answer.text
        assert answer.headers["content-language"] == language
    chosen = await client.get("/language/de?back=/tickets", headers=BROWSER)
    assert (chosen.status_code, chosen.headers["location"]) == (303, "/tickets")
    assert "Meine Tickets" in (await client.get("/tickets", headers=BROWSER)).text
    searched = await client.get("/?q=zzz&city=Wien", headers=BROWSER)
    (link,) = re.findall(r'href="(/language/fr[^"]*)"', searched.text)
    assert (await client.get(link, headers=BROWSER)).headers["location"] == "/?q=zzz&city=Wien"  # the search is kept
    away = await client.get("/language/de?back=//evil.example/", headers=BROWSER)
    assert away.headers["location"] == "/"


async def test_another_sites_form_and_another_kind_of_body_are_refused(client: httpx.AsyncClient) -> None:
    form = {"name": "x", "email": "x@example.org", "back": "/"}
    crossed = await client.post("/ready", data=form, headers=FORM | {"sec-fetch-site": "cross-site"})
    assert crossed.status_code == 403
    origin = await client.post("/ready", data=form, headers=FORM | {"origin": "https://evil.example"})
    assert origin.status_code == 403
    plain = await client.post("/ready", content=b"name=x", headers=BROWSER | {"content-type": "text/plain"})
    assert plain.status_code == 415
    assert (await client.post("/ready", data=form, headers=FORM)).status_code == 303


async def test_with_a_session_a_form_needs_its_csrf_word(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        made = await platform.people.fans.start_guest_session("", "en")
        cookie = {"cookie": f"__Host-frontrow-session={made.secret}"}
        without = await client.post("/sign-out", data={}, headers=FORM | cookie)
        assert without.status_code == 403
        wrong = await client.post("/sign-out", data={"csrf": "guess"}, headers=FORM | cookie)
        assert wrong.status_code == 403
        right = await client.post("/sign-out", data={"csrf": made.csrf}, headers=FORM | cookie)
        assert right.status_code == 303
        page = await client.get("/ready", headers=BROWSER | cookie)
        assert made.secret not in page.text


async def test_what_comes_from_outside_is_escaped_everywhere(tmp_path: Path) -> None:
    nasty = '"><script>alert(1)</script>'
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        await put_event(platform, id="evt_nasty", name=nasty, description=nasty)
        await platform.box_office.openings.refresh()
        for path in ("/?q=" + nasty, "/events/evt_nasty", "/?q=alert", "/v1/events/evt_nasty/room/"):
            answer = await client.get(path, headers=BROWSER)
            assert answer.status_code == 200
            assert "<script>alert" not in answer.text, path
            assert "alert(1)" in answer.text, "it is shown, as text"


def test_json_inside_a_page_cannot_end_its_element() -> None:
    assert "</script" not in as_json({"a": "</script><script>alert(1)</script>"})


async def test_files_are_kept_for_ever_under_their_hash_and_come_compressed(client: httpx.AsyncClient) -> None:
    assets = site_assets()
    answer = await client.get(assets.url("js/seats.js"), headers={"accept-encoding": "gzip"})
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-type"].startswith("text/javascript")
    old = await client.get("/static/0123456789abcdef/js/seats.js")
    assert (old.status_code, old.headers["cache-control"]) == (200, "no-cache")
    for path in ("/static/x/js/nothing.js", "/static/x/../site/words.py", "/static/x/%2e%2e/app.py"):
        assert (await client.get(path)).status_code == 404


def test_the_hash_follows_the_content_and_relative_imports_are_followed(tmp_path: Path) -> None:
    for name in ("tokens", "base", "parts", "fans", "seats"):
        (tmp_path / "css").mkdir(exist_ok=True)
        (tmp_path / "css" / f"{name}.css").write_text(f".{name} {{ color: red }}")
    (tmp_path / "js" / "deep").mkdir(parents=True)
    (tmp_path / "js" / "a.js").write_text('import "./deep/b.js";\nt("One");')
    (tmp_path / "js" / "deep" / "b.js").write_text('import { x } from "../a.js";\nt("Two \\"quoted\\"");')
    first = Assets(tmp_path)
    assert first.with_imports("js/a.js") == ["js/a.js", "js/deep/b.js"]
    assert first.texts("js/a.js") == {"One", 'Two "quoted"'}
    assert b".seats" in first.files["css/site.css"].body
    (tmp_path / "js" / "a.js").write_text('t("One");')
    assert Assets(tmp_path).hash != first.hash
    with pytest.raises(KeyError):
        first.url("js/missing.js")


def test_every_file_that_is_sent_compressed_is_the_same_file() -> None:
    for path, found in site_assets().files.items():
        if found.gzipped is not None:
            assert gzip.decompress(found.gzipped) == found.body, path


def test_no_script_formats_by_the_browsers_language() -> None:
    """It may be no language tag at all (`en-US@posix`), and `Intl` throws then; the page's own language is one."""
    own = {path: one.body.decode() for path, one in site_assets().files.items() if re.match(r"js/.*\.js$", path)}
    assert len(own) > 20
    asking = {path for path, text in own.items() if re.search(r"navigator\.languages?|toLocale|Intl\.\w+\(\)", text)}
    assert asking == {"js/organiser/language.js"}, "only the script that puts it right may ask for it"


async def test_a_path_that_nobody_knows_is_a_page_for_people_and_a_problem_for_programs(
    client: httpx.AsyncClient,
) -> None:
    person = await client.get("/nowhere", headers=BROWSER)
    assert (person.status_code, person.headers["content-type"].split(";")[0]) == (404, "text/html")
    program = await client.get("/nowhere", headers={"accept": "application/json"})
    assert program.headers["content-type"] == "application/problem+json"
    api = await client.get("/v1/nowhere", headers=BROWSER)
    assert api.headers["content-type"] == "application/problem+json"


async def test_b17_seats_without_a_pass_lead_to_the_waiting_room(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"/events/{EVENT_ID}/seats", headers=BROWSER)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/v1/events/{EVENT_ID}/room/")
    held = await client.post(f"/events/{EVENT_ID}/hold", data={"seat": "S-A-1"}, headers=FORM)
    assert held.headers["location"] == f"/v1/events/{EVENT_ID}/room/"
    assert (await client.get("/events/evt_nothing", headers=BROWSER)).status_code == 404
    assert (await client.get("/checkout/bkg_nothing", headers=BROWSER)).status_code == 404
    account = await client.get("/account", headers=BROWSER)
    assert (account.status_code, account.headers["location"]) == (303, "/sign-in?back=/account")


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("4242 4242 4242 4242", "pm_card_visa"),
        ("4000-0000-0000-0002", "pm_card_declined"),
        ("5555555555554444", "pm_card_visa"),
        ("4242 4242 4242 4241", None),
        ("", None),
        ("4242", None),
        ("४२४२४२४२४२४२४२४२", None),
    ],
)
def test_a_card_number_stands_for_a_method_or_is_none(text: str, method: str | None) -> None:
    assert method_of(text) == method


NOVEMBER_2026_US = int(datetime(2026, 11, 17, tzinfo=UTC).timestamp()) * US_PER_S


@pytest.mark.parametrize(
    ("expiry", "error"),
    [
        ("11/26", ""),
        ("11 / 26", ""),
        (" 1 / 27 ", ""),
        ("1-2027", ""),
        ("0127", ""),
        ("12.2076", ""),
        ("10/26", EXPIRED),
        ("12 / 2025", EXPIRED),
        ("", NEEDED),
        ("13/27", BAD_EXPIRY),
        ("00/27", BAD_EXPIRY),
        ("127", BAD_EXPIRY),
        ("12/2", BAD_EXPIRY),
        ("12/92", BAD_EXPIRY),
        ("27/12", BAD_EXPIRY),
        ("१२/३०", BAD_EXPIRY),
    ],
)
def test_an_expiry_date_is_a_month_that_has_not_ended(expiry: str, error: str) -> None:
    found = TypedCard("4242424242424242", expiry, "123").errors(NOVEMBER_2026_US)
    assert found == ({"expiry": error} if error else {})


def test_a_card_is_valid_until_its_month_has_ended_everywhere() -> None:
    ended_us = int(datetime(2026, 12, 1, 12, tzinfo=UTC).timestamp()) * US_PER_S
    card = TypedCard("4242424242424242", "11/26", "123")
    assert card.errors(ended_us - US_PER_S) == {}
    assert card.errors(ended_us) == {"expiry": EXPIRED}


@pytest.mark.parametrize(
    ("number", "code", "errors"),
    [
        ("4242 4242 4242 4242", " 007 ", {}),
        ("4242 4242 4242 4242", "1234", {"cvc": BAD_CODE}),
        ("4242 4242 4242 4242", "12", {"cvc": BAD_CODE}),
        ("4242 4242 4242 4242", "12a", {"cvc": BAD_CODE}),
        ("4242 4242 4242 4242", "", {"cvc": NEEDED}),
        ("3782 822463 10005", "1234", {}),
        ("3782 822463 10005", "123", {"cvc": BAD_CODE}),
        ("4242 4242 4242 4241", "", {"card": BAD_NUMBER, "cvc": NEEDED}),
    ],
)
def test_a_security_code_has_the_digits_of_its_card(number: str, code: str, errors: dict[str, str]) -> None:
    assert TypedCard(number, "11/26", code).errors(NOVEMBER_2026_US) == errors
