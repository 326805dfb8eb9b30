"""The same questions to the fast path and the framework of one platform get the same answers (B5, B6, B17, F3).

The two servers share one platform, so a question that changes nothing must get the same bytes from both; what changes
something is asked once by each way about a booking of its own, and compared without the names of the two.
"""

import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from frontrow.app.wiring import Platform
from frontrow.web.guard.overload import Rank
from tests.security.raw_server import serving
from tests.support.eventually import eventually
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, a_platform

PATHS = ("hot", "app")
LEFT = {"ratelimit", "x-ratelimit-remaining", "x-ratelimit-reset"}  # what is left changes with each request
NOT_COMPARED = {"date", "server", "x-request-id", "connection"} | LEFT
JSON = {"Content-Type": "application/json"}
NO_KEEPING = httpx.Limits(max_keepalive_connections=0)  # a shed connection is not read again for a while


@contextlib.asynccontextmanager
async def both(folder: Path, **settings: Any) -> AsyncIterator[tuple[Platform, dict[str, httpx.AsyncClient]]]:
    """A platform with an event on sale behind two servers, and a client of each."""
    async with contextlib.AsyncExitStack() as stack:
        platform = await stack.enter_async_context(a_platform(folder, **settings))
        clients = {}
        for path_kind in PATHS:
            port = await stack.enter_async_context(serving(platform, hot=path_kind == "hot"))
            client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", limits=NO_KEEPING, timeout=60)
            clients[path_kind] = await stack.enter_async_context(client)
        yield platform, clients


def seen(answer: httpx.Response) -> tuple[int, dict[str, str], bytes]:
    """What must be the same."""
    headers = {name: value for name, value in answer.headers.items() if name not in NOT_COMPARED}
    return answer.status_code, headers, answer.content


async def held(client: httpx.AsyncClient, seat: str) -> tuple[str, dict[str, str]]:
    """A new hold: its booking, and the proofs of who made it."""
    buyer = await a_buyer(client)
    await buyer.enter(EVENT_ID)
    hold = await buyer.hold(EVENT_ID, seats=[seat])
    return hold["booking"], {
        "Frontrow-Pass": buyer.headers["Frontrow-Pass"],
        "Frontrow-Booking": hold["booking_token"],
    }


def seats_free(platform: Platform) -> int:
    return bytes(platform.box_office.feeds[EVENT_ID].ring.states).count(0)


def questions(booking: str, proofs: dict[str, str], other: dict[str, str]) -> list[tuple[int, str, str, Any, Any]]:
    """(expected status, method, path, headers, body); none of them changes anything."""
    own, pay, hold = f"/v1/bookings/{booking}", f"/v1/bookings/{booking}/pay", f"/v1/bookings/{booking}/hold"
    only = {"Frontrow-Booking": proofs["Frontrow-Booking"]}
    card = b'{"method": "pm_card_visa"}'
    foreign, ours = {"Sec-Fetch-Site": "cross-site"}, {"Authorization": "Bearer frs_" + "a" * 43}
    return [
        (200, "GET", own, proofs, None),
        (200, "GET", own, only, None),
        (200, "GET", own, {"Authorization": f"Bearer {proofs['Frontrow-Pass']}"}, None),
        (404, "GET", own, {}, None),
        (404, "GET", own, other, None),
        (404, "GET", own, {"Frontrow-Booking": "frb_x.y"}, None),
        (404, "GET", "/v1/bookings/bkg_none", proofs, None),
        (404, "GET", "/v1/bookings/bkg%20none", proofs, None),
        (401, "GET", own, [*ours.items(), ("Authorization", "Bearer frs_" + "b" * 43)], None),
        (401, "POST", pay, only | JSON, card),
        (404, "POST", pay, other | JSON, card),
        (404, "POST", pay, JSON, card),
        (415, "POST", pay, proofs | {"Content-Type": "text/plain"}, card),
        (415, "POST", pay, proofs, card),
        (403, "POST", pay, proofs | JSON | foreign, card),
        (403, "POST", pay, proofs | JSON | {"Origin": "https://evil.example"}, card),
        (413, "POST", pay, proofs | JSON, b" " * 20_000),
        (422, "POST", pay, proofs | JSON, b""),
        (422, "POST", pay, proofs | JSON, b"{"),
        (422, "POST", pay, proofs | JSON, b'{"method": 7}'),
        (422, "POST", pay, proofs | JSON, b'{"amount": 1}'),
        (422, "POST", pay, proofs | JSON, b'{"email": "nobody"}'),
        (422, "POST", pay, proofs | JSON | {"Idempotency-Key": "k" * 200}, card),
        (409, "POST", pay, proofs | JSON, b'{"method": "pm_card_visa", "fence": 9000000}'),
        (405, "PUT", pay, proofs | JSON, card),
        (200, "PATCH", hold, proofs | JSON, b'{"extend": false}'),
        (409, "PATCH", hold, proofs | JSON, b'{"extend": true, "fence": 9000000}'),
        (422, "PATCH", hold, proofs | JSON, b'{"extend": "yes"}'),
        (401, "PATCH", hold, only | JSON, b'{"extend": true}'),
        (401, "DELETE", hold, only, None),
        (404, "DELETE", hold, {}, None),
        (403, "DELETE", hold, proofs | foreign, None),
        (200, "GET", "/v1/events", {}, None),
        (200, "GET", "/v1/events", proofs, None),
        (200, "GET", "/v1/events?limit=3", {}, None),
        (422, "GET", "/v1/events?limit=0", {}, None),
        (401, "GET", "/v1/events", [*ours.items(), ("Authorization", "Bearer frs_" + "b" * 43)], None),
        (200, "GET", f"/v1/events/{EVENT_ID}", {}, None),
        (404, "GET", "/v1/events/evt_none", {}, None),
    ]


async def test_b5_b17_fast_path_and_framework_answer_every_question_about_a_booking_alike(tmp_path):
    async with both(tmp_path) as (platform, clients):
        booking, proofs = await held(clients["app"], "S-A-1")
        _, other = await held(clients["hot"], "S-A-5")
        await eventually(lambda: seats_free(platform) == 54)  # both holds show on the map, which then rests
        for status, method, path, headers, body in questions(booking, proofs, other):
            answers = {
                path_kind: seen(await client.request(method, path, headers=headers, content=body))
                for path_kind, client in clients.items()
            }
            assert answers["hot"] == answers["app"], (method, path, body)
            assert answers["hot"][0] == status, (method, path, body, answers["hot"])
            assert body != b"" or answers["hot"][1]["content-type"] == "application/problem+json"
        for path in (f"/v1/bookings/{booking}", "/v1/events", f"/v1/events/{EVENT_ID}"):
            for client in clients.values():
                known = await client.get(path, headers=proofs)
                again = await client.get(path, headers=proofs | {"If-None-Match": known.headers["etag"]})
                assert (again.status_code, again.content) == (304, b""), path
                assert again.headers["x-request-id"]
        rows = {(row.route, row.door): row.statuses for row in platform.server.telemetry.traffic.rows()}
        for route in ("get_booking", "pay", "extend_hold", "release_hold", "list_events"):
            assert {path_kind for name, path_kind in rows if name == route} == set(PATHS), (
                "counted under one name by both"
            )


async def test_head_is_get_without_the_body_on_fast_path_and_framework(tmp_path):
    async with both(tmp_path) as (_, clients):
        booking, proofs = await held(clients["app"], "S-A-1")
        own, stream = f"/v1/bookings/{booking}", f"/v1/events/{EVENT_ID}/seats/stream"  # GET of it would never end
        for client in clients.values():
            for path in ("/healthz", "/v1/events", f"/v1/events/{EVENT_ID}", own, "/", "/metrics"):
                whole, head = await client.get(path, headers=proofs), await client.head(path, headers=proofs)
                assert (head.status_code, head.content) == (200, b""), path
                same = ["content-type", "etag", "cache-control"]
                same += ["content-length"] if path not in ("/", "/metrics") else []  # these change with each request
                assert [head.headers.get(one) for one in same] == [whole.headers.get(one) for one in same], path
                assert whole.headers["content-type"].count("charset") <= 1
            streamed = await client.head(stream, headers=proofs)
            assert (streamed.status_code, streamed.content) == (200, b"")
            assert streamed.headers["content-type"].startswith("text/event-stream")
            for path, status in (("/v1/events/evt_none", 404), (f"/v1/bookings/{booking}/pay", 405), ("/v1/me", 401)):
                refused = await client.head(path)
                assert (refused.status_code, refused.content) == (status, b""), path
            wrong = await client.delete("/v1/events")
            assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
            assert (await client.options("/v1/events")).headers["allow"] == "GET, HEAD, OPTIONS"


async def test_b6_a_booking_is_extended_paid_and_given_back_alike_by_fast_path_and_framework(tmp_path):
    async with both(tmp_path) as (_, clients):
        told: dict[str, list[Any]] = {}
        for at, (path_kind, client) in enumerate(clients.items()):
            booking, proofs = await held(client, f"S-A-{2 * at + 1}")
            spare, spared = await held(client, f"S-B-{2 * at + 1}")
            declined, theirs = await held(client, f"S-C-{2 * at + 1}")
            answers = [
                await client.patch(f"/v1/bookings/{booking}/hold", headers=proofs, json={"extend": True}),
                await client.post(f"/v1/bookings/{booking}/pay", headers=proofs, json={"method": "pm_card_visa"}),
                await end_visit(client, proofs),
                await client.post(f"/v1/bookings/{booking}/pay", headers=proofs, json={"method": "pm_card_visa"}),
                await client.get(f"/v1/bookings/{booking}", headers=proofs),
                await client.delete(f"/v1/bookings/{booking}/hold", headers=proofs),
                await client.delete(f"/v1/bookings/{spare}/hold", headers=spared),
                await client.post(f"/v1/bookings/{spare}/pay", headers=spared, json={"method": "pm_card_visa"}),
                await client.post(
                    f"/v1/bookings/{declined}/pay", headers=theirs, json={"method": "pm_card_chargeDeclined"}
                ),
            ]
            told[path_kind] = [plain(seen(answer)) for answer in answers]
        assert told["hot"] == told["app"]
        assert [answer[0] for answer in told["hot"]][:5] == [200] * 5, "paying again says that it is paid"
        assert told["hot"][3] == told["hot"][1]
        assert '"state":"confirmed"' in told["hot"][1][2]


async def end_visit(client: httpx.AsyncClient, proofs: dict[str, str]) -> httpx.Response:
    """The purchase is complete, so the pass is worth nothing any more. The platform does the same a moment later."""
    given = await client.post(
        f"/v1/events/{EVENT_ID}/room/give-back", headers={"Authorization": f"Bearer {proofs['Frontrow-Pass']}"}
    )
    return httpx.Response(200, json={}) if given.status_code in (200, 409) else given  # 409: the platform was quicker


def plain(answer: tuple[int, dict[str, str], bytes]) -> tuple[int, dict[str, str], str]:
    """Without what belongs to one booking: its id, fence, seats and times."""
    status, headers, body = answer
    text = re.sub(r"bkg_[0-9A-Z]+|[0-9]{4}-[0-9-]+T[0-9:.]+Z|S-[ABC]-[0-9]+", "…", body.decode())
    text = re.sub(r'("fence":|fence )[0-9]+', "…", text)
    return status, {name: value for name, value in headers.items() if name not in ("etag", "content-length")}, text


async def test_b17_a_person_is_limited_on_either_path(tmp_path):
    async with both(tmp_path, per_person="3/hour") as (platform, clients):
        for at, client in enumerate(clients.values()):
            visit, _ = platform.room.passes.beside_the_line(EVENT_ID, f"fan_{at}", "test")
            wish = {"seats": [f"S-A-{2 * at + 1}"]}
            hold = await client.post(f"/v1/events/{EVENT_ID}/holds", json=wish, headers={"Frontrow-Pass": visit})
            assert hold.status_code == 201, hold.text
            path, own = f"/v1/bookings/{hold.json()['booking']}", {"Frontrow-Booking": hold.json()["booking_token"]}
            answers = [await client.get(path, headers=own) for _ in range(5)]
            assert [one.status_code for one in answers] == [200] * 3 + [429] * 2
            assert int(answers[-1].headers["retry-after"]) >= 1
            paid = await client.post(f"{path}/pay", headers=own, json={})
            assert (paid.status_code, paid.json()["code"]) == (429, "rate_limited")


async def test_f3_under_pressure_the_platform_sheds_from_the_bottom_by_fast_path_and_framework(tmp_path):
    """pay > hold > map > join > browse, on the platform's own app; pressure is set, so nothing depends on speed."""
    asks = {
        Rank.BROWSE: ("GET", "/v1/events"),
        Rank.JOIN: ("POST", f"/v1/events/{EVENT_ID}/room/join"),
        Rank.MAP: ("GET", f"/v1/events/{EVENT_ID}/seats.bin"),
        Rank.HOLD: ("POST", f"/v1/events/{EVENT_ID}/holds"),
        Rank.PAY: ("POST", "/v1/bookings/bkg_a/pay"),
        Rank.EXEMPT: ("GET", "/healthz"),
    }
    async with both(tmp_path) as (platform, clients):
        gate = platform.server.telemetry.gate
        for pressure in range(5):
            gate.pressure, gate.active = float(pressure), pressure > 0
            for path_kind, client in clients.items():
                for rank, (method, path) in asks.items():
                    answer = await client.request(method, path)
                    shed = answer.status_code == 503
                    assert shed == (rank < pressure), (path_kind, rank, pressure, answer.status_code)
                    after = "4" if pressure >= 2 else "2"
                    assert not shed or (answer.json()["code"], answer.headers["retry-after"]) == ("overloaded", after)
        assert gate.shed[Rank.PAY] == gate.shed[Rank.EXEMPT] == 0
        assert gate.shed[:4] == [8, 6, 4, 2]
