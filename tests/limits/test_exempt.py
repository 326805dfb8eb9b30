"""`@exempt` in every framework: the limits around an endpoint do not count it, and never refuse it."""

import asyncio
from typing import Any

import httpx
import pytest

from frontrow.core.errors import ConfigError
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.http.exempt import exempt, is_exempt


def ask(app: Any, *paths: str, method: str = "GET") -> list[int]:
    async def run() -> list[int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop.test") as client:
            return [(await client.request(method, path)).status_code for path in paths]

    return asyncio.run(run())


COUNTED_THEN_EXEMPT = ("/counted", "/counted", "/free", "/free", "/counted")
TOLD = [200, 429, 200, 200, 429]


def starlette_routes() -> list[Any]:
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def counted(request: Any) -> Any:
        return PlainTextResponse("served")

    @exempt
    async def free(request: Any) -> Any:
        return PlainTextResponse("served")

    return [Route("/counted", counted), Route("/free", free)]


def test_starlette_middleware_added_to_the_application_and_around_it() -> None:
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.gzip import GZipMiddleware

    inside = Starlette(
        routes=starlette_routes(),
        middleware=[Middleware(RateLimitMiddleware, rules="1/minute"), Middleware(GZipMiddleware)],
    )
    assert ask(inside, *COUNTED_THEN_EXEMPT) == TOLD
    around = RateLimitMiddleware(Starlette(routes=starlette_routes()), "1/minute")
    assert ask(around, *COUNTED_THEN_EXEMPT) == TOLD


def test_starlette_endpoints_below_mounts_and_applications_that_are_mounted() -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    app = Starlette(
        routes=[Mount("/one", routes=starlette_routes()), Mount("/two", app=Starlette(routes=starlette_routes()))]
    )
    limited = RateLimitMiddleware(app, "1/minute")
    assert ask(limited, "/one/counted", "/two/counted", "/one/free", "/two/free") == [200, 429, 200, 200]
    files = exempt(Starlette(routes=starlette_routes()))
    limited = RateLimitMiddleware(Starlette(routes=[Mount("/static", app=files), *starlette_routes()]), "1/minute")
    assert ask(limited, "/static/counted", "/static/nowhere", "/counted", "/counted") == [200, 404, 200, 429]


def test_a_middleware_of_a_mount_asks_the_routes_inside() -> None:
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.routing import Mount

    limits = [Middleware(RateLimitMiddleware, rules="1/minute")]
    app = Starlette(routes=[Mount("/api", routes=starlette_routes(), middleware=limits), *starlette_routes()])
    assert ask(app, *(f"/api{path}" for path in COUNTED_THEN_EXEMPT)) == TOLD
    assert ask(app, "/counted", "/counted") == [200, 200], "the mount alone is limited"


def test_what_is_not_served_by_the_exempt_endpoint_counts() -> None:
    from starlette.applications import Starlette

    limited = RateLimitMiddleware(Starlette(routes=starlette_routes()), "3/minute")
    assert ask(limited, "/free/", "/FREE", "/free%2f", "/free%2f") == [307, 404, 307, 429]
    limited = RateLimitMiddleware(Starlette(routes=starlette_routes()), "1/minute")
    assert ask(limited, "/free", "/free", method="POST") == [405, 429], "another method"


def test_a_route_that_may_decide_by_more_than_the_path_makes_everything_behind_it_count() -> None:
    from starlette.applications import Starlette
    from starlette.routing import Host, Match, Route

    class Versioned(Route):
        def matches(self, scope: Any) -> Any:
            return (Match.NONE, {}) if dict(scope["headers"]).get(b"x-version") != b"2" else super().matches(scope)

    for first in (Host("api.test", app=Starlette()), Versioned("/free", starlette_routes()[0].endpoint)):
        limited = RateLimitMiddleware(Starlette(routes=[first, *starlette_routes()]), "1/minute")
        assert ask(limited, "/free", "/free") == [200, 429], first


def test_a_websocket_and_a_request_to_one_path_are_told_apart() -> None:
    from starlette.applications import Starlette
    from starlette.routing import WebSocketRoute

    async def talk(socket: Any) -> None:
        await socket.accept()
        await socket.close()

    routes = [WebSocketRoute("/free", talk), *starlette_routes()]
    limited = RateLimitMiddleware(Starlette(routes=routes), "1/minute")

    async def shake_hands() -> str:
        scope = {"type": "websocket", "path": "/free", "headers": [], "client": ("127.0.0.1", 1), "subprotocols": []}
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await limited(scope, receive, send)
        return str(sent[0]["type"])

    assert ask(limited, "/free") == [200]
    kinds = [asyncio.run(shake_hands()) for _ in range(2)]
    assert kinds == ["websocket.accept", "websocket.close"]
    assert ask(limited, "/free") == [200]


def test_fastapi_middleware_dependencies_and_included_routers() -> None:
    from fastapi import APIRouter, Depends, FastAPI

    from frontrow.limits.http import fastapi

    def routes(app: Any) -> Any:
        app.get("/counted")(lambda: "served")
        app.get("/free")(exempt(lambda: "served"))
        return app

    app = routes(FastAPI())
    inner = APIRouter(prefix="/inner")
    inner.include_router(routes(APIRouter()), prefix="/most")
    app.include_router(routes(inner), prefix="/outer")
    app.add_middleware(fastapi.RateLimitMiddleware, rules="1/minute")
    assert ask(app, *COUNTED_THEN_EXEMPT) == TOLD
    assert ask(app, "/outer/inner/free", "/outer/inner/most/free") == [200, 200]
    assert ask(app, "/outer/inner/counted", "/outer/inner/most/counted") == [429, 429]
    app = routes(FastAPI(dependencies=[Depends(fastapi.limit("1/minute", name="all"))]))
    assert ask(app, *COUNTED_THEN_EXEMPT) == TOLD


def test_an_endpoint_keeps_the_limit_that_decorates_it() -> None:
    from fastapi import FastAPI

    from frontrow.limits.http import fastapi

    app = FastAPI()
    app.get("/free")(fastapi.limited("2/minute")(exempt(lambda: "served")))
    app.add_middleware(fastapi.RateLimitMiddleware, rules="1/minute")
    assert ask(app, "/free", "/free", "/free") == [200, 200, 429]


@pytest.mark.parametrize("above", [True, False])
def test_litestar_guards_and_middleware(above: bool) -> None:
    from litestar import Litestar, get

    from frontrow.limits.http import litestar

    def routes(**options: Any) -> list[Any]:
        async def counted() -> str:
            return "served"

        async def free() -> str:
            return "served"

        served = exempt(get("/free", **options)(free)) if above else get("/free", **options)(exempt(free))
        return [get("/counted", **options)(counted), served]

    app = Litestar(routes(), middleware=[litestar.middleware("1/minute")])
    assert ask(app, *COUNTED_THEN_EXEMPT) == TOLD
    guards = [litestar.RateLimits().limit("1/minute", name="all")]
    assert ask(Litestar(routes(), guards=guards), *COUNTED_THEN_EXEMPT) == TOLD


def test_flask_extension_and_class_views() -> None:
    import flask
    import flask.views

    from frontrow.limits.http import flask as flask_limits

    @exempt
    class Free(flask.views.MethodView):
        def get(self) -> str:
            return "served"

    app = flask.Flask("shop")
    flask_limits.RateLimits(app, rules="1/minute")
    app.add_url_rule("/counted", "counted", lambda: "served")
    app.add_url_rule("/free", "free", exempt(lambda: "served"))
    app.add_url_rule("/class", view_func=Free.as_view("class"))
    client = app.test_client()
    assert [client.get(path).status_code for path in COUNTED_THEN_EXEMPT] == TOLD
    assert client.get("/class").status_code == 200
    assert "x-ratelimit-limit" not in client.get("/free").headers
    assert client.get("/nowhere").status_code == 429


def test_plain_wsgi_middleware_is_exempt_by_path() -> None:
    import flask

    from frontrow.limits.http.wsgi import RateLimitMiddleware as Wsgi

    app = flask.Flask("shop")
    for name in ("counted", "free"):
        app.add_url_rule(f"/{name}", name, lambda: "served")
    app.wsgi_app = Wsgi(app.wsgi_app, "1/minute", exempt_paths=["/free"])  # type: ignore[method-assign]
    assert [app.test_client().get(path).status_code for path in COUNTED_THEN_EXEMPT] == TOLD


def test_what_cannot_be_marked_is_one_sentence_and_nothing_else_is_exempt() -> None:
    with pytest.raises(ConfigError, match=r"exempt marks a function, a class or a handler; 'text' cannot be marked"):
        exempt("text")
    assert not is_exempt(len)
    assert not is_exempt(None)
