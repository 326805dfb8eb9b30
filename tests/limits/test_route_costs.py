"""Costs and keys that functions of the request return: what no rule can count is the client's error, never a crash."""

import flask
import httpx
import pytest
from fastapi import Depends, FastAPI
from starlette.applications import Starlette

from frontrow.limits import Limiter
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.http.fastapi import limit
from frontrow.limits.http.flask import RateLimits
from frontrow.limits.quota import CostTooLarge, InvalidCost, InvalidKey

ALGORITHMS = ("fixed_window", "sliding_counter", "sliding_log", "token_bucket", "leaky_bucket", "leaky_queue")
BAD_COSTS = {"huge": 9, "negative": -5, "nothing": 0, "part": 1.5, "bool": True, "none": None, "nan": float("nan")}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_computed_cost_that_cannot_be_counted_is_a_400_and_charges_nothing(algorithm):
    app = flask.Flask("shop")
    limits = RateLimits(app)

    @app.get("/")
    @limits.limited(f"5/minute {algorithm}", cost=lambda request: BAD_COSTS.get(request.args.get("cost"), 1))
    def home():
        return "hello"

    client = app.test_client()
    for name in BAD_COSTS:
        answer = client.get(f"/?cost={name}")
        assert answer.status_code == 400, name
        assert answer.json["type"] == "urn:frontrow:uncountable_request"
    assert client.get("/").headers["x-ratelimit-remaining"] == "4"


@pytest.mark.parametrize("cost", [9, 0, -1, 1.5, "1", True])
def test_a_constant_cost_is_checked_when_the_route_is_made(cost):
    limits = RateLimits(flask.Flask("shop"))
    with pytest.raises(InvalidCost):
        limits.limited("5/minute", cost=cost)(lambda: "hello")


async def test_a_key_that_is_no_text_is_a_400_too():
    async def email(request):
        return (await request.json()).get("email")

    app = FastAPI()

    @app.post("/", dependencies=[Depends(limit("2/minute", key=email))])
    async def send():
        return "sent"

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop.test") as client:
        assert (await client.post("/", json={"email": ["a"]})).status_code == 400
        assert (await client.post("/", json={})).status_code == 400
        assert (await client.post("/", json={"email": "a@b.test"})).status_code == 200


def test_costs_of_a_middleware_that_can_never_fit_are_refused_at_the_start():
    with pytest.raises(CostTooLarge, match="20"):
        RateLimitMiddleware(Starlette(), rules="5/minute", costs={"/": 20})


@pytest.mark.parametrize("options", [{}, {"compiled": False}])
def test_parts_without_a_name_are_no_key(options):
    with pytest.raises(InvalidKey, match="names"):
        Limiter("2/minute", **options).check({1: 2})
