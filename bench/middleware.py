"""CPU a rate-limiting middleware adds to one request: Frontrow beside slowapi, Litestar's own and a hand-written floor.

Every application is called in-process with the same scope, with and without its limiter, in turns, so that noise of the
machine falls on all alike. Figures are microseconds of CPU, the quietest of several rounds.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bench.measure import options

ROUNDS, REQUESTS, CLIENTS = 9, 2000, 500  # few requests each: Litestar's limiter rereads a client's whole history
LIMIT = 10**9
App = Callable[[Any, Any, Any], Awaitable[None]]
BODY = {"type": "http.response.body", "body": b"ok"}


def scope(client: int) -> dict[str, Any]:
    headers = [(b"host", b"shop.test"), (b"user-agent", b"bench"), (b"accept", b"*/*"), (b"x-user-id", b"42")]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "root_path": "",
        "headers": headers,
        "client": (f"203.0.{client >> 8}.{client & 255}", 50000),
        "server": ("127.0.0.1", 80),
        "state": {},
    }


async def bare(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send(BODY)


def floor(app: App) -> App:
    """The least that any middleware with all these fields can do: a counter in a dictionary and no configuration."""
    counts: dict[str, int] = {}

    async def limited(scope: Any, receive: Any, send: Any) -> None:
        key = scope["client"][0]
        used = counts[key] = counts.get(key, 0) + 1
        left = b"%d" % (LIMIT - used)

        async def with_fields(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [
                    (b"x-ratelimit-limit", b"1000000000"),
                    (b"x-ratelimit-remaining", left),
                    (b"x-ratelimit-reset", b"%d" % (time.time() + 60)),
                    (b"ratelimit", b'"default";r=' + left + b";t=60"),
                    (b"ratelimit-policy", b'"default";q=1000000000;w=60'),
                ]
            await send(message)

        await app(scope, receive, with_fields)

    return limited


def frontrow_apps() -> dict[str, App]:
    from frontrow.limits import Quota
    from frontrow.limits.http.asgi import RateLimitMiddleware
    from frontrow.limits.rules import RequestRule

    minute, hour = Quota.parse(f"{LIMIT}/minute"), Quota.parse(f"{LIMIT}/hour")
    bucket = Quota.parse(f"{LIMIT}/minute", algorithm="token_bucket")
    three = [RequestRule("minute", minute), RequestRule("hour", hour), RequestRule("bucket", bucket)]
    mixed = [
        RequestRule("fan", bucket, ("user",)),
        RequestRule("address", minute, ("ip",)),
        RequestRule("endpoint", hour, ("endpoint",), paths=("/", "/holds")),
    ]
    return {
        "Frontrow": RateLimitMiddleware(bare, f"{LIMIT}/minute"),
        "Frontrow, refused": RateLimitMiddleware(bare, "1/day"),
        "Frontrow, 3 rules by address": RateLimitMiddleware(bare, three),
        "Frontrow, 3 rules by user, address, endpoint": RateLimitMiddleware(
            bare, mixed, identify={"user": "header:x-user-id"}
        ),
    }


def starlette_apps() -> dict[str, App]:
    from slowapi import Limiter
    from slowapi.middleware import SlowAPIASGIMiddleware, SlowAPIMiddleware
    from slowapi.util import get_remote_address
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def home(request: Any) -> PlainTextResponse:
        return PlainTextResponse("ok")

    def make(middleware: Any) -> App:
        app = Starlette(routes=[Route("/", home)])
        app.state.limiter = Limiter(get_remote_address, default_limits=[f"{LIMIT}/minute"], headers_enabled=True)
        if middleware is not None:
            app.add_middleware(middleware)
        return app

    return {"starlette": make(None), "slowapi, ASGI": make(SlowAPIASGIMiddleware), "slowapi": make(SlowAPIMiddleware)}


def litestar_apps() -> dict[str, App]:
    from litestar import Litestar, get
    from litestar.middleware.rate_limit import RateLimitConfig

    @get("/", media_type="text/plain")
    async def home() -> str:
        return "ok"

    def make(middleware: list[Any]) -> App:
        return Litestar([home], middleware=middleware, openapi_config=None)

    return {"litestar": make([]), "litestar's own": make([RateLimitConfig(("minute", LIMIT)).middleware])}


async def cpu_us(app: App) -> float:
    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        pass

    scopes = [scope(index % CLIENTS) for index in range(REQUESTS)]
    began = time.process_time_ns()
    while scopes:
        await app(scopes.pop(), receive, send)  # as in a server, a scope ends with its request
    return (time.process_time_ns() - began) / REQUESTS / 1000


BASES = {"slowapi, ASGI": "starlette", "slowapi": "starlette", "litestar's own": "litestar"}


async def measure(rounds: int) -> dict[str, float]:
    apps: dict[str, App] = {"bare": bare, "floor": floor(bare)} | frontrow_apps() | starlette_apps() | litestar_apps()
    times: dict[str, list[float]] = {name: [] for name in apps}
    for _ in range(rounds + 1):
        for name, app in apps.items():
            times[name].append(await cpu_us(app))
    return {name: min(series[1:]) for name, series in times.items()}  # the first round warms up


def run(rounds: int = ROUNDS) -> dict[str, Any]:
    """Microseconds of CPU per request, and what each limiter adds to the same application without it."""
    logging.disable(logging.CRITICAL)
    try:
        total_us = asyncio.run(measure(rounds))
    finally:
        logging.disable(logging.NOTSET)
    added_us = {
        name: round(us - total_us[BASES.get(name, "bare")], 2)
        for name, us in total_us.items()
        if name not in ("bare", "starlette", "litestar")
    }
    return {
        "unit": "µs of CPU per request",
        "total_us": {k: round(v, 2) for k, v in total_us.items()},
        "added_us": added_us,
    }


if __name__ == "__main__":
    options(__doc__).parse_args()
    for name, us in run()["added_us"].items():
        print(f"{name:48} adds {us:8.2f} µs")
