"""A request passes several limits: if one refuses it, the others are charged nothing, in every framework.

Each application has a limit of ten for all its routes and a limit of two for `/codes`. Five requests for codes use two
of the ten. So `/free` then has seven left.
"""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.rules import RequestRule
from frontrow.testing.clock import ManualClock

TEN, TWO = "10/minute", "2/minute"
BY_PARTS = [RequestRule("all", TEN, ["ip", "path"], statuses=[200, 404, 429]), RequestRule("everybody", TEN, [])]
names = (f"ten{number}" for number in itertools.count())


def fastapi_decorator() -> Any:
    from fastapi import FastAPI

    from frontrow.limits.http.fastapi import limited

    app = FastAPI()
    app.add_middleware(RateLimitMiddleware, rules=TEN, clock=ManualClock())

    @app.get("/codes")
    @limited(TWO)
    async def codes() -> str:
        return "served"

    app.get("/free")(lambda: "served")
    return app


def fastapi_sync_decorator() -> Any:
    from fastapi import FastAPI

    from frontrow.limits.http.fastapi import limited

    app = FastAPI()
    app.add_middleware(RateLimitMiddleware, rules=TEN, clock=ManualClock())
    app.get("/codes")(limited(TWO)(lambda: "served"))
    app.get("/free")(lambda: "served")
    return app


def fastapi_dependency() -> Any:
    from fastapi import Depends, FastAPI

    from frontrow.limits.http.fastapi import limit

    app = FastAPI()
    app.add_middleware(RateLimitMiddleware, rules=TEN, clock=ManualClock())
    app.get("/codes", dependencies=[Depends(limit(TWO))])(lambda: "served")
    app.get("/free")(lambda: "served")
    return app


def fastapi_two_dependencies() -> Any:
    from fastapi import Depends, FastAPI

    from frontrow.limits.http.fastapi import limit, limited

    app = FastAPI(dependencies=[Depends(limit(TEN, name=next(names)))])
    app.get("/codes")(limited(TWO)(lambda: "served"))
    app.get("/free")(lambda: "served")
    return app


def starlette(rules: Any = TEN) -> Any:
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from frontrow.limits.http.starlette import limited

    async def serve(request: Any) -> Any:
        return PlainTextResponse("served")

    routes = [Route("/codes", limited(TWO)(serve)), Route("/free", serve)]
    return Starlette(routes=routes, middleware=[Middleware(RateLimitMiddleware, rules=rules, clock=ManualClock())])


def starlette_several_rules() -> Any:
    """Rules by parts, of which one counts only some responses: nothing is given back twice."""
    return starlette(BY_PARTS)


def starlette_two_decorators() -> Any:
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from frontrow.limits.http.starlette import limited

    async def serve(request: Any) -> Any:
        return PlainTextResponse("served")

    ten = limited(TEN, name=next(names))
    return Starlette(routes=[Route("/codes", ten(limited(TWO)(serve))), Route("/free", ten(serve))])


def litestar() -> Any:
    from litestar import Litestar, get

    from frontrow.limits.http.litestar import limit, middleware

    @get("/codes", guards=[limit(TWO)])
    async def codes() -> str:
        return "served"

    @get("/free")
    async def free() -> str:
        return "served"

    return Litestar([codes, free], middleware=[middleware(TEN, clock=ManualClock())], openapi_config=None)


def litestar_two_guards() -> Any:
    from litestar import Litestar, get

    from frontrow.limits.http.litestar import RateLimits

    limits = RateLimits()

    @get("/codes", guards=[limits.limit(TWO)])
    async def codes() -> str:
        return "served"

    @get("/free")
    async def free() -> str:
        return "served"

    ten = limits.limit(TEN, name="ten")
    return Litestar([codes, free], guards=[ten], plugins=[limits], openapi_config=None)


ASGI = [
    fastapi_decorator,
    fastapi_sync_decorator,
    fastapi_dependency,
    fastapi_two_dependencies,
    starlette,
    starlette_several_rules,
    starlette_two_decorators,
    litestar,
    litestar_two_guards,
]


@pytest.mark.parametrize("make", ASGI, ids=lambda make: make.__name__)
def test_a_refusal_inside_burns_nothing_outside_in_asgi_frameworks(make: Callable[[], Any]) -> None:
    async def ask() -> tuple[list[int], str]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(make()), base_url="http://shop.test") as client:
            codes = [(await client.get("/codes")).status_code for _ in range(5)]
            return codes, (await client.get("/free")).headers["x-ratelimit-remaining"]

    assert asyncio.run(ask()) == ([200, 200, 429, 429, 429], "7")


@pytest.mark.parametrize("kind", ["extension", "wsgi"])
def test_a_refusal_inside_burns_nothing_outside_in_flask(kind: str) -> None:
    import flask

    from frontrow.limits.http import wsgi
    from frontrow.limits.http.flask import RateLimits, limited

    app: Any = flask.Flask("shop")
    if kind == "extension":
        RateLimits(app, rules=TEN, clock=ManualClock())
    else:
        app.wsgi_app = wsgi.RateLimitMiddleware(app.wsgi_app, TEN, clock=ManualClock())
    app.add_url_rule("/codes", "codes", limited(TWO)(lambda: "served"))
    app.add_url_rule("/free", "free", lambda: "served")
    client = app.test_client()
    assert [client.get("/codes").status_code for _ in range(5)] == [200, 200, 429, 429, 429]
    assert client.get("/free").headers["x-ratelimit-remaining"] == "7"


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("by", ["view", "user"])
def test_a_refusal_inside_burns_nothing_outside_in_django(kind: str, by: str) -> None:
    """By a limit of the view, and by a rule of the middleware that waits for the user."""
    from django.conf import settings
    from django.http import HttpResponse
    from django.test import AsyncClient, Client, override_settings
    from django.urls import path

    if not settings.configured:
        settings.configure(
            SECRET_KEY="only for tests",
            ALLOWED_HOSTS=["*"],
            USE_TZ=True,
            INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"],
        )
    from frontrow.limits.http.django import limited

    def serve(request: Any) -> Any:
        return HttpResponse("served")

    async def aserve(request: Any) -> Any:
        return HttpResponse("served")

    view = serve if kind == "sync" else aserve

    class Urls:
        urlpatterns = (path("codes", limited(TWO)(view) if by == "view" else view), path("free", view))

    by_user = RequestRule("codes", TWO, ["user"], paths=["/codes"], on_missing="ip")
    rules = [RequestRule("all", TEN), *([by_user] if by == "user" else [])]
    project: Any = {
        "ROOT_URLCONF": Urls,
        "MIDDLEWARE": ["frontrow.limits.http.django.RateLimitMiddleware"],
        "FRONTROW_LIMITS": {"rules": rules},
    }

    async def aask() -> tuple[list[int], str]:
        client = AsyncClient()
        codes = [(await client.get("/codes")).status_code for _ in range(5)]
        return codes, (await client.get("/free")).headers["x-ratelimit-remaining"]

    with override_settings(**project):
        if kind == "async":
            told = asyncio.run(aask())
        else:
            client = Client()
            codes = [client.get("/codes").status_code for _ in range(5)]
            told = codes, client.get("/free").headers["x-ratelimit-remaining"]
    assert told == ([200, 200, 429, 429, 429], "7")


def test_a_refusal_outside_never_reaches_the_limit_inside() -> None:
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from frontrow.limits.http.starlette import RateLimits

    limits = RateLimits(clock=ManualClock())

    async def serve(request: Any) -> Any:
        return PlainTextResponse("served")

    outside = Middleware(RateLimitMiddleware, rules="1/minute", clock=ManualClock())
    app = Starlette(routes=[Route("/", limits.limited("9/minute")(serve))], middleware=[outside])

    async def ask() -> list[int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop.test") as client:
            return [(await client.get("/")).status_code for _ in range(3)]

    assert asyncio.run(ask()) == [200, 429, 429]
    [counts] = limits.metrics.snapshot().values()
    assert (counts["allowed"], counts["refused"]) == (1, 0)


def test_what_was_charged_in_the_last_window_is_not_given_back_to_this_one() -> None:
    """The window ends while the request is on its way: what others used since must not grow free."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from frontrow.limits.http.starlette import limited

    clock = ManualClock(1_700_000_040_000_000)  # a whole minute

    async def quota(request: Any) -> str:
        if "late" in request.headers:
            clock.advance(60)
            await client.get("/free")
        return "1/day"

    async def serve(request: Any) -> Any:
        return PlainTextResponse("served")

    rules = RequestRule("all", "10/minute fixed_window", [])
    outside = Middleware(RateLimitMiddleware, rules=rules, clock=clock)
    app = Starlette(routes=[Route("/codes", limited(quota)(serve)), Route("/free", serve)], middleware=[outside])
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop.test")

    async def ask() -> list[Any]:
        async with client:
            assert (await client.get("/codes")).status_code == 200
            assert (await client.get("/codes", headers={"late": "yes"})).status_code == 429
            return [(await client.get("/free")).headers["x-ratelimit-remaining"]]

    assert asyncio.run(ask()) == ["8"]
