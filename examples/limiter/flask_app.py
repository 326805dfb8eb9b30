"""Flask with a limit for everything and a smaller one for one route.

Start it with `flask --app examples.limiter.flask_app run` and send two POSTs to /codes.
"""

from typing import Any

import flask

from frontrow.limits.http.flask import RateLimits

app = flask.Flask("shop")
limits = RateLimits(app, rules="100/minute")


@app.get("/")
def home() -> dict[str, str]:
    return {"say": "hello"}


@app.post("/codes")
@limits.limited("1/minute")
def send_code() -> dict[str, str]:
    return {"say": "sent"}


@app.errorhandler(429)
def slow_down(error: Any) -> tuple[dict[str, Any], int]:
    return {"say": "slow down", "retry_s": round(error.decision.retry_after_s)}, 429
