"""The rules of `[limits]` in frontrow.toml: by path, on both paths, for everybody alike or by API key and plan."""

import contextlib
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from frontrow.app.wiring import open_platform
from frontrow.core.errors import ConfigError
from frontrow.limits.config import LimitsFile, read_limits
from frontrow.web.fastpath.platform_routes import fast_routes
from frontrow.web.platform.platform import Platform
from tests.boxoffice.people.support import ORGANISER, Actor, Role, member
from tests.web.api.support import EVENT_ID, a_client, a_server, settings_for

LISTS = """
[limits]
exempt_addresses = ["192.0.2.0/24"]

[[limits.rules]]
name = "lists"
quota = "3/hour"
key = ["ip"]
methods = ["GET"]
paths = ["/v1/events"]

[[limits.rules]]
name = "bookings"
quota = "2/hour"
key = ["ip"]
paths = ["/v1/bookings/{booking}"]
"""

PLANS = """
[[limits.rules]]
name = "keys"
quota = "2/hour"
key = ["api_key"]
paths = ["/v1/organiser/**"]
tiers = { pro = "4/hour" }

[limits.tiers]
pro = ["api_key:%s"]
"""


def rules(text: str) -> LimitsFile:
    return read_limits(tomllib.loads(text), "frontrow.toml", {}, defaults={"on_missing": "ip"})


@pytest.mark.parametrize("hot_lane", [True, False], ids=["hot", "framework"])
async def test_rules_by_path_hold_on_fast_path_and_framework(tmp_path: Path, hot_lane: bool) -> None:
    async with a_server(tmp_path, limits=rules(LISTS), hot_lane=hot_lane) as (platform, url):
        async with httpx.AsyncClient(base_url=url) as client:
            answers = [await client.get("/v1/events") for _ in range(4)]
            assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
            assert answers[0].headers["ratelimit"].startswith('"lists";r=2;t=')
            assert '"lists";q=3' in answers[0].headers["ratelimit-policy"]
            refused = answers[-1]
            assert (refused.json()["code"], refused.json()["detail"]) == ("rate_limited", "too many requests (lists)")
            assert int(refused.headers["retry-after"]) > 60
            asked = [(await client.get(f"/v1/bookings/bkg_{number}")).status_code for number in range(3)]
            assert asked == [404, 404, 429]
            assert (await client.get(f"/v1/events/{EVENT_ID}")).status_code == 200, "no rule applies here"
        assert (b"GET", b"/v1/events") not in fast_routes(platform)
        assert (b"GET", f"/v1/events/{EVENT_ID}".encode()) in fast_routes(platform)


@contextlib.asynccontextmanager
async def a_platform_with(folder: Path, text: str) -> AsyncIterator[Platform]:
    async with open_platform(settings_for(folder, limits=rules(text))) as platform:
        yield platform


async def test_api_keys_are_limited_by_their_plan(tmp_path: Path) -> None:
    """Each key has the quota of its plan. Those without one have the rule's own."""
    async with open_platform(settings_for(tmp_path)) as platform:
        owner = await member(platform, Role.OWNER)
        actor = Actor(owner.id, ORGANISER, Role.OWNER)
        made = [await platform.people.team.make_key(actor, name, ["team:read"]) for name in ("a", "b", "c")]
    (pro, pro_secret), (_, plain_secret), (_, other_secret) = made
    async with a_platform_with(tmp_path, PLANS % pro.id) as platform, a_client(platform) as client:
        told: dict[str, list[int]] = {}
        for secret in (pro_secret, plain_secret, other_secret):
            asked = [
                await client.get("/v1/organiser/team", headers={"Authorization": f"Bearer {secret}"}) for _ in range(5)
            ]
            told[secret] = [answer.status_code for answer in asked]
        assert told[pro_secret] == [200, 200, 200, 200, 429]
        assert told[plain_secret] == told[other_secret] == [200, 200, 429, 429, 429]


async def test_a_rule_that_the_platform_cannot_keep_is_refused(tmp_path: Path) -> None:
    for line, message in (
        ("statuses = [401]", "bookings: statuses is for apps that use the limiter by itself"),
        ('key = ["tenant"]', "key part 'tenant' is unknown; known: api_key, endpoint, ip, organiser, path, user"),
    ):
        text = LISTS.replace('key = ["ip"]\npaths = ["/v1/bookings/{booking}"]', line)
        with pytest.raises(ConfigError, match=message):
            async with a_platform_with(tmp_path, text):
                pass
