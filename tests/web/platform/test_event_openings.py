"""What a server sells follows the catalogue, and what is over is released: feed, claims, room, caches."""

import asyncio
from dataclasses import replace

import pytest

from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.holds.model.holds import NewHold
from frontrow.core.errors import FrontrowError, NotFound
from frontrow.waitingroom.model.idle_visits import PLATFORM_IDLE_S
from frontrow.web.fastpath.platform_routes import fast_routes
from frontrow.web.platform import event_openings as openings
from frontrow.web.platform.event_rooms import Rooms
from frontrow.web.streams.positions import Streams
from tests.support.booking_moves import refund_booking
from tests.support.eventually import eventually
from tests.web.api.support import EVENT_ID, a_client, a_platform, put_event


async def test_an_event_that_is_over_is_closed_and_nothing_of_it_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(openings, "KEEP_CLOSED_US", 0)
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        other = await put_event(platform, id="evt_other", name="Borealis")
        await eventually(lambda: "evt_other" in platform.box_office.openings, 60)
        assert (await client.get("/v1/events/evt_other")).json()["seats_left"] == 56
        table = fast_routes(platform)
        routes = len(table)
        await platform.ledger.catalogue.put_event(replace(other, status=EventStatus.COMPLETED), platform.clock())
        await eventually(lambda: "evt_other" not in platform.room.service.cache.events(), 60)
        assert "evt_other" not in platform.box_office.openings
        assert "evt_other" not in platform.box_office.feeds
        assert "evt_other" not in set(platform.box_office.sales)
        assert "evt_other" not in platform.endpoints.room.streams
        assert "evt_other" not in platform.room.service.cache.events()
        assert len(table) < routes
        with pytest.raises(NotFound):
            await platform.stores.claims.lost("evt_other")
        with pytest.raises(FrontrowError):
            platform.room.service.control.view("evt_other")
        assert [task.get_name() for task in asyncio.all_tasks() if "evt_other" in task.get_name()] == []
        over = (await client.get("/v1/events/evt_other")).json()
        assert (over["status"], over["free"]) == ("completed", 0)
        assert EVENT_ID in platform.box_office.openings
        listed = (await client.get("/v1/events")).json()["events"]
        assert [one["id"] for one in listed] == [EVENT_ID]


async def test_b20_the_running_platform_sells_out_by_itself(tmp_path):
    """The jobs as a server runs them: the last seat is bought, the API says sold out, holds are refused."""
    async with a_platform(tmp_path) as platform:
        event = await put_event(platform, id="evt_out", withheld=frozenset(range(1, 56)))
        await eventually(lambda: "evt_out" in platform.box_office.openings, 60)

        now_us = platform.clock()
        placed = await platform.ledger.place_hold(
            NewHold("bkg_last", event.id, "fan_a", (0,), now_us, now_us + 60_000_000, 5_000)
        )
        await platform.ledger.begin_payment(placed.booking_id, placed.fence, now_us)
        await platform.ledger.confirm(placed.booking_id, placed.fence, now_us)
        await eventually(lambda: platform.box_office.openings.events["evt_out"].status is EventStatus.SOLD_OUT, 60)
        await refund_booking(platform.ledger, placed.booking_id, placed.fence, platform.clock())
        await eventually(lambda: platform.box_office.openings.events["evt_out"].status is EventStatus.ON_SALE, 60)


async def test_a_room_made_under_the_old_idle_time_follows_the_setting_when_its_event_is_opened(tmp_path):
    """Rooms in Redis carry their settings. Those of an older version have 120 seconds in them."""
    async with a_platform(tmp_path) as platform:
        room = platform.room.service
        await room.control.configure(EVENT_ID, idle_s=120)
        event = platform.box_office.openings.events[EVENT_ID]
        await Rooms(platform.endpoints.room, platform.settings.room.config(), platform.clock, Streams).open(event)
        assert room.control.view(EVENT_ID).state.config.idle_s == PLATFORM_IDLE_S == 480
