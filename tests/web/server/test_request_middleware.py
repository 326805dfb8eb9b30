"""What stands before every route: request ids, entity tags, OPTIONS; webhooks; slow readers of the live map (N7)."""

import asyncio
import json
from dataclasses import replace

from frontrow.app.wiring import open_platform
from frontrow.boxoffice.seats.map.frame_log import MemoryFrameLog
from frontrow.boxoffice.seats.map.map_feed import MapFeed
from frontrow.core.clock import US_PER_S, SystemClock
from frontrow.settings.platform import StripeSettings
from frontrow.shared.webhook_signature import sign
from frontrow.web.streams.positions import MAX_MISSED
from frontrow.web.streams.seat_map import SeatStreams
from tests.support.eventually import eventually
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, a_client, a_platform, settings_for


async def test_every_answer_has_a_request_id_and_a_strangers_is_not_taken_over(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        told = {"X-Request-Id": "mine"}
        ids = [
            (await client.get(path, headers=told)).headers["x-request-id"] for path in ("/healthz", "/none", "/docs")
        ]
        assert len(set(ids)) == 3
        assert "mine" not in ids


async def test_a_trusted_proxys_request_id_is_taken_over(tmp_path):
    async with a_platform(tmp_path, trusted_proxies=("127.0.0.1",)) as platform, a_client(platform) as client:
        assert (await client.get("/healthz", headers={"X-Request-Id": "r-1"})).headers["x-request-id"] == "r-1"
        odd = await client.get("/healthz", headers={"X-Request-Id": "a b"})
        assert odd.headers["x-request-id"] != "a b"


async def test_json_answers_have_entity_tags_and_304(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        first = await client.get(f"/v1/events/{EVENT_ID}")
        again = await client.get(f"/v1/events/{EVENT_ID}", headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        await buyer.hold(EVENT_ID, seats=["S-A-1"])
        changed = await eventually(  # the map's next tick
            lambda: client.get(f"/v1/events/{EVENT_ID}", headers={"If-None-Match": first.headers["etag"]}),
            until=lambda answer: answer.status_code == 200,
        )
        assert changed.json()["free"] == 55


async def test_options_names_every_method_of_a_path(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        allowed = await client.options("/v1/bookings/bkg_x/refunds")
        assert (allowed.status_code, allowed.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")
        wrong = await client.put("/v1/bookings/bkg_x/refunds")
        assert (wrong.status_code, wrong.json()["code"]) == (405, "method_not_allowed")


async def test_b7_a_forged_or_old_webhook_is_refused_and_a_genuine_one_is_done_once(tmp_path):
    stripe = StripeSettings("sk_test_x", "whsec_test", "http://127.0.0.1:9")
    async with open_platform(replace(settings_for(tmp_path), stripe=stripe)) as platform, a_client(platform) as client:
        about = {"object": {"id": "pi_1", "object": "payment_intent"}}
        body = json.dumps({"id": "evt_1", "type": "payment_intent.succeeded", "data": about}).encode()
        now_us = platform.clock()

        async def post(signature: str) -> tuple[int, dict[str, object]]:
            headers = {"Stripe-Signature": signature, "Content-Type": "application/json"}
            answer = await client.post("/v1/webhooks/stripe", content=body, headers=headers)
            return answer.status_code, answer.json()

        assert (await post(sign(body, "whsec_other", now_us)))[0] == 401
        assert (await post(sign(body, "whsec_test", now_us - 3600 * 1_000_000)))[0] == 401
        assert (await post(""))[0] == 401
        genuine = sign(body, "whsec_test", now_us)
        assert await post(genuine) == (200, {"done": True})
        assert await post(genuine) == (200, {"done": False})


class Transport:
    """A socket that can be clogged."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.aborted = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def set_write_buffer_limits(self, high: int) -> None:
        self.high = high

    def abort(self) -> None:
        self.aborted = True


async def test_n7_a_slow_viewer_is_skipped_then_brought_up_to_date_then_dropped():
    states = bytearray(8)

    async def truth(indexes):
        return bytes(states[index] for index in indexes)

    feed = MapFeed(8, MemoryFrameLog(1), truth)
    await feed.resync()
    streams = SeatStreams(feed, 10)
    quick, slow, dead = Transport(), Transport(), Transport()
    readers = [streams.take(one, set(), b"", (1, 0)) for one in (quick, slow, dead)]
    running = asyncio.create_task(streams.run())
    await asyncio.sleep(0)
    for viewer in readers[1:]:
        viewer.pause_writing()
    for seat in range(MAX_MISSED + 2):
        states[seat % 8] ^= 1
        feed.notify([seat % 8])
        sent = streams.sent
        await feed.tick()
        await eventually(lambda sent=sent: streams.sent != sent)
        if seat == 2:
            readers[1].resume_writing()
    assert len(quick.written) == 1 + MAX_MISSED + 2
    assert quick.written[1] is slow.written[-1] or quick.written[-1] is slow.written[-1], "one encoded frame for all"
    assert slow.written[1].count(b"event: d") == 3, "the missed frames come in one piece"
    assert (slow.aborted, dead.aborted) == (False, True)
    assert len(dead.written) == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_b8_who_lost_the_seats_to_the_provider_gets_a_priority_pass(tmp_path):
    clock, ahead_us = SystemClock(), 0
    now = lambda: clock() + ahead_us  # noqa: E731
    async with a_platform(tmp_path, clock=now) as platform, a_client(platform) as client:
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, seats=["S-A-1"])
        early = await buyer.call("priority_pass", booking_id=held["booking"])
        assert (early.status_code, early.json()["code"]) == (409, "no_priority")
        platform.box_office.provider.inner.down = True
        waiting = await buyer.call("pay", booking_id=held["booking"], json={"method": "pm_card_visa"})
        assert waiting.status_code == 202
        ahead_us, given = 601 * US_PER_S, early  # the hold is over, and the provider never came back
        given = await eventually(
            lambda: buyer.call("priority_pass", booking_id=held["booking"]),
            until=lambda answer: answer.status_code == 201,
        )
        platform.box_office.provider.inner.down = False
        buyer.headers["Frontrow-Pass"] = given.json()["pass"]
        assert (await buyer.hold(EVENT_ID, seats=["S-A-1"]))["event"] == EVENT_ID
