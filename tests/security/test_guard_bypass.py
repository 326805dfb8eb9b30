"""Other spellings of every guarded route, generated from the route table: none of them opens what the guard closes."""

import pytest

from frontrow.core.errors import ConfigError
from frontrow.web.api import all_routes
from frontrow.web.http.access import Access
from frontrow.web.server import app as web_app
from tests.security.callers import may
from tests.security.route_table import Route, table
from tests.security.world import EVENT_ID, World, bearer

pytestmark = pytest.mark.asyncio(loop_scope="session")


def guarded_routes() -> list[Route]:
    return [route for route in table() if route.access not in ("public", "own:public")]


def spellings(path: str) -> list[str]:
    """The same path as some router, proxy or normaliser may understand it."""
    head, _, last = path.rpartition("/")
    return [
        f"/{path}",
        path.replace("/", "//"),
        f"{path}/",
        f"{path}//",
        f"/.{path}",
        f"/x/..{path}",
        f"{head}/./{last}",
        path.replace("/v1/", "/v1%2f"),
        path.replace("/", "%2F")[3:],
        f"{head}%2f{last}",
        f"{head}%5c{last}",
        f"{head}\\{last}",
        path.upper(),
        path.replace("/v1/", "/V1/"),
        f"{path};x=1",
        f"{path}%00",
        f"{path}%20",
        f"{path}.json",
        f"{path}?x=1",
        f"{path}%3fx=1",
        f"{path}#x",
        f"{path}%23x",
        path.replace("v1", "%76%31"),
    ]


DISGUISES = [
    [("host", "localhost")],
    [("host", "127.0.0.1")],
    [("host", "")],
    [("host", "evil.example")],
    [("x-forwarded-host", "localhost")],
    [("x-original-url", "/healthz")],
    [("x-rewrite-url", "/healthz")],
    [("x-http-method-override", "GET")],
    [("x-http-method-override", "OPTIONS")],
    [("x-method-override", "GET")],
    [("x-forwarded-for", "127.0.0.1")],
    [("x-forwarded-prefix", "/v1")],
    [("authorization", "Basic YWRtaW46YWRtaW4=")],
    [("authorization", "Bearer")],
    [("authorization", "Bearer null")],
    [("authorization", "Bearer undefined")],
    [("cookie", "__Host-frontrow-session=")],
    [("cookie", "__Host-frontrow-session=undefined; a=b")],
]


async def test_double_slashes_encoded_slashes_case_and_dots(world: World):
    """As nobody, and as a gatekeeper on what gatekeepers may not do: 4xx whatever the spelling, never an answer."""
    gatekeeper = world.callers()["door of hall"]
    opened, asked = [], 0
    for route in guarded_routes():
        callers = (
            [[], gatekeeper] if route.access.startswith("staff:") and not may(route.access, "door of hall") else [[]]
        )
        for path in spellings(route.path(event_id=EVENT_ID, booking_id=world.booking)):
            for headers in callers:
                reply = await world.client.ask(route.method, path, headers, route.sample())
                asked += 1
                if not 400 <= reply.status < 500:
                    opened.append((route.method, path, reply.status))
    assert opened == []
    assert asked > 500


async def test_host_forwarding_and_method_override_headers(world: World):
    for route in guarded_routes():
        for headers in DISGUISES:
            path = route.path(event_id=EVENT_ID, booking_id=world.booking)
            reply = await world.client.ask(route.method, path, headers, route.sample())
            assert reply.status in (400, 401, 403, 404), (route.name, headers, reply.status, reply.body)


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "CONNECT", "get", "PROPFIND", "X"])
async def test_other_methods_open_nothing(world: World, method: str):
    """A method nobody declared is refused (or, for OPTIONS, tells methods only), with every caller's proofs alike."""
    for route in guarded_routes():
        path = route.path(event_id=EVENT_ID, booking_id=world.booking)
        for headers in ([], world.callers()["owner of hall"], world.callers()["fan"]):
            reply = await world.client.ask(method, path, headers)
            assert reply.status in (204, 400, 401, 403, 404, 405, 501), (route.name, method, reply.status)
            assert world.booking.encode() not in reply.body
            assert b"example.org" not in reply.body


async def test_a_method_in_the_query_or_body_is_not_a_method(world: World):
    mine = world.callers()["fan"]
    for target in ("/v1/me?_method=DELETE", "/v1/me?method=POST"):
        assert (await world.client.ask("GET", target, mine)).status == 200
    reply = await world.client.ask("POST", "/v1/me", mine, {"_method": "GET"})
    assert reply.status == 405


async def test_the_app_does_not_start_with_a_route_that_nobody_decided_about(monkeypatch):
    from litestar import get

    @get("/v1/me/secret", operation_id="secret")
    async def undecided() -> None: ...

    monkeypatch.setattr(all_routes, "ROUTES", [undecided])
    with pytest.raises(ConfigError, match="/v1/me/secret declares no access"):
        web_app.routes()
    with pytest.raises(ConfigError, match="'team:wirte' is not a permission"):
        Access.staff("team:wirte")


async def test_an_access_of_an_unknown_kind_opens_nothing(world: World, monkeypatch):
    from litestar import get

    @get("/v1/me/odd", operation_id="odd", opt={"access": Access("everyone")})
    async def odd() -> None: ...

    monkeypatch.setattr(all_routes, "ROUTES", [odd])
    from tests.security.world import AsgiClient

    client = AsgiClient(web_app.platform_app(world.platform, own_loops=False))
    for headers in world.callers().values():
        assert (await client.ask("GET", "/v1/me/odd", headers)).status == 403
    assert (await world.client.ask("GET", "/v1/me", bearer(world.people["fan"].session))).status == 200
