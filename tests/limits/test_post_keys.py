"""`key="post:username"`: a limit by a field of the body, a form or JSON, in every framework and in the middleware."""

import asyncio
from typing import Annotated, Any

import django
import httpx
import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import AsyncClient, Client, override_settings
from django.urls import path

from frontrow.core.errors import ConfigError

if not settings.configured:
    settings.configure(SECRET_KEY="only for tests", ALLOWED_HOSTS=["*"], USE_TZ=True)
    django.setup()

FORM, JSON = "application/x-www-form-urlencoded", "application/json"
BODIES = [
    ("username=ann", FORM, 200),
    ("username=ann&password=2", FORM + "; charset=utf-8", 429),
    ('{"username": "ann"}', JSON, 429),
    ('{"username": "bob"}', "application/vnd.api+json", 200),
    ('{"username": "x", "a": "&username=bob&"}', FORM, 429),
    ("username=eve&username=bob", FORM, 400),
    ('{"username": "eve", "username": "bob"}', JSON, 400),
    ("username=eve", "text/plain", 400),
    ("password=1", FORM, 400),
    ("", FORM, 400),
    ("username=eve&more=" + "x" * 70_000, FORM, 400),
]
WANTED = [status for _, _, status in BODIES]


def ask(app: Any) -> list[int]:
    async def run() -> list[int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop.test") as client:
            answers = [
                await client.post("/in", content=body.encode(), headers={"content-type": kind})
                for body, kind, _ in BODIES
            ]
        for (body, _, _), answer in zip(BODIES, answers, strict=True):
            assert answer.status_code != 200 or answer.text == body, "the application reads the body as always"
        return [answer.status_code for answer in answers]

    return asyncio.run(run())


def test_starlette_and_the_middleware() -> None:
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from frontrow.limits.http.starlette import RateLimitMiddleware, RequestRule, limited

    async def sign_in(request: Any) -> Any:
        return PlainTextResponse((await request.body()).decode())

    view = limited("1/minute", key="post:username")(sign_in)
    assert ask(Starlette(routes=[Route("/in", view, methods=["POST"])])) == WANTED
    rule = RequestRule("tries", "1/minute", key=["name"])
    app = Starlette(routes=[Route("/in", sign_in, methods=["POST"])])
    assert ask(RateLimitMiddleware(app, rule, identify={"name": "post:username"})) == WANTED


def test_fastapi_decorator_and_dependency_with_and_without_a_body_of_its_own() -> None:
    from fastapi import Depends, FastAPI, Request
    from fastapi.responses import PlainTextResponse

    from frontrow.limits.http.fastapi import limit, limited

    async def sign_in(request: Request) -> Any:
        return PlainTextResponse(await request.body())

    app = FastAPI()
    app.post("/in")(limited("1/minute", key="post:username")(sign_in))
    assert ask(app) == WANTED
    app = FastAPI(dependencies=[Depends(limit("1/minute", key=["post:username"]))])
    app.post("/in")(sign_in)
    assert ask(app) == WANTED


def test_fastapi_has_read_the_form_or_the_json_before() -> None:
    from fastapi import Body, Depends, FastAPI, Form

    from frontrow.limits.http.fastapi import limit

    app = FastAPI(dependencies=[Depends(limit("1/minute", key="post:username"))])

    @app.post("/form")
    async def sign_in_by_form(username: Annotated[str, Form()]) -> str:
        return username

    @app.post("/json")
    async def sign_in_by_json(username: Annotated[str, Body(embed=True)]) -> str:
        return username

    async def run() -> list[int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop.test") as client:
            form = [await client.post("/form", data={"username": name}) for name in ("ann", "ann", "bob")]
            sent = [await client.post("/json", json={"username": name}) for name in ("ann", "ann", "bob")]
            return [answer.status_code for answer in (*form, *sent)]

    assert asyncio.run(run()) == [200, 429, 200] * 2


def test_litestar() -> None:
    from litestar import Litestar, Request, Response, post

    from frontrow.limits.http.litestar import RateLimits

    @post("/in", guards=[RateLimits().limit("1/minute", key="post:username")], status_code=200)
    async def sign_in(request: Request[Any, Any, Any]) -> Response[bytes]:
        return Response(await request.body(), media_type="text/plain")

    assert ask(Litestar([sign_in], openapi_config=None)) == WANTED


def test_flask() -> None:
    import flask

    from frontrow.limits.http.flask import limited

    app = flask.Flask("shop")
    view = limited("1/minute", key="post:username")(lambda: flask.request.get_data())
    app.add_url_rule("/in", "in", view, methods=["POST"])
    client = app.test_client()
    assert [client.post("/in", data=body, content_type=kind).status_code for body, kind, _ in BODIES] == WANTED


def test_django_sync_and_async() -> None:
    from frontrow.limits.http.django import limited

    @limited("1/minute", key="post:username")
    def sign_in(request: Any) -> HttpResponse:
        return HttpResponse(request.POST.get("username") or request.body)

    @limited("1/minute", key="post:username")
    async def async_sign_in(request: Any) -> HttpResponse:
        return HttpResponse(request.body)

    class Urls:
        urlpatterns = (path("in", sign_in), path("async", async_sign_in))

    async def run() -> list[int]:
        client = AsyncClient()
        return [(await client.post("/async", body, content_type=kind)).status_code for body, kind, _ in BODIES]

    with override_settings(ROOT_URLCONF=Urls, MIDDLEWARE=[], FRONTROW_LIMITS={}):
        client = Client()
        assert [client.post("/in", body, content_type=kind).status_code for body, kind, _ in BODIES] == WANTED
        assert asyncio.run(run()) == WANTED


def test_two_sources_that_would_be_one_part_are_an_error() -> None:
    from frontrow.limits.http.flask import limited

    with pytest.raises(ConfigError, match=r"'post:a.b' and 'post:a_b' would be one part"):
        limited("1/minute", key=["post:a.b", "post:a_b"])
    with pytest.raises(ConfigError, match=r'must be a function of the request or "header:x-user-id", "post:email"'):
        limited("1/minute", key="cookie:name")
