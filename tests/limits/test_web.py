"""The HTTP contract over every limited app, and a canary for each thing it must catch."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from frontrow.core.errors import ConfigError
from frontrow.limits import CostTooLarge, InvalidKey, Quota, Rule
from frontrow.limits.http import asgi
from frontrow.limits.http.caller_identity import secret_key, user_name
from frontrow.limits.http.request_limits import MAX_ROUTES
from frontrow.limits.rules import RequestRule
from frontrow.testing.clock import ManualClock
from tests.contracts import rate_limit_middleware as web_contract
from tests.contracts.rate_limit_middleware import CONTRACT, rule
from tests.limits import typed_applications
from tests.limits.limited_apps import APPS, LimitedApp, call_asgi, limited_asgi_app, starlette_app


@pytest.fixture
def opened() -> Iterator[Callable[[Callable[..., LimitedApp]], Callable[..., LimitedApp]]]:
    """Makes apps of a kind and closes them all in the end."""
    apps: list[LimitedApp] = []

    def of(kind: Callable[..., LimitedApp]) -> Callable[..., LimitedApp]:
        def make(**options: Any) -> LimitedApp:
            apps.append(kind(**options))
            return apps[-1]

        return make

    yield of
    for limited in apps:
        limited.close()


@pytest.mark.parametrize("kind", APPS)
@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_the_web_contract_holds(check, kind, opened):
    check(opened(APPS[kind]))


class ForgetsFields(asgi.RateLimitMiddleware):
    async def __call__(self, scope, receive, send):
        async def bare(message):
            if message["type"] == "http.response.start" and message["status"] == 429:
                message["headers"] = [field for field in message["headers"] if b"ratelimit" not in field[0]]
            await send(message)

        await super().__call__(scope, receive, bare)


class BelievesEverybody(asgi.RateLimitMiddleware):
    async def __call__(self, scope, receive, send):
        forwarded = dict(scope["headers"])[b"x-forwarded-for"].split(b",")[0].strip()
        await super().__call__({**scope, "client": (forwarded.decode(), 1), "headers": []}, receive, send)


class RoutesOnTheRawPath(asgi.RateLimitMiddleware):
    async def __call__(self, scope, receive, send):
        if scope["raw_path"] not in (b"/events/1/holds", b"/events/2/holds"):
            return await self.app(scope, receive, send)
        await super().__call__(scope, receive, send)


class SkipsTheNameless(asgi.RateLimitMiddleware):
    async def __call__(self, scope, receive, send):
        if not dict(scope["headers"]).get(b"x-user", b"").strip():
            return await self.app(scope, receive, send)
        await super().__call__(scope, receive, send)


CANARIES = [
    (ForgetsFields, "l12_every_answer_carries_the_fields"),
    (BelievesEverybody, "l2_addresses_cannot_be_forged_or_rotated"),
    (RoutesOnTheRawPath, "l13_rules_match_method_and_path_however_it_is_spelt"),
    (
        SkipsTheNameless,
        "l15_a_missing_or_empty_client_id_is_an_error_or_counts_by_address_and_is_never_skipped",
    ),
]


@pytest.mark.parametrize(("broken", "check"), CANARIES, ids=[broken.__name__ for broken, _ in CANARIES])
def test_the_contract_catches_a_broken_middleware(broken, check, opened):
    with pytest.raises(AssertionError):
        getattr(web_contract, check)(opened(lambda **options: limited_asgi_app(starlette_app, broken, **options)))


def test_the_applications_own_header_list_is_never_changed(opened):
    """A bare application may send the same message object every time."""
    shared = {"type": "http.response.start", "status": 200, "headers": [(b"x-own", b"1")]}

    async def app(scope, receive, send):
        await send(shared)
        await send({"type": "http.response.body", "body": b"ok"})

    limited = opened(lambda **options: limited_asgi_app(lambda calls: app, **options))(
        rules="3/minute", clock=ManualClock()
    )
    assert [len(limited.ask().headers) for _ in range(3)] == [6, 6, 6]
    assert shared["headers"] == [(b"x-own", b"1")]


def test_l1_a_leaky_queue_delays_the_request_instead_of_refusing_it(opened, monkeypatch):
    """L1: the shaper, as middleware."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asgi.asyncio, "sleep", sleep)
    rules = [rule("shape", "10/second", "ip", algorithm="leaky_queue")]
    limited = opened(APPS["starlette"])(rules=rules, clock=ManualClock())
    assert [limited.ask().status for _ in range(4)] == [200] * 4
    assert slept == [0.1, 0.2, 0.3]


def test_the_middleware_needs_nothing_but_the_standard_library():
    """`pip install frontrow-limits` gives the limiter and its middleware with no other dependency."""
    source = Path(asgi.__file__).parents[3]
    program = (
        f"import sys; sys.path = [p for p in sys.path if 'site-packages' not in p] + [{str(source)!r}]\n"
        "from frontrow.limits.http import asgi, decorators, wsgi\n"
        "asgi.RateLimitMiddleware(None, '1/minute'); wsgi.RateLimitMiddleware(None, '1/minute')\n"
        "print(decorators.limited('1/minute')(lambda: 'ran')())\n"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("ran\n", "")


def test_l8_the_table_of_routes_is_bounded_whatever_paths_strangers_ask_for(opened):
    limited = opened(APPS["starlette"])(rules=[rule("all", "100000/minute", "ip")], clock=ManualClock())
    for number in range(MAX_ROUTES + 50):
        limited.limits.add_route("GET", f"/{number}")
    limited.limits.add_route("GET", "/" + "x" * 10_000)
    limited.limits.add_route("M" * 5000, "/")
    assert len(limited.limits.routes) <= MAX_ROUTES
    assert max(len(path) for _, path, _ in limited.limits.routes) < 1000


def test_l7_a_cost_that_can_never_fit_is_an_error_of_its_own(opened):
    with pytest.raises(CostTooLarge, match="a cost of 4 can never fit"):
        opened(APPS["starlette"])(rules=[rule("all", "3/minute", "ip")], costs={"/reports": 4})
    somewhere = RequestRule("some", Quota.parse("3/minute"), ("ip",), paths=("/reports",))
    limited = opened(APPS["starlette"])(rules=[somewhere], costs={"/reports": 4})  # rules of paths meet at a request
    with pytest.raises(CostTooLarge, match="a cost of 4 can never fit"):
        limited.ask("GET", "/reports")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"rules": [rule("a", "1/minute", "shoe_size")]}, "key part 'shoe_size' is unknown; known: api_key, endpoint"),
        ({"rules": "1/minute", "dialect": "draft-1"}, "dialect must be one of"),
        ({"rules": "1/minute", "costs": {"/x": 0}}, "must cost a whole number from 1"),
        ({"rules": "1/minute", "identify": {"user": 5}}, 'a function of the request or "header:x-user-id"'),
        ({"rules": "1/minute", "identify": {"ip": "header:x"}}, "ip follows trusted_proxies"),
        ({"rules": "1/minute", "exempt_addresses": ["me"]}, "exempt_addresses: 'me' is not an address or network"),
        ({"rules": "1/minute", "exempt_users": "bob"}, r"exempt_users must be a list, like \['bob'\]"),
        ({"rules": [rule("a", "1/minute", tiers={"vip": Quota.parse("2/minute")})]}, r"tier_of=Tiers"),
    ],
)
def test_l15_a_wrong_option_is_an_error_at_once_that_shows_what_is_right(options, expected):
    with pytest.raises(ConfigError, match=expected):
        asgi.RateLimitMiddleware(starlette_app([]), **options)


def test_l2_users_are_found_where_frameworks_leave_them_and_api_keys_are_never_stored():
    class Someone:
        is_authenticated = True
        id = 7

    class Nobody:
        is_authenticated = False
        id = 7

    class Sealed:
        @property
        def identity(self):
            raise NotImplementedError

        username = "ann"

    assert [user_name(user) for user in ("x", 7, Someone(), Sealed(), Nobody(), None, object())] == [
        "x",
        "7",
        "7",
        "ann",
        None,
        None,
        None,
    ]
    assert secret_key("k-123") != "k-123"
    assert secret_key("k-123") == secret_key("k-123") != secret_key("k-124")
    assert secret_key("") is None


def test_l2_an_api_key_sent_twice_with_different_values_says_nothing(opened):
    limited = opened(APPS["starlette"])(rules=[rule("keys", "1/minute", "api_key")], clock=ManualClock())
    get = asgi.header("x-api-key")
    assert get({"headers": [(b"x-api-key", b"a"), (b"x-api-key", b"b")]}) is None
    assert get({"headers": [(b"x-api-key", b"a"), (b"x-api-key", b"a")]}) == "a"
    assert limited.ask(x_api_key="a").status == 200
    assert limited.ask(x_api_key="a").status == 429
    assert limited.ask(x_api_key="b").status == 200
    assert limited.ask().status == 400


async def test_l13_the_middleware_is_added_the_way_each_framework_adds_them():
    from litestar import Litestar, get
    from litestar.middleware import DefineMiddleware
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.responses import PlainTextResponse
    from starlette.routing import Mount, Route

    async def home(request):
        return PlainTextResponse("served")

    @get("/")
    async def litestar_home() -> str:
        return "served"

    inner = Starlette(routes=[Route("/holds", home)])
    options = {"rules": [rule("all", "2/minute", "ip", paths=("/", "/holds"))]}
    mounted = Starlette(routes=[Mount("/api", asgi.RateLimitMiddleware(inner, **options))])
    apps = {
        "/": Starlette(routes=[Route("/", home)], middleware=[Middleware(asgi.RateLimitMiddleware, **options)]),
        "//": Litestar([litestar_home], middleware=[DefineMiddleware(asgi.RateLimitMiddleware, **options)]),
        "/api/holds": mounted,
    }
    for path, app in apps.items():
        results = [await call_asgi(app, "GET", path.replace("//", "/"), {}, "203.0.113.1") for _ in range(3)]
        assert [answer.status for answer in results] == [200, 200, 429], path
        assert results[0].headers["x-ratelimit-remaining"] == "1"


def test_l13_rules_may_be_given_as_text_quotas_or_the_limiters_own_rules(opened):
    limiters = [
        Rule("own", Quota.parse("9/minute", algorithm="sliding_log"), per=("endpoint",)),
        Rule("plain", Quota.parse("8/minute", algorithm="sliding_log")),
    ]
    limited = opened(APPS["starlette"])(rules=limiters, clock=ManualClock())
    assert limited.ask().headers["ratelimit-policy"] == '"own";q=9;w=60, "plain";q=8;w=60'
    limited = opened(APPS["starlette"])(rules=["5/second", Quota.parse("100/hour")], clock=ManualClock())
    assert limited.ask().headers["ratelimit-policy"] == '"rule1";q=5;w=1, "rule2";q=100;w=3600'
    limited = opened(APPS["starlette"])(rules="5/second; 100/hour", clock=ManualClock())
    assert limited.ask().headers["ratelimit-policy"] == '"rule1";q=5;w=1, "rule2";q=100;w=3600'
    tiers = {"vip": Quota.parse("7/minute")}
    tiered = Rule(
        "t",
        Quota.parse("2/minute"),
        per=("ip",),
        tiers=tiers,
        tier_of=lambda key: "vip" if key["ip"][-1] == "1" else None,
    )
    limited = opened(APPS["starlette"])(rules=tiered, clock=ManualClock())
    assert [limited.ask(ip=f"203.0.113.{n}").headers["x-ratelimit-limit"] for n in (1, 2)] == ["7", "2"]


async def test_the_applications_that_mypy_checks_also_run():
    apps = [typed_applications.fastapi_application(), typed_applications.starlette_application()]
    for app in apps:
        answers = [await call_asgi(app, "GET", "/", {}, "203.0.113.1") for _ in range(3)]
        assert answers[0].status in (200, 404)
        assert answers[2].status == 429
    assert typed_applications.litestar_application().routes


class Account:
    """A class without `__str__`: its text is another one at every request."""


def test_l15_an_identity_without_a_text_is_an_error_and_never_a_new_client_per_request(opened):
    """`str(Account())` once counted every request as somebody else."""
    rule = RequestRule("fan", Quota.parse("1/minute"), key=("user",))
    limited = opened(APPS["flask"])(rules=rule, identify={"user": lambda request: Account()})
    with pytest.raises(InvalidKey, match="user must be a text, a whole number or an object with __str__"):
        limited.ask()
    limited = opened(APPS["flask"])(rules=rule, identify={"user": lambda request: UUID(int=42)})
    assert [limited.ask().status for _ in range(2)] == [200, 429]
