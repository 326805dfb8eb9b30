"""Other sites' pages and the browser's cookies: every unsafe route, generated from the route table."""

import pytest

from frontrow.boxoffice.people.model.people import csrf_of
from tests.security.callers import may
from tests.security.route_table import Route, table
from tests.security.world import EVENT_ID, AsgiClient, World

pytestmark = pytest.mark.asyncio(loop_scope="session")
SESSION = "__Host-frontrow-session"


def as_browser(secret: str, **headers: str) -> list[tuple[str, str]]:
    """A browser with this session's cookie and its CSRF token; a header set to nothing is left out."""
    sent = {"cookie": f"{SESSION}={secret}", "x-csrf-token": csrf_of(secret), "sec-fetch-site": "same-origin"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    return [(name, value) for name, value in sent.items() if value]


def attacks(own: str, other: str) -> dict[str, list[tuple[str, str]]]:
    return {
        "no token": as_browser(own, x_csrf_token=""),
        "a guessed token": as_browser(own, x_csrf_token="A" * 43),
        "another session's token": as_browser(own, x_csrf_token=csrf_of(other)),
        "the session itself as token": as_browser(own, x_csrf_token=own),
        "another site": as_browser(own, sec_fetch_site="cross-site"),
        "a sister site": as_browser(own, sec_fetch_site="same-site"),
        "another origin": as_browser(own, sec_fetch_site="", origin="https://evil.example"),
        "a look-alike origin": as_browser(own, sec_fetch_site="", origin="https://test.evil.example"),
        "a null origin": as_browser(own, sec_fetch_site="", origin="null"),
        "two sites at once": [*as_browser(own), ("sec-fetch-site", "cross-site")],
    }


def checked(route: Route) -> bool:
    """Whether these locks are on the route: the guard's, or its own where it is somebody's (`own:owner`)."""
    return not route.access.startswith("own:") or route.access == "own:owner"


async def test_cross_site_requests_with_a_session_cookie(world: World, guarded: AsgiClient):
    """With the right token from our own page the guard opens; take any of it away and it does not."""
    routes = [route for route in table() if route.unsafe and checked(route)]
    assert len(routes) > 15
    for route in routes:
        client, opened = (world.client, 404) if route.access == "own:owner" else (guarded, 418)
        who = "owner of hall" if may(route.access.removeprefix("own:"), "owner of hall") else "fan"
        own, other = world.people[who].session, world.people["stranger"].session
        path = route.path(event_id=EVENT_ID)
        control = await client.ask(route.method, path, as_browser(own), route.sample())
        assert control.status == opened, (route.name, who, control.status, control.body)
        for attack, headers in attacks(own, other).items():
            reply = await client.ask(route.method, path, headers, route.sample())
            assert (reply.status, reply.code) == (403, "cross_site"), (route.name, attack, reply.status)


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "text/plain; charset=application/json",
        "application/x-www-form-urlencoded",
        "",
        "*/*",
        "multipart/form-data; boundary=x",
        "text/json",
        "application/jsonx",
    ],
)
async def test_json_in_a_text_plain_body(world: World, guarded: AsgiClient, kind: str):
    """What a form of another site can send is never read as JSON, with all other locks opened."""
    for route in table():
        if not route.unsafe or not checked(route) or route.sample() is None:
            continue
        client = world.client if route.access == "own:owner" else guarded
        who = "owner of hall" if may(route.access.removeprefix("own:"), "owner of hall") else "fan"
        headers = as_browser(world.people[who].session)
        reply = await client.ask(route.method, route.path(event_id=EVENT_ID), headers, route.sample(), kind=kind)
        assert (reply.status, reply.code) == (415, "unsupported_media_type"), (route.name, kind, reply.status)


async def test_signing_somebody_in_as_somebody_else(world: World):
    """Login CSRF: another site cannot make the browser sign in, ask for links or become a guest."""
    for path, body in (
        ("/v1/auth/staff/login", {"email": "a@example.org", "password": "x"}),
        ("/v1/auth/link", {"email": "a@example.org"}),
        ("/v1/auth/link/redeem", {"link": "frl_x"}),
        ("/v1/auth/guest", {}),
    ):
        for headers in ([("sec-fetch-site", "cross-site")], [("origin", "https://evil.example")]):
            reply = await world.client.ask("POST", path, headers, body)
            assert (reply.status, reply.code) == (403, "cross_site")
            assert reply.header("set-cookie") == ""


async def test_a_pass_or_session_in_a_cookie_on_the_hot_routes(world: World):
    """The routes that fast path and framework share: a cookie counts for our own pages only."""
    cookies = f"__Host-frontrow-pass={world.pass_jwt}; {SESSION}={world.people['fan'].session}"
    for headers in ([("sec-fetch-site", "cross-site")], [("origin", "https://evil.example")], [("origin", "null")]):
        for path, body in (
            (f"/v1/events/{EVENT_ID}/holds", {"best": {"count": 1}}),
            (f"/v1/events/{EVENT_ID}/room/join", {}),
        ):
            reply = await world.client.ask("POST", path, [("cookie", cookies), *headers], body)
            assert (reply.status, reply.code) == (403, "cross_site"), (path, headers, reply.status)


async def test_programs_without_cookies_need_no_token(world: World):
    headers = world.callers()["fan"]
    reply = await world.client.ask("PATCH", "/v1/me/preferences", headers, {"locale": "en"})
    assert reply.status == 200


async def test_no_answer_invites_other_origins(world: World):
    """No CORS headers: other origins' scripts cannot read answers, and preflights open nothing."""
    for route in table():
        headers = [("origin", "https://evil.example"), ("access-control-request-method", route.method)]
        reply = await world.client.ask("OPTIONS", route.path(event_id=EVENT_ID), headers)
        assert not [name for name, _ in reply.headers if name.startswith("access-control")], route.name
