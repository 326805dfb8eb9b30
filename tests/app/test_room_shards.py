"""`room.shards` in `frontrow serve` (W11): the events' rooms are spread over several Redis servers."""

from dataclasses import replace

import pytest
import redis

from frontrow.app.wiring import open_platform
from frontrow.core.errors import ConfigError
from frontrow.settings.platform import read_settings
from frontrow.web.server.app import run_platform
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, SECRET, a_client, put_event, settings_for

EVENTS = [EVENT_ID[:-1] + letter for letter in "4A"]  # of different shards


def rooms_in(url: str) -> set[str]:
    """The events whose rooms live here."""
    with redis.Redis.from_url(url) as client:
        return {key.decode().partition("}")[0].removeprefix("{room:") for key in client.keys("{room:*")}


async def test_rooms_are_spread_over_the_shards_and_a_ticket_is_bought(tmp_path, redis_url, postgres_ledger_url):
    """Every room landed in the first store."""
    shards = tuple(redis_url[: redis_url.rindex("/")] + f"/{number}" for number in (1, 2))
    for url in shards:
        with redis.Redis.from_url(url) as client:
            client.flushdb()
    settings = settings_for(tmp_path, redis_url=redis_url, postgres_url=postgres_ledger_url)
    async with open_platform(replace(settings, room=replace(settings.room, shards=shards))) as platform:
        for event_id in EVENTS:
            await put_event(platform, id=event_id)
        async with run_platform(platform), a_client(platform) as client:
            first, second = map(rooms_in, shards)
            assert first
            assert second
            assert first | second == set(EVENTS)
            assert not first & second
            assert rooms_in(redis_url) == set()
            event_id = min(second)
            buyer = await a_buyer(client)
            await buyer.enter(event_id)
            held = await buyer.hold(event_id, best={"count": 1})
            assert (await buyer.pay(held["booking"]))["state"] == "confirmed"


@pytest.mark.parametrize(
    ("env", "why"),
    [
        ({"FRONTROW_ROOM_SHARDS": "redis://one,redis://two"}, "needs redis.url"),
        (
            {
                "FRONTROW_ROOM_SHARDS": "http://one",
                "FRONTROW_REDIS_URL": "redis://x",
                "FRONTROW_LEDGER_URL": "postgresql://x/y",
            },
            "not a Redis URL",
        ),
    ],
)
def test_shards_that_cannot_be_used_are_refused(env, why):
    with pytest.raises(ConfigError, match=why) as raised:
        read_settings(env={"FRONTROW_SECRET_KEY": SECRET, "FRONTROW_SERVER_DEMO": "true"} | env)
    assert raised.value.param == "room.shards"
