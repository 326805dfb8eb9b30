"""Nothing in the shop works without a pass (W7, B17): ASGI and WSGI ask the same question and give the same answers."""

import asyncio
import threading
import urllib.error
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import jwt
import pytest
from flask import Flask, request
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from frontrow.core.errors import ConfigError, Unavailable
from frontrow.waitingroom.credentials.passes import PassSigner
from frontrow.waitingroom.model.errors import PassExpired, PassForeign, PassInvalid
from frontrow.waitingroom.protect import Guard, PassKeys, asgi, wsgi
from frontrow.waitingroom.protect.guard import is_page
from frontrow.waitingroom.protect.pass_keys import fetch_json
from frontrow.web.endpoints.room.page import read_wish
from tests.waitingroom.protect.passes_for_tests import NOW_S, OTHER_KEY, SIGNER, minted

OPEN = ["/static/", "/robots.txt"]


def guard(now_s: int = NOW_S, keys: Any = None) -> Guard:
    return Guard(keys or PassKeys(SIGNER.jwks(), "aurora"), "/room/", OPEN, clock=lambda: now_s * 1_000_000)


class AsgiClient:
    """httpx over an ASGI app, for tests that are not asynchronous."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
                return await client.request(method, path, **options)

        return asyncio.run(send())

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)


def asgi_shop(now_s: int = NOW_S, person_of: Callable[[Any], str | None] | None = None) -> AsgiClient:
    async def page(call: Request) -> PlainTextResponse:
        visit = call.scope.get("frontrow.pass")
        return PlainTextResponse(visit.person if visit else "open")

    shop = Starlette(routes=[Route("/{path:path}", page, methods=["GET", "POST"])])
    return AsgiClient(asgi.PassMiddleware(shop, guard(now_s), person_of=person_of))  # type: ignore[arg-type]


def wsgi_shop(now_s: int = NOW_S, person_of: Callable[[Any], str | None] | None = None) -> httpx.Client:
    shop = Flask("shop", static_folder=None)

    def page(path: str = "") -> str:
        visit = request.environ.get("frontrow.pass")
        return visit.person if visit else "open"

    shop.add_url_rule("/", view_func=page, methods=["GET", "POST"], endpoint="front")
    shop.add_url_rule("/<path:path>", view_func=page, methods=["GET", "POST"])
    protected = wsgi.PassMiddleware(shop.wsgi_app, guard(now_s), person_of=person_of)
    return httpx.Client(transport=httpx.WSGITransport(app=protected), base_url="http://shop")  # type: ignore[arg-type]


@pytest.fixture(params=[asgi_shop, wsgi_shop], ids=["asgi", "wsgi"])
def shop(request: pytest.FixtureRequest) -> Any:
    return request.param


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def test_a_good_pass_opens_the_shop_from_each_of_its_three_places(shop: Any) -> None:
    """W7."""
    text = minted()
    old, new = f"a=b; frontrow_pass={text}; c=d", f"frontrow_pass=stale; __Host-frontrow-pass={text}"
    for headers in (bearer(text), {"Frontrow-Pass": text}, {"Cookie": old}, {"Cookie": new}):
        answer = shop().get("/checkout", headers=headers)
        assert (answer.status_code, answer.text) == (200, "ada")


def test_without_a_pass_a_browser_goes_to_the_room_and_a_program_gets_a_problem(shop: Any) -> None:
    page = shop().get("/checkout?seat=1", headers={"Accept": "text/html"})
    assert page.status_code == 303
    assert page.headers["location"] == "/room/?return=/checkout%3Fseat%3D1"
    for method in ("GET", "POST"):
        answer = shop().request(method, "/checkout")
        assert (answer.status_code, answer.json()["code"]) == (401, "pass_required")
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.json()["room"] == "/room/"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (minted(PassSigner([OTHER_KEY])), "pass_invalid"),
        (minted(event="borealis"), "pass_foreign"),
        (minted(ttl_s=-1), "pass_expired"),
        (minted()[:-2] + "AA", "pass_invalid"),
        ("a.b.c", "pass_invalid"),
        ("A" * 1_000_000, "pass_required"),
        (jwt.encode({"sub": "ada", "aud": "aurora"}, None, algorithm="none"), "pass_invalid"),
    ],
)
def test_a_bad_pass_is_turned_away_with_its_reason(shop: Any, text: str, code: str) -> None:
    answer = shop().get("/checkout", headers=bearer(text))
    assert answer.status_code in (401, 403)
    assert answer.json()["code"] == code


def test_a_pass_ends_at_its_second_even_when_it_is_remembered(shop: Any) -> None:
    text = minted()
    keys = PassKeys(SIGNER.jwks(), "aurora")
    assert keys(text, NOW_S + 899).person == "ada"
    with pytest.raises(PassExpired):
        keys(text, NOW_S + 900)
    assert shop(NOW_S + 899).get("/", headers=bearer(text)).status_code == 200
    assert shop(NOW_S + 900).get("/", headers=bearer(text)).status_code == 401


def test_the_pass_must_be_the_signed_in_persons(shop: Any) -> None:
    """W7: bound to event and person."""
    assert shop(person_of=lambda _: "ada").get("/", headers=bearer(minted())).status_code == 200
    answer = shop(person_of=lambda _: "bob").get("/", headers=bearer(minted()))
    assert (answer.status_code, answer.json()["code"]) == (403, "pass_of_another")


@pytest.mark.parametrize("path", ["/static/app.css", "/robots.txt"])
def test_open_paths_need_no_pass(shop: Any, path: str) -> None:
    assert shop().get(path).text == "open"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../checkout",
        "//static/a",
        "/static//a",
        "/STATIC/a",
        "/static%2fa",
        "/static/%2e%2e/checkout",
        "/static",
        "/robots.txt/",
        "/robots.txt%00",
        "/static/;/a",
        "/static\\..\\checkout",
        "/staticx",
        "/./static/a",
        "/static/%61",
        "/static/a%0a",
    ],
)
def test_no_unusual_spelling_of_a_path_opens_it(path: str) -> None:
    assert not guard().is_open(path)


def test_a_redirect_never_leads_to_another_site() -> None:
    for path in ("//evil.example/", "/\\evil.example", "/%0d%0aLocation:x", "https://evil.example"):
        assert guard().redirect_to(path, "") == "/room/?return=/"


@pytest.mark.parametrize(
    "page",
    [
        "/",
        "/seats",
        "/seats/?row=3&seat=a%26b",
        "/caf%C3%A9/a%20b",
        "/a?filter[x]=1|2&back=//other",
        "/a?" + "q" * 1021,
    ],
)
def test_the_room_leads_back_to_the_page_that_was_wanted(page: str) -> None:
    path, _, query = page.partition("?")
    sent_to = guard().redirect_to(path, query)
    assert read_wish(sent_to.partition("?")[2]) == page, "as the middlewares say it"
    if len(page) < 1_000:
        assert read_wish(f"return={page}") == page, "as nginx says it with $request_uri"
    assert is_page(page)


NO_PAGES = [
    *("", "seats", "//evil.example", "/\\evil.example", "/a//b", "/a/../b", "/./a", "/a%2f..%2fb", "/a%5Cb", "/a%00"),
    *("/a b", "/a\r\nb", "/a#b", '/a?"', "/é", "/a?" + "q" * 1022, "javascript:alert(1)", "https://evil.example/"),
]


@pytest.mark.parametrize("page", NO_PAGES)
def test_what_is_not_plainly_a_page_of_the_shop_is_not_gone_back_to(page: str) -> None:
    assert not is_page(page)


def test_a_wsgi_shop_gets_people_back_to_an_encoded_page() -> None:
    told: list[Any] = []
    wanted = {"REQUEST_METHOD": "GET", "HTTP_ACCEPT": "text/html", "QUERY_STRING": "row=3"}
    environ = wanted | {"PATH_INFO": "/caf\xc3\xa9 100%", "RAW_URI": "/caf%C3%A9%20100%25?row=3"}
    wsgi.PassMiddleware(lambda *_: [b""], guard())(environ, lambda status, headers: told.append((status, headers)))
    status, headers = told[0]
    assert status.startswith("303")
    assert read_wish(dict(headers)["Location"].partition("?")[2]) == "/caf%C3%A9%20100%25?row=3"


async def test_websockets_are_asked_too() -> None:
    sent: list[Any] = []

    async def talk(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept", "person": scope["frontrow.pass"].person})

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    protected = asgi.PassMiddleware(talk, guard())
    scope = {"type": "websocket", "path": "/live", "raw_path": b"/live", "headers": []}
    await protected(scope, receive, send)
    await protected({**scope, "headers": [(b"authorization", b"Bearer " + minted().encode())]}, receive, send)
    assert sent == [
        {"type": "websocket.close", "code": 4401, "reason": "pass_required"},
        {"type": "websocket.accept", "person": "ada"},
    ]


@pytest.mark.parametrize("wrong", [{"room_url": ""}, {"room_url": "/room/", "open_paths": ["/a/../b"]}])
def test_a_guard_that_cannot_be_meant_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Guard(PassKeys(SIGNER.jwks(), "aurora"), **wrong)


class Room:
    """A room's JWKS endpoint, counted; `keys` may change or fail."""

    def __init__(self, keys: Any) -> None:
        self.keys = keys
        self.asked = 0
        self.now_s = 0.0

    def fetch(self, url: str) -> Any:
        self.asked += 1
        if isinstance(self.keys, Exception):
            raise self.keys
        return self.keys

    def passkeys(self) -> PassKeys:
        return PassKeys("https://room/jwks", "aurora", fetch=self.fetch, monotonic=lambda: self.now_s, refetch_s=30)


def test_keys_are_fetched_once_and_again_when_an_unknown_key_signs() -> None:
    room = Room(SIGNER.jwks())
    keys = room.passkeys()
    for _ in range(100):
        assert keys(minted(), NOW_S).person == "ada"
    assert room.asked == 1
    rotated = PassSigner([OTHER_KEY])
    with pytest.raises(PassInvalid):
        keys(minted(rotated), NOW_S)
    assert room.asked == 1, "a flood of forged key ids must not reach the room"
    room.now_s, room.keys = 31, rotated.jwks()
    assert keys(minted(rotated), NOW_S).person == "ada"
    assert room.asked == 2


def test_when_the_room_is_away_known_keys_go_on_working_and_unknown_ones_are_a_503() -> None:
    room = Room(ConnectionError())
    keys = room.passkeys()
    with pytest.raises(Unavailable):
        keys(minted(), NOW_S)
    room.now_s, room.keys = 2, SIGNER.jwks()
    assert keys(minted(), NOW_S).person == "ada"
    room.now_s, room.keys = 60, ConnectionError()
    assert keys(minted(person="bob"), NOW_S).person == "bob"


def test_o3_the_shops_log_says_that_the_rooms_keys_cannot_be_fetched(caplog: pytest.LogCaptureFixture) -> None:
    room = Room(ConnectionError("refused"))
    keys = room.passkeys()
    with pytest.raises(Unavailable):
        keys(minted(), NOW_S)
    assert "keys at https://room/jwks cannot be fetched" in caplog.text
    assert "nobody is admitted until it answers" in caplog.text
    room.now_s, room.keys = 2, SIGNER.jwks()
    keys(minted(), NOW_S)
    room.now_s, room.keys = 60, ConnectionError("refused")
    for _ in range(50):
        with pytest.raises(PassInvalid):
            keys(minted(PassSigner([OTHER_KEY])), NOW_S)
    told = [one for one in caplog.messages if "the cached keys stay in use" in one]
    assert len(told) == 1, "one line per fetch, not per visitor"


def test_keys_of_other_kinds_beside_ours_are_ignored() -> None:
    both = {"keys": [*SIGNER.jwks()["keys"], {"kty": "OKP", "crv": "Ed25519", "kid": "now-serving", "x": "AA"}]}
    assert PassKeys(both, "aurora")(minted(), NOW_S).person == "ada"
    with pytest.raises(PassForeign):
        PassKeys(both, "borealis")(minted(), NOW_S)


def test_fifty_threads_that_need_the_keys_fetch_them_once() -> None:
    room = Room(SIGNER.jwks())
    keys, people = room.passkeys(), []
    threads = [threading.Thread(target=lambda: people.append(keys(minted(), NOW_S).person)) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(people), room.asked) == (50, 1)


class NoKeys(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(503)

    def log_message(self, *told: Any) -> None:
        pass


def test_o1_a_room_that_refuses_its_keys_keeps_no_connection_open() -> None:
    """Python 3.14 warns of an answer that nobody closes."""
    with HTTPServer(("127.0.0.1", 0), NoKeys) as server:
        answering = threading.Thread(target=server.handle_request)
        answering.start()
        with pytest.raises(urllib.error.HTTPError) as refused:
            fetch_json(f"http://127.0.0.1:{server.server_port}/jwks")
        answering.join()
    assert refused.value.closed


async def test_fetching_keys_does_not_hold_the_event_loop() -> None:
    started, may_go = threading.Event(), threading.Event()

    def slow(url: str) -> Any:
        started.set()
        assert may_go.wait(60)
        return SIGNER.jwks()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    keys = PassKeys("https://room/jwks", "aurora", fetch=slow)
    protected = asgi.PassMiddleware(app, guard(keys=keys))
    transport = httpx.ASGITransport(app=protected)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
        first = asyncio.create_task(client.get("/", headers=bearer(minted())))
        assert await asyncio.to_thread(started.wait, 10)
        assert (await client.get("/")).status_code == 401, "others are answered meanwhile"
        may_go.set()
        assert (await first).status_code == 200
