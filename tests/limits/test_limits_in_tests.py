"""What users' tests get: limits switched off, or in memory on a clock that the test moves, with nothing counted."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontrow.limits import LeasedLimiter, Limiter, Quota, Rule, Throttled
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.http.decorators import limited
from frontrow.limits.testing import LimitsInTest, limits_in_memory, limits_off

NOBODY = "redis://127.0.0.1:1/0"


def told(limiter: Limiter, count: int) -> list[bool]:
    return [limiter.check("ann").allowed for _ in range(count)]


def ask(app: Any, path: str, count: int) -> list[httpx.Response]:
    async def run() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop.test") as client:
            return [await client.get(path) for _ in range(count)]

    return asyncio.run(run())


def statuses(app: Any, path: str, count: int) -> list[int]:
    return [answer.status_code for answer in ask(app, path, count)]


def fastapi_app(**options: Any) -> Any:
    from fastapi import Depends, FastAPI

    from frontrow.limits.http.fastapi import RateLimits

    limits = RateLimits(**options)
    app = FastAPI()
    app.get("/one")(limits.limited("1/minute")(lambda: "served"))
    app.get("/two", dependencies=[Depends(limits.limit("1/minute"))])(lambda: "served")
    return app


def test_a_limiter_that_is_off_allows_everything_and_goes_on_afterwards_where_it_was() -> None:
    limiter = Limiter("2/minute")
    assert told(limiter, 1) == [True]
    with limits_off():
        assert told(limiter, 5) == [True] * 5
        assert asyncio.run(limiter.acheck("ann")).remaining == 2
        assert told(Limiter("1/minute"), 3) == [True] * 3, "made inside"
    assert told(limiter, 2) == [True, False], "nothing was counted meanwhile"


def test_a_limiter_in_memory_begins_with_nothing_and_asks_no_redis(rate_limits: LimitsInTest) -> None:
    limiter = Limiter("1/minute", store=NOBODY, on_store_down="closed", prefix="shop", record_refusals=True)
    assert told(limiter, 2) == [True, False]
    assert limiter.check("ann").source == "store", "the store in memory"
    rate_limits.advance(59)
    assert told(limiter, 1) == [False]
    rate_limits.advance(61)
    assert told(limiter, 2) == [True, False]
    rate_limits.reset()
    assert told(limiter, 2) == [True, False]
    rate_limits.off()
    assert told(limiter, 2) == [True, True]
    rate_limits.on()
    assert told(limiter, 2) == [True, False]


def test_waiting_moves_the_clock_of_the_test(rate_limits: LimitsInTest) -> None:
    limiter = Limiter("1/minute fixed_window")
    began_us = rate_limits.clock.now_us
    for _ in range(3):
        limiter.acquire("ann", timeout_s=120)
    assert rate_limits.clock.now_us - began_us >= 60_000_000


def test_a_middleware_and_limits_of_routes_made_long_before_are_switched() -> None:
    app = fastapi_app(store=NOBODY, on_store_down="closed")
    wrapped = RateLimitMiddleware(app, "3/minute", store=NOBODY, on_store_down="closed", enabled=False)
    assert statuses(app, "/one", 1) == [503]
    with limits_in_memory() as limits:
        assert statuses(wrapped, "/one", 2) == [200, 429]
        assert statuses(wrapped, "/two", 2) == [200, 429]
        limits.advance(121)
        assert statuses(wrapped, "/one", 2) == [200, 429]
        limits.off()
        answers = ask(wrapped, "/two", 5)
        assert [answer.status_code for answer in answers] == [200] * 5
        assert "x-ratelimit-limit" not in answers[0].headers
    assert statuses(app, "/one", 1) == [503], "as before"
    assert "x-ratelimit-limit" not in ask(wrapped, "/nowhere", 1)[0].headers, "not enabled, as before"


def test_an_application_made_in_the_block_is_limited_as_usual_behind_it() -> None:
    with limits_off():
        app = fastapi_app()
        assert statuses(app, "/one", 3) == [200] * 3
    assert statuses(app, "/one", 2) == [200, 429]


def test_switches_may_be_nested_and_what_was_made_inside_belongs_to_the_outer_one() -> None:
    with limits_off():
        with limits_in_memory():
            limiter = Limiter("1/minute")
            assert told(limiter, 2) == [True, False]
        assert told(limiter, 3) == [True] * 3
    assert told(limiter, 2) == [True, False]


def test_a_limited_function_and_a_leased_limiter_are_switched() -> None:
    send = limited("1/minute")(lambda: "sent")
    leased = LeasedLimiter(Rule("all", Quota.parse("10/minute")), store=NOBODY)
    with limits_in_memory() as limits:
        assert send() == "sent"
        with pytest.raises(Throttled):
            send()
        assert [leased.check("ann").allowed for _ in range(12)].count(True) == 10
        limits.off()
        assert send() == "sent"
        assert all(leased.check("ann").allowed for _ in range(50))


def test_flask_and_django_are_switched(rate_limits: LimitsInTest) -> None:
    import flask
    from django.conf import settings
    from django.http import HttpResponse
    from django.test import RequestFactory

    from frontrow.limits.http import django
    from frontrow.limits.http import flask as flask_limits

    if not settings.configured:
        settings.configure(
            SECRET_KEY="only for tests",
            ALLOWED_HOSTS=["*"],
            USE_TZ=True,
            INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"],
        )
    app = flask.Flask("shop")
    flask_limits.RateLimits(app, rules="1/minute", enabled=False, store=NOBODY)
    app.add_url_rule("/", "home", lambda: "served")
    view = django.limited("1/minute")(lambda request: HttpResponse("served"))
    request = RequestFactory().get("/")
    for _ in range(2):
        assert [app.test_client().get("/").status_code for _ in range(2)] == [200, 429]
        assert [view(request).status_code for _ in range(2)] == [200, 429]
        rate_limits.advance(121)


SUITE = """
from frontrow.limits import Limiter
import pytest

limiter = Limiter("1/minute", store="redis://127.0.0.1:1/0", on_store_down="closed")

def told():
    return [limiter.check("ann").allowed for _ in range(2)]

def test_plain():
    assert told() == EXPECTED

@pytest.mark.parametrize("again", [1, 2])
def test_with_the_clock(rate_limits, again):
    assert told() == [True, False]
    rate_limits.advance(121)
    assert told() == [True, False]

def test_off(rate_limits_off):
    assert told() == [True, True]
"""


@pytest.mark.parametrize(("setting", "expected"), [("", "[False, False]"), ("rate_limits = off", "[True, True]")])
def test_pytest_finds_the_fixtures_and_every_test_begins_with_nothing_counted(
    tmp_path: Path, setting: str, expected: str
) -> None:
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{setting}\n")
    (tmp_path / "test_suite.py").write_text(SUITE.replace("EXPECTED", expected))
    done = run_pytest(tmp_path)
    assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_a_wrong_setting_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nrate_limits = none\n")
    done = run_pytest(tmp_path)
    assert "rate_limits must be on or off, not 'none'" in done.stderr


def run_pytest(folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=120)
