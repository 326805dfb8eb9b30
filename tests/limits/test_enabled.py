"""Limits that are switched off, for the tests of an application: nothing is counted and no headers are written."""

import asyncio
from typing import Any

import httpx

from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.http.fastapi import RateLimits
from frontrow.testing.clock import ManualClock


def ask(app: Any, path: str, count: int) -> list[int]:
    async def run() -> list[int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop.test") as client:
            return [(await client.get(path)).status_code for _ in range(count)]

    return asyncio.run(run())


def test_a_middleware_and_a_limit_that_are_not_enabled_limit_nothing() -> None:
    from fastapi import Depends, FastAPI

    limits = RateLimits(enabled=False, clock=ManualClock())
    app = FastAPI()
    app.get("/one")(limits.limited("1/minute")(lambda: "served"))
    app.get("/two", dependencies=[Depends(limits.limit("1/minute"))])(lambda: "served")
    wrapped = RateLimitMiddleware(app, "1/minute", enabled=False, clock=ManualClock())
    assert ask(wrapped, "/one", 3) + ask(wrapped, "/two", 3) == [200] * 6
    limits.routes.enabled = True
    assert ask(wrapped, "/one", 2) == [200, 429], "nothing was counted before"
    limits.routes.enabled = False
    assert ask(wrapped, "/one", 2) == [200, 200]
    wrapped.limits.enabled = True
    assert ask(wrapped, "/two", 2) == [200, 429]


def test_a_switch_holds_for_limits_that_are_made_after_it() -> None:
    from fastapi import FastAPI

    limits, app = RateLimits(clock=ManualClock()), FastAPI()
    limits.routes.enabled = False
    app.get("/")(limits.limited("1/minute")(lambda: "served"))
    assert ask(app, "/", 3) == [200] * 3
    limits.routes.enabled = True
    assert ask(app, "/", 2) == [200, 429]


def test_flask_limits_that_are_not_enabled_limit_nothing() -> None:
    import flask

    from frontrow.limits.http.flask import RateLimits

    app = flask.Flask("shop")
    limits = RateLimits(app, rules="1/minute", enabled=False)
    app.add_url_rule("/", "home", limits.limited("1/minute")(lambda: "served"))
    answers = [app.test_client().get("/") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert "x-ratelimit-limit" not in answers[0].headers
