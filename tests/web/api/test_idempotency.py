"""`Idempotency-Key`: one effect however often it is asked for, never somebody else's answer."""

import asyncio
from collections import Counter

import pytest

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.requests.idempotency_store import KeptAnswer
from tests.boxoffice.people.support import fan
from tests.boxoffice.shop import sqlite_url
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, a_client, a_platform

CALLERS = 50


@pytest.fixture(params=["sqlite", "postgres"])
async def book(request, tmp_path):
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_ledger_url")
    else:
        url = sqlite_url(tmp_path)
    ledger = await open_ledger(url)
    yield ledger.idempotency
    await ledger.aclose()


@pytest.mark.parametrize("signed_in", [False, True])
async def test_a_key_that_is_none_is_refused_at_the_rooms_entrance_too(tmp_path, signed_in):
    """Found by schemathesis: with a session, a join with an odd key was our fault (500)."""
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        headers = (await fan(platform)).bearer if signed_in else {}
        for key in ("x" * 129, "\u00e9".encode("latin-1")):
            asked = [*headers.items(), ("idempotency-key", key)]
            answer = await client.post(f"/v1/events/{EVENT_ID}/room/join", headers=asked)
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), answer.text


async def test_one_of_many_callers_gets_the_key(book):
    taken = await asyncio.gather(*(book.begin("k", "asked", 100, 200) for _ in range(CALLERS)))
    assert taken.count(None) == 1
    assert {kept.status for kept in taken if kept is not None} == {0}


async def test_a_kept_answer_is_given_back_and_a_forgotten_key_is_free(book):
    assert await book.begin("k", "asked", 100, 200) is None
    await book.finish("k", KeptAnswer("", 201, "application/json", "{}", "e30="), 150)
    await book.forget("k")
    assert await book.begin("k", "asked", 300, 400) == KeptAnswer("asked", 201, "application/json", "{}", "e30=")
    assert await book.begin("l", "asked", 100, 200) is None
    await book.forget("l")
    assert await book.begin("l", "other", 100, 200) is None


async def test_a_claim_that_ended_is_taken_over_by_the_same_request_only(book):
    assert await book.begin("k", "asked", 100, 200) is None
    assert await book.begin("k", "asked", 199, 300) is not None, "alive until 200"
    assert await book.begin("k", "other", 200, 300) is not None
    assert await book.begin("k", "asked", 200, 300) is None


async def test_what_is_old_is_purged(book):
    assert await book.begin("k", "asked", 100, 200) is None
    await book.finish("k", KeptAnswer("", 200), 150)
    await book.purge(100)
    assert await book.begin("k", "asked", 101, 200) is not None
    await book.purge(101)
    assert await book.begin("k", "asked", 102, 200) is None


async def test_50_refunds_with_one_key_are_one_refund(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, seats=["S-A-1", "S-A-2"])
        await buyer.pay(held["booking"])
        key = {"Idempotency-Key": "once"}
        asks = [
            buyer.call("ask_refund", booking_id=held["booking"], json={"seats": ["S-A-1"]}, headers=key)
            for _ in range(CALLERS)
        ]
        answers = Counter(answer.status_code for answer in await asyncio.gather(*asks))
        assert set(answers) <= {201, 409}
        assert answers[201] >= 1
        again = await buyer.call("ask_refund", booking_id=held["booking"], json={"seats": ["S-A-1"]}, headers=key)
        assert (again.status_code, again.headers["idempotent-replayed"]) == (201, "true")
        other = await buyer.call("ask_refund", booking_id=held["booking"], json={"seats": ["S-A-2"]}, headers=key)
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_mismatch")
        refunds = (await buyer.call("list_refunds", booking_id=held["booking"])).json()["refunds"]
        assert len(refunds) == 1


async def test_a_key_belongs_to_its_caller(tmp_path):
    """Idempotency isolation: the same key and body of somebody else is another request."""
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        answers = []
        for seat in ("S-A-1", "S-A-2"):
            buyer = await a_buyer(client)
            await buyer.enter(EVENT_ID)
            held = await buyer.hold(EVENT_ID, seats=[seat])
            await buyer.pay(held["booking"])
            answers.append(
                await buyer.call("ask_refund", booking_id=held["booking"], json={}, headers={"Idempotency-Key": "k"})
            )
        assert [answer.status_code for answer in answers] == [201, 201]
        assert "idempotent-replayed" not in answers[1].headers
        assert answers[0].json()["booking"] != answers[1].json()["booking"]


async def test_a_refused_request_does_not_keep_its_key(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, seats=["S-A-1"])
        key = {"Idempotency-Key": "early"}
        early = await buyer.call("ask_refund", booking_id=held["booking"], json={}, headers=key)
        assert early.status_code == 409
        await buyer.pay(held["booking"])
        now = await buyer.call("ask_refund", booking_id=held["booking"], json={}, headers=key)
        assert now.status_code == 201
