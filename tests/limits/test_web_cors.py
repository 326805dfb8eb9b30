"""A refusal reaches the page's script: CORS headers, with the application's CORS middleware inside or outside ours."""

from typing import Any

import pytest
from litestar import Litestar
from litestar import get as litestar_get
from litestar.config.cors import CORSConfig
from litestar.middleware import DefineMiddleware
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from frontrow.limits.http.asgi import RateLimitMiddleware
from tests.limits.limited_apps import call_asgi

ORIGIN = "https://fans.example"
PREFLIGHT = {"origin": ORIGIN, "access-control-request-method": "GET"}


async def home(request: Any) -> Any:
    return PlainTextResponse("served")


@litestar_get("/")
async def litestar_home() -> str:
    return "served"


async def passing(request: Any, call_next: Any) -> Any:
    return await call_next(request)


def starlette(*middleware: Middleware) -> Starlette:
    return Starlette(routes=[Route("/", home)], middleware=list(middleware))


CORS = Middleware(CORSMiddleware, allow_origins=[ORIGIN], allow_credentials=True)
OURS = Middleware(RateLimitMiddleware, rules="1/day")
LITESTAR_CORS = CORSConfig(allow_origins=[ORIGIN])
APPS = {
    "starlette, CORS outside": lambda: starlette(CORS, OURS),
    "starlette, CORS inside": lambda: starlette(OURS, CORS),
    "starlette, CORS further inside": lambda: starlette(OURS, Middleware(BaseHTTPMiddleware, dispatch=passing), CORS),
    "starlette, ours around the application": lambda: RateLimitMiddleware(starlette(CORS), "1/day"),
    "litestar, CORS outside": lambda: Litestar(
        [litestar_home], cors_config=LITESTAR_CORS, middleware=[DefineMiddleware(RateLimitMiddleware, rules="1/day")]
    ),
    "litestar, ours around the application": lambda: RateLimitMiddleware(
        Litestar([litestar_home], cors_config=LITESTAR_CORS), "1/day"
    ),
}


@pytest.mark.parametrize("kind", APPS)
async def test_preflights_are_free_and_a_refusal_has_cors_headers(kind):
    app: Any = APPS[kind]()
    preflights = [await call_asgi(app, "OPTIONS", "/", PREFLIGHT, "203.0.113.1") for _ in range(3)]
    assert {answer.status for answer in preflights} <= {200, 204}
    answers = [await call_asgi(app, "GET", "/", {"origin": ORIGIN}, "203.0.113.1") for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 429]
    for answer in answers:
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        assert answer.headers["x-ratelimit-limit"] == "1"
    other = await call_asgi(app, "GET", "/", {"origin": "https://other.example"}, "203.0.113.1")
    assert other.status == 429
    assert other.headers.get("access-control-allow-origin") != "https://other.example"


async def test_a_response_of_the_framework_as_refusal_has_both_kinds_of_headers():
    def refuse(scope: Any, decision: Any) -> Any:
        return JSONResponse({"error": "slow down"}, 420, {"x-own": "1"})

    app = starlette(Middleware(RateLimitMiddleware, rules="1/day", on_refused=refuse), CORS)
    await call_asgi(app, "GET", "/", {"origin": ORIGIN}, "203.0.113.1")
    refused = await call_asgi(app, "GET", "/", {"origin": ORIGIN}, "203.0.113.1")
    assert (refused.status, refused.body, refused.headers["x-own"]) == (420, b'{"error":"slow down"}', "1")
    assert refused.headers["access-control-allow-origin"] == ORIGIN
    assert {"retry-after", "ratelimit", "x-ratelimit-reset"} <= set(refused.headers)
