"""Every POST of the API keeps its promise about `Idempotency-Key`: repeated with a key, it is carried out once.

A route that keeps no response is named here with the reason why repeating it is harmless.
"""

import base64
import contextlib
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from litestar import Request, Response

from frontrow.core.errors import Unavailable
from frontrow.web.api import idempotency
from frontrow.web.server import app as web_app
from tests.boxoffice.organiser.http import a_venue_body
from tests.security.route_table import Route, table
from tests.security.world import EVENT_ID, AsgiClient, World, bearer
from tests.support.eventually import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

OWN_KEY = "keeps keys of its own"
SAME_AGAIN = "asked for again, it is the same"
ENDED = "what it ends has ended"
LINK_ONCE = "its link or code works once"
NUMBERED = "a report has a number that grows; the same number again changes nothing"
ANOTHER = "makes another session or mail, which nobody else can use"
REPEATABLE = {
    "place_hold": OWN_KEY,
    "room_join": OWN_KEY,
    "room_claim": OWN_KEY,
    "pay": SAME_AGAIN,
    "priority_pass": SAME_AGAIN,
    "claim_offer": SAME_AGAIN,
    "accept_transfer": SAME_AGAIN,
    "room_renew": SAME_AGAIN,
    "room_heartbeat": SAME_AGAIN,
    "ask_sale_notice": SAME_AGAIN,
    "register_for_presale": SAME_AGAIN,
    "confirm_sign_up": SAME_AGAIN,
    "provider_webhook": SAME_AGAIN,
    "channel_report": SAME_AGAIN,
    "ask_storm_consent": SAME_AGAIN,
    "room_notice": SAME_AGAIN,
    "room_shop_health": NUMBERED,
    "room_give_back": ENDED,
    "room_left": ENDED,
    "room_leave": ENDED,
    "end_sign_up": ENDED,
    "erase_my_data": ENDED,
    "redeem_sign_in_link": LINK_ONCE,
    "accept_invitation": LINK_ONCE,
    "staff_second_step": LINK_ONCE,
    "confirm_totp_enrolment": LINK_ONCE,
    "change_password": LINK_ONCE,
    "ask_sign_in_link": ANOTHER,
    "start_guest_session": ANOTHER,
    "staff_sign_in": ANOTHER,
    "begin_totp_enrolment": ANOTHER,
}


def posts() -> list[Route]:
    return [route for route in table() if route.method == "POST"]


def caller_of(world: World, route: Route) -> list[tuple[str, str]]:
    name = "owner of hall" if route.access.startswith("staff:") else "fan"
    return bearer(world.people[name].session)


async def test_every_post_that_keeps_no_response_is_named_with_its_reason() -> None:
    keeps_none = {route.name for route in posts() if route.opt.get("idempotency") == "own"}
    assert keeps_none == REPEATABLE.keys()
    assert len(posts()) > 60


async def test_every_other_post_is_carried_out_once_with_a_key(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The app as it is, but a counter stands where the handlers are."""
    done: Counter[str] = Counter()

    async def count(request: Request[Any, Any, Any]) -> Response[Any]:
        answered = await idempotency.before_request(request)
        if answered is not None:
            return answered
        name = str(request.scope["route_handler"].operation_id)
        done[name] += 1
        return Response({"done": done[name]}, status_code=201)

    monkeypatch.setattr(web_app, "before_request", count)
    client = AsgiClient(web_app.platform_app(world.platform, own_loops=False))
    for route in posts():
        if route.name in REPEATABLE:
            continue
        headers = [*caller_of(world, route), ("idempotency-key", f"walk-{route.name}")]
        path, body = route.path(event_id=EVENT_ID), route.sample() if route.body_type is not None else {}
        first, again = [await client.ask("POST", path, headers, body) for _ in range(2)]
        assert (first.status, again.status, again.body) == (201, 201, first.body), (route.name, first.body)
        assert (first.header("idempotent-replayed"), again.header("idempotent-replayed")) == ("", "true"), route.name
        other = await client.ask("POST", path, headers, {"another": "body"})
        assert (other.status, other.code) == (409, "idempotency_mismatch"), route.name
        assert done[route.name] == 1, route.name


async def test_an_api_key_whose_response_was_lost_is_the_same_key(world: World) -> None:
    owner = bearer(world.people["owner of hall"].session)
    asked = {"name": "till", "scopes": ["door:scan"]}
    key = [("idempotency-key", "one till")]
    first, again = [await world.client.ask("POST", "/v1/organiser/keys", [*owner, *key], asked) for _ in range(2)]
    assert (first.status, again.status, again.header("idempotent-replayed")) == (201, 201, "true")
    assert first.json() == again.json()
    listed = (await world.client.ask("GET", "/v1/organiser/keys", owner)).json()["keys"]
    assert len([one for one in listed if one["name"] == "till"]) == 1
    for headers in (bearer(world.people["owner of other"].session), bearer(world.people["manager of hall"].session)):
        other = await world.client.ask("POST", "/v1/organiser/keys", [*headers, *key], asked)
        assert first.json()["key"] not in other.body.decode(), "nobody else's retry is answered with it"
    plain = (first.json()["key"], base64.b64encode(first.body).decode())
    bodies = stored_bodies(world)
    assert bodies
    assert not [one for one in bodies if any(text in one for text in plain)], "sealed in the ledger"
    end = await world.client.ask("DELETE", f"/v1/organiser/keys/{first.json()['id']}", owner)
    assert end.status == 204


def stored_bodies(world: World) -> list[str]:
    """The bodies of stored responses, as the ledger has them."""
    path = world.platform.settings.ledger.url.removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [body for (body,) in connection.execute("SELECT body FROM requests WHERE status > 0")]


@pytest_asyncio.fixture(loop_scope="session")
async def full_ledger(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[str]]:
    """A ledger that stores no response as long as the list has entries."""
    book, refusals = world.platform.stores.requests, ["no connection is left"] * 2
    finish = book.finish

    async def refuse(*given: Any) -> None:
        if refusals:
            raise Unavailable(refusals.pop(), retry_after_s=5.0)
        await finish(*given)

    monkeypatch.setattr(book, "finish", refuse)
    yield refusals


async def test_a_response_that_cannot_be_stored_is_503_and_is_stored_later(
    world: World, full_ledger: list[str]
) -> None:
    owner = [*bearer(world.people["owner of hall"].session), ("idempotency-key", "full")]
    asked = a_venue_body(name="Full Hall")
    lost = await world.client.ask("POST", "/v1/organiser/venues", owner, asked)
    assert (lost.status, lost.code) == (503, "unavailable"), lost.body
    assert (lost.header("retry-after"), lost.header("content-type")) == ("1", "application/problem+json")
    running = await world.client.ask("POST", "/v1/organiser/venues", owner, asked)
    assert (running.status, running.code) == (409, "idempotency_running"), "it was carried out: not once more"
    again = await eventually(
        lambda: world.client.ask("POST", "/v1/organiser/venues", owner, asked),
        until=lambda answer: answer.status != 409,
    )
    assert (again.status, again.header("idempotent-replayed")) == (201, "true")
    listed = (await world.client.ask("GET", "/v1/organiser/venues", owner)).json()["venues"]
    assert len([one for one in listed if one["name"] == "Full Hall"]) == 1
    assert full_ledger == []
