"""The limits of the API (B17): shared by all servers, told in every answer, kept without Redis."""

import contextlib
import re
import time

import httpx
import pytest

from frontrow.app.wiring import open_platform
from frontrow.limits.config import read_limits
from frontrow.web.platform.platform import Platform
from tests.support.servers import Valkey
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, a_client, a_server, settings_for

LEASE = 12  # a fifth of 60
ONE_BOOKING = {"name": "bookings", "quota": "3/hour", "key": ["ip"], "paths": ["/v1/bookings/{booking}"]}
TOLD = re.compile(r'"(?:address|person)";r=\d+;t=\d+')


async def ask_in_turn(platforms: list[Platform], times: int, path: str = "/v1/events") -> list[httpx.Response]:
    """What these servers answer one address that asks them in turn."""
    answers = []
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(a_client(platform)) for platform in platforms]
        for turn in range(times):
            answers.append(await clients[turn % len(clients)].get(path))
            await platforms[turn % len(clients)].server.limiter.settle()  # between requests there is time for that
    return answers


async def test_two_servers_on_one_redis_share_the_limits(tmp_path, redis_url, postgres_ledger_url):
    """Each by itself would allow 60, so both would allow 120 of these 140. Rules of [limits] are shared and exact."""
    stores = {"redis_url": redis_url, "postgres_url": postgres_ledger_url, "per_ip": "60/minute"}
    stores["limits"] = read_limits({"limits": {"rules": [ONE_BOOKING]}}, "frontrow.toml", {})
    async with (
        open_platform(settings_for(tmp_path / "one", **stores)) as one,
        open_platform(settings_for(tmp_path / "two", **stores)) as two,
    ):
        ruled = await ask_in_turn([one, two], 4, "/v1/bookings/bkg_1")
        answers = await ask_in_turn([one, two], 140)
    assert [answer.status_code for answer in ruled] == [404, 404, 404, 429]
    admitted = [answer.status_code for answer in answers].count(200)
    assert 60 - len(ruled) <= admitted <= 60 + 2 * LEASE
    assert {answer.status_code for answer in answers} == {200, 429}
    refused = answers[-1]
    assert refused.json()["code"] == "rate_limited"
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.headers["ratelimit"].startswith('"address";r=0;t=')


async def test_without_redis_each_server_keeps_its_limits_and_nobody_sees_an_error(
    tmp_path, own_valkey: Valkey, postgres_ledger_url
):
    stores = {"redis_url": own_valkey.url, "postgres_url": postgres_ledger_url, "per_ip": "60/minute"}
    async with open_platform(settings_for(tmp_path, **stores)) as platform:
        own_valkey.kill()
        answers = await ask_in_turn([platform], 100)
    admitted = [answer.status_code for answer in answers].count(200)
    assert 60 <= admitted <= 60 + LEASE
    assert {answer.status_code for answer in answers} == {200, 429}


@pytest.mark.parametrize("hot_lane", [True, False], ids=["hot", "framework"])
async def test_every_answer_of_the_api_tells_what_is_left(tmp_path, hot_lane):
    options = {"hot_lane": hot_lane, "per_ip": "100/hour", "per_person": "50/hour"}
    async with a_server(tmp_path, **options) as (_, url), httpx.AsyncClient(base_url=url) as client:
        first, second = [await client.get("/v1/events") for _ in range(2)]
        assert first.headers["ratelimit-policy"] == '"address";q=100;w=3600, "person";q=50;w=3600'
        assert first.headers["ratelimit"].startswith('"address";r=99;t=')
        assert second.headers["ratelimit"].startswith('"address";r=98;t=')
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        answers = [
            await client.get(f"/v1/events/{EVENT_ID}"),
            await client.get("/v1/events/evt_none"),
            await client.get("/v1/bookings/bkg_none"),
            await client.post(f"/v1/events/{EVENT_ID}/holds", json={}),
            await client.get(f"/v1/events/{EVENT_ID}/room/pass"),
            await buyer.call("place_hold", event_id=EVENT_ID, json={"seats": ["S-A-1"]}),
        ]
        assert all(TOLD.match(answer.headers["ratelimit"]) for answer in answers)
        for answer in [first, second, *answers]:
            left = re.findall(r"r=(\d+)", answer.headers["ratelimit"])
            assert answer.headers.get_list("x-ratelimit-remaining") == left, answer.request.url
            assert answer.headers["x-ratelimit-limit"] in ("100", "50")
            assert 0 < int(answer.headers["x-ratelimit-reset"]) - time.time() <= 2 * 3600 + 1, "a time stamp"
        assert answers[-1].headers["ratelimit"].startswith('"person";r=4'), "the tightest is told"
        assert answers[-1].headers["x-ratelimit-limit"] == "50"


@pytest.mark.parametrize("hot_lane", [True, False], ids=["hot", "framework"])
async def test_the_older_headers_can_be_switched_off(tmp_path, hot_lane):
    options = {"hot_lane": hot_lane, "x_ratelimit_headers": False}
    async with a_server(tmp_path, **options) as (_, url), httpx.AsyncClient(base_url=url) as client:
        answers = [await client.get("/v1/events"), await client.get("/v1/bookings/bkg_none")]
        assert all("ratelimit" in answer.headers for answer in answers)
        assert not [name for answer in answers for name in answer.headers if name.startswith("x-ratelimit")]
