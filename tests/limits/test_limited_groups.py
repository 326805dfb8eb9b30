"""`methods=` of a limit, and one limit for all views of a blueprint, a router, an APIRouter or an include."""

import asyncio
from typing import Any

import httpx
import pytest

from frontrow.core.errors import ConfigError
from frontrow.limits.http.exempt import exempt


def ask(app: Any, *requests: str, headers: Any = None) -> list[int]:
    async def run() -> list[int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop.test") as client:
            return [(await client.request(*each.split(), headers=headers)).status_code for each in requests]

    return asyncio.run(run())


POSTS = ("GET /codes", "POST /codes", "GET /codes", "HEAD /codes", "POST /codes", "GET /codes")
OF_POSTS = [200, 200, 200, 200, 429, 200]


def test_fastapi_counts_the_named_methods() -> None:
    from fastapi import Depends, FastAPI

    from frontrow.limits.http.fastapi import limit, limited

    app = FastAPI()
    app.api_route("/codes", methods=["GET", "HEAD", "POST"])(limited("1/minute", methods=["POST"])(lambda: "sent"))
    assert ask(app, *POSTS) == OF_POSTS
    app = FastAPI(dependencies=[Depends(limit("1/minute", methods=["post"]))])
    app.api_route("/codes", methods=["GET", "HEAD", "POST"])(lambda: "sent")
    assert ask(app, *POSTS) == OF_POSTS


def test_starlette_counts_the_named_methods() -> None:
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from frontrow.limits.http.starlette import limited

    @limited("1/minute", methods=["POST"])
    async def codes(request: Any) -> Any:
        return PlainTextResponse("sent")

    assert ask(Starlette(routes=[Route("/codes", codes, methods=["GET", "POST"])]), *POSTS) == OF_POSTS


def test_litestar_counts_the_named_methods() -> None:
    from litestar import HttpMethod, Litestar, route

    from frontrow.limits.http.litestar import RateLimits

    methods = [HttpMethod.GET, HttpMethod.HEAD, HttpMethod.POST]

    @route("/codes", http_method=methods, guards=[RateLimits().limit("1/minute", methods=["POST"])], status_code=200)
    async def codes() -> None: ...

    assert ask(Litestar([codes], openapi_config=None), *POSTS) == OF_POSTS


def test_flask_counts_the_named_methods() -> None:
    import flask

    from frontrow.limits.http.flask import limited

    app = flask.Flask("shop")
    view = limited("1/minute", methods=["POST"])(lambda: "sent")
    app.add_url_rule("/codes", "codes", view, methods=["GET", "POST"])
    client = app.test_client()
    assert [client.open(each.split()[1], method=each.split()[0]).status_code for each in POSTS] == OF_POSTS


def test_get_counts_head_too_and_a_wrong_method_is_one_sentence() -> None:
    import flask

    from frontrow.limits.http.flask import limited

    app = flask.Flask("shop")
    app.add_url_rule("/codes", "codes", limited("1/minute", methods=["GET"])(lambda: "sent"))
    assert [app.test_client().open("/codes", method=method).status_code for method in ("HEAD", "GET")] == [200, 429]
    with pytest.raises(ConfigError, match=r"methods has 'PSOT', like \['GET', 'POST'\]"):
        limited("1/minute", methods=["psot"])
    with pytest.raises(ConfigError, match=r"methods must be a list, like \['POST'\]"):
        limited("1/minute", methods="POST")


def test_an_apirouter_has_one_limit_for_all_its_endpoints() -> None:
    from fastapi import APIRouter, Depends, FastAPI

    from frontrow.limits.http.fastapi import limit

    api = APIRouter(prefix="/api", dependencies=[Depends(limit("2/minute", name="grouped_api"))])
    app = FastAPI()
    for name in ("one", "two"):
        api.get(f"/{name}")(lambda: "served")
        app.get(f"/{name}")(lambda: "served")
    app.include_router(api)
    assert ask(app, "GET /api/one", "GET /api/two", "GET /api/one", "GET /one") == [200, 200, 429, 200]


def test_a_litestar_router_has_one_limit_for_all_its_routes() -> None:
    from litestar import Litestar, Router, get

    from frontrow.limits.http.litestar import RateLimits

    @get("/one")
    async def one() -> str:
        return "served"

    @get("/two")
    async def two() -> str:
        return "served"

    api = Router("/api", route_handlers=[one, two], guards=[RateLimits().limit("2/minute", name="api")])
    assert ask(Litestar([api, one]), "GET /api/one", "GET /api/two", "GET /api/one", "GET /one") == [200, 200, 429, 200]


def blueprint_app(rules: str | None = None, **options: Any) -> Any:
    import flask

    from frontrow.limits.http.flask import RateLimits

    app, api = flask.Flask("shop"), flask.Blueprint("api", "api", url_prefix="/api")
    limits = RateLimits(app, rules=rules)
    assert limits.limited("2/minute", **options)(api) is api
    for name in ("one", "two"):
        api.add_url_rule(f"/{name}", name, lambda: ("served", int(flask.request.headers.get("x-answer", 200))))
        app.add_url_rule(f"/{name}", name, lambda: "served")
    api.add_url_rule("/free", "free", exempt(lambda: "served"))
    app.register_blueprint(api)
    return app.test_client()


def test_a_flask_blueprint_has_one_limit_for_all_its_views() -> None:
    client = blueprint_app()
    answers = [client.get(path) for path in ("/api/one", "/api/two", "/api/one", "/api/free", "/one")]
    assert [answer.status_code for answer in answers] == [200, 200, 429, 200, 200]
    assert [answer.headers.get("x-ratelimit-remaining") for answer in answers] == ["1", "0", "0", None, None]


def test_a_blueprint_gives_back_what_does_not_count_and_refuses_all_or_none() -> None:
    client = blueprint_app(statuses=(401,), name="tries")
    told = [client.get("/api/one", headers={"x-answer": answer}).status_code for answer in ("200", "401", "200", "401")]
    assert told == [200, 401, 200, 401]
    assert client.get("/api/two").status_code == 429
    client = blueprint_app("3/minute")
    told = [client.get("/api/one") for _ in range(4)]
    assert [answer.status_code for answer in told] == [200, 200, 429, 429]
    assert [client.get("/one").status_code for _ in range(2)] == [200, 429], "what the blueprint refused used nothing"
