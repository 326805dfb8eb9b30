"""The servers of `bench.adaptive`, each in a process of its own: `python -m bench.adaptive_servers KIND [URL]`.

dependency: 16 workers that take 40 ms each, or ten times as long when told so. none, fixed, adaptive: a FastAPI service
whose three routes call the dependency; without a limit, with a fixed number at once, and with the adaptive limit as it
comes. Each prints its port.
"""

import asyncio
import contextlib
import random
import socket
from typing import Any

import uvicorn

from bench.measure import options

WORKERS, SERVICE_S, TIMES = 16, 0.04, 10
FIXED = 64  # what a load test of the healthy service might suggest
ROUTES = {"critical": "/pay", "normal": "/browse", "background": "/report"}


def dependency_app() -> Any:
    """A store with a pool of workers. Callers wait for one in the order in which they came."""
    from fastapi import FastAPI

    app, workers, state = FastAPI(), asyncio.Semaphore(WORKERS), {"times": 1.0}

    @app.get("/work")
    async def work() -> dict[str, bool]:
        async with workers:
            await asyncio.sleep(SERVICE_S * state["times"] * random.uniform(0.5, 1.5))
        return {"done": True}

    @app.post("/times/{times}")
    async def slow_down(times: float) -> dict[str, float]:
        state["times"] = times
        return state

    return app


def service_app(kind: str, dependency: str) -> Any:
    """The service under test, as most people would write it."""
    import aiohttp
    from fastapi import FastAPI, Request

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> Any:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as app.state.session:
            yield

    app = FastAPI(lifespan=life)

    async def call(request: Request) -> Any:
        async with request.app.state.session.get(f"{dependency}/work") as response:
            return await response.json()

    for path in ROUTES.values():
        app.add_api_route(path, call, methods=["GET"], response_model=None)
    if kind == "fixed":
        app.add_middleware(FixedLimit)  # type: ignore[arg-type]
    elif kind == "adaptive":
        from frontrow.limits.adaptive.asgi import AdaptiveLimitMiddleware

        paths = {"critical": [ROUTES["critical"]], "background": [ROUTES["background"]]}
        app.add_middleware(AdaptiveLimitMiddleware, paths=paths)
    return app


class FixedLimit:
    """At most so many at once, whoever they are."""

    def __init__(self, app: Any) -> None:
        self._app, self._in_flight = app, 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        if self._in_flight >= FIXED:
            await send({"type": "http.response.start", "status": 503, "headers": [(b"retry-after", b"1")]})
            return await send({"type": "http.response.body", "body": b""})
        self._in_flight += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_flight -= 1


def main(kind: str, url: str = "") -> None:
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(listening.getsockname()[1], flush=True)
    app = dependency_app() if kind == "dependency" else service_app(kind, url)
    config = uvicorn.Config(app, log_level="error", access_log=False, backlog=2048)
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    arguments = options(__doc__)
    arguments.add_argument("kind", choices=("dependency", "none", "fixed", "adaptive"))
    arguments.add_argument("url", nargs="?", default="", help="of the dependency")
    main(**vars(arguments.parse_args()))
