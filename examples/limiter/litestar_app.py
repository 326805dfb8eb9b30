"""Litestar with a limit for everything, a guard for one route, and a refusal in your own words.

Start it with `uvicorn examples.limiter.litestar_app:app` and send two POSTs to /codes.
"""

from typing import Any

from litestar import Litestar, get, post
from litestar.middleware import DefineMiddleware

from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.http.litestar import RateLimits

limits = RateLimits()


def refuse(scope: Any, decision: Any) -> dict[str, Any]:
    return {"say": "slow down", "retry_s": round(decision.retry_after_s)}


@get("/")
async def home() -> dict[str, str]:
    return {"say": "hello"}


@post("/codes", guards=[limits.limit("1/minute")], status_code=200)
async def send_code() -> dict[str, str]:
    return {"say": "sent"}


app = Litestar(
    [home, send_code],
    plugins=[limits],
    middleware=[DefineMiddleware(RateLimitMiddleware, rules="100/minute", on_refused=refuse)],
)
