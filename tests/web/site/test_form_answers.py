"""Every form of every page is answered by a redirect, so Back and Reload never ask to send it again (issue 26)."""

import re
import sys
from collections.abc import AsyncIterator
from inspect import unwrap
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from litestar.handlers import HTTPRouteHandler

from frontrow.boxoffice.people.model.people import csrf_of
from frontrow.boxoffice.people.model.roles import Role
from frontrow.core.errors import InvalidInput, Unavailable
from frontrow.testing.clock import ManualClock
from frontrow.web.http.access import booking_token
from frontrow.web.http.cookies import SESSION_COOKIE
from frontrow.web.server.app import pages
from frontrow.web.site.error_pages import KINDS
from frontrow.web.site.form_answers import LIFE_S
from frontrow.web.site.routes import Form
from tests.boxoffice.organiser.http import OrganiserApi, an_organiser_api
from tests.boxoffice.people.support import fan
from tests.support.browser_headers import BROWSER, FORM
from tests.support.form_answers import submit

ACTIONS = [handler for handler in pages() if "POST" in handler.http_methods]
# what somebody might send who mistypes everything
NONSENSE = {
    "email": "nobody",
    "name": "",
    "card": "1",
    "code": "NO",
    "amount": "1",
    "count": "x",
    "link": "#nonsense",
    "password": "wrong",
    "phone": "x",
    "confirm": "no",
    "url": "ftp://nowhere",
    "seat": "no-such-seat",
    "how": "x",
    "colour": "red",
    "rate": "x",
    "billed_to": "",
}


PLANTED = "only programs read about zebras"
GERMAN = {"accept-language": "de"}


def is_html(answer: httpx.Response) -> bool:
    return answer.headers.get("content-type", "").startswith("text/html")


def is_problem(answer: httpx.Response) -> bool:
    """Whether it is the page of an error (`error_pages`): nothing was done, and there is nothing to send again."""
    return any(f"<h1>{heading}</h1>" in answer.text for heading, _ in KINDS.values())


class Walk:
    """Everybody who sends forms: a fan with a session and bookings, and the owner of a team."""

    def __init__(self, desk: OrganiserApi, paths: dict[str, str], fan_session: str, tokens: str) -> None:
        self.desk, self.paths = desk, paths
        self.sessions = {True: desk.person.session, False: fan_session}
        self.tokens = tokens

    async def send(self, handler: HTTPRouteHandler, fields: dict[str, str]) -> httpx.Response:
        path, data, cookie = self.asked(handler, fields)
        return await self.desk.client.post(path, data=data, headers=FORM | {"cookie": cookie})

    def asked(self, handler: HTTPRouteHandler, fields: dict[str, str]) -> tuple[str, dict[str, str], str]:
        """Where the form is sent, what with, and by whom."""
        (path,) = handler.paths
        for name, value in self.paths.items():
            path = re.sub(rf"\{{{name}(:\w+)?\}}", value, path)
        assert "{" not in path, f"the walk does not know an id for {path}"
        session = self.sessions[handler.opt["access"].kind == "staff"]
        cookie = f"{SESSION_COOKIE}={session}; frontrow_bookings={self.tokens}; __Host-frontrow-bookings={self.tokens}"
        return path, fields | {"csrf": csrf_of(session)}, cookie


@pytest.fixture
async def walk(tmp_path: Path) -> AsyncIterator[Walk]:
    async with an_organiser_api(tmp_path) as desk:
        platform = desk.platform
        somebody = await fan(platform, "ada@example.org")
        held = await desk.bought("S-A-1", fan=somebody.id, pay="")
        sold = await desk.bought("S-A-2", fan=somebody.id, email="ada@example.org")
        await platform.box_office.transfers.send(sold, sold.seats[0], "bob@example.org", "en")
        (transfer,) = await platform.ledger.transfers.transfers_of(sold.id)
        hooked = {"event": desk.event, "url": "https://example.org/hook"}
        hook = await desk.post("/v1/organiser/webhooks", 201, json=hooked)
        venue = (await platform.ledger.catalogue.event(desk.event)).venue_id
        paths = {
            "event_id": desk.event,
            "booking_id": held.id,
            "transfer_id": transfer.id,
            "webhook_id": hook["webhook"],
            "venue_id": venue,
            "staff_id": desk.person.id,
            "delivery": "dlv_x",
            "invitation_id": "inv_x",
            "key_id": "key_x",
            "offer_id": "off_x",
            "refund_id": "rfn_x",
            "message_id": "msg_x",
            "token": "x",
        }
        tokens = "~".join(booking_token(platform.secrets, one.id) for one in (held, sold))
        yield Walk(desk, paths, somebody.session, tokens)


@pytest.mark.parametrize("handler", ACTIONS, ids=lambda handler: handler.operation_id.removeprefix("page_"))
async def test_every_form_is_answered_by_a_redirect(walk: Walk, handler: HTTPRouteHandler) -> None:
    """Empty, and filled with nonsense. A page is never the answer itself; an address that does not exist is (404), and
    so is a program's own call of a page (no HTML)."""
    for fields in ({}, NONSENSE):
        answer = await walk.send(handler, dict(fields))
        assert not (is_html(answer) and answer.status_code == 200), f"{handler.operation_id} answers with a page"
        if is_html(answer) and answer.status_code != 404:
            assert is_problem(answer), f"{handler.operation_id} answers {answer.status_code} with a form"


@pytest.mark.parametrize("handler", ACTIONS, ids=lambda handler: handler.operation_id.removeprefix("page_"))
async def test_a_refusal_of_any_form_shows_no_words_of_the_error(
    walk: Walk, handler: HTTPRouteHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error is planted where the form is read, and where an organiser's service is told who asks."""

    def refuse(*_: object) -> None:
        raise InvalidInput(PLANTED, param="text")

    plain = Form.one
    module = sys.modules[unwrap(handler.fn).__module__]
    plants = [(Form, "one", lambda self, name, *more: plain(self, name, *more) if name == "csrf" else refuse())]
    plants += [(module, "editor_of", refuse)] if hasattr(module, "editor_of") else []
    for owner, name, planted in plants:
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, planted)
            path, data, cookie = walk.asked(handler, dict(NONSENSE))
            answer = await walk.desk.client.post(path, data=data, headers=FORM | {"cookie": cookie} | GERMAN)
        assert PLANTED not in answer.text
        if "told=" in answer.headers.get("location", ""):
            kept = "; ".join(f"{one}={value}" for one, value in answer.cookies.items() if value)
            shown = await walk.desk.client.get(
                answer.headers["location"].partition("#")[0], headers=BROWSER | GERMAN | {"cookie": f"{cookie}; {kept}"}
            )
            assert PLANTED not in shown.text


def test_the_walk_knows_every_form() -> None:
    assert len(ACTIONS) > 80


async def test_an_error_of_an_organisers_form_survives_the_redirect_with_what_was_typed(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path) as desk:
        headers = {"cookie": f"{SESSION_COOKIE}={desk.person.session}"}
        given = {"csrf": csrf_of(desk.person.session), "name": "Hall", "rate": "nineteen", "address": "x" * 5_000}
        sent = await desk.client.post("/organiser/seller", data=given, headers=FORM | headers)
        assert sent.status_code == 303
        where = sent.headers["location"]
        assert where.startswith("/organiser/seller?told=")
        assert "nineteen" not in where
        (kept,) = [value for name, value in sent.cookies.items() if "told" in name]
        cookie = {"cookie": f"{headers['cookie']}; __Host-frontrow-told={kept}; frontrow_told={kept}"}
        for _ in range(2):  # also after Back or a reload
            shown = await desk.client.get(where, headers=BROWSER | cookie)
            assert 'value="nineteen"' in shown.text
        plain = await desk.client.get("/organiser/seller", headers=BROWSER | cookie)
        assert 'value="nineteen"' not in plain.text, "only the address of the redirect shows it"
        stranger = await desk.client.get(where, headers=BROWSER | headers)
        assert 'value="nineteen"' not in stranger.text, "only this browser sees it"
        other = await desk.client.get(where.replace("seller", "team"), headers=BROWSER | cookie)
        assert 'value="nineteen"' not in other.text, "only this page shows it"


@pytest.mark.parametrize("step", ["begin", "finish"])
async def test_while_the_ledger_is_down_a_form_is_answered_by_its_page_and_nothing_typed_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, step: str
) -> None:
    async def down(*_: object) -> None:
        raise Unavailable("the ledger does not answer")

    async with an_organiser_api(tmp_path) as desk:
        monkeypatch.setattr(desk.platform.stores.requests, step, down)
        headers = FORM | {"cookie": f"{SESSION_COOKIE}={desk.person.session}"}
        given = {"csrf": csrf_of(desk.person.session), "name": "Hall", "rate": "nineteen"}
        sent = await desk.client.post("/organiser/seller", data=given, headers=headers)
        assert 'value="nineteen"' in sent.text
        assert "the ledger does not answer" in caplog.text


async def test_what_was_said_ends_after_ten_minutes(tmp_path: Path) -> None:
    clock = ManualClock(1_800_000_000_000_000)
    async with an_organiser_api(tmp_path, clock=clock) as desk:
        sent = await desk.client.post("/sign-in", data={"email": "nobody"}, headers=FORM)
        where = sent.headers["location"]
        assert "nobody" in (await desk.client.get(where, headers=BROWSER)).text
        clock.advance(LIFE_S)
        assert "nobody" not in (await desk.client.get(where, headers=BROWSER)).text


async def test_a_new_key_is_shown_once_and_never_in_an_address(tmp_path: Path) -> None:
    """The key of a program, a webhook's secret, a feed's address."""
    async with an_organiser_api(tmp_path, Role.OWNER) as desk:
        headers = {"cookie": f"{SESSION_COOKIE}={desk.person.session}"}
        csrf = csrf_of(desk.person.session)
        forms: list[tuple[str, dict[str, Any], str]] = [
            ("/organiser/team/keys", {"name": "Robot", "scope": "events:read"}, r"frk_[\w-]{20,}"),
            ("/organiser/webhooks", {"url": "https://example.org/x", "event": desk.event}, r"whsec_[\w+/=-]{20,}"),
            ("/organiser/feeds", {}, r"/feeds/[\w-]{20,}"),
        ]
        for path, fields, secret in forms:
            sent = await desk.client.post(path, data=fields | {"csrf": csrf}, headers=FORM | headers)
            assert sent.status_code == 303, path
            assert not re.search(secret, unquote(sent.headers["location"])), path
            assert not re.search(secret, str(sent.headers)), path
            desk.client.cookies.clear()
            jar = {name: value for name, value in sent.cookies.items() if "told" in name}
            cookie = {"cookie": "; ".join([headers["cookie"], *(f"{name}={value}" for name, value in jar.items())])}
            shown = await desk.client.get(sent.headers["location"], headers=BROWSER | cookie)
            assert re.search(secret, shown.text), path
            assert any("told=" in line and "Max-Age=0" in line for line in shown.headers.get_list("set-cookie")), path
            desk.client.cookies.clear()
            again = await desk.client.get(sent.headers["location"], headers=BROWSER | headers)
            assert not re.search(secret, again.text), f"{path}: a browser forgets it with the first page"


async def test_a_wrong_sign_in_says_so_after_the_redirect(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path) as desk:
        shown = await submit(desk.client, "/organiser/sign-in", {"email": "x@example.org", "password": "secret-typed"})
        assert shown.status_code == 401
        assert "x@example.org" in shown.text
        assert "secret-typed" not in shown.text
