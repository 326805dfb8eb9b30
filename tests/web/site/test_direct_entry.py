"""Get tickets: straight to the seats where nobody waits, else to the room's page, and never past somebody."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontrow.boxoffice.events.model.room_rules import RoomRules
from frontrow.waitingroom.model.config import LaneRule
from frontrow.web.platform.platform import Platform
from tests.web.api.support import EVENT_ID, a_client, a_platform, put_event

HEADERS = {
    "accept": "text/html",
    "accept-language": "en",
    "content-type": "application/x-www-form-urlencoded",
    "sec-fetch-site": "same-origin",
}
ROOM = f"/v1/events/{EVENT_ID}/room"
SEATS = f"/events/{EVENT_ID}/seats"
PATIENCE_S = 60.0  # the machine may be slow; nobody waits that long unless something is broken


@asynccontextmanager
async def a_shop(folder: Path, **options: Any) -> AsyncIterator[tuple[Platform, httpx.AsyncClient]]:
    async with a_platform(folder, **options) as platform, a_client(platform) as client:
        platform.room.service.direct_entry.within_s = PATIENCE_S
        yield platform, client


async def press(client: httpx.AsyncClient, event_id: str = EVENT_ID, **form: str) -> httpx.Response:
    """The button of an event's page, by a browser with these cookies."""
    return await client.post(f"/events/{event_id}/enter", data=form, headers=HEADERS)


async def until_called(platform: Platform, client: httpx.AsyncClient) -> None:
    """Until this browser's place is active."""
    async with asyncio.timeout(PATIENCE_S):
        while (await client.get(f"{ROOM}/status")).json()["state"] != "active":
            await platform.room.service.loops.tick(EVENT_ID)


def cookies_of(client: httpx.AsyncClient) -> set[str]:
    return {name.removeprefix("frontrow_").partition("_")[0] for name in client.cookies}


@pytest.mark.parametrize("human", ["altcha", "none"])
@pytest.mark.parametrize("form", ["embedded", "clustered"])
async def test_straight_to_the_seats_and_to_the_room_once_the_shop_is_full(
    tmp_path: Path, form: str, human: str, request: pytest.FixtureRequest
) -> None:
    """Nobody is asked for a proof while nobody waits. Once the shop is full the room's page asks for it, and takes the
    plain form of a browser without scripts."""
    stores = {}
    if form == "clustered":
        stores = {"redis_url": request.getfixturevalue("redis_url")}
        stores["postgres_url"] = request.getfixturevalue("postgres_ledger_url")
    async with a_shop(tmp_path, **stores) as (platform, ada), a_client(platform) as bob:
        await platform.room.service.control.configure(EVENT_ID, capacity=1)
        entry = platform.endpoints.room.entry
        assert entry.kind_of(EVENT_ID) == "altcha", "the default"
        if human == "none":
            entry.set_check(EVENT_ID, None)
        went = await press(ada)
        assert (went.status_code, went.headers["location"]) == (303, SEATS)
        assert cookies_of(ada) == {"pass"}
        assert (await ada.get(SEATS, headers=HEADERS)).status_code == 200
        again = await press(ada)
        assert (again.headers["location"], "set-cookie" in again.headers) == (SEATS, False), "one visit is enough"
        assert platform.room.service.control.view(EVENT_ID).state.lanes[0].issued == 1

        sent = await press(bob)
        assert (sent.status_code, sent.headers["location"]) == (303, f"{ROOM}/")
        if human == "altcha":
            assert cookies_of(bob) == set(), "the browser's work is checked where the place is given"
            program = await bob.post(f"{ROOM}/join", json={"page": True})
            assert (program.status_code, program.json()["code"]) == (403, "human_check_failed")
            sent = await bob.post(f"{ROOM}/join", data={"page": "true", "proof": ""}, headers=HEADERS)
            assert (sent.status_code, sent.headers["location"]) == (303, f"{ROOM}/")
        assert cookies_of(bob) == {"place", "from"}
        waiting = (await bob.get(f"{ROOM}/status")).json()
        assert (waiting["state"], waiting["position"]) == ("waiting", 2)
        page = await bob.get(f"{ROOM}/", headers=HEADERS)
        assert "data-state=waiting" in page.text
        kept = await press(bob)
        assert (kept.headers["location"], "set-cookie" in kept.headers) == (f"{ROOM}/", False), "no second place"

        assert (await ada.post(f"{ROOM}/give-back")).json() == {"ended": True}
        await until_called(platform, bob)
        claim = {"page": "true", "wish": SEATS}  # as the room's page sends it
        assert (await bob.post(f"{ROOM}/claim", data=claim, headers=HEADERS)).headers["location"] == SEATS


async def test_a_place_that_was_used_up_is_no_reason_to_wait(tmp_path: Path) -> None:
    """Ada waited, bought and comes back for more while her old place still counts as active."""
    async with a_shop(tmp_path) as (platform, ada):
        await ada.post(f"{ROOM}/join", json={"page": True})
        await until_called(platform, ada)
        assert (await press(ada)).headers["location"] == f"{ROOM}/", "her place is as good as a pass"
        await ada.post(f"{ROOM}/claim", json={"page": True})
        assert cookies_of(ada) == {"pass", "place", "from"}
        given = next(value for name, value in ada.cookies.items() if "pass" in name)
        await platform.room.service.visits.give_back(given, EVENT_ID)
        went = await press(ada)
        assert went.headers["location"] == SEATS
        assert cookies_of(ada) == {"pass"}, "the old place is forgotten"


async def test_who_must_do_something_first_is_led_to_the_room_and_joins_there(tmp_path: Path) -> None:
    async with a_shop(tmp_path) as (platform, _):
        room, entry = platform.room.service, platform.endpoints.room.entry

        async def where() -> tuple[str, set[str]]:
            async with a_client(platform) as fan:
                return (await press(fan)).headers["location"].rpartition("/")[2], cookies_of(fan)

        to_room: tuple[str, set[str]] = ("", set())
        await room.control.configure(EVENT_ID, codes_until_us=room.sale_clock() + 10**9)
        assert await where() == to_room, "a presale asks for a code"
        await room.control.configure(EVENT_ID, codes_until_us=room.sale_clock() - 1)
        assert await where() == ("seats", {"pass"}), "the presale is over"
        await room.control.configure(EVENT_ID, codes_until_us=0, one_place_per_person=True)
        assert await where() == to_room, "a guest has to sign in"
        await room.control.configure(
            EVENT_ID, one_place_per_person=False, lanes=(LaneRule("general"), LaneRule("fans", 3))
        )
        assert await where() == ("seats", {"pass"}), "a code that shortens the wait is not needed"
        await room.control.configure(EVENT_ID, capacity=0)
        assert await where() == to_room, "a code may be typed before the place is taken"
        await room.control.configure(EVENT_ID, capacity=100)
        for stop, go in ((room.control.pause, room.control.resume), (room.control.queue_all, room.control.resume)):
            await stop(EVENT_ID)
            assert await where() == to_room
            await go(EVENT_ID)
        event = await put_event(platform, id="evt_checked", room=RoomRules(human="altcha"))
        await platform.box_office.openings.refresh()
        assert entry.kind_of(event.id) == "altcha"
        await room.control.configure(event.id, capacity=0)
        async with a_client(platform) as fan:
            assert (await press(fan, event.id)).headers["location"] == f"/v1/events/{event.id}/room/"
            assert cookies_of(fan) == set(), "the browser's work is checked where the place is given"
        await room.control.close(EVENT_ID)
        assert await where() == to_room


async def test_a_signed_in_fan_goes_in_as_themselves_and_only_with_the_forms_word(tmp_path: Path) -> None:
    async with a_shop(tmp_path) as (platform, client):
        made = await platform.people.fans.start_guest_session("", "en")
        cookie = {"cookie": f"__Host-frontrow-session={made.secret}"}
        page = await client.get(f"/events/{EVENT_ID}", headers=HEADERS | cookie)
        assert f'name="csrf" value="{made.csrf}"' in page.text
        async with a_client(platform) as fan:
            went = await fan.post(f"/events/{EVENT_ID}/enter", data={"csrf": made.csrf}, headers=HEADERS | cookie)
            assert went.headers["location"] == SEATS
            given = next(value for name, value in fan.cookies.items() if "pass" in name)
        assert platform.room.service.visits.check_pass(given, EVENT_ID).person == made.session.subject


async def test_rubbish_floods_and_unknown_events_are_refused(tmp_path: Path) -> None:
    async with a_shop(tmp_path, per_ip="6/minute") as (_, client):
        odd = await press(client, cnf="no thumbprint")
        assert (odd.status_code, cookies_of(client)) == (422, set())
        assert (await press(client, "evt_nowhere")).status_code == 404
        assert (await client.get(f"/events/{EVENT_ID}/enter", headers=HEADERS)).status_code == 405
        statuses = [(await press(client)).status_code for _ in range(8)]
        assert statuses[-1] == 429


async def test_the_page_that_caches_keep_has_the_whole_button(tmp_path: Path) -> None:
    """Nothing in it belongs to a visitor, so it works for whoever gets it from a cache."""
    async with a_shop(tmp_path) as (_, client):
        first = await client.get(f"/events/{EVENT_ID}", headers=HEADERS)
        assert first.headers["cache-control"].startswith("public")
        assert f'method="post" action="/events/{EVENT_ID}/enter"' in first.text
        assert "csrf" not in first.text
        assert (await press(client)).headers["location"] == SEATS
