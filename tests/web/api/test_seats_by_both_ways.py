"""The fast path and the framework give the same answers about seats (B2, B3, B17, N7, W10)."""

import asyncio

import httpx
import pytest

from frontrow.boxoffice.holds.plain_attempt import PlainAttempts
from frontrow.boxoffice.seats.model.map_format import decode_changes, read_frame, read_snapshot
from frontrow.settings.overload import OverloadSettings
from frontrow.web.fastpath.platform_routes import fast_routes
from tests.support.eventually import eventually
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, a_server, put_event

BOTH = pytest.mark.parametrize("hot_lane", [True, False], ids=["hot", "framework"])


async def events(response, count):
    """The next `count` server-sent events of a stream that are no heartbeats, as (kind, data)."""
    found, kind = [], ""
    async for line in response.aiter_lines():
        if line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data:") and kind != "hb":
            found.append((kind, line[5:].strip()))
            if len(found) == count:
                return found
    raise AssertionError(f"the stream ended after {found}")


@BOTH
async def test_b2_a_viewer_sees_seats_turn_unavailable(tmp_path, hot_lane):
    async with a_server(tmp_path, hot_lane=hot_lane) as (_, url), httpx.AsyncClient(base_url=url) as client:
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        snapshot = read_snapshot((await client.get(f"/v1/events/{EVENT_ID}/seats.bin")).content, 56)
        at = {"Last-Event-ID": f"{snapshot.epoch}-{snapshot.seq}"}
        async with client.stream("GET", f"/v1/events/{EVENT_ID}/seats/stream", headers=at) as stream:
            assert stream.status_code == 200
            await buyer.hold(EVENT_ID, seats=["S-A-3"])
            ((kind, line),) = await asyncio.wait_for(events(stream, 1), 60)
        frame = read_frame(line)
        assert (kind, decode_changes(frame.body, 56)) == ("d", {2: 1})
        polled = await client.get(f"/v1/events/{EVENT_ID}/seats/poll", params={"after": at["Last-Event-ID"]})
        assert line in polled.text
        assert polled.headers["frontrow-seats"] == f"{frame.epoch}-{frame.seq}"


@BOTH
async def test_a_viewer_whom_the_ring_cannot_reach_is_told_to_begin_anew(tmp_path, hot_lane):
    async with a_server(tmp_path, hot_lane=hot_lane) as (_, url), httpx.AsyncClient(base_url=url) as client:
        async with client.stream("GET", f"/v1/events/{EVENT_ID}/seats/stream?after=1-999") as stream:
            ((kind, _),) = await asyncio.wait_for(events(stream, 1), 60)
        assert kind == "reset"
        odd = await client.get(f"/v1/events/{EVENT_ID}/seats/poll?after=x")
        assert (odd.status_code, odd.json()["param"]) == (422, "after")


@BOTH
async def test_b1_an_event_is_counted_once_for_everybody_and_again_when_the_map_moves(tmp_path, hot_lane):
    async with a_server(tmp_path, hot_lane=hot_lane) as (platform, url), httpx.AsyncClient(base_url=url) as client:
        path, views = f"/v1/events/{EVENT_ID}", platform.endpoints.events
        first = await client.get(path)
        before = views.built
        many = await asyncio.gather(*(client.get(path) for _ in range(50)))
        assert {one.headers["etag"] for one in many} == {first.headers["etag"]}
        assert views.built - before < 10, "a moment or two may have passed, not fifty"
        known = await client.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (known.status_code, known.content) == (304, b"")
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        await buyer.hold(EVENT_ID, seats=["S-A-3"])
        now = await eventually(  # the map's next frame
            lambda: client.get(path, headers={"If-None-Match": first.headers["etag"]}),
            until=lambda answer: answer.status_code != 304,
        )
        assert now.json()["free"] == first.json()["free"] - 1
        missing = await client.get("/v1/events/evt_none")
        assert (missing.status_code, missing.json()["code"]) == (404, "event_not_found")
        assert "x-request-id" in first.headers


@BOTH
async def test_b3_a_taken_seat_is_refused_with_the_same_words(tmp_path, hot_lane):
    async with a_server(tmp_path, hot_lane=hot_lane) as (platform, url), httpx.AsyncClient(base_url=url) as client:
        first, second = await a_buyer(client), await a_buyer(client)
        await first.enter(EVENT_ID)
        await second.enter(EVENT_ID)
        await first.hold(EVENT_ID, seats=["S-A-3"])
        refused = [await second.call("place_hold", event_id=EVENT_ID, json={"seats": ["S-A-3"]}) for _ in range(3)]
        assert [answer.status_code for answer in refused] == [409] * 3
        assert len({answer.content for answer in refused}) == 1
        problem = refused[0].json()
        assert (problem["code"], problem["seats"]) == ("seats_taken", ["S-A-3"])
        assert all(answer.headers["x-request-id"] for answer in refused)
        assert platform.box_office.holds.stats.refused_locally >= 2, "a hopeless attempt asks no store"


@BOTH
async def test_b4_b17_holds_need_a_pass_and_a_sensible_wish(tmp_path, hot_lane):
    async with a_server(tmp_path, hot_lane=hot_lane) as (_, url), httpx.AsyncClient(base_url=url) as client:
        buyer = await a_buyer(client)
        nobody = await buyer.call("place_hold", event_id=EVENT_ID, json={"seats": ["S-A-1"]})
        assert (nobody.status_code, nobody.json()["code"]) == (401, "unauthorised")
        buyer.headers["Frontrow-Pass"] = "eyJhbGciOiJub25lIn0.e30."
        forged = await buyer.call("place_hold", event_id=EVENT_ID, json={"seats": ["S-A-1"]})
        assert (forged.status_code, forged.json()["code"]) == (401, "pass_invalid")
        await buyer.enter(EVENT_ID)
        both = {"seats": ["S-A-1"], "best": {"count": 1}}
        for body in ({}, {"seats": [], "best": None}, both, {"best": {"count": 0}}):
            odd = await buyer.call("place_hold", event_id=EVENT_ID, json=body)
            assert odd.status_code == 422, body
        best = await buyer.hold(EVENT_ID, best={"count": 3})
        assert len(best["seats"]) == 3
        unknown = await buyer.call("place_hold", event_id=EVENT_ID, json={"seats": ["Z-1-1"]})
        assert (unknown.status_code, unknown.json()["code"]) == (422, "unknown_seats")


@BOTH
async def test_the_same_key_is_the_same_hold_and_another_body_409(tmp_path, hot_lane):
    async with a_server(tmp_path, hot_lane=hot_lane) as (_, url), httpx.AsyncClient(base_url=url) as client:
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        key = {"Idempotency-Key": "k1"}
        one = await buyer.call("place_hold", event_id=EVENT_ID, json={"seats": ["S-A-1"]}, headers=key)
        same = await buyer.call("place_hold", event_id=EVENT_ID, json={"seats": ["S-A-1"]}, headers=key)
        assert one.json()["booking"] == same.json()["booking"]
        assert same.headers["idempotent-replayed"] == "true"
        other = await buyer.call("place_hold", event_id=EVENT_ID, json={"seats": ["S-A-2"]}, headers=key)
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_mismatch")


@BOTH
async def test_the_plain_attempts_answer_like_the_fast_ones(tmp_path, hot_lane):
    """`server.plain_holds` selects the code; what a fan sees is the same."""
    options = {"hot_lane": hot_lane, "plain_holds": True}
    async with a_server(tmp_path, **options) as (platform, url), httpx.AsyncClient(base_url=url) as client:
        assert isinstance(platform.box_office.holds._attempts, PlainAttempts)
        buyer, other = await a_buyer(client), await a_buyer(client)
        for one in (buyer, other):
            await one.enter(EVENT_ID)
        held = await buyer.call("place_hold", event_id=EVENT_ID, json={"seats": ["S-A-1"]})
        assert held.status_code == 201
        platform.box_office.sales.get(EVENT_ID).seats.mark_free([0])  # so that the claim store is asked
        taken = await other.call("place_hold", event_id=EVENT_ID, json={"seats": ["S-A-1"]})
        assert (taken.status_code, taken.json()["code"], taken.json()["seats"]) == (409, "seats_taken", ["S-A-1"])
        assert (await other.hold(EVENT_ID, best={"count": 2}))["seats"]
        assert platform.box_office.holds.stats.refused_by_claims == 1


@BOTH
async def test_a_cookie_counts_only_for_our_own_pages(tmp_path, hot_lane):
    """CSRF: a hold by the browser's cookie that another site's page sends is refused."""
    async with a_server(tmp_path, hot_lane=hot_lane) as (_, url), httpx.AsyncClient(base_url=url) as client:
        buyer = await a_buyer(client)
        cookie = {"Cookie": f"__Host-frontrow-pass={await buyer.enter(EVENT_ID)}"}
        wish = {"seats": ["S-A-1"]}
        for told in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
            foreign = await client.post(f"/v1/events/{EVENT_ID}/holds", json=wish, headers=cookie | told)
            assert (foreign.status_code, foreign.json()["code"]) == (403, "cross_site")
        own = {"Sec-Fetch-Site": "same-origin"}
        held = await client.post(f"/v1/events/{EVENT_ID}/holds", json=wish, headers=cookie | own)
        assert held.status_code == 201


@BOTH
async def test_n7_w10_beyond_the_cap_a_viewer_is_sent_to_polling(tmp_path, hot_lane):
    async with (
        a_server(tmp_path, hot_lane=hot_lane, max_streams=1) as (_, url),
        httpx.AsyncClient(base_url=url) as client,
        client.stream("GET", f"/v1/events/{EVENT_ID}/seats/stream") as first,
    ):
        await asyncio.wait_for(events(first, 1), 60)
        refused = await client.get(f"/v1/events/{EVENT_ID}/seats/stream")
        assert (refused.status_code, refused.json()["code"]) == (503, "streams_full")
        assert int(refused.headers["retry-after"]) >= 1
        assert (await client.get(refused.json()["poll"])).status_code == 200


@BOTH
async def test_one_address_cannot_take_all_live_streams(tmp_path, hot_lane):
    """Maps and rooms together; IPv6 per /64; the client's address as our proxy says it. Who gets none polls."""
    one_each = OverloadSettings(max_streams_per_address=1)
    async with (
        a_server(tmp_path, hot_lane=hot_lane, overload=one_each, trusted_proxies=("127.0.0.1",)) as (_, url),
        httpx.AsyncClient(base_url=url) as client,
    ):
        seats, room = f"/v1/events/{EVENT_ID}/seats/stream", f"/v1/events/{EVENT_ID}/room/stream"

        async def ask(path, address):
            async with client.stream("GET", path, headers={"X-Forwarded-For": address}) as answer:
                return answer.status_code

        async with client.stream("GET", seats, headers={"X-Forwarded-For": "2001:db8::1"}) as first:
            lines = first.aiter_lines()  # the stream stays open as long as this one is referred to
            await asyncio.wait_for(anext(lines), 60)
            assert [await ask(path, "2001:db8::ffff:2") for path in (seats, room)] == [503, 503]
            assert await ask(seats, "2001:db8:0:1::1") == 200, "another network"
            assert [await ask(room, address) for address in ("", "127.0.0.1", "192.0.2.1")] == [200, 200, 200]
            await lines.aclose()
        # until the server has seen that the first one left
        await eventually(lambda: ask(room, "2001:db8::1"), until=lambda status: status == 200)


@BOTH
async def test_b17_person_and_address_are_limited_on_either_path(tmp_path, hot_lane):
    limits = {"per_person": "3/minute", "per_ip": "40/minute"}
    async with (
        a_server(tmp_path, hot_lane=hot_lane, **limits) as (platform, url),
        httpx.AsyncClient(base_url=url) as client,
    ):
        buyer = await a_buyer(client)
        buyer.headers["Frontrow-Pass"], _ = platform.room.passes.beside_the_line(EVENT_ID, "fan_1", "test")
        answers = [await buyer.call("place_hold", event_id=EVENT_ID, json={"seats": ["S-A-1"]}) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [201, 409, 409, 429, 429]
        assert int(answers[-1].headers["retry-after"]) >= 1
        seen = [(await client.get(f"/v1/events/{EVENT_ID}/seats.bin")).status_code for _ in range(40)]
        assert seen[-1] == 429
        assert (await client.get("/v1/events")).status_code == 429, "the address is one, whatever it asks for"


@BOTH
async def test_b13_an_event_published_while_running_is_sold_within_a_second(tmp_path, hot_lane):
    async with a_server(tmp_path, hot_lane=hot_lane) as (platform, url), httpx.AsyncClient(base_url=url) as client:
        buyer = await a_buyer(client)
        assert (await client.get("/v1/events/evt_new/seats.bin")).status_code == 404
        await put_event(platform, id="evt_new", name="Borealis")
        await eventually(lambda: "evt_new" in platform.box_office.openings)
        await buyer.enter("evt_new")
        assert (await buyer.hold("evt_new", seats=["S-A-1"]))["event"] == "evt_new"
        hot = (b"POST", b"/v1/events/evt_new/holds")
        assert hot in fast_routes(platform)
