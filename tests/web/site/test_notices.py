"""Refusals that come before any page is made speak the visitor's language (F3, W10, B17); programs get problem+json."""

from pathlib import Path

import httpx

from frontrow.core.errors import Overloaded
from frontrow.settings.overload import OverloadSettings
from frontrow.web.guard.overload import OverloadGate
from frontrow.web.http.messages import EndpointRequest
from frontrow.web.http.overflow_page import OVERFLOW, Notices
from frontrow.web.site.error_pages import FORM_REFUSED, KINDS, notices_for_people
from frontrow.web.site.languages import LANGUAGES, words_of
from tests.web.api.support import EVENT_ID, a_client, a_platform, a_server
from tests.web.server.crowd import request_bytes
from tests.web.server.guarded_server import answer_of, running
from tests.web.server.overload_server import COLD, app_of

OTHERS = [language for language in LANGUAGES if language != "en"]
ROOM = f"/v1/events/{EVENT_ID}/room"


def browser(language: str) -> dict[str, str]:
    return {"accept": "text/html,application/xhtml+xml", "accept-language": language}


async def test_w10_the_overflow_page_is_in_the_browsers_language_and_a_cache_may_keep_it(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        for language in LANGUAGES:
            answer = await client.get(f"{ROOM}/overflow", headers=browser(language) | {"cookie": "frontrow_lang=fr"})
            words = words_of(language)
            assert f'<html lang="{words.tag}" dir="{words.direction}">' in answer.text
            assert [text for text in OVERFLOW.values() if words(text) not in answer.text] == []
            assert answer.headers["vary"] == "accept-language"
            assert answer.headers["cache-control"] == "public, max-age=60"
            assert "unsafe" not in answer.headers["content-security-policy"]


async def test_b17_who_is_too_fast_reads_it_in_the_own_language(tmp_path: Path) -> None:
    async with a_platform(tmp_path, per_ip="1/minute") as platform, a_client(platform) as client:
        await client.get("/", headers=browser("de"))
        page = await client.get("/", headers=browser("de"))
        told = await client.get("/v1/events", headers={"accept": "application/json"})
    assert (page.status_code, told.status_code) == (429, 429)
    assert page.headers["content-type"].startswith("text/html")
    assert "Einen Moment, bitte" in page.text
    assert 'data-again="' in page.text, "it tries again by itself"
    assert "http-equiv" in page.text, "without scripts, too"
    assert int(page.headers["retry-after"]) >= 1
    assert told.json()["code"] == "rate_limited"


async def test_a_refusal_in_the_room_is_not_english_on_another_languages_page(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        for language in OTHERS:
            form = browser(language) | {"content-type": "application/x-www-form-urlencoded"}
            answer = await client.post(f"{ROOM}/join", headers=form, data={"page": "true", "code": "NO-SUCH-CODE"})
            room = await client.get(f"{ROOM}/", headers=browser(language))
            assert answer.status_code >= 400
            assert words_of(language)("This code is not valid for this sale.") in answer.text
            assert '"code_invalid":' in room.text, "the script can say it too"


async def test_a_room_that_does_not_exist_is_a_page_for_people(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        page = await client.get("/v1/events/evt_nothing/room/", headers=browser("es"))
        told = await client.get("/v1/events/evt_nothing/room/", headers={"accept": "application/json"})
    assert (page.status_code, told.status_code) == (404, 404)
    assert words_of("es")(KINDS[404][0]) in page.text
    assert told.headers["content-type"] == "application/problem+json"


async def test_f3_the_shed_who_look_at_pages_get_one_that_tries_again() -> None:
    gate = OverloadGate(OverloadSettings(max_in_flight=100))
    server, task, port, watch = await running(gate, {}, app_of(gate))
    watch.for_people = notices_for_people(Notices("Frontrow"))
    gate.in_flight, gate.active = 100, True
    more = b"host: a\r\naccept: text/html\r\naccept-language: pt\r\n"
    asked = request_bytes(*COLD["browse"]).replace(b"host: a\r\n", more)
    head, body = await answer_of(port, asked)
    server.should_exit = True
    await task
    assert head.startswith(b"HTTP/1.1 503")
    assert b"retry-after: 2" in head
    assert b"text/html" in head
    assert words_of("pt")(KINDS[503][0]).encode() in body
    assert b'data-again="5"' in body


async def test_the_server_gives_the_gate_its_pages(tmp_path: Path) -> None:
    async with a_server(tmp_path, per_ip="1/minute") as (_, url), httpx.AsyncClient(base_url=url) as client:
        await client.get("/", headers=browser("ja"))
        page = await client.get("/", headers=browser("ja"))
    assert words_of("ja")(KINDS[429][0]) in page.text


def test_a_form_that_was_refused_is_not_sent_again_by_itself() -> None:
    people = notices_for_people(Notices("Frontrow"))
    busy = Overloaded("too much", retry_after_s=2)
    ask = EndpointRequest([(b"accept", b"text/html"), (b"cookie", b"a=b; frontrow_lang=de")], b"", "127.0.0.1")
    looked, sent = people("GET", ask, busy), people("POST", ask, busy)
    assert looked is not None
    assert sent is not None
    assert (b"data-back" in looked.body, b"data-back" in sent.body) == (False, True), "it goes back to the form"
    assert (b"http-equiv" in looked.body, b"http-equiv" in sent.body) == (True, False)
    assert words_of("de")(FORM_REFUSED).encode() in sent.body
    assert words_of("de")(KINDS[503][0]).encode() in looked.body
    assert people("GET", EndpointRequest([(b"accept", b"application/json")], b"", ""), busy) is None
