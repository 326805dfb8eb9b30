"""Calls with a mistake that a type checker must find. `test_typing.py` checks this file; nobody runs it.

Every line that ends with `# wrong` is one mistake. All others are right.
"""

import httpx
from starlette.applications import Starlette

from frontrow.limits import ConcurrencyLimiter, Limiter, Quota, Rule
from frontrow.limits.http import decorators, fastapi, flask, starlette
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.http.litestar import RateLimits
from frontrow.limits.outgoing.httpx_transport import PacedTransport
from frontrow.limits.rules import RequestRule


async def find_user() -> str:
    return "42"


async def home(request: object) -> str:
    return "served"


Quota.parse("5/minute", algorithm="token_bucket")
Quota.parse("5/minute", algorithm="token-bucket")  # wrong
Limiter("5/minute", on_store_down="closed", deadline_s=0.025, max_keys=1000)
Limiter("5/minute", on_store_down="close")  # wrong
Limiter("5/minute", deadline_ms=25)  # wrong
Limiter("5/minute").check(find_user())  # wrong
Rule("a", "5/second", per=("user",))
Rule("a", "5/second", per="user")  # wrong
RequestRule("a", "5/second", paths=["/holds"], methods=("POST",), on_missing="ip", statuses=[401])
RequestRule("a", "5/second", paths="/holds")  # wrong
RequestRule("a", "5/second", on_missing="address")  # wrong
RateLimitMiddleware(Starlette(), "5/second", dialect="draft-07", exempt_paths=["/health"])
RateLimitMiddleware(Starlette(), "5/second", dialect="draft-7")  # wrong
RateLimitMiddleware(Starlette(), "5/second", trusted_proxy=["10.0.0.0/8"])  # wrong
fastapi.limited("5/minute", key="user", cost=2)(home)
fastapi.limited("5/minute", keys="user")(home)  # wrong
fastapi.limit("5/minute", on_missing="adress")  # wrong
starlette.limited("5/minute", status=(401,))(home)  # wrong
flask.RateLimits(None, "5/minute", exempt_path=["/health"])  # wrong
flask.limited("5/minute", name=7)(home)  # wrong
RateLimits(store="memory://", exempt_users=["staff"])
RateLimits(stores="memory://")  # wrong
decorators.limited("5/minute", wait_s=2.0, store="memory://")(home)
decorators.limited(home)  # wrong
decorators.limited("5/minute", wait=2.0)(home)  # wrong
ConcurrencyLimiter(5, on_store_down="raise")  # wrong
httpx.Client(transport=PacedTransport("10/second", timeout_s=30, retries=1))
httpx.Client(transport=PacedTransport("10/second", timeout=30))  # wrong
