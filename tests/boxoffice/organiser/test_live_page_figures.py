"""What the live page shows besides seats (B13, B19): money, payments, answer times, and the last hour for a reload."""

import asyncio
from dataclasses import replace

import msgspec
import pytest

from frontrow.boxoffice.adapters.sales_figures.redis_point_log import RedisPointLog
from frontrow.boxoffice.organiser.model.sales_figures import Percentiles, RoomFigures, forecast_sold_out
from frontrow.boxoffice.organiser.sales_figures import SalesFigures
from frontrow.core.clock import US_PER_S
from frontrow.waitingroom.model.admission_rate import admitted_per_s
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.room_state import LaneState, RoomState
from frontrow.waitingroom.model.window import Slide
from frontrow.web.observability.telemetry import Telemetry
from frontrow.web.streams.sales_figures import WHOLE_EVERY_US, LiveFiguresStreams
from frontrow.web.streams.sales_history import MAX_EVENTS, MAX_POINTS, SalesHistory
from tests.boxoffice.organiser.http import an_organiser_api
from tests.boxoffice.organiser.support import a_clock, a_purchase, an_office, moved, on_sale
from tests.support.eventually import eventually

SPEED = Percentiles(10, 1.0, 2.0, 4.0)
ROOM = RoomFigures("open", 900, 300, 600, 120, 12.5)


async def test_b19_a_frame_tells_money_payments_and_times(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        booking = await api.bought("S-A-1", "S-A-2")
        await api.bought("S-C-5", fan="fan_poor", pay="pm_card_declined")
        await api.platform.box_office.refunds.override(booking.id, [0])
        api.platform.organiser.live.speeds = lambda: {"hold": SPEED}
        frame = await api.platform.organiser.live.latest(api.event)
        (money,) = frame.money
        assert (money.currency, money.captured_minor, money.refunds_open_minor) == ("EUR", 10000, 5000)
        assert frame.payment_success == 0.5
        assert frame.latency["hold"] == SPEED
        assert frame.latency["hold_to_ticket"].count == 1
        assert frame.whole_at_us == frame.at_us


MINUTE_US = 60 * US_PER_S
FAR_US = 10**15
STEADY = [(10, 20)] * 15


def test_b13_a_steady_sale_is_sold_out_when_its_pace_says_so():
    told = forecast_sold_out(STEADY, 200, 0, FAR_US)
    assert told.sold_out_at_us == 10 * MINUTE_US
    assert told.earliest_us < 9 * MINUTE_US
    assert 11 * MINUTE_US < told.latest_us < 16 * MINUTE_US


def test_b13_a_sale_that_slows_down_says_that_it_may_take_longer():
    slower = [(40, 80)] * 12 + [(20, 40)] * 3
    steady, told = forecast_sold_out(STEADY, 200, 0, FAR_US), forecast_sold_out(slower, 640, 0, FAR_US)
    assert told.sold_out_at_us == round(640 / 56 * MINUTE_US)
    assert told.latest_us >= 16 * MINUTE_US  # at 40 per minute
    assert (told.latest_us / told.sold_out_at_us) > (steady.latest_us / steady.sold_out_at_us)


@pytest.mark.parametrize(
    ("minutes", "left", "until_us"),
    [
        (STEADY, 0, FAR_US),  # sold out already
        ([(0, 0)] * 15, 200, FAR_US),  # nobody buys
        ([(0, 0)] * 13 + [(100, 200)] * 2, 200, FAR_US),  # it has just begun
        ([(1, 2)] * 15, 200, FAR_US),  # too few to tell
        ([(30, 60)] * 13 + [(0, 0)] * 2, 200, FAR_US),  # it has come to a stand
        ([(0, 0)] * 10 + [(90, 180)] * 3 + [(1, 1)] * 2, 600, FAR_US),  # the answers lie far apart
        (STEADY, 200, 12 * MINUTE_US),  # the sale may end before
    ],
)
def test_b13_there_is_no_forecast_when_nobody_can_know(minutes, left, until_us):
    assert forecast_sold_out(minutes, left, 0, until_us) is None


async def test_b13_the_forecast_is_made_of_what_the_ledger_sold_whichever_server_sold_it(ledger):
    clock = a_clock()
    office = an_office(ledger, clock)
    event = await on_sale(office)
    for number in range(36):
        await a_purchase(ledger, event, (number,), number=number, at_us=clock.now_us, took_us=0)
        clock.now_us += 10 * US_PER_S
    servers = [
        SalesFigures(ledger.figures, clock, office.venues.plan, lambda event: None, lambda event: None)
        for _ in range(2)
    ]
    told = [(await one.of(event)).forecast for one in servers]
    assert told[0] == told[1]
    assert told[0].sold_out_at_us == clock.now_us + 20 * 10 * US_PER_S  # 20 of 56 seats are left, six per minute
    clock.now_us += 3 * US_PER_S  # past the cache
    assert (await servers[0].of(moved(event, paused=True))).forecast is None


def test_w6_people_per_second_is_what_happens_now_not_the_setting():
    """Whatever the rate allows: nobody is let in while nobody comes, and a burst counts for ten seconds."""
    config = RoomConfig(rate_per_s=500)
    ring = tuple(Slide(n, n * US_PER_S, (n * 20,), 20) for n in range(1, 21))
    state = RoomState(1, Phase.OPEN, config, (LaneState(500, 400),), ring=ring)
    assert admitted_per_s(state, 20 * US_PER_S) == 20
    assert admitted_per_s(state, 25 * US_PER_S) == 10
    assert admitted_per_s(state, 31 * US_PER_S) == 0
    burst = replace(state, ring=(Slide(1, 60 * US_PER_S, (100,), 100),))
    assert admitted_per_s(burst, 61 * US_PER_S) == 10
    assert admitted_per_s(replace(state, ring=()), 61 * US_PER_S) == 0


async def test_the_ledger_sums_up_for_a_frame_only_now_and_then(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        event = await api.platform.ledger.catalogue.event(api.event)
        looks = []

        class Counting:
            async def live(self, event, before):
                frame = await api.platform.organiser.figures.live(event, before)
                at_us = before.at_us + US_PER_S if before else frame.at_us
                return msgspec.structs.replace(frame, at_us=at_us)

            async def of(self, event):
                looks.append(event.id)
                return await api.platform.organiser.figures.of(event)

        async def event_of(event_id):
            return event

        streams = LiveFiguresStreams(Counting(), event_of)
        frame = None
        for _ in range(7):
            frame = await streams._next_frame(event, frame)
        assert len(looks) == 3  # at once, after three seconds, after six
        assert WHOLE_EVERY_US == 3 * US_PER_S


async def test_b13_all_seats_of_a_frame_are_of_one_moment(tmp_path):
    """Before: a tier's seats were those of the last exact figures, so they did not add up to the total beside them."""
    async with an_organiser_api(tmp_path) as api:
        live = api.platform.organiser.live
        event = await api.platform.ledger.catalogue.event(api.event)
        first = await live._next_frame(event, None)
        await api.bought("S-A-1", "S-A-2")
        await eventually(lambda: api.platform.box_office.feeds[api.event].ring.states.count(2) == 2)
        for frame in (first, await live._next_frame(event, first)):
            for name in ("seats", "free", "held", "sold", "withheld"):
                whole = getattr(frame.seats, name)
                assert sum(getattr(one, name) for one in frame.tiers) == whole
                assert sum(getattr(one, name) for one in frame.sections) == whole
        assert frame.seats.sold == 2
        assert frame.whole_at_us == first.whole_at_us, "money is not summed up again for it"


async def test_w6_a_frame_has_the_limits_that_hold_now(tmp_path):
    """Whoever set them: the page of another member shows them too."""
    async with an_organiser_api(tmp_path) as api:
        await api.ask("PATCH", f"/v1/organiser/events/{api.event}/room", json={"rate_per_s": 7, "capacity": 11})
        frame = await api.platform.organiser.live.latest(api.event)
        assert (frame.room.rate_per_s, frame.room.capacity) == (7, 11)


async def test_b13_every_server_remembers_the_last_hour_of_what_it_sells():
    clock, sold_here = a_clock(), {"evt_a": bytes([0, 1, 2, 2, 3]), "evt_b": b"\x00"}
    rooms = {"evt_a": ROOM}
    history = SalesHistory(clock, lambda: sold_here, sold_here.get, rooms.get, lambda: {"hold": SPEED})
    await history.record_points()
    (point,) = history.of("evt_a")
    assert msgspec.to_builtins(point) == [clock.now_us // US_PER_S, 1, 2, 600, 120, 12.5, 1.0, 4.0]
    assert msgspec.to_builtins(history.of("evt_b")[0])[1:] == [0, 0, None, None, None, 1.0, 4.0]
    del sold_here["evt_b"]
    for _ in range(MAX_POINTS):
        clock.now_us += 5 * US_PER_S
        await history.record_points()
    points = history.of("evt_a")
    assert len(points) == MAX_POINTS
    assert points[0].at_s == point.at_s + 5  # the first one is forgotten
    assert history.of("evt_b") == []
    sold_here.update({f"evt_{number}": b"" for number in range(MAX_EVENTS)})
    await history.record_points()
    assert sum(bool(history.of(event)) for event in sold_here) == MAX_EVENTS


async def test_n7_while_nothing_happens_there_is_a_point_every_few_minutes():
    """Hundreds of quiet events cost nothing, and the line of the chart stays flat until something happens."""
    clock, seats, room = a_clock(), {"evt_a": b"\x00"}, msgspec.structs.replace(ROOM, waiting=0, active=0)
    history = SalesHistory(clock, lambda: seats, seats.get, lambda _: room, dict)
    began_s = clock.now_us // US_PER_S
    for _ in range(121):
        await history.record_points()
        clock.now_us += 5 * US_PER_S
    assert [point.at_s - began_s for point in history.of("evt_a")] == [0, 300, 600]
    clock.now_us += 100 * US_PER_S
    seats["evt_a"] = b"\x02"
    await history.record_points()
    assert [(point.at_s - began_s, point.sold) for point in history.of("evt_a")[-3:]] == [(600, 0), (700, 0), (705, 1)]


async def test_n7_other_requests_go_on_between_the_maps_of_many_events():
    """Counting the seats of all events at once would hold up everybody else."""
    events, turns = [f"evt_{number}" for number in range(20)], []

    async def others():
        while True:
            turns.append(len(counted))
            await asyncio.sleep(0)

    counted = []
    history = SalesHistory(a_clock(), lambda: events, lambda event: counted.append(event) or b"", lambda _: None, dict)
    other = asyncio.create_task(others())
    await history.record_points()
    other.cancel()
    assert (len(counted), turns) == (20, list(range(20)))


async def test_b13_servers_share_the_last_hour(redis_url):
    """A server that was just started shows what the others have noted, and each span has one point."""
    clock, sold_here = a_clock(), {"evt_a": bytes([0, 1, 2])}
    logs = [RedisPointLog(redis_url) for _ in range(2)]
    old, new = [SalesHistory(clock, lambda: sold_here, sold_here.get, lambda _: None, dict, log) for log in logs]
    for _ in range(3):
        await old.record_points()
        clock.now_us += 5 * US_PER_S
    assert len(old.of("evt_a")) == 3
    await new.record_points()
    await old.record_points()
    assert len(new.of("evt_a")) == 4
    assert new.of("evt_a") == old.of("evt_a")
    for log in logs:
        await log.aclose()


async def test_b13_without_redis_a_server_remembers_what_it_has_seen(own_valkey):
    own_valkey.kill()
    clock, log = a_clock(), RedisPointLog(own_valkey.url)
    history = SalesHistory(clock, lambda: ["evt_a"], lambda _: b"", lambda _: None, dict, log)
    for _ in range(2):
        await history.record_points()
        clock.now_us += 5 * US_PER_S
    assert len(history.of("evt_a")) == 2
    await log.aclose()


def test_b19_recent_speeds_forget_what_was_long_ago():
    telemetry = Telemetry()
    route = telemetry.traffic.of("place_hold", "app")
    for _ in range(100):
        route.took(1_000_000_000, 200)
    assert telemetry.recent_speeds()["hold"].p50_ms > 500
    telemetry._before.append(telemetry._buckets())
    assert "hold" not in telemetry.recent_speeds()  # nobody asked since
    for _ in range(10):
        route.took(1_000_000, 200)
    assert telemetry.recent_speeds()["hold"].count == 10
    assert telemetry.recent_speeds()["hold"].p99_ms < 10
    assert telemetry.speeds()["hold"].count == 110
