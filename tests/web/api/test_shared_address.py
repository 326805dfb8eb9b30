"""Many fans behind one address (an office, a campus, a mobile network): a valid pass counts for itself (B17, L4)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from frontrow.waitingroom.credentials.passes import Pass
from frontrow.waitingroom.entrance.person_and_address_limits import CROWD_FACTOR
from frontrow.waitingroom.ports import PlaceKey
from frontrow.web.platform.platform import Platform
from frontrow.web.server.app import front_of
from tests.support.browser_headers import BROWSER
from tests.web.api.support import EVENT_ID, a_client, a_platform, a_server, borrowed_app

FANS = 200
MAP = f"/v1/events/{EVENT_ID}/seats.bin"
HOLDS = f"/v1/events/{EVENT_ID}/holds"


def pass_of(platform: Platform, fan: str) -> str:
    return platform.room.passes.beside_the_line(EVENT_ID, fan, "test")[0]


def shown(text: str) -> dict[str, str]:
    return {"Frontrow-Pass": text}


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    async with a_platform(tmp_path, per_ip="3/hour", per_person="1000/second") as opened:
        yield opened


async def test_b17_two_hundred_fans_behind_one_address_see_the_map_hold_and_read_pages(tmp_path: Path) -> None:
    """Before: the fifty-first request of a second was refused, whoever sent it."""
    async with a_server(tmp_path, per_ip="50/hour", per_person="1000/second") as (platform, url):
        limits = httpx.Limits(max_connections=20)
        async with httpx.AsyncClient(base_url=url, limits=limits, timeout=60) as client:

            async def buy(n: int) -> list[int]:
                proof = shown(pass_of(platform, f"fan_{n}"))
                seen = await client.get(MAP, headers=proof)
                held = await client.post(HOLDS, headers=proof, json={"best": {"count": 1}})
                cookie = {"cookie": f"frontrow_pass={proof['Frontrow-Pass']}"}
                page = await client.get(f"/events/{EVENT_ID}", headers=BROWSER | cookie)
                return [seen.status_code, held.status_code, page.status_code]

            statuses = await asyncio.gather(*(buy(n) for n in range(FANS)))
            assert {status for one in statuses for status in one} <= {200, 201, 409}, "409: no seats are left"
            assert (await client.get(MAP)).status_code == 200, "the address itself was not charged"


async def test_without_a_pass_the_address_counts(platform: Platform) -> None:
    async with a_client(platform) as client:
        assert [(await client.get(MAP)).status_code for _ in range(4)] == [200, 200, 200, 429]
        assert (await client.get("/", headers=BROWSER)).status_code == 429
        assert (await client.get(MAP, headers=shown(pass_of(platform, "ada")))).status_code == 200


async def test_a_forged_an_expired_and_an_ended_pass_count_as_the_address(platform: Platform) -> None:
    room, now_s = platform.room.service, platform.clock() // 1_000_000
    good = pass_of(platform, "ada")
    forged = good[:-8] + ("AAAAAAAA" if not good.endswith("AAAAAAAA") else "BBBBBBBB")
    expired = room.passes.mint(Pass(EVENT_ID, "eve", PlaceKey(0, 0, 9), now_s - 900, now_s - 1, now_s - 900))
    ended = pass_of(platform, "bob")
    assert await room.visits.give_back(ended)
    async with a_client(platform) as client:
        for text in (forged, expired, ended):
            assert (await client.get(MAP, headers=shown(text))).status_code == 200
        for text in (forged, expired, ended):
            assert (await client.get(MAP, headers=shown(text))).status_code == 429
        assert (await client.get(MAP, headers=shown(good))).status_code == 200


async def test_a_pass_multiplies_nothing_from_many_addresses_or_as_a_renewed_text(platform: Platform) -> None:
    service, now_s = platform.room.service, platform.clock() // 1_000_000
    texts = [
        service.passes.mint(Pass(EVENT_ID, "ada", PlaceKey(0, 0, 5), now_s, now_s + 900 + n, now_s)) for n in range(4)
    ]
    with borrowed_app(platform) as app:
        front = front_of(app, platform)
        statuses = []
        for n, text in enumerate(texts):
            transport = httpx.ASGITransport(front, client=(f"192.0.2.{n}", 1))  # type: ignore[arg-type]
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                statuses.append((await client.get(MAP, headers=shown(text))).status_code)
    assert statuses == [200, 200, 200, 429]


async def test_the_passes_of_one_address_have_a_bound_together(tmp_path: Path) -> None:
    """Nobody collects passes to send without any limit."""
    async with (
        a_platform(tmp_path, per_ip="1/hour", per_person="1000/second") as platform,
        a_client(platform) as client,
    ):
        passes = [pass_of(platform, f"fan_{n}") for n in range(CROWD_FACTOR + 1)]
        statuses = [(await client.get(MAP, headers=shown(text))).status_code for text in passes]
    assert statuses == [200] * CROWD_FACTOR + [429]


async def test_signatures_that_were_not_read_before_are_checked_only_so_often_for_one_address(
    platform: Platform,
) -> None:
    good = pass_of(platform, "ada")
    async with a_client(platform) as client:
        for n in range(8):
            await client.get(MAP, headers=shown(good[:-8] + f"AAAAAA{n:02}"))
        refused = await client.get(MAP, headers=shown(good[:-8] + "AAAAAAzz"))
        assert refused.status_code == 429
        assert (await client.get(MAP, headers=shown(good))).status_code == 200, "one that is known costs nothing"
