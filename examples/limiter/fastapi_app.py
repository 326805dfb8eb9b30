"""FastAPI with a limit for everything and a smaller one for a route that sends text messages.

Start it with `uvicorn examples.limiter.fastapi_app:app` and send two POSTs to /codes.
"""

from typing import Annotated

from fastapi import Depends, FastAPI, Header

from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.http.fastapi import limit

app = FastAPI()
app.add_middleware(RateLimitMiddleware, rules="100/minute")


async def current_user(x_user: Annotated[str, Header()] = "guest") -> str:
    """Your own way to find out who is there. The limit below counts each of them alone."""
    return x_user


@app.get("/")
async def home() -> dict[str, str]:
    return {"say": "hello"}


@app.post("/codes", dependencies=[Depends(limit("1/minute", user=current_user))])
async def send_code() -> dict[str, str]:
    return {"say": "sent"}
