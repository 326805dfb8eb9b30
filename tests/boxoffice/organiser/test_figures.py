"""An organiser's figures (B13, B19): the ledger's sums are what happened; safe tables; live frames (N7)."""

import asyncio
import csv
import io
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import msgspec
import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st

from frontrow.boxoffice.organiser.model.csv_cells import FORMULA_STARTS, safe_cell, to_csv
from frontrow.boxoffice.organiser.model.sales_figures import (
    MAX_BUCKETS,
    Percentiles,
    percentiles_of_buckets,
)
from frontrow.boxoffice.people.model.roles import Role
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput, Unavailable
from frontrow.web.streams.sales_figures import LiveFiguresStreams, TooManyViewers
from tests.boxoffice.organiser.http import EVENTS, OrganiserApi, an_organiser_api
from tests.boxoffice.organiser.support import NOW_US, a_clock, a_hold, a_purchase, an_office, on_sale, some_figures
from tests.boxoffice.people.support import api_key
from tests.support.eventually import eventually
from tests.web.api.support import borrowed_app


async def test_b19_the_figures_are_what_the_bookings_say(ledger):
    clock = a_clock()
    office = an_office(ledger, clock)
    event = await on_sale(office, withheld=("S-C-10", "F-GA-20"))
    for number in range(4):
        await a_purchase(ledger, event, (number * 2, number * 2 + 1), number=number, took_us=(number + 1) * 1_000_000)
    await a_hold(ledger, event, (30, 31), number=10, price=2000)
    gone = await a_hold(ledger, event, (33,), number=11, price=2000)
    await ledger.release_hold(gone.id, gone.fence, NOW_US)
    clock.now_us += 10 * US_PER_S
    found = await some_figures(ledger, office, clock).of(event)
    assert (found.seats.seats, found.seats.sold, found.seats.held, found.seats.withheld) == (56, 8, 2, 2)
    assert found.seats.free == 56 - 8 - 2 - 2
    sections = {one.name: (one.sold, one.held, one.withheld, one.sold_minor) for one in found.sections}
    assert sections == {"S": (8, 0, 1, 40000), "B": (0, 2, 0, 0), "F": (0, 0, 1, 0)}
    tiers = {one.name: (one.seats, one.sold, one.held) for one in found.tiers}
    assert tiers == {"front": (30, 8, 0), "back": (6, 0, 2), "standing": (20, 0, 0)}
    assert (found.bookings.confirmed, found.bookings.held, found.bookings.cancelled) == (4, 1, 1)
    assert found.holds_per_s == round(6 / 60, 3)
    assert found.sales_per_s == round(4 / 60, 3)
    assert found.latency["hold_to_ticket"] == type(found.latency["hold_to_ticket"])(4, 2000.0, 4000.0, 4000.0)
    steps = [(step.name, step.count) for step in found.funnel]
    assert steps == [("joined", 900), ("admitted", 300), ("held", 6), ("payment_begun", 0), ("confirmed", 4)]


async def test_b19_the_series_adds_up_to_the_whole_and_has_a_bounded_number_of_steps(ledger):
    clock = a_clock()
    office = an_office(ledger, clock)
    event = await on_sale(office)
    for number in range(6):
        at_us = NOW_US + number * 60 * US_PER_S
        await a_purchase(ledger, event, (number,), number=number, at_us=at_us, took_us=5 * US_PER_S)
    figures = some_figures(ledger, office, clock)
    minutes = await figures.series(event, NOW_US, NOW_US + 360 * US_PER_S, 60)
    assert [(one.holds, one.sales, one.sold_minor) for one in minutes] == [(1, 1, 5000)] * 6
    assert [one.at_us for one in minutes] == [NOW_US + n * 60 * US_PER_S for n in range(6)]
    whole = await figures.series(event)
    assert len(whole) <= 121
    assert (sum(one.holds for one in whole), sum(one.seats_sold for one in whole)) == (6, 6)
    edge = await figures.series(event, NOW_US, NOW_US + MAX_BUCKETS * US_PER_S, 1)
    assert len(edge) == MAX_BUCKETS
    with pytest.raises(InvalidInput) as refused:
        await figures.series(event, NOW_US, NOW_US + MAX_BUCKETS * US_PER_S + 1, 1)
    assert refused.value.param == "step_s"


async def test_b19_a_hundred_viewers_at_once_cost_the_ledger_one_look(sqlite_ledger):
    clock = a_clock()
    office = an_office(sqlite_ledger, clock)
    event = await on_sale(office)
    figures = some_figures(sqlite_ledger, office, clock)
    looks = []
    counting = sqlite_ledger.figures.bookings_by_state

    async def counted(event_id):
        looks.append(event_id)
        return await counting(event_id)

    sqlite_ledger.figures.bookings_by_state = counted
    await asyncio.gather(*(figures.of(event) for _ in range(100)))
    assert len(looks) == 1
    clock.now_us += 3 * US_PER_S
    await figures.of(event)
    assert len(looks) == 2


def test_b19_percentiles_of_a_histogram_are_the_bounds_they_fall_under():
    bounds_s = [0.001, 0.01, 0.1]
    assert percentiles_of_buckets(bounds_s, [50, 95, 99, 100]) == Percentiles(100, 1.0, 10.0, 100.0)
    assert percentiles_of_buckets(bounds_s, [0, 0, 0, 4]) == Percentiles(4, 100.0, 100.0, 100.0)
    assert percentiles_of_buckets(bounds_s, [0, 0, 0, 0]) is None


@given(st.text(max_size=20))
def test_no_cell_of_a_table_is_read_as_a_formula(text):
    table = to_csv(("name",), [(text,)])
    cell = next(iter(list(csv.reader(io.StringIO(table, newline="")))[1:]), [""])
    shown = cell[0] if cell else ""
    assert not shown.startswith(FORMULA_STARTS)
    assert shown in (text, "'" + text)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "|cmd", "\n=1"])
def test_what_begins_like_a_formula_gets_a_quote_and_numbers_stay_numbers(text):
    assert safe_cell(text) == "'" + text
    assert safe_cell(-5) == -5


async def test_b13_figures_over_http_with_real_money_as_json_and_csv(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        booking = await api.bought("S-A-1", "S-A-2")
        await api.bought("B-A-1", fan="fan_b")
        poor = await api.bought("S-C-5", fan="fan_poor", pay="pm_card_declined")
        assert poor.state.value == "cancelled"
        await api.platform.box_office.refunds.override(booking.id, [0])
        await api.platform.box_office.refunds.work()
        path = f"{EVENTS}/{api.event}/figures"
        figures = await api.get(path)
        assert figures["money"] == [
            {
                "currency": "EUR",
                "captured_minor": 12000,
                "refunded_minor": 5000,
                "refunds_open_minor": 0,
                "fees_kept_minor": 0,
                "net_minor": 7000,
            }
        ]
        assert figures["payment_success"] == round(2 / 3, 4)
        assert figures["seats"]["sold"] == 2
        answer = await api.ask("GET", f"{path}.csv")
        assert answer.headers["content-type"].startswith("text/csv")
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        assert [row["value"] for row in rows if row["figure"] == "net"] == ["70.00"]
        series = await api.get(f"{path}/series", params={"step_s": 1})
        assert sum(step["sales"] for step in series["steps"]) == 2
        table = list(csv.DictReader(io.StringIO((await api.ask("GET", f"{path}/series.csv")).text)))
        assert sum(int(row["sales"]) for row in table) == 2
        for query, param in (
            ({"since": "2001-01-01T00:00:00Z", "step_s": 1}, "step_s"),
            ({"until": "0.5"}, "until"),
            ({"since": "2026-01-01T00:00:00"}, "since"),
            ({"since": "2026-01-01T00:00:00Z", "until": "2025-01-01T00:00:00Z"}, "until"),
        ):
            bad = await api.ask("GET", f"{path}/series", params=query)
            assert (bad.status_code, bad.json()["param"]) == (422, param), bad.text


class Viewer:
    """One live connection that reads frames."""

    def __init__(self, streams, event_id):
        self.events = streams.events(event_id)

    async def frame(self):
        while True:
            text = await anext(self.events)
            if text.startswith(b"event: figures"):
                return text


async def test_n7_all_viewers_share_one_encoded_frame_and_the_last_one_to_leave_ends_the_looking(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        event = await api.platform.ledger.catalogue.event(api.event)

        async def event_of(event_id):
            return event

        streams = LiveFiguresStreams(api.platform.organiser.figures, event_of, max_open=60, every_s=0.01)
        viewers = [Viewer(streams, api.event) for _ in range(60)]
        frames = await asyncio.gather(*(viewer.frame() for viewer in viewers))
        assert len({id(frame) for frame in frames}) <= 2  # the same bytes object, not a copy for each
        assert len(streams) == 60
        with pytest.raises(TooManyViewers):
            streams.check_room(api.event)
        polled = await streams.latest(api.event)
        assert polled.seats.free == 56
        await api.bought("S-A-1")
        for _ in range(500):
            seen = msgspec.json.decode(frames[0].partition(b"data: ")[2])
            if seen["seats"]["sold"] == 1:
                break
            frames = [await viewers[0].frame()]
        assert seen["seats"]["sold"] == 1
        for viewer in viewers:
            await viewer.events.aclose()
        assert len(streams) == 0
        looked = streams.frames
        await asyncio.sleep(0.05)
        assert streams.frames <= looked + 1


async def test_n7_a_viewer_who_takes_nothing_is_dropped(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        live, sent = api.platform.organiser.live, []
        stuck = asyncio.Event()

        async def send(message):
            sent.append(message["type"])
            if message["type"] == "http.response.body":
                await stuck.wait()  # the socket takes nothing any more

        async def receive():
            await stuck.wait()

        await asyncio.wait_for(live.app(api.event, slow_s=0.05)({}, receive, send), 60)
        assert sent == ["http.response.start", "http.response.body"]
        assert len(live) == 0


async def test_b13_the_live_figures_arrive_over_a_socket(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        with borrowed_app(api.platform) as app:
            config = uvicorn.Config(app, port=0, log_level="critical", lifespan="off")
            server = uvicorn.Server(config)
            serving = asyncio.create_task(server.serve())
            await eventually(lambda: server.started)
            port = server.servers[0].sockets[0].getsockname()[1]
            url = f"http://127.0.0.1:{port}{EVENTS}/{api.event}/figures/live"
            try:
                async with (
                    httpx.AsyncClient() as client,
                    client.stream("GET", url, headers=api.person.bearer) as answer,
                ):
                    assert answer.headers["content-type"] == "text/event-stream"
                    async for line in answer.aiter_lines():
                        if line.startswith("data: "):
                            break
                    frame = msgspec.json.decode(line.removeprefix("data: "))
                    assert (frame["event_id"], frame["seats"]["seats"]) == (api.event, 56)
                async with httpx.AsyncClient() as client:
                    api.platform.organiser.live.max_open = 0
                    full = await client.get(url, headers=api.person.bearer)
                    assert (full.status_code, full.json()["code"]) == (503, "too_many_viewers")
                    assert int(full.headers["retry-after"]) >= 1
                    polled = await client.get(url.replace("/live", "/poll"), headers=api.person.bearer)
                    assert polled.json()["seats"]["free"] == 56
                    assert (await client.get(url)).status_code == 401
            finally:
                server.should_exit = True
                await serving


async def ended_by(api: OrganiserApi, end: Callable[[], Awaitable[Any]], bearer: dict[str, str]) -> None:
    """Watch the live figures through the app, do `end`, and wait for the stream to end by itself."""
    live = api.platform.organiser.live
    watching, ended = asyncio.Event(), asyncio.Event()
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
        if message["type"] == "http.response.body":
            watching.set()

    async def receive() -> dict[str, Any]:
        await ended.wait()
        return {"type": "http.disconnect"}

    headers = [(name.encode(), value.encode()) for name, value in (bearer | {"host": "test"}).items()]
    path = f"{EVENTS}/{api.event}/figures/live"
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http"}
    scope |= {"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "headers": headers}
    scope |= {"client": ("127.0.0.1", 1), "server": ("test", 80)}
    with borrowed_app(api.platform) as app:
        viewer = asyncio.create_task(app(scope, receive, send))
        async with asyncio.timeout(60):
            await watching.wait()
            assert not viewer.done()
            await end()
            await viewer
    ended.set()
    assert (sent[0]["status"], sent[-1].get("more_body")) == (200, False), "the answer is whole"
    assert len(live) == 0
    refused = await api.client.get(path, headers=bearer)
    assert refused.status_code in (401, 403)


@pytest.mark.parametrize(
    "how", ["removed", "lowered", "signed out", "password changed", "key revoked", "maker removed"]
)
async def test_b13_the_live_stream_of_somebody_who_may_no_longer_look_ends(tmp_path, how):
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        api.platform.organiser.live.check_every_s = api.platform.organiser.live._every_s = 0.01
        clerk = (await api.as_(Role.MANAGER, name="clerk")).person
        people, team = api.platform.people, f"/v1/organiser/team/{clerk.id}"
        bearer = clerk.bearer
        if how in ("key revoked", "maker removed"):
            maker = api.person if how == "key revoked" else (await api.as_(Role.OWNER, name="maker")).person
            bearer = {"authorization": f"Bearer {await api_key(api.platform, maker, ['figures:read'])}"}
            team = f"/v1/organiser/team/{maker.id}"

        async def end() -> None:
            if how in ("removed", "maker removed"):
                assert (await api.ask("DELETE", team)).status_code == 204
            elif how == "lowered":
                assert (await api.ask("PATCH", team, json={"role": "door"})).status_code == 200
            elif how == "signed out":
                await people.sessions.end_all(clerk.id)
            elif how == "password changed":
                (session,) = await people.sessions.of(clerk.id)
                await people.sessions.replace_all(session)
            else:
                (key,) = (await api.get("/v1/organiser/keys"))["keys"]
                assert (await api.ask("DELETE", f"/v1/organiser/keys/{key['id']}")).status_code == 204

        await ended_by(api, end, bearer)


async def test_b13_a_stream_goes_on_while_nobody_can_say_whether_it_may():
    class Figures:
        async def live(self, event: Any, before: Any) -> Any:
            raise Unavailable("the ledger is away")

    asked = 0

    async def away() -> bool:
        nonlocal asked
        asked += 1
        raise Unavailable("the ledger is away")

    async def event_of(event_id: str) -> Any:
        return None

    streams = LiveFiguresStreams(Figures(), event_of, check_every_s=0.0)  # type: ignore[arg-type]
    frames = streams.events("evt_1", away)
    assert await anext(frames) == b": counting\n\n"
    assert asked == 1
    await frames.aclose()
    await streams.aclose()
