"""The limiter in real Litestar applications: guards, signed-in users, exception handlers, beside the middleware."""

from typing import Any

import httpx
import pytest
from litestar import Litestar, Response, get
from litestar.connection import ASGIConnection
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult, DefineMiddleware

from frontrow.core.errors import ConfigError
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.http.litestar import RateLimited, RateLimits, limit, middleware
from frontrow.testing.clock import ManualClock

FIELDS = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit", "ratelimit-policy"}


async def ask(app: Any, *paths: str, **headers: str) -> list[httpx.Response]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop.test") as client:
        return [await client.get(path, headers=named) for path in paths]


def statuses(answers: list[httpx.Response]) -> list[int]:
    return [answer.status_code for answer in answers]


class Authentication(AbstractAuthenticationMiddleware):
    async def authenticate_request(self, connection: ASGIConnection[Any, Any, Any, Any]) -> AuthenticationResult:
        return AuthenticationResult(connection.headers.get("x-user"), None)


async def test_a_guard_answers_429_with_headers_and_counts_the_signed_in_user():
    limits = RateLimits(clock=ManualClock())

    @get("/codes/{number:int}", guards=[limits.limit("2/minute", key="user")])
    async def code() -> str:
        return "served"

    app = Litestar([code], middleware=[DefineMiddleware(Authentication)], plugins=[limits])
    answers = await ask(app, "/codes/1", "/codes/2", "/codes/3", x_user="ann")
    assert statuses(answers) == [200, 200, 429]
    assert all(set(answer.headers) >= FIELDS for answer in answers)
    assert [answer.headers.get_list("x-ratelimit-remaining") for answer in answers] == [["1"], ["0"], ["0"]]
    assert int(answers[2].headers["retry-after"]) >= 1
    assert answers[2].json()["detail"].startswith("The limit of 2 is used up")
    assert statuses(await ask(app, "/codes/1", x_user="bob")) == [200]
    assert statuses(await ask(app, "/codes/1")) == [400]
    assert limits.metrics.snapshot()["limit-2-60s"]["refused"] == 1
    await limits.aclose()


async def test_an_exception_handler_gives_a_body_and_a_middleware_outside_writes_the_tightest_headers():
    @get("/", guards=[limit("1/minute")])
    async def home() -> str:
        return "served"

    def slow_down(request: Any, error: RateLimited) -> Response[dict[str, str]]:
        return Response({"rule": error.decision.rule}, status_code=error.status_code, headers=error.headers)

    ours = DefineMiddleware(RateLimitMiddleware, rules="9/minute")
    app = Litestar([home], middleware=[ours], exception_handlers={RateLimited: slow_down})
    answers = await ask(app, "/", "/")
    assert statuses(answers) == [200, 429]
    assert answers[1].json() == {"rule": "limit-1-60s"}
    assert [answer.headers.get_list("ratelimit-policy") for answer in answers] == [['"limit-1-60s";q=1;w=60']] * 2


async def test_the_middleware_counts_all_routes_together():
    """Litestar makes a middleware for every route: with a store each, two routes would allow twice as much."""

    @get("/one")
    async def one() -> str:
        return "served"

    @get("/two")
    async def two() -> str:
        return "served"

    app = Litestar([one, two], middleware=[middleware("2/minute", clock=ManualClock())])
    assert statuses(await ask(app, "/one", "/two", "/one", "/two")) == [200, 200, 429, 429]
    assert statuses(await ask(app, "/nowhere", "/nowhere")) == [404, 404], "no route, no middleware"


async def test_a_middleware_around_the_application_counts_what_has_no_route():
    app = RateLimitMiddleware(Litestar([]), "1/minute", clock=ManualClock())
    assert statuses(await ask(app, "/nowhere", "/nowhere")) == [404, 429]


def test_what_a_guard_cannot_do_is_an_error_at_once():
    with pytest.raises(ConfigError, match="a guard does not see the response"):
        limit("1/minute", statuses=(401,))
    with pytest.raises(ConfigError, match="exception handler for RateLimited"):
        RateLimits(on_refused=print)
