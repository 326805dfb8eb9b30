"""Two limits on one endpoint, in every framework: both count, the tighter refuses, its headers are written once."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

QUOTAS = ("3/minute", "2/hour")  # the outer and the inner limit


def fastapi_async() -> Any:
    from fastapi import FastAPI, Request, Response

    from frontrow.limits.http.fastapi import limited

    app = FastAPI()

    @app.get("/")
    @limited(QUOTAS[0])
    @limited(QUOTAS[1])
    async def home(request: Request, response: Response, word: str = "served") -> str:
        assert (request.method, response.status_code) == ("GET", None)
        return word

    assert [each["name"] for each in app.openapi()["paths"]["/"]["get"]["parameters"]] == ["word"]
    return app


def fastapi_sync() -> Any:
    from fastapi import FastAPI

    from frontrow.limits.http.fastapi import limited

    app = FastAPI()

    @app.get("/")
    @limited(QUOTAS[0])
    @limited(QUOTAS[1])
    def home() -> str:
        return "served"

    return app


def fastapi_dependencies() -> Any:
    from fastapi import Depends, FastAPI

    from frontrow.limits.http.fastapi import limit, limited

    app = FastAPI(dependencies=[Depends(limit(QUOTAS[0]))])

    @app.get("/", dependencies=[Depends(limit("9/minute"))])
    @limited(QUOTAS[1])
    async def home() -> str:
        return "served"

    return app


def starlette() -> Any:
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from frontrow.limits.http.starlette import limited

    @limited(QUOTAS[0])
    @limited(QUOTAS[1])
    async def home(request: Any) -> Any:
        return PlainTextResponse("served")

    return Starlette(routes=[Route("/", home)])


def litestar() -> Any:
    from litestar import Litestar, get

    from frontrow.limits.http.litestar import RateLimits

    limits = RateLimits()

    @get("/", guards=[limits.limit(QUOTAS[0]), limits.limit(QUOTAS[1])])
    async def home() -> str:
        return "served"

    return Litestar([home], plugins=[limits], openapi_config=None)


def flask() -> Any:
    from flask import Flask

    from frontrow.limits.http.flask import limited

    app = Flask("shop")

    @app.get("/")
    @limited(QUOTAS[0])
    @limited(QUOTAS[1])
    def home() -> str:
        return "served"

    return app


def flask_async() -> Any:
    from flask import Flask

    from frontrow.limits.http.flask import limited

    app = Flask("shop")

    @app.get("/")
    @limited(QUOTAS[0])
    @limited(QUOTAS[1])
    async def home() -> str:
        return "served"

    return app


def ask_asgi(app: Any, count: int) -> list[tuple[int, list[str]]]:
    async def ask() -> list[tuple[int, list[str]]]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop.test") as client:
            answers = [await client.get("/") for _ in range(count)]
        return [(answer.status_code, answer.headers.get_list("x-ratelimit-remaining")) for answer in answers]

    return asyncio.run(ask())


def ask_flask(app: Any, count: int) -> list[tuple[int, list[str]]]:
    answers = [app.test_client().get("/") for _ in range(count)]
    return [(answer.status_code, answer.headers.getlist("x-ratelimit-remaining")) for answer in answers]


def ask_django(view: Callable[..., Any], count: int) -> list[tuple[int, list[str]]]:
    from django.test import RequestFactory

    answers = [view(RequestFactory().get("/")) for _ in range(count)]
    answers = [asyncio.run(each) if asyncio.iscoroutine(each) else each for each in answers]
    return [(answer.status_code, [answer.headers["x-ratelimit-remaining"]]) for answer in answers]


@pytest.mark.parametrize(
    "make", [fastapi_async, fastapi_sync, fastapi_dependencies, starlette, litestar], ids=lambda make: make.__name__
)
def test_two_limits_stand_on_one_endpoint_of_an_asgi_framework(make: Callable[[], Any]) -> None:
    assert ask_asgi(make(), 3) == [(200, ["1"]), (200, ["0"]), (429, ["0"])]


@pytest.mark.parametrize("make", [flask, flask_async], ids=lambda make: make.__name__)
def test_two_limits_stand_on_one_view_of_flask(make: Callable[[], Any]) -> None:
    assert ask_flask(make(), 3) == [(200, ["1"]), (200, ["0"]), (429, ["0"])]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_two_limits_stand_on_one_view_of_django(kind: str) -> None:
    from django.conf import settings
    from django.http import HttpResponse
    from django.test import override_settings

    if not settings.configured:
        settings.configure(SECRET_KEY="only for tests", ALLOWED_HOSTS=["*"], USE_TZ=True)

    from frontrow.limits.http.django import limited

    def home(request: Any) -> Any:
        return HttpResponse("served")

    async def ahome(request: Any) -> Any:
        return HttpResponse("served")

    view = limited(QUOTAS[0])(limited(QUOTAS[1])(home if kind == "sync" else ahome))
    with override_settings(FRONTROW_LIMITS={}):
        assert ask_django(view, 3) == [(200, ["1"]), (200, ["0"]), (429, ["0"])]
