"""Applications as users write them. mypy checks this file (pyproject.toml): frameworks must accept our middleware."""

from fastapi import Depends, FastAPI
from litestar import Litestar
from litestar.middleware import DefineMiddleware
from starlette.applications import Starlette
from starlette.middleware import Middleware

from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.http.fastapi import limit, limited


def fastapi_application() -> FastAPI:
    app = FastAPI(dependencies=[Depends(limit("1/day"))])
    app.add_middleware(RateLimitMiddleware, rules="2/day", store="memory://", trusted_proxies=["10.0.0.0/8"])

    @app.get("/")
    @limited("9/day")
    async def home() -> str:
        return "served"

    return app


def starlette_application() -> Starlette:
    return Starlette(middleware=[Middleware(RateLimitMiddleware, rules="2/day", exempt_paths=["/health"])])


def litestar_application() -> Litestar:
    return Litestar([], middleware=[DefineMiddleware(RateLimitMiddleware, rules="2/day")])
