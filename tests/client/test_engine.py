"""How the client asks again: only what is safe, with the same key, after what the server said, and not for ever."""

import json
from collections.abc import Callable

import httpx
import pytest

from frontrow.client import (
    AsyncClient,
    Client,
    Gone,
    InvalidRequest,
    Overloaded,
    PaymentDeclined,
    Policy,
    Problem,
    RateLimited,
    Refused,
    SeatsTaken,
    Unreachable,
    calls,
)
from frontrow.client.errors import BY_CODE
from frontrow.web.http.problems import PROBLEMS

BOOKING = {
    "booking": "bkg_1",
    "event": "evt_1",
    "state": "held",
    "seats": [],
    "fence": 1,
    "created_at": "2026-01-01",
    "amount": {"amount_minor": 1, "currency": "EUR"},
    "a_new_field": True,
}
Answer = Callable[[httpx.Request], httpx.Response]


class Server:
    """Answers as told, one after the other; the last one again and again."""

    def __init__(self, *answers: Answer | httpx.Response) -> None:
        self.answers = list(answers)
        self.seen: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer(request) if callable(answer) else answer

    async def answer(self, request: httpx.Request) -> httpx.Response:
        return self(request)


def problem(status: int, code: str, retry_after: str = "") -> httpx.Response:
    body = {"type": "t", "title": "T", "status": status, "detail": "why", "code": code, "seats": ["A-1"]}
    headers = {"retry-after": retry_after} if retry_after else {}
    return httpx.Response(status, json=body, headers=headers | {"x-request-id": "r1"})


def lost(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadError("connection reset")


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    taken: list[float] = []
    monkeypatch.setattr("frontrow.client.clients.time.sleep", taken.append)
    return taken


def client(server: Server, **policy: float) -> Client:
    http = httpx.Client(transport=httpx.MockTransport(server), base_url="http://x")
    return Client("http://x", policy=Policy(**policy), http=http)  # type: ignore[arg-type]


def test_a_lost_answer_is_asked_for_again_with_the_same_key(pauses):
    server = Server(lost, lost, httpx.Response(200, json=BOOKING))
    with client(server) as shop:
        assert shop.pay("bkg_1", "pm_card_visa").booking == "bkg_1"
    keys = {request.headers["idempotency-key"] for request in server.seen}
    assert len(server.seen) == 3
    assert len(keys) == 1
    assert len({request.content for request in server.seen}) == 1
    assert len(pauses) == 2


def test_two_calls_have_two_keys_and_the_callers_own_key_is_kept():
    server = Server(httpx.Response(201, json=BOOKING | {"expires_at": "x", "booking_token": "frb_x"}))
    with client(server) as shop:
        shop.hold("evt_1", ["A-1"])
        shop.hold("evt_1", ["A-1"])
        shop.hold("evt_1", ["A-1"], key="mine")
    keys = [request.headers["idempotency-key"] for request in server.seen]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


def test_retry_after_is_honoured_and_too_long_a_one_is_raised(pauses):
    server = Server(
        problem(503, "overloaded", "3"), problem(429, "rate_limited", "1"), httpx.Response(200, json=BOOKING)
    )
    with client(server) as shop:
        shop.send(calls.get_booking("bkg_1"))
    assert pauses == [3.0, 1.0]
    with client(Server(problem(503, "overloaded", "600"))) as shop, pytest.raises(Overloaded) as caught:
        shop.send(calls.get_booking("bkg_1"))
    assert caught.value.retry_after_s == 600
    assert pauses == [3.0, 1.0]


def test_tries_are_bounded(pauses):
    server = Server(lost)
    with client(server, tries=3) as shop, pytest.raises(Unreachable):
        shop.send(calls.get_booking("bkg_1"))
    assert len(server.seen) == 3


def test_what_is_not_safe_to_repeat_is_asked_once(pauses):
    for answer in (lost, problem(503, "unavailable", "1")):
        server = Server(answer)
        with client(server) as shop, pytest.raises(Problem):
            shop.send(calls.extend_hold("bkg_1"))
        assert len(server.seen) == 1
    server = Server(problem(409, "refused"))
    with client(server) as shop, pytest.raises(Refused):
        shop.pay("bkg_1", "pm")
    assert len(server.seen) == 1, "a refusal is an answer"


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (409, "seats_taken", SeatsTaken),
        (402, "payment_declined", PaymentDeclined),
        (410, "hold_ended", Gone),
        (422, "invalid_input", InvalidRequest),
        (429, "rate_limited", RateLimited),
        (500, "error", Problem),
        (418, "http_418", Problem),
    ],
)
def test_problems_become_typed_exceptions_with_the_servers_codes(status, code, kind, pauses):
    with client(Server(problem(status, code)), tries=1) as shop, pytest.raises(kind) as caught:
        shop.pay("bkg_1", "pm")
    assert caught.value.code == code
    assert caught.value.status == status
    assert caught.value.request_id == "r1"
    assert caught.value.about["seats"] == ["A-1"]


def test_the_codes_the_client_knows_are_the_servers():
    assert set(BY_CODE) <= set(PROBLEMS)


def test_an_answer_that_is_no_json_is_still_a_problem():
    with (
        client(Server(httpx.Response(502, text="<html>bad gateway")), tries=1) as shop,
        pytest.raises(Overloaded) as caught,
    ):
        shop.pay("bkg_1", "pm")
    assert caught.value.code == "http_502"


def test_ids_cannot_leave_their_place_in_the_path():
    server = Server(httpx.Response(200, json=BOOKING))
    with client(server) as shop:
        shop.send(calls.get_booking("../events?x=1#y"))
    assert server.seen[0].url.raw_path == b"/v1/bookings/..%2Fevents%3Fx%3D1%23y"


def test_tokens_are_sent_where_they_belong_and_never_shown():
    hold = BOOKING | {"expires_at": "x", "booking_token": "frb_secret"}
    server = Server(httpx.Response(201, json=hold))
    with client(server) as shop:
        shop.keyring.passes["evt_1"] = "eyJsecret"
        shop.hold("evt_1", ["A-1"])
        server.answers = [httpx.Response(200, json=BOOKING)]
        shop.pay("bkg_1", "pm")
        assert "secret" not in repr(shop.keyring)
    paid = server.seen[-1].headers
    assert paid["frontrow-pass"] == "eyJsecret"
    assert paid["frontrow-booking"] == "frb_secret"
    assert "frontrow-pass" not in Client("http://x").keyring.credentials(calls.get_event("evt_2"))


async def test_the_asynchronous_client_does_the_same(monkeypatch):
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("frontrow.client.clients.asyncio.sleep", pause)
    server = Server(lost, problem(503, "overloaded", "2"), httpx.Response(200, json=BOOKING))
    http = httpx.AsyncClient(transport=httpx.MockTransport(server.answer), base_url="http://x")
    async with AsyncClient("http://x", http=http) as shop:
        assert (await shop.pay("bkg_1", "pm")).state == "held"
    assert len({request.headers["idempotency-key"] for request in server.seen}) == 1
    assert pauses[1] == 2.0
    assert json.loads(server.seen[0].content) == {"method": "pm"}
