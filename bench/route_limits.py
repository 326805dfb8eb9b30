"""`python -m bench.route_limits`: CPU that the limit of one route adds to a request of FastAPI, Flask and Django.

Beside the peer of each framework (slowapi, Flask-Limiter, django-ratelimit) and a floor written by hand, which counts
in a dictionary and writes the same headers. Each framework's application is called in-process with and without the
limit, in turns. Figures are microseconds of CPU: the quietest of several rounds, less that of the same route without a
limit.
"""

import asyncio
import functools
import logging
import time
from collections.abc import Callable
from typing import Any

from bench import middleware
from bench.measure import Target, options

ROUNDS, REQUESTS = 150, 100  # few requests each: a busy machine leaves most of so short a turn undisturbed
LIMIT = 10**9
QUOTA = f"{LIMIT}/minute"
TARGETS_US = {"FastAPI": 10, "Flask": 20, "Django": 15}
Ask = Callable[[int], object]  # serves so many requests
FIXED_FIELDS = {"X-RateLimit-Limit": str(LIMIT), "RateLimit-Policy": f'"limit";q={LIMIT};w=60'}


class Counter:
    """What every floor does: a count per address in a dictionary, and the headers as texts."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def fields(self, address: str) -> dict[str, str]:
        used = self._counts[address] = self._counts.get(address, 0) + 1
        left = str(LIMIT - used)
        return FIXED_FIELDS | {
            "X-RateLimit-Remaining": left,
            "X-RateLimit-Reset": str(int(time.time()) + 60),
            "RateLimit": f'"limit";r={left};t=60',
        }


# -- FastAPI -----------------------------------------------------------------------------------------------------------


def fastapi_routes() -> dict[str, Ask]:
    from fastapi import Depends, FastAPI, Request, Response
    from slowapi import Limiter
    from slowapi.util import get_remote_address

    from frontrow.limits.http.fastapi import RateLimits

    async def home() -> dict[str, str]:
        return {"answer": "ok"}

    async def home_of_slowapi(request: Request, response: Response) -> dict[str, str]:
        return {"answer": "ok"}

    ours, counter = RateLimits(), Counter()

    async def nothing() -> None:
        pass

    async def count(request: Request, response: Response) -> None:
        assert request.client is not None
        response.headers.update(counter.fields(request.client.host))

    def make(endpoint: Any = home, dependency: Any = None) -> Ask:
        app = FastAPI()
        if isinstance(endpoint, functools.partial):
            endpoint = endpoint(app)
        dependencies = [] if dependency is None else [Depends(dependency)]
        app.get("/", dependencies=dependencies)(endpoint)
        return _asgi(app)

    def of_slowapi(app: Any) -> Any:
        app.state.limiter = Limiter(get_remote_address, headers_enabled=True)
        return app.state.limiter.limit(QUOTA)(home_of_slowapi)

    return {
        "FastAPI": make(),
        "FastAPI: a dependency that does nothing": make(dependency=nothing),
        "FastAPI: floor": make(dependency=count),
        "FastAPI: Frontrow, limited": make(ours.limited(QUOTA)(home)),
        "FastAPI: Frontrow, Depends(limit)": make(dependency=ours.limit(QUOTA)),
        "FastAPI: slowapi": make(functools.partial(of_slowapi)),
    }


def _asgi(app: Any) -> Ask:
    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] == 200, message

    def ask(count: int) -> None:
        async def ask_all() -> None:
            for n in range(count):
                await app(middleware.scope(n % middleware.CLIENTS), receive, send)

        loop.run_until_complete(ask_all())

    loop = asyncio.new_event_loop()
    return ask


# -- Flask and Django --------------------------------------------------------------------------------------------------


def flask_routes() -> dict[str, Ask]:
    from flask import Flask, make_response, request
    from flask_limiter import Limiter
    from flask_limiter.util import get_remote_address

    from frontrow.limits.http.flask import RateLimits

    counter = Counter()

    def home() -> str:
        return "ok"

    def counted() -> Any:
        response = make_response(home())
        response.headers.update(counter.fields(request.remote_addr or ""))
        return response

    def make(limit: Callable[[Flask], Any]) -> Ask:
        app = Flask("bench")
        app.add_url_rule("/", "home", limit(app))
        return _wsgi(app)

    def of_flask_limiter(app: Flask) -> Any:
        limiter = Limiter(get_remote_address, app=app, storage_uri="memory://", headers_enabled=True)
        return limiter.limit(QUOTA)(home)

    return {
        "Flask": make(lambda app: home),
        "Flask: floor": make(lambda app: counted),
        "Flask: Frontrow": make(lambda app: RateLimits().limited(QUOTA)(home)),
        "Flask: Flask-Limiter": make(of_flask_limiter),
    }


def django_routes() -> dict[str, Ask]:
    """django-ratelimit counts in Django's cache, here the one in memory, and writes no headers."""
    import django
    from django.conf import settings

    settings.configure(
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF=__name__,
        MIDDLEWARE=[],
        INSTALLED_APPS=["frontrow.limits.http.django"],
        CACHES={"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}},
        SILENCED_SYSTEM_CHECKS=["django_ratelimit.E003", "django_ratelimit.W001"],  # its checks ask for a shared cache
    )
    django.setup()
    from django.core.handlers.wsgi import WSGIHandler
    from django.http import HttpResponse
    from django.urls import path
    from django_ratelimit.decorators import ratelimit

    from frontrow.limits.http.django import limited

    counter = Counter()

    def home(request: Any) -> HttpResponse:
        return HttpResponse("ok")

    def counted(request: Any) -> HttpResponse:
        response = home(request)
        for name, value in counter.fields(request.META["REMOTE_ADDR"]).items():
            response.headers[name] = value
        return response

    views = {
        "Django": home,
        "Django: floor": counted,
        "Django: Frontrow": limited(QUOTA)(home),
        "Django: django-ratelimit": ratelimit(key="ip", rate=f"{LIMIT}/m")(home),
    }
    globals()["urlpatterns"] = [path(f"{n}", view) for n, view in enumerate(views.values())]
    handler = WSGIHandler()
    return {name: _wsgi(handler, f"/{n}") for n, name in enumerate(views)}


def _wsgi(app: Any, path: str = "/") -> Ask:
    from wsgiref.util import setup_testing_defaults

    plain: dict[str, Any] = {"PATH_INFO": path, "SCRIPT_NAME": "", "HTTP_HOST": "shop.test"}
    setup_testing_defaults(plain)

    def start(status: str, headers: Any, error: Any = None) -> Any:
        assert status.startswith("200"), status

    def ask(count: int) -> None:
        for n in range(count):
            client = n % middleware.CLIENTS
            response = app({**plain, "REMOTE_ADDR": f"203.0.{client >> 8}.{client & 255}"}, start)
            b"".join(response)
            response.close()

    return ask


# -- measuring ---------------------------------------------------------------------------------------------------------


def run(rounds: int = ROUNDS) -> dict[str, Any]:
    """Microseconds of CPU per request, and what each limit adds to its framework's. Configures Django, so run it once
    in a process of its own."""
    logging.disable(logging.CRITICAL)
    asks = {**fastapi_routes(), **flask_routes(), **django_routes()}
    total_us = dict.fromkeys(asks, float("inf"))
    for ask in asks.values():
        ask(3 * REQUESTS)
    for _ in range(rounds):
        for name, ask in asks.items():
            began = time.process_time_ns()
            ask(REQUESTS)
            total_us[name] = min(total_us[name], (time.process_time_ns() - began) / REQUESTS / 1000)
    logging.disable(logging.NOTSET)
    added_us = {name: round(us - total_us[name.partition(":")[0]], 2) for name, us in total_us.items() if ":" in name}
    return {"total_us": {name: round(us, 2) for name, us in total_us.items()}, "added_us": added_us}


def targets(added_us: dict[str, float]) -> list[Target]:
    """The most that a route's limit may add, of every way to write one."""
    return [
        Target(f"route limit, {name}: added µs", us, TARGETS_US[name.partition(":")[0]], False)
        for name, us in added_us.items()
        if ": Frontrow" in name
    ]


def main() -> None:
    arguments = options(__doc__)
    arguments.add_argument(
        "--rounds", type=int, default=ROUNDS, help="how often each is measured (default: %(default)s)"
    )
    added_us = run(arguments.parse_args().rounds)["added_us"]
    for name, us in added_us.items():
        print(f"{name:40} adds {us:8.2f} µs")
    for target in targets(added_us):
        print(
            f"{target.what:48} {target.reached:6.2f} wanted ≤ {target.wanted:.0f}: {'met' if target.met else 'missed'}"
        )


if __name__ == "__main__":
    main()
