"""One suite by both ways in: the fast path and Litestar alone must give the same answers."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from frontrow.core.errors import Unavailable
from frontrow.waitingroom.credentials.now_serving import read
from frontrow.waitingroom.credentials.places import Place
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceRules
from frontrow.waitingroom.model.config import Phase, RoomConfig
from tests.web.room.conftest import ORGANISER, ServedRoom, endpoints_of, opened
from tests.web.room.served import Line
from tests.web.room.simple_room import SimpleRoom

DEEP = "/v1/events/aurora/room"


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def joined(server: ServedRoom, **extra: Any) -> dict[str, Any]:
    answer = server.client.post("/join", **extra)
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


@pytest.mark.parametrize("base", ["", DEEP])
def test_join_returns_a_place_and_status_takes_it_as_a_bearer(server: ServedRoom, base: str) -> None:
    """W1, W5."""
    place = server.client.post(base + "/join").json()
    assert jwt.decode(place["place"], options={"verify_signature": False})["sub"] == "1"
    told = server.client.get(base + "/status", headers=bearer(place["place"])).json()
    assert (told["state"], told["position"], told["ahead"]) == ("waiting", 1, 0)
    assert set(told["wait"]) == {"low_s", "high_s", "reason"}
    server.room.move(hi=1)
    assert server.client.get(base + "/status", headers=bearer(place["place"])).json()["state"] == "active"
    server.room.move(hi=5, lo=3)
    assert server.client.get(base + "/status", headers=bearer(place["place"])).json()["state"] == "expired"


def test_an_idempotency_key_gets_the_same_place_again(server: ServedRoom) -> None:
    first = joined(server, headers={"Idempotency-Key": "abc"})
    assert joined(server, headers={"Idempotency-Key": "abc"}) == first
    assert joined(server, headers={"Idempotency-Key": "abd"})["place"] != first["place"]
    for bad in ("x" * 129, "\x80"):
        answer = server.client.post("/join", headers={"Idempotency-Key": bad.encode("latin-1")})
        assert (answer.status_code, answer.json()["param"]) == (422, "idempotency-key")


def test_an_active_place_becomes_a_pass_once_and_the_pass_is_checked_renewed_and_given_back(server: ServedRoom) -> None:
    """W7."""
    place = joined(server)["place"]
    refused = server.client.post("/claim", headers=bearer(place))
    assert (refused.status_code, refused.json()["code"]) == (409, "not_your_turn")
    server.room.move(hi=1)
    claimed = server.client.post("/claim", headers=bearer(place) | {"Idempotency-Key": "k"})
    assert claimed.status_code == 201
    assert server.client.post("/claim", headers=bearer(place) | {"Idempotency-Key": "k"}).json() == claimed.json()
    assert server.client.post("/claim", headers=bearer(place)).json()["code"] == "already_claimed"
    text = claimed.json()["pass"]
    keys = server.client.get("/.well-known/jwks.json").json()
    key = jwt.PyJWK(keys["keys"][0], algorithm="RS256").key
    options: Any = {"verify_exp": False, "verify_iat": False}
    assert jwt.decode(text, key, algorithms=["RS256"], audience="aurora", options=options)["sub"] == "p1"
    checked = server.client.get("/pass", headers=bearer(text))
    assert (checked.status_code, checked.headers["frontrow-person"]) == (204, "p1")
    heard = server.client.post("/heartbeat", headers=bearer(text))
    assert (heard.status_code, heard.json()["ends_in_s"]) == (200, 120)
    left = server.client.post("/left", headers=bearer(text))
    assert (left.status_code, left.json()["ends_in_s"]) == (200, 10)
    renewed = server.client.post("/renew", headers=bearer(text)).json()
    assert renewed["expires_at_s"] > claimed.json()["expires_at_s"]
    assert server.client.post("/give-back", headers=bearer(text)).json() == {"ended": True}
    gone = server.client.get("/pass", headers=bearer(text))
    assert (gone.status_code, gone.json()["code"]) == (403, "pass_ended")
    over = server.client.post("/heartbeat", headers=bearer(text))
    assert (over.status_code, over.json()["code"]) == (409, "pass_ended")


def test_of_a_hundred_parallel_claims_one_gets_the_pass(server: ServedRoom) -> None:
    """W7."""
    place = joined(server)["place"]
    server.room.move(hi=1)
    with ThreadPoolExecutor(25) as pool:
        codes = list(pool.map(lambda _: server.client.post("/claim", headers=bearer(place)).status_code, range(100)))
    assert sorted(codes) == [201] + [409] * 99


def test_fifty_people_joining_at_once_get_fifty_places(server: ServedRoom) -> None:
    with ThreadPoolExecutor(25) as pool:
        places = list(pool.map(lambda _: joined(server)["position"], range(50)))
    assert sorted(places) == list(range(1, 51))


def test_now_serving_is_small_signed_cacheable_and_the_same_for_all(server: ServedRoom) -> None:
    answer = server.client.get("/now-serving")
    assert len(answer.content) <= 300
    assert answer.headers["cache-control"] == "public, max-age=1, stale-if-error=3600"
    public = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()
    assert read(public, answer.content).e == "aurora"
    again = server.client.get("/now-serving", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == answer.headers["etag"]
    assert server.client.get("/now-serving", headers=bearer("somebody")).content == answer.content
    server.room.move(hi=3)
    assert server.client.get("/now-serving", headers={"If-None-Match": answer.headers["etag"]}).status_code == 200


def bad_places(place: str) -> dict[str, str]:
    header, payload, signature = place.split(".")
    secret, claims = b"x" * 32, {"sub": "1", "evt": "aurora", "ep": 1, "ln": 0, "iat": 1}
    return {
        "rubbish": "a.b.c",
        "tampered": f"{header}.{payload[:-2]}AA.{signature}",
        "foreign": jwt.encode(claims, secret, algorithm="HS256"),
        "none": jwt.encode(claims, None, algorithm="none"),
        "numeric": jwt.encode(claims | {"sub": 1}, secret, algorithm="HS256"),
        "long": "A" * 30_000,
        "not ascii": "\xe9\xe9.\xe9.\xe9",
    }


def test_bad_places_are_refused_with_a_code(server: ServedRoom) -> None:
    place = joined(server)["place"]
    for name, text in bad_places(place).items():
        for method, path in (("GET", "/status"), ("POST", "/claim")):
            header = {"Authorization": b"Bearer " + text.encode("latin-1")}
            answer = server.client.request(method, path, headers=header)
            assert answer.status_code == 401, name
            assert answer.headers["content-type"] == "application/problem+json", name
            assert answer.json()["code"] in ("place_invalid", "unauthorised"), name
            assert answer.headers["www-authenticate"].startswith("Bearer"), name
    assert server.client.get("/status").status_code == 401
    assert server.client.get("/status", headers={"Authorization": "Basic abc"}).status_code == 401


def test_a_place_of_another_event_is_refused_and_an_unknown_event_is_404(server: ServedRoom) -> None:
    foreign = SimpleRoom("borealis").places.mint(Place("borealis", 0, 1, 1, 1))
    answer = server.client.get("/status", headers=bearer(foreign))
    assert (answer.status_code, answer.json()["code"]) == (403, "place_foreign")
    for method, path in (("POST", "join"), ("GET", "now-serving"), ("GET", "stream"), ("GET", "")):
        answer = server.client.request(method, f"/v1/events/nowhere/room/{path}")
        assert answer.status_code == 404, path
        assert answer.headers["content-type"] == "application/problem+json"


def test_a_body_that_cannot_be_right_is_a_422_naming_it(server: ServedRoom) -> None:
    wrong = (b"{", b"[]", b'{"person":1}', b'{"unknown":1}', b"\xff\xfe", b'{"proof":' + b"[" * 5000, b"null")
    for body in wrong:
        answer = server.client.post("/join", content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["param"]) == (422, "body"), body[:20]


def test_a_body_over_the_bound_is_a_413(server: ServedRoom) -> None:
    answer = server.client.post("/join", content=b" " * 17_000)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_unknown_paths_and_methods_are_problems_too(server: ServedRoom) -> None:
    for method, path, status in (("GET", "/nope", 404), ("DELETE", "/join", 405), ("GET", "/join", 405)):
        answer = server.client.request(method, path)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == status
    assert "POST" in server.client.delete("/join").headers["allow"]


def test_the_organiser_needs_the_key(server: ServedRoom) -> None:
    for headers in ({}, bearer("wrong"), bearer(ORGANISER + "x"), {"Authorization": f"Basic {ORGANISER}"}, bearer("é")):
        raw = {name: value.encode("utf-8") for name, value in headers.items()}
        for method in ("GET", "PATCH"):
            assert server.client.request(method, "/room", headers=raw, content=b"{}").status_code == 401
    assert server.client.get("/room", headers=bearer(ORGANISER)).json()["phase"] == "open"
    assert server.room.state.phase is Phase.OPEN


def test_without_a_configured_key_nobody_is_the_organiser(kind: str) -> None:
    room = SimpleRoom()
    for server in opened(kind, room, endpoints_of(room, key="")):
        for headers in ({}, {"Authorization": "Bearer"}, bearer("x")):
            assert server.client.get("/room", headers=headers).status_code == 403
            assert server.client.patch("/room", headers=headers, json={"action": "pause"}).status_code == 403


def test_the_organiser_pauses_resumes_and_changes_rate_capacity_and_message(server: ServedRoom) -> None:
    def patch(**change: object) -> Any:
        return server.client.patch(DEEP + "/room", headers=bearer(ORGANISER), json=change)

    assert patch(action="pause").json()["phase"] == "paused"
    assert json.loads(server.client.get("/now-serving").content)["s"] == "paused"
    assert patch(action="resume", rate_per_s=7, capacity=9, message="Hello").json()["phase"] == "open"
    view = server.client.get("/room", headers=bearer(ORGANISER)).json()
    assert (view["rate_per_s"], view["capacity"], view["message"]) == (7, 9, "Hello")
    assert server.client.get("/message").json() == {"message": "Hello", "message_no": 1}
    for bad in (
        {"action": "explode"},
        {"capacity": -1},
        {"rate_per_s": "7"},
        {"x": 1},
        {"burst": 3},
        {"message": "x" * 300},
    ):
        assert (
            patch(action="pause", **bad).status_code == 422 if "action" not in bad else patch(**bad).status_code == 422
        )
    assert server.client.get("/room", headers=bearer(ORGANISER)).json()["phase"] == "open", (
        "a bad change changed something"
    )


def test_limits_per_ip_and_per_person_hold_and_now_serving_is_not_limited(kind: str) -> None:
    """W12, B17."""
    room = SimpleRoom()
    for server in opened(kind, room, endpoints_of(room, rules=EntranceRules("3/hour", "20/hour"))):
        place = joined(server)["place"]
        codes = [server.client.get("/status", headers=bearer(place)).status_code for _ in range(5)]
        assert codes == [200] * 3 + [429] * 2
        answers = [server.client.post("/join") for _ in range(16)]
        assert [answer.status_code for answer in answers] == [201] * 14 + [429] * 2
        assert int(answers[-1].headers["retry-after"]) > 1
        assert answers[-1].json()["code"] == "rate_limited"
        assert all(server.client.get("/now-serving").status_code == 200 for _ in range(50))


CHANGING = ("date", "server", "ratelimit", "x-ratelimit-remaining", "x-ratelimit-reset")
LIMITS = {"ratelimit", "ratelimit-policy", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}


def told_by(answer: httpx.Response) -> set[str]:
    return {name for name in answer.headers if "ratelimit" in name}


def test_every_counted_answer_tells_what_is_left_and_no_other(kind: str) -> None:
    """L12. The last one is refused."""
    room = SimpleRoom()
    for server in opened(kind, room, endpoints_of(room, rules=EntranceRules("30/hour", "20/hour"))):
        client, place = server.client, joined(server)["place"]
        answers = [
            client.post("/join"),
            client.get("/status", headers=bearer(place)),
            client.get("/status"),
            client.post("/claim", headers=bearer(place)),
            client.get("/pass"),
            client.post("/join", content=b"{"),
            client.post("/renew"),
            client.get("/none"),
            *(client.post("/join") for _ in range(12)),
        ]
        assert [told_by(answer) for answer in answers] == [LIMITS] * 20
        left = [int(answer.headers["x-ratelimit-remaining"]) for answer in answers]
        assert left == [*range(18, -1, -1), 0]
        assert {answer.headers["x-ratelimit-limit"] for answer in answers} == {"20"}
        assert (answers[-1].status_code, answers[-1].headers["ratelimit"][:13]) == (429, '"address";r=0')
        for path in ("/now-serving", "/healthz", "/metrics"):
            assert told_by(client.get(path)) == set(), "these are not counted"
    quiet = EntranceRules("30/hour", "20/hour", x_ratelimit_headers=False)
    for server in opened(kind, room, endpoints_of(room, rules=quiet)):
        assert told_by(server.client.post("/join")) == {"ratelimit", "ratelimit-policy"}


def test_beyond_the_depth_cap_joins_get_503_and_browsers_the_static_page(kind: str) -> None:
    """W10, F3."""
    room = SimpleRoom(config=RoomConfig(depth_cap=2))
    for server in opened(kind, room, endpoints_of(room)):
        joined(server), joined(server)
        refused = server.client.post("/join")
        assert (refused.status_code, refused.json()["code"]) == (503, "room_overflow")
        assert int(refused.headers["retry-after"]) >= 1
        page = server.client.get("/", headers={"Accept": "text/html"})
        assert (page.status_code, page.headers["retry-after"]) == (503, "60")
        assert page.headers["cache-control"] == "public, max-age=60"
        assert "waiting room can hold" in page.text
        posted = server.client.post("/join", headers={"Accept": "text/html"}, data={"page": "true"})
        assert (posted.status_code, posted.content) == (503, page.content)
        assert server.client.get("/overflow").content == page.content


def test_metrics_count_what_was_answered_and_refused(server: ServedRoom) -> None:
    joined(server)
    server.client.get("/status")
    text = server.client.get("/metrics").text
    assert 'frontrow_room_requests_total{endpoint="join"} 1.0' in text
    assert 'frontrow_room_refusals_total{code="unauthorised",endpoint="status"} 1.0' in text
    assert 'frontrow_room_waiting{event="aurora"} 1.0' in text
    assert server.client.get("/healthz").json() == {"ok": True, "rooms": {"aurora": "open"}}


def test_the_openapi_document_names_every_endpoint(server: ServedRoom) -> None:
    paths = server.client.get("/schema/openapi.json").json()["paths"]
    for name in ("join", "status", "claim", "now-serving", "stream", "room"):
        assert f"/v1/events/{{event}}/room/{name}" in paths


def test_fast_path_and_framework_give_the_same_bytes() -> None:
    """The same questions, in the same order, to the same room through each kind of server."""
    recorded = []
    for kind in ("hot", "litestar"):
        room = SimpleRoom()
        for server in opened(kind, room, endpoints_of(room)):
            answers = []
            place = joined(server)["place"]
            questions = [
                ("POST", "/join", {}, b""),
                ("POST", "/join", {"Content-Type": "application/json"}, b'{"person":"ada"}'),
                ("POST", "/join", {}, b"{"),
                ("POST", "/join", {}, b"x" * 20_000),
                ("GET", "/status", bearer(place), b""),
                ("GET", "/status", bearer("x"), b""),
                ("GET", "/now-serving", {}, b""),
                ("POST", "/claim", bearer(place), b""),
                ("POST", "/claim", {}, b'{"page":true}'),
                ("GET", "/pass", {}, b""),
                ("GET", "/v1/events/aurora/room/now-serving", {}, b""),
            ]
            for method, path, headers, body in questions:
                answer = server.client.request(method, path, headers=headers, content=body)
                told = {k: v for k, v in answer.headers.items() if k not in CHANGING}
                answers.append((answer.status_code, told, answer.content))
            recorded.append(answers)
    assert recorded[0] == recorded[1]


def test_a_store_that_is_away_is_a_503_that_names_no_machine_of_ours(
    server: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F1."""

    async def away(*_: object, **__: object) -> None:
        try:
            raise ConnectionError("10.1.2.3:6379 refused")
        except ConnectionError as error:
            raise Unavailable("the store did not answer: 10.1.2.3:6379 refused", retry_after_s=1) from error

    monkeypatch.setattr(server.room, "join", away)
    answer = server.client.post("/join")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "10.1.2.3" not in answer.text


def test_a_flood_of_rubbish_leaves_the_room_serving(server: ServedRoom) -> None:
    for rubbish in (b"\0" * 100, b"GET\r\n\r\n", b"POST /join HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"\x80" * 5000):
        with Line(server.port) as line:
            line.send(rubbish)
    assert joined(server)["position"] == 1
